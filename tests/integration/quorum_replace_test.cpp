// SPDX-License-Identifier: Apache-2.0
// Another list of servers for a quorum whose locks are in use (P26). Of five servers some are the old list and some the
// new one.
#include "integration/quorum_fixture.hpp"

#include <holdfast/quorum.hpp>

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>

namespace holdfast::test {
namespace {

using step = replace_progress::step;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const acquire_options brief{.ttl = 4s};

// What a person who replaces sees; and dies of, as far as the library can tell.
struct killed : std::runtime_error {
  killed() : std::runtime_error{"killed"} {}
};

class with_spare_servers : public with_five {
protected:
  // Nearly each of these tests waits for so long, some twice.
  static constexpr auto max_ttl = 5s;

  with_spare_servers() : with_five{max_ttl} {}

  std::string list(const std::vector<int>& of, const std::string& query = {}) const {
    std::string uri;
    for (const int i : of) uri += (uri.empty() ? "redis+quorum://" : ",") + node(i).address;
    return uri + query;
  }
  client client_of(const std::string& uri, std::chrono::milliseconds timeout = 10s) const {
    return client{uri, options(timeout)};
  }
  replace_options how(std::size_t dies_at = 1000) {
    seen_.clear();
    return {.client = options(2s), .tell = [this, dies_at](const replace_progress& what) {
              seen_.push_back(what.what);
              if (seen_.size() > dies_at) throw killed{};
            }};
  }
  replace_options how_until(step last) const {
    return {.client = options(2s), .tell = [last](const replace_progress& what) {
              if (what.what == last) throw killed{};
            }};
  }
  bool has_said(step what) const { return std::find(seen_.begin(), seen_.end(), what) != seen_.end(); }
  std::string record(int i) const { return value(i, "hf:quorum"); }
  std::string opened(const std::vector<int>& of) const {
    auto names = list(of).substr(std::string{"redis+quorum://"}.size());
    std::vector<std::string> all;
    for (std::size_t from = 0; from < names.size();) {
      const auto comma = std::min(names.find(',', from), names.size());
      all.push_back(names.substr(from, comma - from));
      from = comma + 1;
    }
    std::sort(all.begin(), all.end());
    std::string out = "v1|2|open|";
    for (const auto& one : all) out += (out.ends_with('|') ? "" : ",") + one;
    return out;
  }
  void lock_is_had_with(const std::string& uri) {
    auto locks = client_of(uri);
    EXPECT_TRUE(locks.acquire("x", {.ttl = 4s, .wait = long_enough}).valid());
  }

