// SPDX-License-Identifier: Apache-2.0
#include "engine/list_replacement.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
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
    if (name == away) return replaces.on_away(at, "it is down");
    replaces.on_seen(at, {kept(name), name, "v1|run|repl|0000000000000001|7000"});
  }
  std::string& kept(const std::string& name) { return records[static_cast<std::size_t>(name[0] - 'a')]; }

  // What is done, in a word each, until it waits or ends.
  std::string go_on() {
    std::string said;
    for (;;) {
      const auto next = replaces.next();
      if (std::holds_alternative<flow::look_at_all>(next)) {
        for (std::size_t i = 0; i < replaces.members().size(); ++i) look(i);
      } else if (const auto* one = std::get_if<flow::look>(&next)) {
        look(one->at);
      } else if (const auto* what = std::get_if<flow::write>(&next)) {
        const auto& name = replaces.members()[what->at].name;
        EXPECT_EQ(what->before, kept(name));
        kept(name) = text_of(what->record);
        replaces.on_written(what->at, what->record, {});
        said += (what->record.is_open ? "open " : "close ") + name + ", ";
      } else if (const auto* pause = std::get_if<flow::wait>(&next)) {
        return said + "wait " + std::to_string(pause->time.count());
      } else if (std::holds_alternative<flow::tell_away>(next)) {
        said += "away, ";
      } else if (std::holds_alternative<flow::tell_goes_on>(next)) {
        said += "goes on, ";
      } else if (const auto* why = std::get_if<flow::failure>(&next)) {
        return said + make_error_code(why->code).message();
      } else {
        return said + "done";
      }
    }
  }

  static constexpr const char* closed = "v1|2|closed|a:1,b:1,d:1";
  static constexpr const char* open = "v1|2|open|a:1,b:1,d:1";
  std::string away{};
  std::vector<std::string> records{"v1|1|open|a:1,b:1,c:1", "", "v1|1|open|a:1,b:1,c:1", ""};
  flow replaces{{{.servers = "a:1,b:1,c:1"}, {.servers = "a:1,b:1,d:1"}, "old", "new", "hf:quorum", 5s},
                {"a:1", "b:1", "c:1"},
                {"a:1", "b:1", "d:1"}};
};

TEST_F(list_replacement_test, closes_the_old_list_waits_for_its_longest_lease_and_opens_the_new_one_P26) {
  EXPECT_EQ(go_on(), "close a:1, close b:1, close c:1, wait 7000");
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
  away = "d:1";
  EXPECT_EQ(go_on(), "away, close a:1, close b:1, close c:1, wait 7000");
  away = "";
  EXPECT_EQ(go_on(), "open a:1, open b:1, open d:1, done");
}

TEST_F(list_replacement_test, changes_nothing_where_another_replacement_is_under_way_P26) {
  records[1] = "v1|2|closed|a:1,b:1,e:1";
  EXPECT_EQ(go_on(), make_error_code(errc::other_quorum).message());
}

}  // namespace
}  // namespace holdfast::engine
