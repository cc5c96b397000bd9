// SPDX-License-Identifier: Apache-2.0
// A primary with two replicas and three sentinels: what a renewal is worth there (P13b, P22), and a grant that no
// replica has (R11). Real ones are in tests/integration/sentinel_test.cpp and durability_test.cpp.
#include "scenarios/story.hpp"

#include <gtest/gtest.h>

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

const rule renewals_need_a_name{.opposite = "what a server renews counts, whomever the sentinels name",
                                .broken = "expected",
                                .what = canary_switch::any_primary_counts};
const rule grants_need_a_name{.opposite = "what a server grants counts, whomever the sentinels name",
                              .broken = "C1",
                              .what = canary_switch::any_primary_counts};
const rule copied{.opposite = "nobody asks whether replicas have what was renewed",
                  .broken = "expected",
                  .what = canary_switch::asks_no_replica};
const rule promoted_in_quarantine{
    .opposite = "a replica that is promoted has forgotten nothing",
    .broken = "C1",
    .texts = {
        {{script::id::epoch}, "local was_promoted = match(second_id, '[^0]') ~= nil", "local was_promoted = false"}}};

}  // namespace

TEST(replicas, P13b_a_stall_of_the_replicas_loses_no_lease_before_its_deadline) {
  play(copied, {.replicas = 2, .copies = 1}, [](story& s) {
    a_holds(s);
    waits(s, s.b);
    s.replication_stalls(4s);
    s.passes(4s);
    s.expect(s.a.holds(), "A has its lease, of ten seconds, in spite of a renewal that no replica has");
    s.passes(20s);
    s.expect(s.a.holds() && !s.b.is_over(), "A is renewed again");
    s.replication_stalls(60s);
    s.within(11s, "A's lease ends at the deadline of the last renewal that a replica has",
             [&] { return !s.a.holds(); });
  });
}

TEST(replicas, P22_a_primary_that_is_cut_off_renews_for_nobody_who_cannot_hear_of_its_successor) {
  play(renewals_need_a_name, {.replicas = 2}, [](story& s) {
    a_holds(s, {.ttl = 20s});
    s.a.hears_no_sentinel(10min);
    s.fails_over();
    s.b.waits();
    s.within(60s, "A, which its server would renew for ever, has lost it", [&] { return !s.a.holds(); });
    s.expect(!s.b.is_over(), "before B is let in");
    s.within(20s, "B has it behind the quarantine", [&] { return s.b.holds(); });
  });
}

TEST(replicas, P22_a_primary_that_is_cut_off_grants_nothing_that_its_successor_renews_for_another) {
  play(grants_need_a_name, {.replicas = 2}, [](story& s) {
    a_holds(s, {.ttl = 20s});
    s.b.hears_no_sentinel(10min);
    waits(s, s.b);
    s.fails_over();
    s.passes(25s);
    s.expect(s.a.holds(), "A is renewed by the successor");
    s.expect(!s.b.holds(), "the old one, where A's lease is over, has granted the lock to B for nothing");
  });
}

TEST(replicas, R11_one_that_is_promoted_and_has_not_heard_of_the_lock_grants_it_to_nobody_while_it_may_be_held) {
  play(promoted_in_quarantine, {.replicas = 2}, [](story& s) {
    s.replication_stalls(10min);
    a_holds(s, {.ttl = 20s});
    s.a.is_cut_off(10min);
    s.fails_over();
    s.b.waits();
    s.passes(5s);
    s.expect(s.a.holds() && !s.b.is_over(), "A's lease is valid, and B waits");
    s.within(20s, "A, which has not heard of it, is told in time", [&] { return s.a.has_lost(); });
    s.within(70s, "B has it behind the quarantine", [&] { return s.b.holds(); });
  });
}

TEST(replicas, R11_a_lock_that_no_replica_has_is_not_granted_to_who_asks_for_one) {
  play(copied, {.replicas = 2, .copies = 1}, [](story& s) {
    s.replication_stalls(10min);
    s.a.tries();
    s.within(6s, "A is refused", [&] { return s.a.is_over() && !s.a.holds(); });
    s.fails_over();
    s.passes(3s);
    s.expect(!s.a.holds(), "and has nothing that its successor could not know of");
  });
}

}  // namespace holdfast::sim