  std::vector<step> seen_{};
  const std::vector<int> before_{0, 1, 2};
};

// Two of three are other servers: their majority knows nothing of the lock.
TEST_F(with_spare_servers, the_new_list_grants_when_no_lease_of_the_old_one_can_be_left_P26) {
  auto ours = client_of(list(before_));
  const auto held = ours.acquire("x", {.ttl = max_ttl, .renew = renewal::none});
  const auto renewed = ours.acquire("y", {.ttl = max_ttl});
  std::atomic<bool> is_beside{false};
  std::jthread next{[&] {
    auto theirs = client_of(list({2, 3, 4}, "?generation=2"));
    const auto got = theirs.acquire("x", {.ttl = 4s, .wait = long_enough});
    if (held.valid()) is_beside = true;
    const auto also = theirs.acquire("y", {.ttl = 4s, .wait = long_enough});
    if (renewed.valid()) is_beside = true;
  }};
  const auto done = replace_quorum(list(before_), list({2, 3, 4}), how());
  EXPECT_GE(done.waited, max_ttl);
  EXPECT_EQ(done.generation, 2u);
  EXPECT_THAT(done.uri, testing::EndsWith("?generation=2"));
  EXPECT_THAT(done.closed, SizeIs(3));
  EXPECT_THAT(done.opened, SizeIs(3));
  next.join();
  EXPECT_FALSE(is_beside);
}

TEST_F(with_spare_servers, a_stop_before_the_first_server_is_closed_changes_nothing_P26) {
  lock_is_had_with(list(before_));
  std::stop_source stop;
  stop.request_stop();
  auto asked = how();
  asked.cancel = stop.get_token();
  EXPECT_EQ(code_of([&] { (void)replace_quorum(list(before_), list({2, 3, 4}), asked); }), errc::cancelled);
  EXPECT_THAT(seen_, IsEmpty());
  lock_is_had_with(list(before_));
}

TEST_F(with_spare_servers, a_stop_behind_that_ends_the_wait_and_the_next_call_goes_on_P26) {
  lock_is_had_with(list(before_));
  std::stop_source stop;
  auto asked = how();
  asked.cancel = stop.get_token();
  asked.tell = [&](const replace_progress& what) {
    if (what.what == step::waits) stop.request_stop();
  };
  const auto e = error_of([&] { (void)replace_quorum(list(before_), list({2, 3, 4}), asked); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::cancelled);
  EXPECT_THAT(e->detail().why, HasSubstr("its servers are closed"));
  lock_is_had_with(replace_quorum(list(before_), list({2, 3, 4}), how()).uri);
}

TEST_F(with_spare_servers, clients_of_the_old_list_are_told_the_new_one_P26) {
  auto ours = client_of(list(before_));
  (void)ours.acquire("x", brief).release();
  const auto done = replace_quorum(list(before_), list({0, 1, 3}), how());
  const auto e = error_of([&] { (void)ours.acquire("x", {.ttl = 4s, .wait = long_enough}); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::other_quorum);
  EXPECT_THAT(e->detail().server_text, HasSubstr(done.uri.substr(done.uri.find("//") + 2)));
  EXPECT_EQ(code_of([&] { ours.declare_nothing_forgotten(); }), errc::other_quorum) << "it would grant nothing";
  lock_is_had_with(done.uri);
}

// "Free" would be what its servers have of a lock that others hold elsewhere.
TEST_F(with_spare_servers, who_looks_with_the_old_list_or_too_early_is_told_so_P26) {
  auto ours = client_of(list(before_));
  auto early = client_of(list({2, 3, 4}, "?generation=2"), 2s);
  auto held = std::optional{ours.acquire("x", brief)};
  const auto look = [](client& with) { (void)with.inspect("x"); };
  const auto all = [](client& with) { (void)with.list(); };
  const auto breaks = [](client& with) { with.break_lock("x", fencing_token{1}, {.why = "test"}); };
  for (const auto& call : std::vector<std::function<void(client&)>>{look, all, breaks}) {
    const auto e = error_of([&] { call(early); });
    ASSERT_TRUE(e);
    EXPECT_EQ(e->code(), errc::quarantined);
    EXPECT_THAT(e->detail().why, HasSubstr("generation 2 of the quorum is not open here yet"));
  }
  EXPECT_TRUE(ours.inspect("x").held);
  held.reset();
  const auto done = replace_quorum(list(before_), list({2, 3, 4}), how());
  const auto next = early.acquire("x", {.ttl = 4s, .wait = long_enough});
  EXPECT_TRUE(early.inspect("x").held);
  EXPECT_THAT(early.list(), SizeIs(1));
  for (const auto& call : std::vector<std::function<void(client&)>>{look, all, breaks}) {
    const auto e = error_of([&] { call(ours); });
    ASSERT_TRUE(e);
    EXPECT_EQ(e->code(), errc::other_quorum);
    EXPECT_THAT(e->detail().server_text, HasSubstr(done.uri.substr(done.uri.find("//") + 2)));
  }
}

TEST_F(with_spare_servers, a_lease_of_the_old_list_is_not_said_to_be_somebody_s_P26) {
  auto ours = client_of(list(before_));
  const auto held = ours.acquire("x", brief);
  (void)replace_quorum(list(before_), list({2, 3, 4}), how());
  EXPECT_TRUE(eventually([&] { return held.lost_reason() == errc::lease_gone; }, long_enough))
      << held.lost_reason().message();
}

// Without that an old client on {0, 1, 2} and a new one on {3, 4} would both have a majority.
TEST_F(with_spare_servers, a_list_that_is_not_open_yet_gets_nothing_P26) {
  auto ours = client_of(list(before_));
  const auto held = ours.acquire("x", brief);
  auto theirs = client_of(list({2, 3, 4}, "?generation=2"), 2s);
  const auto e = error_of([&] { (void)theirs.try_acquire("x", brief); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::quarantined);
  EXPECT_THAT(e->detail().why, HasSubstr("generation 2 of the quorum is not open here yet"));
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(record(3), "");
}

TEST_F(with_spare_servers, a_replacement_that_is_killed_goes_on_where_it_was_P26) {
  auto ours = client_of(list(before_));
  (void)ours.acquire("x", brief).release();
  auto theirs = client_of(list({2, 3, 4}, "?generation=2"), 2s);
  // At each of the three servers that it closes, and before it waits.
  for (int death = 0; death < 4; ++death) {
    EXPECT_THROW((void)replace_quorum(list(before_), list({2, 3, 4}), how(0)), killed);
    // Until a majority is closed the others may decide before the first one is heard.
    const auto code = code_of([&] { (void)ours.try_acquire("x", brief); });
    EXPECT_TRUE(code == errc::other_quorum || (death == 0 && !code)) << death << ": " << code.message();
    EXPECT_EQ(code_of([&] { (void)theirs.try_acquire("x", brief); }), errc::quarantined) << death;
  }
  EXPECT_TRUE(has_said(step::waits));
  // Three messages: the wait, and the two of three that are opened.
  EXPECT_THROW((void)replace_quorum(list(before_), list({2, 3, 4}), how(2)), killed);
  const auto done = replace_quorum(list(before_), list({2, 3, 4}), how());
  EXPECT_TRUE(has_said(step::goes_on));
  EXPECT_EQ(done.waited, 0ms);
  lock_is_had_with(done.uri);
}

// Two of its servers have just started, and say nothing but that.
TEST_F(with_spare_servers, doctor_says_that_a_list_is_not_open_whatever_else_keeps_it_from_granting_P26) {
  for (const int i : {3, 4}) (void)ask(i, {"DEL", "hf:epoch"});
  EXPECT_THROW((void)replace_quorum(list(before_), list({2, 3, 4}), how_until(step::waits)), killed);
  const auto not_open = [&] {
    const auto seen = client_of(list({2, 3, 4}, "?generation=2"), 2s).diagnose();
    return std::count_if(seen.findings.begin(), seen.findings.end(), [](const finding& f) {
      return f.level == finding::severity::error && f.what.find("is not open") != f.what.npos;
    });
  };
  EXPECT_EQ(not_open(), 1);
  (void)replace_quorum(list(before_), list({2, 3, 4}), how());
  EXPECT_EQ(not_open(), 0);
}

// The danger: "open" says that somebody waited once, and not that the old list has granted nothing since. Who closes it
// again and is killed has not waited either.
TEST_F(with_spare_servers, it_waits_again_when_the_old_servers_have_forgotten_that_they_were_closed_P26) {
  EXPECT_THROW((void)replace_quorum(list(before_), list({2, 3, 4}), how_until(step::opened)), killed);
  for (const int i : before_) (void)ask(i, {"DEL", "hf:quorum"});
  auto ours = client_of(list(before_));
  const auto held = ours.acquire("x", {.ttl = max_ttl, .wait = long_enough, .renew = renewal::none});
  EXPECT_THROW((void)replace_quorum(list(before_), list({2, 3, 4}), how_until(step::waits)), killed);
  EXPECT_TRUE(held.valid());
  const auto done = replace_quorum(list(before_), list({2, 3, 4}), how());
  EXPECT_FALSE(held.valid());
  EXPECT_FALSE(has_said(step::goes_on));
}

TEST_F(with_spare_servers, new_servers_that_were_opened_in_an_earlier_life_are_waited_for_P26) {
  const auto held = client_of(list(before_)).acquire("x", {.ttl = max_ttl, .renew = renewal::none});
  for (const int i : {3, 4}) (void)ask(i, {"SET", "hf:quorum", opened({2, 3, 4}).c_str()});
  (void)replace_quorum(list(before_), list({2, 3, 4}), how());
  EXPECT_FALSE(held.valid());
}

// An error of the library, too, as one that takes another lock may let out.
TEST_F(with_spare_servers, what_the_one_who_is_told_throws_is_thrown_and_nobody_s_trouble_P26) {
  for (const auto at : {step::closed, step::opened}) {
    auto options = how();
    options.tell = [at](const replace_progress& what) {
      if (what.what == at) throw error{errc::not_held};
    };
    EXPECT_EQ(code_of([&] { (void)replace_quorum(list(before_), list({2, 3, 4}), options); }), errc::not_held);
  }
  EXPECT_THAT(replace_quorum(list(before_), list({2, 3, 4}), how()).away, IsEmpty());
}

TEST_F(with_spare_servers, a_minority_of_the_old_list_may_be_gone_P26) {
  auto ours = client_of(list(before_));
  (void)ours.acquire("x", brief).release();
  lab_.kill(node(0));
  const auto done = replace_quorum(list(before_), list({1, 2, 3}), how());
  EXPECT_THAT(done.away, ElementsAre(node(0).address));
  lock_is_had_with(done.uri);
  // It comes back and knows of nothing.
  lab_.restart(node(0), lab_data::dropped);
  EXPECT_EQ(code_of([&] { (void)ours.acquire("x", {.ttl = 4s, .wait = long_enough}); }), errc::other_quorum);
}

TEST_F(with_spare_servers, without_a_majority_of_the_old_list_nothing_is_changed_P26) {
  (void)client_of(list(before_)).acquire("x", brief).release();
  ASSERT_TRUE(eventually([&] { return !record(2).empty(); }, long_enough));
  const auto kept = record(2);
  lab_.kill(node(0));
  lab_.kill(node(1));
  const auto e = error_of([&] { (void)replace_quorum(list(before_), list({2, 3, 4}), how()); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::no_quorum);
  EXPECT_THAT(e->detail().why, HasSubstr(node(0).address));
  EXPECT_EQ(record(2), kept);
  EXPECT_EQ(record(3), "");
  EXPECT_THAT(seen_, IsEmpty());
}

TEST_F(with_spare_servers, of_two_who_replace_at_once_one_gets_through_P26) {
  (void)client_of(list(before_)).acquire("x", brief).release();
  std::atomic<int> through{0};
  std::atomic<int> refused{0};
  std::vector<std::jthread> two;
  for (const int spare : {3, 4}) {
    two.emplace_back([&, spare] {
      const auto code = code_of([&] {
        (void)replace_quorum(list(before_), list({0, 1, spare}), {.client = options(5s)});
      });
      if (code == errc::other_quorum) ++refused;
      if (!code) ++through;
    });
  }
  two.clear();
  EXPECT_EQ(through, 1);
  EXPECT_EQ(refused, 1);
}

// It was away when the others were opened, and keeps the old list, which clients cannot tell from another quorum's.
TEST_F(with_spare_servers, a_server_that_was_away_is_opened_by_the_same_command_P26) {
  (void)client_of(list(before_)).acquire("x", brief).release();
  lab_.pause(node(0));
  const auto done = replace_quorum(list(before_), list({0, 1, 3}), how());
  EXPECT_THAT(done.away, ElementsAre(node(0).address));
  lab_.resume(node(0));
  EXPECT_NE(record(0), opened({0, 1, 3}));
  lock_is_had_with(done.uri);
  EXPECT_NE(record(0), opened({0, 1, 3})) << "a client opened it";
  const auto again = replace_quorum(list(before_), list({0, 1, 3}), how());
  EXPECT_EQ(again.waited, 0s);
  EXPECT_EQ(record(0), opened({0, 1, 3}));
}

// It was away, and so nobody could see it: with the new list's clients the other quorum would be left with a minority.
TEST_F(with_spare_servers, a_server_of_somebody_elses_quorum_that_was_away_is_left_alone_P26) {
  (void)client_of(list(before_)).acquire("x", brief).release();
  (void)client_of(list({3})).acquire("y", brief).release();
  const auto kept = record(3);
  lab_.pause(node(3));
  auto watching = how();
  watching.tell = [this, seen = watching.tell](const replace_progress& what) {
    if (what.what == step::waits) lab_.resume(node(3));
    seen(what);
  };
  const auto done = replace_quorum(list(before_), list({0, 1, 3}), watching);
  EXPECT_THAT(done.away, ElementsAre(node(3).address));
  EXPECT_EQ(record(3), kept);
  auto locks = client_of(done.uri);
  EXPECT_TRUE(locks.acquire("x", {.ttl = 4s, .wait = long_enough}).valid());
  EXPECT_TRUE(locks.acquire("z", {.ttl = 4s, .wait = long_enough}).valid());
  EXPECT_EQ(record(3), kept);
  EXPECT_TRUE(client_of(list({3})).acquire("y", {.ttl = 4s, .wait = long_enough}).valid());
}

// A silent server makes the look at all of them last; and whoever comes meanwhile may have leases that live longer.
TEST_F(with_spare_servers, a_client_with_a_larger_max_ttl_that_comes_behind_the_look_is_waited_for_P26_C1) {
  (void)client_of(list(before_)).acquire("x", brief).release();
  auto longer = options(10s);
  longer.max_ttl = max_ttl + 2s;
  std::optional<client> old;
  std::optional<lease> held;
  lab_.pause(node(2));
  auto watching = how();
  watching.tell = [&, seen = watching.tell](const replace_progress& what) {
    if (what.what == step::away && !old) {
      held = old.emplace(list(before_), longer).acquire("x", {.ttl = max_ttl + 2s, .wait = long_enough});
    }
    seen(what);
  };
  const auto done = replace_quorum(list(before_), list({0, 1, 3}), watching);
  lab_.resume(node(2));
  ASSERT_TRUE(held);
  EXPECT_FALSE(held->valid());
  EXPECT_GE(done.waited, max_ttl + 2s);
}

TEST_F(with_spare_servers, a_server_of_somebody_elses_quorum_is_left_alone_P26) {
  (void)client_of(list(before_)).acquire("x", brief).release();
  (void)client_of(list({3})).acquire("x", brief).release();
  const auto kept = record(3);
  const auto e = error_of([&] { (void)replace_quorum(list(before_), list({0, 1, 3}), how()); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::other_quorum);
  EXPECT_THAT(e->detail().server_text, HasSubstr(node(3).address));
  EXPECT_EQ(record(3), kept);
  EXPECT_THAT(seen_, IsEmpty());
}

// The danger: somebody named a wrong list, stopped the command, and replaces the wrong list now. The list in use would
// not be closed, and grant beside the third one for ever.
TEST_F(with_spare_servers, a_list_that_was_never_opened_cannot_be_replaced_P26) {
  (void)client_of(list(before_)).acquire("x", brief).release();
  EXPECT_THROW((void)replace_quorum(list(before_), list({3}), how_until(step::closed)), killed);
  const auto wrong = list({3}, "?generation=2");
  const auto e = error_of([&] { (void)replace_quorum(wrong, list({4}), how()); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::other_quorum);
  EXPECT_THAT(e->detail().why, HasSubstr("generation 2 of " + list({3}) + " is not open: finish the replacement"));
  EXPECT_THAT(seen_, IsEmpty());
  EXPECT_EQ(record(3), "");
  // When it has been opened, it can.
  (void)ask(3, {"SET", "hf:quorum", opened({3}).c_str()});
  EXPECT_THROW((void)replace_quorum(wrong, list({4}), how_until(step::closed)), killed);
}

// The other two may grant, and have to be told.
TEST_F(with_spare_servers, a_list_of_which_one_server_belongs_elsewhere_is_told_that_nothing_is_forgotten) {
  (void)ask(0, {"SET", "hf:quorum", opened({3}).c_str()});
  for (int i = 0; i < 3; ++i) (void)ask(i, {"DEL", "hf:epoch"});
  client_of(list(before_)).declare_nothing_forgotten();
  for (const int i : {1, 2}) EXPECT_THAT(value(i, "hf:epoch"), HasSubstr("|0000000000000000|"));
}

// It was open, and a majority of it restarted without data: a vote opens nothing, and who could open it cannot win.
TEST_F(with_spare_servers, a_list_whose_servers_forgot_that_it_is_open_is_opened_again_P26) {
  const auto uri = list(before_, "?generation=2");
  (void)ask(0, {"SET", "hf:quorum", opened(before_).c_str()});
  auto ours = client_of(uri, 2s);
  EXPECT_EQ(code_of([&] { (void)ours.try_acquire("x", brief); }), errc::quarantined);
  EXPECT_EQ(code_of([&] { (void)replace_quorum(uri, list({2, 3, 4}), how()); }), errc::other_quorum);
  auto options = how();
  options.reopen = true;
  const auto done = replace_quorum(uri, list(before_), options);
  EXPECT_EQ(done.generation, 3u);
  EXPECT_GE(done.waited, max_ttl);
  lock_is_had_with(done.uri);
  EXPECT_EQ(code_of([&] { (void)ours.try_acquire("x", brief); }), errc::other_quorum);
}

// Who needs all votes finds the one that forgot, and opens it: it is not told that the list is not open.
TEST_F(with_spare_servers, a_list_that_one_server_forgot_grants_to_who_tries_once_and_needs_that_server_P26) {
  for (const int i : before_) (void)ask(i, {"SET", "hf:quorum", opened(before_).c_str()});
  auto ours = client_of(list(before_, "?generation=2"));
  (void)semaphore{ours, "x", 2}.acquire({.ttl = 4s, .wait = long_enough}).release();
  (void)ask(1, {"DEL", "hf:quorum"});
  EXPECT_TRUE((semaphore{ours, "x", 2}.try_acquire(brief)));
}

TEST_F(with_spare_servers, lists_that_cannot_follow_each_other_are_refused_P26) {
  const auto refusal = [&](const std::string& from, const std::string& to) {
    const auto e = error_of([&] { (void)replace_quorum(from, to, how()); });
    return e && e->code() == errc::invalid_uri ? e->detail().why : "it was not refused";
  };
  EXPECT_THAT(refusal("redis://" + node(0).address, list({1, 2, 3})), HasSubstr("no quorum"));
  EXPECT_THAT(refusal(list(before_), list({2, 1, 0})), HasSubstr("the same servers; if they have lost their data"));
  EXPECT_THAT(refusal(list(before_), list({0, 1, 3}, "?generation=3")), HasSubstr("must be 2"));
  EXPECT_THAT(refusal(list(before_), list({0, 1, 3}, "/1")), HasSubstr("another database"));
  EXPECT_THAT(refusal(list(before_), list({0, 1})), HasSubstr("votes can come out even"));
}

// Whoever wins with such a list refuses it, so with it nobody could have a lock.
TEST_F(with_spare_servers, a_server_with_two_addresses_in_the_new_list_is_refused_and_nothing_is_changed_P26) {
  auto twin = node(0).address;
  twin.replace(0, twin.find(':'), "localhost");
  const auto e = error_of([&] { (void)replace_quorum(list(before_), list({0, 1}) + "," + twin, how()); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::invalid_uri);
  EXPECT_THAT(e->detail().subject, testing::AllOf(HasSubstr(node(0).address), HasSubstr(twin)));
  EXPECT_THAT(e->detail().why, HasSubstr("one server"));
  EXPECT_THAT(seen_, IsEmpty());
  lock_is_had_with(list(before_));
}

// From numbers to names, say.
TEST_F(with_spare_servers, a_server_may_have_another_address_in_the_new_list_P26) {
  auto renamed = node(0).address;
  renamed.replace(0, renamed.find(':'), "localhost");
  lock_is_had_with(list(before_));  // So that each keeps the list.
  const auto done = replace_quorum(list(before_), list({1, 2}) + "," + renamed, how());
  EXPECT_THAT(done.opened, SizeIs(3));
  lock_is_had_with(done.uri);
}

}  // namespace
}  // namespace holdfast::test
