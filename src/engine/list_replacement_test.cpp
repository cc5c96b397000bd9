// SPDX-License-Identifier: Apache-2.0
#include "engine/list_replacement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast::engine {
namespace {

using namespace std::chrono_literals;
using flow = list_replacement;

// Three servers a, b and c, of which c is replaced by d. What each of them keeps.
class list_replacement_test : public ::testing::Test {
protected:
  void look(std::size_t at) {
    const std::string& name = replaces.members()[at].name;
    if (std::find(away.begin(), away.end(), name) != away.end()) return replaces.on_away(at, "it is down");
    replaces.on_seen(at, {kept(name), name, "v1|run|repl|0000000000000001|" + std::to_string(hold)});
  }
  std::string& kept(const std::string& name) { return records[static_cast<std::size_t>(name[0] - 'a')]; }

  // What is done, in a word each, until it waits or ends.
  std::string go_on() {
    std::string said;
    for (;;) {
      const auto next = replaces.next();
      if (std::holds_alternative<flow::look_at_all>(next)) {
        before_look(++looks);
        for (std::size_t i = 0; i < replaces.members().size(); ++i) look(i);
      } else if (const auto* one = std::get_if<flow::look>(&next)) {
        before_look(0);
        look(one->at);
      } else if (const auto* what = std::get_if<flow::write>(&next)) {
        const auto& name = replaces.members()[what->at].name;
        EXPECT_EQ(what->before, kept(name));
        if (const auto first = std::exchange(somebody_was_first, {}); !first.empty()) {
          kept(name) = first;
          replaces.on_written(what->at, what->record, first);
          said += "too late " + name + ", ";
          continue;
        }
        kept(name) = text_of(what->record);
        replaces.on_written(what->at, what->record, {});
        said += (what->record.is_open ? "open " : "close ") + name + ", ";
      } else if (const auto* pause = std::get_if<flow::wait>(&next)) {
        return said + "wait " + std::to_string(pause->time.count());
      } else if (std::holds_alternative<flow::tell_away>(next)) {
        said += "away, ";
      } else if (std::holds_alternative<flow::tell_goes_on>(next)) {
        said += "goes on, ";
      } else if (const auto* failed = std::get_if<flow::failure>(&next)) {
        why = failed->why.why;
        where = failed->why.endpoint;
        return said + make_error_code(failed->code).message();
      } else {
        return said + "done";
      }
    }
  }

