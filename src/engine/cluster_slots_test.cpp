// SPDX-License-Identifier: Apache-2.0
#include "engine/cluster_slots.hpp"

#include "engine/peer_testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast::engine {
namespace {

using namespace std::chrono_literals;

constexpr time_point start{100s};
const cluster_address asked{"10.0.0.9", "7009"};

std::string node(const std::string& host, int port, const std::string& id) {
  return list({bulk(host), integer(port), bulk(id), list({})});
}

TEST(parse_cluster_slots, reads_ranges_primaries_and_replicas) {
  const auto answer = parse_cluster_slots(
      parsed(list({list({integer(0), integer(99), node("10.0.0.1", 7001, "a"), node("10.0.0.2", 7002, "a2")}),
                   list({integer(200), integer(16383), node("::1", 7003, "b")}),
                   list({integer(100), integer(199), node("10.0.0.1", 7001, "a")})})),
      asked);
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->primaries.size(), 2U);
  EXPECT_EQ(answer->primaries[0].id, "a");
  EXPECT_EQ(answer->primaries[1].where, (cluster_address{"::1", "7003"}));
  ASSERT_EQ(answer->ranges.size(), 3U);
  EXPECT_EQ(answer->ranges[2].primary, 0U);
  EXPECT_EQ(answer->replicas, (std::vector<cluster_address>{{"10.0.0.2", "7002"}}));
}

// What has no address of its own is where it was asked: an empty host, none, or a question mark.
TEST(parse_cluster_slots, takes_no_host_for_the_one_that_was_asked) {
  for (const auto& host : {bulk(""), std::string{"$-1\r\n"}, bulk("?")}) {
    const auto answer = parse_cluster_slots(
        parsed(list({list({integer(0), integer(16383), list({host, integer(7001), bulk("a")})})})), asked);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->primaries[0].where, (cluster_address{"10.0.0.9", "7001"}));
  }
}

TEST(parse_cluster_slots, refuses_what_no_node_says) {
  const auto a = node("10.0.0.1", 7001, "a");
  for (const auto& bad : {bulk("text"), integer(1), list({integer(1)}), list({list({integer(0), integer(99)})}),
                          list({list({integer(5), integer(4), a})}), list({list({integer(0), integer(16384), a})}),
                          list({list({integer(-1), integer(4), a})}), list({list({integer(0), integer(4), bulk("a")})}),
                          list({list({integer(0), integer(4), node("10.0.0.1", 0, "a")})}),
                          list({list({integer(0), integer(4), node("10.0.0.1", 7001, "")})}),
                          list({list({integer(0), integer(4), a, bulk("a2")})})}) {
    EXPECT_FALSE(parse_cluster_slots(parsed(bad), asked)) << bad;
  }
}

// ---- the majority ----

// Three primaries, a to c, with a third of the slots each.
class a_cluster : public testing::Test {
protected:
  struct who {
    std::string id;
    int number;
  };
  static cluster_address at(int number) { return {"10.0.0." + std::to_string(number), "7000"}; }
  static slots_answer thirds(const std::vector<who>& primaries) {
    slots_answer out;
    const std::size_t size = slot_count / primaries.size();
    for (std::size_t i = 0; i < primaries.size(); ++i) {
      out.primaries.push_back({primaries[i].id, at(primaries[i].number), 1});
      out.ranges.push_back({i * size, i + 1 == primaries.size() ? slot_count - 1 : (i + 1) * size - 1, i});
    }
    return out;
  }
  static slots_vote vote(int from, const slots_answer& what, time_point when = start) { return {at(from), what, when}; }
  static std::string owner_of(const slot_map& map, std::size_t slot) {
    return map.owner[slot] == slot_map::nobody ? "" : map.primaries[map.owner[slot]].id;
  }

  const slots_answer before = thirds({{"a", 1}, {"b", 2}, {"c", 3}});
  const slots_answer after = thirds({{"d", 4}, {"b", 2}, {"c", 3}});
};

TEST_F(a_cluster, is_what_all_say) {
  const auto map = named_by_majority(std::vector{vote(1, before), vote(2, before), vote(3, before)});
  ASSERT_TRUE(map);
  EXPECT_EQ(map->covered(), slot_count);
  EXPECT_EQ(owner_of(*map, 0), "a");
  EXPECT_EQ(owner_of(*map, slot_count - 1), "c");
  EXPECT_EQ(map->is_named, (std::vector{true, true, true}));
}

TEST_F(a_cluster, needs_more_than_half_of_its_primaries_P22) {
  EXPECT_FALSE(named_by_majority(std::vector{vote(1, before)}));
  EXPECT_TRUE(named_by_majority(std::vector{vote(1, before), vote(2, before)}));
  const auto four = thirds({{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}});
  EXPECT_FALSE(named_by_majority(std::vector{vote(1, four), vote(2, four)}));
}

// A node that is no primary, of the URI say, is heard for whom it names and has no vote.
TEST_F(a_cluster, does_not_count_who_is_no_primary_P22) {
  EXPECT_FALSE(named_by_majority(std::vector{vote(7, before), vote(8, before), vote(1, before)}));
  EXPECT_FALSE(named_by_majority(std::vector<slots_vote>{}));
}

TEST_F(a_cluster, goes_by_the_majority_against_a_primary_that_was_replaced_P22) {
  const auto map = named_by_majority(std::vector{vote(1, before), vote(2, after), vote(3, after)});
  ASSERT_TRUE(map);
  EXPECT_EQ(owner_of(*map, 0), "d");
}

TEST_F(a_cluster, counts_from_the_first_question) {
  const auto map = named_by_majority(
      std::vector{vote(1, before, start + 2s), vote(2, before, start + 1s), vote(3, before, start + 3s)});
  ASSERT_TRUE(map);
  EXPECT_EQ(map->asked_at, start + 1s);
}

TEST_F(a_cluster, names_nobody_for_a_slot_about_which_they_disagree) {
  auto one = before;
  one.ranges[0].last = 9;
  auto other = before;
  other.ranges[0].last = 19;
  const auto map = named_by_majority(std::vector{vote(1, one), vote(2, other)});
  ASSERT_TRUE(map);
  EXPECT_EQ(owner_of(*map, 5), "a");
  EXPECT_EQ(owner_of(*map, 15), "");
}

// Half a failover: the primaries have not heard of it all at the same time.
TEST_F(a_cluster, keeps_a_slot_in_doubt_where_it_was_and_does_not_name_who_serves_it_P22) {
  const auto known = named_by_majority(std::vector{vote(1, before), vote(2, before), vote(3, before)});
  auto round = named_by_majority(std::vector{vote(2, before), vote(3, after)});
  ASSERT_TRUE(known && round);
  const auto map = merged(*known, *round);
  EXPECT_EQ(owner_of(map, 0), "a");
  EXPECT_FALSE(map.is_named[map.owner[0]]);
  EXPECT_TRUE(map.is_named[map.owner[slot_count - 1]]);
}

}  // namespace
}  // namespace holdfast::engine