  static constexpr const char* closed = "v1|2|closed|a:1,b:1,d:1";
  static constexpr const char* open = "v1|2|open|a:1,b:1,d:1";
  static constexpr const char* others = "v1|2|closed|a:1,b:1,e:1";
  std::vector<std::string> away{};
  int hold = 7000;                                    // The largest of its clients, as each server says.
  int looks = 0;                                      // At all of them.
  std::function<void(int)> before_look = [](int) {};  // At all of them, the how manieth time; 0: at one.
  std::string somebody_was_first{};                   // The next write finds this in its place.
  std::string why{};                                  // It failed.
  std::string where{};
  std::vector<std::string> records{"v1|1|open|a:1,b:1,c:1", "", "v1|1|open|a:1,b:1,c:1", ""};
  flow replaces{{{.servers = "a:1,b:1,c:1"}, {.servers = "a:1,b:1,d:1"}, "old", "new", "hf:quorum", 5s},
                {"a:1", "b:1", "c:1"},
                {"a:1", "b:1", "d:1"}};
};

// Then a, b and d by a, b and c again.
class next_replacement_test : public list_replacement_test {
protected:
  next_replacement_test() {
    records = {open, open, "v1|2|closed|a:1,b:1,d:1", open};
    replaces =
        flow{{{.generation = 2, .servers = "a:1,b:1,d:1"}, {.servers = "a:1,b:1,c:1"}, "old", "new", "hf:quorum", 5s},
             {"a:1", "b:1", "d:1"},
             {"a:1", "b:1", "c:1"}};
  }
};

TEST_F(list_replacement_test, closes_the_old_list_waits_for_its_longest_lease_and_opens_the_new_one_P26) {
  EXPECT_EQ(go_on(), "close a:1, close b:1, close c:1, wait 7000");
  EXPECT_EQ(go_on(), "open a:1, open b:1, open d:1, done");
}

// From numbers to names, say, of a list that is in use.
TEST_F(list_replacement_test, a_server_that_keeps_the_old_list_may_have_another_address_in_the_new_one_P26) {
  for (auto& each : records) each = "v1|1|open|a:1,b:1,c:1";
  replaces = flow{{{.servers = "a:1,b:1,c:1"}, {.servers = "aa:1,b:1,c:1"}, "old", "new", "hf:quorum", 5s},
                  {"a:1", "b:1", "c:1"},
                  {"aa:1", "b:1", "c:1"}};
  EXPECT_EQ(go_on(), "close a:1, close b:1, close c:1, wait 7000");
  EXPECT_EQ(go_on(), "open aa:1, open b:1, open c:1, done");
}

// A client whose leases live longer than anybody's came between the look and the closing.
TEST_F(list_replacement_test, waits_for_what_the_servers_say_when_they_are_closed_P26_C1) {
  before_look = [&](int which) {
    if (which == 2) hold = 9000;
  };
  EXPECT_EQ(go_on(), "close a:1, close b:1, close c:1, wait 9000");
  EXPECT_EQ(go_on(), "open a:1, open b:1, open d:1, done");
}

// A majority of the closed ones: it shares one with the majority that granted.
TEST_F(list_replacement_test, does_not_begin_to_wait_when_too_few_of_the_closed_say_for_how_long_P26_C1) {
  before_look = [&](int which) {
    if (which == 2) away = {"a:1", "b:1"};
  };
  EXPECT_EQ(go_on(), "close a:1, close b:1, close c:1, " + make_error_code(errc::no_quorum).message());
}

TEST_F(list_replacement_test, closes_again_who_forgot_it_before_the_wait_P26_C1) {
  before_look = [&](int which) {
    if (which == 2) kept("a:1") = kept("c:1") = "";
  };
  EXPECT_EQ(go_on(), "close a:1, close b:1, close c:1, close a:1, close c:1, wait 7000");
}

TEST_F(list_replacement_test, waits_for_the_rest_of_what_a_closed_server_says_behind_the_wait_P26_C1) {
  before_look = [&](int which) { hold = which == 3 ? 9000 : 7000; };
  EXPECT_EQ(go_on(), "close a:1, close b:1, close c:1, wait 7000");
  EXPECT_EQ(go_on(), "wait 2000");
  EXPECT_EQ(go_on(), "open a:1, open b:1, open d:1, done");
}

TEST_F(list_replacement_test, waits_again_when_a_majority_forgot_meanwhile_that_it_was_closed_P26) {
  (void)go_on();
  kept("a:1") = kept("c:1") = "";
  EXPECT_EQ(go_on(), "close a:1, close c:1, wait 7000");
  EXPECT_EQ(go_on(), "open a:1, open b:1, open d:1, done");
}

TEST_F(list_replacement_test, goes_on_without_a_wait_where_both_lists_say_that_somebody_has_waited_P26) {
  records = {open, open, closed, ""};
  EXPECT_EQ(go_on(), "goes on, open d:1, done");
}

TEST_F(list_replacement_test, waits_when_too_few_are_open_for_the_new_list_P26) {
  records = {closed, open, closed, ""};
  EXPECT_EQ(go_on(), "wait 7000");
}

TEST_F(list_replacement_test, leaves_out_who_is_away_and_looks_again_before_it_opens_P26) {
  away = {"d:1"};
  EXPECT_EQ(go_on(), "away, close a:1, close b:1, close c:1, wait 7000");
  away.clear();
  EXPECT_EQ(go_on(), "open a:1, open b:1, open d:1, done");
}

// Two people, each of whom did not reach the server that the other one closed first.
TEST_F(list_replacement_test, goes_on_with_a_majority_where_a_server_is_closed_for_another_list_P26) {
  records = {closed, others, closed, ""};
  EXPECT_EQ(go_on(), "wait 7000");
  EXPECT_EQ(go_on(), "open a:1, open b:1, open d:1, done");
}

TEST_F(list_replacement_test, goes_on_past_a_server_of_another_list_to_a_majority_P26) {
  records = {closed, others, "", ""};
  EXPECT_EQ(go_on(), "close c:1, wait 7000");
}

TEST_F(list_replacement_test, leaves_it_to_who_has_a_majority_P26) {
  records = {closed, others, others, ""};
  EXPECT_EQ(go_on(), make_error_code(errc::other_quorum).message());
  EXPECT_EQ(why,
            "another replacement is under way: finish that replacement, with a:1,b:1,e:1 as the "
            "new list");
}

TEST_F(list_replacement_test, says_how_to_go_on_where_no_list_can_have_a_majority_any_more_P26) {
  records = {closed, others, "v1|2|closed|a:1,b:1,f:1", ""};
  EXPECT_EQ(go_on(), make_error_code(errc::other_quorum).message());
  EXPECT_EQ(why,
            "several replacements are under way, and none of them can close a majority any more: stop them, "
            "redis-cli DEL hf:quorum where it names another new list than the one that you choose, and replace "
            "the list by that");
}

TEST_F(list_replacement_test, says_how_to_go_on_where_the_last_server_is_away_P26) {
  records = {closed, others, "", ""};
  away = {"c:1"};
  EXPECT_EQ(go_on(), "away, " + make_error_code(errc::other_quorum).message());
  EXPECT_EQ(why,
            "1 are closed for yours, and another replacement is under way: start the others and call again; if "
            "they are gone for good, stop the other one and redis-cli DEL hf:quorum where it names its list");
}

// It was closed for a list of the same generation that lost.
TEST_F(next_replacement_test, takes_what_was_left_closed_for_the_old_list_P26) {
  records = {"v1|2|open|a:1,b:1,d:1", "v1|2|closed|a:1,b:1,e:1", "", "v1|2|open|a:1,b:1,d:1"};
  EXPECT_EQ(go_on(), "close a:1, close b:1, close d:1, wait 7000");
}

// c was away when it was replaced, and is to be back on the list.
TEST_F(next_replacement_test, takes_a_server_back_that_has_not_heard_that_its_list_was_replaced_P26) {
  records[2] = "v1|1|open|a:1,b:1,c:1";
  EXPECT_EQ(go_on(), "close a:1, close b:1, close d:1, wait 7000");
  EXPECT_EQ(go_on(), "open a:1, open b:1, open c:1, done");
}

TEST_F(next_replacement_test, leaves_a_server_alone_whose_list_may_be_in_use_P26) {
  records[2] = "v1|1|open|a:1,c:1,g:1";
  EXPECT_EQ(go_on(), make_error_code(errc::other_quorum).message());
}

// It was away when it could have been said before anything was closed.
TEST_F(list_replacement_test, leaves_out_a_new_server_that_turns_out_to_be_another_list_s_P26) {
  records[3] = "v1|1|open|d:1,g:1,h:1";
  away = {"d:1"};
  EXPECT_EQ(go_on(), "away, close a:1, close b:1, close c:1, wait 7000");
  away.clear();
  EXPECT_EQ(go_on(), "open a:1, open b:1, away, done");
  EXPECT_EQ(replaces.members()[3].trouble, "it belongs to v1|1|open|d:1,g:1,h:1");
  EXPECT_EQ(records[3], "v1|1|open|d:1,g:1,h:1");
}

TEST_F(list_replacement_test, changes_nothing_where_another_replacement_is_under_way_P26) {
  records[1] = others;
  EXPECT_EQ(go_on(), make_error_code(errc::other_quorum).message());
}

TEST_F(list_replacement_test, leaves_a_server_to_who_has_closed_it_between_look_and_write_P26_C1) {
  somebody_was_first = others;
  EXPECT_EQ(go_on(), "too late a:1, " + make_error_code(errc::other_quorum).message());
  EXPECT_EQ(records[0], others);
  EXPECT_EQ(records[1], "") << "nothing is closed behind it";
}

TEST_F(list_replacement_test, opens_who_is_there_again_when_it_comes_to_it_P26) {
  away = {"d:1"};
  before_look = [&](int which) {
    if (which == 0) away.clear();
  };
  EXPECT_EQ(go_on(), "away, close a:1, close b:1, close c:1, wait 7000");
  EXPECT_EQ(go_on(), "open a:1, open b:1, open d:1, done");
}

TEST_F(list_replacement_test, waits_for_what_it_may_hold_itself_where_the_servers_say_less_P26_C1) {
  hold = 3000;
  EXPECT_EQ(go_on(), "close a:1, close b:1, close c:1, wait 5000");
}

// A server that was restarted meanwhile says it of those who came since.
TEST_F(list_replacement_test, waits_for_the_longest_that_was_ever_said_P26_C1) {
  before_look = [&](int which) { hold = which == 1 ? 9000 : 6000; };
  EXPECT_EQ(go_on(), "close a:1, close b:1, close c:1, wait 9000");
}

TEST_F(list_replacement_test, closes_nobody_who_belongs_to_a_later_list_by_now_P26) {
  records[2] = "v1|3|closed|a:1,b:1,c:1";
  EXPECT_EQ(go_on(), make_error_code(errc::other_quorum).message());
  EXPECT_EQ(records[2], "v1|3|closed|a:1,b:1,c:1");
  EXPECT_EQ(why, "the old list is a:1,b:1,c:1?generation=3 by now");
}

TEST_F(list_replacement_test, says_of_a_list_of_the_same_generation_how_to_finish_it_P26) {
  records[0] = "v1|2|open|a:1,b:1,e:1";
  EXPECT_EQ(go_on(), make_error_code(errc::other_quorum).message());
  EXPECT_EQ(why,
            "the old list is a:1,b:1,e:1?generation=2 by now; if that replacement has not ended, finish it, with "
            "a:1,b:1,e:1 as the new list");
}

TEST_F(list_replacement_test, says_of_a_server_of_an_older_list_how_to_free_it_P26) {
  records[3] = "v1|1|open|d:1,g:1,h:1";
  EXPECT_EQ(go_on(), make_error_code(errc::other_quorum).message());
  EXPECT_EQ(why, "name the list to which it belongs; if that is not used any more, redis-cli DEL hf:quorum there");
}

// Of another replacement's old list, which may be opened yet.
TEST_F(list_replacement_test, takes_no_new_server_that_is_closed_for_another_list_of_its_generation_P26) {
  records[3] = others;
  EXPECT_EQ(go_on(), make_error_code(errc::other_quorum).message());
  EXPECT_EQ(records[3], others);
}

TEST_F(list_replacement_test, says_which_of_the_lists_has_no_majority) {
  away = {"a:1", "c:1"};
  EXPECT_EQ(go_on(), make_error_code(errc::no_quorum).message());
  EXPECT_EQ(where, "old");
  replaces = flow{{{.servers = "a:1,b:1,c:1"}, {.servers = "a:1,b:1,d:1"}, "old", "new", "hf:quorum", 5s},
                  {"a:1", "b:1", "c:1"},
                  {"a:1", "b:1", "d:1"}};
  away = {"a:1", "d:1"};
  EXPECT_EQ(go_on(), make_error_code(errc::no_quorum).message());
  EXPECT_EQ(where, "new");
}

// Two addresses of one server.
TEST_F(list_replacement_test, takes_one_server_for_two_only_where_they_would_vote_together_R20) {
  const auto run = [&](const std::vector<std::string>& from, const std::vector<std::string>& to,
                       const std::vector<std::string>& run_ids) {
    flow one{{{.servers = "a:1,b:1,c:1"}, {.servers = "a:1,b:1,d:1"}, "old", "new", "hf:quorum", 5s}, from, to};
    (void)one.next();
    for (std::size_t i = 0; i < one.members().size(); ++i) one.on_seen(i, {"", run_ids[i], ""});
    const auto next = one.next();
    const auto* failed = std::get_if<flow::failure>(&next);
    return failed ? failed->why.subject : "";
  };
  EXPECT_EQ(run({"a:1", "b:1", "c:1"}, {"a:1", "b:1", "d:1"}, {"A", "B", "C", "B"}), "b:1 and d:1");
  EXPECT_EQ(run({"a:1", "b:1", "c:1"}, {"a:1", "b:1", "d:1"}, {"A", "B", "C", "C"}), "")
      << "it has another address now";
  EXPECT_EQ(run({"a:1", "b:1", "d:1"}, {"a:1", "b:1", "c:1"}, {"A", "B", "C", "C"}), "") << "the other way round";
  EXPECT_EQ(run({"a:1", "b:1", "c:1"}, {"a:1", "b:1", "d:1"}, {"", "", "", ""}), "") << "they do not say";
}

TEST_F(next_replacement_test, goes_on_where_it_was_stopped_behind_the_closing_P26) {
  records[0] = records[1] = "v1|3|closed|a:1,b:1,c:1";
  EXPECT_EQ(go_on(), "close d:1, wait 7000");
  EXPECT_EQ(go_on(), "open a:1, open b:1, open c:1, done");
}

TEST_F(next_replacement_test, closes_who_was_away_when_the_list_before_was_replaced_P26) {
  records[1] = "v1|1|open|a:1,b:1,c:1";
  EXPECT_EQ(go_on(), "close a:1, close b:1, close d:1, wait 7000");
}

TEST_F(next_replacement_test, takes_a_server_that_another_quorum_has_left_closed_P26) {
  records[2] = "v1|1|closed|c:1,g:1,h:1";
  EXPECT_EQ(go_on(), "close a:1, close b:1, close d:1, wait 7000");
  EXPECT_EQ(go_on(), "open a:1, open b:1, open c:1, done");
}

// Whose names only end as ours do.
TEST_F(next_replacement_test, takes_no_server_of_a_quorum_whose_servers_we_do_not_see_P26) {
  records[2] = "v1|1|open|aa:1,bb:1,c:1";
  EXPECT_EQ(go_on(), make_error_code(errc::other_quorum).message());
  EXPECT_EQ(records[2], "v1|1|open|aa:1,bb:1,c:1");
}

}  // namespace
}  // namespace holdfast::engine
