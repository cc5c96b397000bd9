// SPDX-License-Identifier: Apache-2.0
#include "engine/cluster_slots.hpp"

#include "engine/peer_testing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
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
  ASSERT_EQ(answer->replicas.size(), 1U);
  EXPECT_EQ(answer->replicas[0].id, "a2");
  EXPECT_EQ(answer->replicas[0].where, (cluster_address{"10.0.0.2", "7002"}));
  EXPECT_EQ(answer->replicas[0].primary, 0U);
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

// `cluster-preferred-endpoint-type hostname`, and it has none: Redis 7 tells its IP beside the question mark. Who is
// called by no host at all is to be asked where the others are, whatever else is told of it.
TEST(parse_cluster_slots, takes_the_ip_of_a_node_without_its_name) {
  const auto of = [](const std::string& host, const std::string& more) {
    return parse_cluster_slots(
        parsed(list({list({integer(0), integer(16383), list({host, integer(7001), bulk("a"), more})})})), asked);
  };
  const auto ip = list({bulk("hostname"), bulk("n"), bulk("ip"), bulk("10.0.0.4")});
  EXPECT_EQ(of(bulk("?"), ip)->primaries[0].where, (cluster_address{"10.0.0.4", "7001"}));
  EXPECT_EQ(of("$-1\r\n", ip)->primaries[0].where, (cluster_address{"10.0.0.9", "7001"}));
  EXPECT_EQ(of(bulk("b"), ip)->primaries[0].where, (cluster_address{"b", "7001"}));
  for (const auto& more : {list({}), bulk("ip"), list({bulk("ip")}), list({bulk("ip"), bulk("")}),
                           list({integer(1), bulk("10.0.0.4")}), list({bulk("ip"), integer(4)})}) {
    EXPECT_EQ(of(bulk("?"), more)->primaries[0].where, (cluster_address{"10.0.0.9", "7001"})) << more;
  }
}

// Another server answers at its address, so they have forgotten it: no host, port 0.
TEST(parse_cluster_slots, knows_a_node_whose_address_is_lost) {
  const auto answer =
      parse_cluster_slots(parsed(list({list({integer(0), integer(99), node("", 0, "a"), node("", 0, "a2")}),
                                       list({integer(100), integer(200), node("", 0, "b")})})),
                          asked);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->primaries[0].where, (cluster_address{"", "a"}));
  EXPECT_NE(answer->primaries[0].where, answer->primaries[1].where) << "each of them has a vote that is missing";
  ASSERT_EQ(answer->replicas.size(), 1U);
  EXPECT_EQ(answer->replicas[0].id, "a2");
}

TEST(parse_cluster_slots, refuses_what_no_node_says) {
  const auto a = node("10.0.0.1", 7001, "a");
  for (const auto& bad : {bulk("text"), integer(1), list({integer(1)}), list({list({integer(0), integer(99)})}),
                          list({list({integer(5), integer(4), a})}), list({list({integer(0), integer(16384), a})}),
                          list({list({integer(-1), integer(4), a})}), list({list({integer(0), integer(4), bulk("a")})}),
                          list({list({integer(0), integer(4), node("10.0.0.1", -1, "a")})}),
                          list({list({integer(0), integer(4), node("10.0.0.1", 7001, "")})}),
                          list({list({integer(0), integer(4), a, bulk("a2")})})}) {
    EXPECT_FALSE(parse_cluster_slots(parsed(bad), asked)) << bad;
  }
}

// One node of a hostile cluster could name more primaries than there are slots.
TEST(parse_cluster_slots, refuses_two_primaries_for_one_slot) {
  const auto a = node("10.0.0.1", 7001, "a");
  const auto b = node("10.0.0.2", 7002, "b");
  for (const auto& second : {std::pair{99, 200}, std::pair{0, 0}, std::pair{10, 20}, std::pair{0, 16383}}) {
    EXPECT_FALSE(parse_cluster_slots(
        parsed(list({list({integer(0), integer(99), a}), list({integer(second.first), integer(second.second), b})})),
        asked))
        << second.first;
  }
}

std::string a_slot_each(int primaries) {
  std::string all = "*" + std::to_string(primaries) + "\r\n";
  for (int i = 0; i < primaries; ++i) {
    all += list({integer(i), integer(i), node("10.0.0.1", 1 + i, std::to_string(i))});
  }
  return all;
}

TEST(parse_cluster_slots, refuses_more_than_a_thousand_primaries) {
  EXPECT_EQ(parse_cluster_slots(parsed(a_slot_each(1'000)), asked).value().primaries.size(), 1'000U);
  EXPECT_FALSE(parse_cluster_slots(parsed(a_slot_each(1'001)), asked));
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
      out.replicas.push_back({primaries[i].id + "2", {}, i});
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

// Those who say the same are counted together, in whichever order they are heard.
TEST_F(a_cluster, is_what_most_say_whoever_says_so_in_between) {
  const auto five = thirds({{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}});
  auto other = five;
  std::swap(other.ranges[0].primary, other.ranges[1].primary);
  const std::vector votes{vote(1, five), vote(2, other), vote(3, five), vote(4, other), vote(5, five)};
  const auto map = named_by_majority(votes);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->covered(), slot_count);
  EXPECT_EQ(owner_of(*map, 0), "a");
  const std::vector fewer{vote(1, five), vote(2, other), vote(4, other), vote(5, five)};
  ASSERT_TRUE(named_by_majority(fewer)) << "of the slots of which all say the same";
  EXPECT_EQ(owner_of(*named_by_majority(fewer), 0), "") << "two of five say so";
}

TEST_F(a_cluster, needs_more_than_half_of_its_primaries_P22) {
  EXPECT_FALSE(named_by_majority(std::vector{vote(1, before)}));
  EXPECT_TRUE(named_by_majority(std::vector{vote(1, before), vote(2, before)}));
  const auto four = thirds({{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}});
  EXPECT_FALSE(named_by_majority(std::vector{vote(1, four), vote(2, four)}));
}

// ---- Another cluster, whose node has got the address of one of ours ----

TEST_F(a_cluster, of_which_none_is_known_any_more_does_not_count) {
  const auto known = named_by_majority(std::vector{vote(1, before), vote(2, before), vote(3, before)}).value();
  EXPECT_EQ(known.ids, (node_ids{"a", "a2", "b", "b2", "c", "c2"}));
  const auto theirs = thirds({{"x", 1}, {"y", 8}, {"z", 9}});
  const std::vector theirs_alone{vote(1, theirs), vote(8, theirs), vote(9, theirs)};
  EXPECT_TRUE(named_by_majority(theirs_alone)) << "in the beginning";
  EXPECT_FALSE(named_by_majority(theirs_alone, known));
  const auto map = named_by_majority(std::vector{vote(1, theirs), vote(2, before), vote(3, before)}, known);
  ASSERT_TRUE(map);
  EXPECT_EQ(owner_of(*map, 0), "a");
  EXPECT_EQ(map->ids, known.ids) << "and nobody else is known now";
  EXPECT_FALSE(named_by_majority(std::vector{vote(1, theirs), vote(2, before)}, known)) << "a vote for nobody of ours";
}

TEST_F(a_cluster, that_failed_over_while_nobody_looked_is_the_same) {
  const auto known = named_by_majority(std::vector{vote(1, before), vote(2, before), vote(3, before)}).value();
  const auto later = thirds({{"a2", 4}, {"d", 5}, {"e", 6}});
  EXPECT_TRUE(named_by_majority(std::vector{vote(4, later), vote(5, later)}, known));
}

TEST_F(a_cluster, is_the_one_of_which_more_nodes_of_the_uri_are) {
  const auto theirs = thirds({{"x", 1}, {"y", 8}, {"z", 9}});
  std::vector votes{vote(1, theirs), vote(8, theirs), vote(9, theirs), vote(2, before), vote(3, before)};
  EXPECT_FALSE(named_by_majority(votes)) << "which one?";
  votes[0].is_of_uri = true;
  EXPECT_EQ(owner_of(named_by_majority(votes).value(), 0), "x");
  votes[3].is_of_uri = true;
  EXPECT_FALSE(named_by_majority(votes)) << "which one?";
  votes[4].is_of_uri = true;
  EXPECT_EQ(owner_of(named_by_majority(votes).value(), 0), "a");
}

// One still says who it was, at the same addresses.
TEST_F(a_cluster, that_was_made_anew_is_what_most_of_it_say_whoever_is_heard_first) {
  const auto anew = thirds({{"x", 1}, {"y", 2}, {"z", 3}});
  const std::vector votes{vote(1, before), vote(2, anew), vote(3, anew)};
  for (const auto& heard : {votes, std::vector(votes.rbegin(), votes.rend())}) {
    const auto map = named_by_majority(heard);
    ASSERT_TRUE(map);
    EXPECT_EQ(owner_of(*map, 0), "x");
  }
}

TEST_F(a_cluster, of_which_each_knows_a_node_of_the_next_is_one) {
  const auto of_nodes = [](const node_ids& ids) {
    slot_map known;
    known.ids = ids;
    return known;
  };
  const std::vector votes{vote(1, thirds({{"a", 1}, {"b", 2}})), vote(3, thirds({{"x", 1}, {"y", 3}})),
                          vote(2, thirds({{"x", 1}, {"b", 2}}))};
  EXPECT_TRUE(named_by_majority(votes, of_nodes({"a"})));
  EXPECT_TRUE(named_by_majority(votes, of_nodes({"y"})));
  EXPECT_FALSE(named_by_majority(votes, of_nodes({"z"})));
}

TEST_F(a_cluster, keeps_whom_it_knows_of_slots_that_nobody_is_named_for) {
  const auto known = named_by_majority(std::vector{vote(1, before), vote(2, before), vote(3, before)}).value();
  auto round = known;
  round.ids = {"b"};
  round.owner[0] = slot_map::nobody;
  EXPECT_EQ(merged(known, round).ids, (node_ids{"a", "b"}));
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

// They hear of it one after the other. Here and there in turn would end its connections each time.
TEST_F(a_cluster, whose_node_has_another_address_finds_it_where_most_say_whoever_answers_first_B68) {
  const auto five = thirds({{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}});
  const auto moved = thirds({{"a", 9}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}});
  const auto found = [](const std::vector<slots_vote>& votes) {
    const auto map = named_by_majority(votes).value();
    return map.primaries[map.owner[0]].where;
  };
  EXPECT_EQ(found({vote(2, five), vote(3, moved), vote(4, moved), vote(5, moved)}), at(9));
  EXPECT_EQ(found({vote(3, moved), vote(4, moved), vote(5, moved), vote(2, five)}), at(9));
  EXPECT_EQ(found({vote(2, moved), vote(3, five), vote(4, five), vote(5, five)}), at(1));
}

// By those who happen to be heard it was named elsewhere in each round, for seconds, and no renewal came through.
TEST_F(a_cluster, leaves_a_known_node_where_it_is_until_most_of_all_say_otherwise_B68) {
  const auto moved = thirds({{"a", 9}, {"b", 2}, {"c", 3}});
  auto known = named_by_majority(std::vector{vote(1, before), vote(2, before), vote(3, before)}).value();
  const auto is_at = [&](const std::vector<slots_vote>& votes) {
    known = merged(known, named_by_majority(votes, known).value());
    return known.primaries[known.owner[0]].where;
  };
  EXPECT_EQ(is_at({vote(9, moved), vote(1, moved), vote(2, before)}), at(1)) << "it alone says so";
  EXPECT_EQ(is_at({vote(2, before), vote(3, moved)}), at(1));
  EXPECT_EQ(is_at({vote(9, moved), vote(2, before), vote(3, moved)}), at(9));
  EXPECT_EQ(is_at({vote(2, before), vote(3, moved)}), at(9));
  EXPECT_EQ(is_at({vote(1, before), vote(2, before)}), at(1)) << "and back";
}

// Of five, three who are heard say three things, as where each is told to prefer another kind of address.
TEST_F(a_cluster, looks_for_a_node_elsewhere_when_nobody_says_any_more_that_it_is_there_B68) {
  const auto with = [](int where) { return thirds({{"a", where}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}}); };
  const auto known = named_by_majority(std::vector{vote(2, with(1)), vote(3, with(1)), vote(4, with(1))}).value();
  const auto is_at = [&](int b, int c, int d) {
    const auto map =
        named_by_majority(std::vector{vote(2, with(b)), vote(3, with(c)), vote(4, with(d))}, known).value();
    return map.primaries[map.owner[0]].where;
  };
  EXPECT_EQ(is_at(7, 7, 1), at(1));
  EXPECT_EQ(is_at(7, 7, 8), at(7));
  EXPECT_EQ(is_at(7, 7, 7), at(7));
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

// Enough of them are heard, and too few of those say the same.
TEST_F(a_cluster, counts_the_silent_ones_against_whom_most_of_the_others_name_P22) {
  const auto five = thirds({{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}});
  auto other = five;
  other.primaries[0].id = "f";
  EXPECT_EQ(owner_of(named_by_majority(std::vector{vote(1, other), vote(2, five), vote(3, five)}).value(), 0), "");
  const auto four = thirds({{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}});
  other = four;
  other.primaries[0].id = "f";
  EXPECT_EQ(owner_of(named_by_majority(std::vector{vote(1, other), vote(2, four), vote(3, four)}).value(), 0), "");
}

// 200 who name 329 each are more than numbers for primaries, and the last ones would get those of the first ones.
TEST_F(a_cluster, of_more_primaries_than_there_are_numbers_is_none) {
  std::vector<slots_vote> votes;
  for (const int strangers : {328, 327}) {
    votes.clear();
    for (int from = 0; from < 200; ++from) {
      slots_answer what;
      for (int i = 0; i < strangers; ++i) {
        what.primaries.push_back({std::to_string(from) + " " + std::to_string(i), at(i % 200), 0});
      }
      what.primaries.push_back({"a", at(0), 0});
      what.ranges.push_back({0, slot_count - 1, what.primaries.size() - 1});
      votes.push_back(vote(from, what));
    }
    EXPECT_EQ(named_by_majority(votes).has_value(), strangers == 327) << strangers;
  }
}

TEST_F(a_cluster, takes_over_nobody_for_whom_there_is_no_number) {
  const auto known = named_by_majority(std::vector{vote(1, before), vote(2, before), vote(3, before)});
  ASSERT_TRUE(known);
  slot_map round;
  round.owner.assign(slot_count, slot_map::nobody);
  for (int i = 0; i < slot_map::nobody; ++i) round.primaries.push_back({std::to_string(i), at(1), 0});
  round.is_named.assign(round.primaries.size(), true);
  EXPECT_EQ(merged(*known, round).covered(), 0U);
  round.primaries.pop_back();
  round.is_named.pop_back();
  EXPECT_EQ(owner_of(merged(*known, round), 0), "a");
}

// Several stand on the stack of a thread of ours, which `ulimit -s` may have made small.
TEST(a_slot_map, is_small_in_itself) { EXPECT_LT(sizeof(slot_map), 4096U); }

// As large as clusters get. Who compares each vote with each other, slot by slot, needs seconds for it.
TEST_F(a_cluster, of_two_hundred_is_what_all_say) {
  std::vector<who> all;
  for (int i = 0; i < 200; ++i) all.push_back({"node " + std::to_string(i), i});
  const auto named = thirds(all);
  std::vector<slots_vote> votes;
  const auto votes_of = [&](int count) {
    while (static_cast<int>(votes.size()) < count) votes.push_back(vote(static_cast<int>(votes.size()), named));
    return named_by_majority(votes);
  };
  EXPECT_FALSE(votes_of(100));
  EXPECT_TRUE(votes_of(101));
  const auto map = votes_of(200);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->covered(), slot_count);
  EXPECT_EQ(map->primaries.size(), 200U);
  EXPECT_EQ(owner_of(*map, slot_count - 1), "node 199");
}

// Redis says `?` for a host name that it was not told, and the port of all may be one: then the node that was asked
// stands for each of them, and is still one.
TEST_F(a_cluster, of_which_one_knows_no_address_but_its_own_is_not_named_by_that_one_P22) {
  const auto alone = parse_cluster_slots(parsed(list({list({integer(0), integer(99), node("?", 7000, "a")}),
                                                      list({integer(100), integer(199), node("?", 7000, "b")}),
                                                      list({integer(200), integer(16383), node("?", 7000, "c")})})),
                                         at(1));
  ASSERT_TRUE(alone);
  EXPECT_FALSE(named_by_majority(std::vector{vote(1, *alone)}));
  const auto five = parse_cluster_slots(parsed(list({list({integer(0), integer(99), node("10.0.0.1", 7000, "a")}),
                                                     list({integer(100), integer(199), node("10.0.0.2", 7000, "b")}),
                                                     list({integer(200), integer(299), node("10.0.0.3", 7000, "c")}),
                                                     list({integer(300), integer(399), node("?", 7000, "d")}),
                                                     list({integer(400), integer(16383), node("?", 7000, "e")})})),
                                        at(1));
  ASSERT_TRUE(five);
  EXPECT_FALSE(named_by_majority(std::vector{vote(1, *five), vote(2, *five)}));
  EXPECT_TRUE(named_by_majority(std::vector{vote(1, *five), vote(2, *five), vote(3, *five)}));
}

// CLUSTER DELSLOTS under a client that is running: all say the same, and nothing of it is in doubt.
TEST_F(a_cluster, of_which_a_slot_was_taken_from_its_primary_names_that_one_for_the_others_C4) {
  auto less = before;
  less.ranges[0].first = 1;
  auto known = named_by_majority(std::vector{vote(1, before), vote(2, before), vote(3, before)}).value();
  for (int round = 0; round < 3; ++round) {
    known = merged(known, named_by_majority(std::vector{vote(1, less), vote(2, less), vote(3, less)}, known).value());
    EXPECT_EQ(owner_of(known, 0), "") << round;
    ASSERT_EQ(owner_of(known, 1), "a") << round;
    EXPECT_TRUE(known.is_named[known.owner[1]]) << round;
  }
  less = before;
  less.ranges[2].last = slot_count - 2;
  known = merged(known, named_by_majority(std::vector{vote(1, less), vote(2, less), vote(3, less)}, known).value());
  EXPECT_EQ(owner_of(known, slot_count - 1), "");
  EXPECT_TRUE(known.is_named[known.owner[slot_count - 2]]);
}

// What it says of the others is nothing to those of the slot in doubt, and both are on one connection.
TEST_F(a_cluster, does_not_name_a_primary_of_which_one_slot_is_in_doubt_P22) {
  const auto known = named_by_majority(std::vector{vote(1, before), vote(2, before), vote(3, before)});
  auto doubting = before;
  doubting.ranges[0].first = 1;
  const auto round = named_by_majority(std::vector{vote(1, before), vote(2, doubting)});
  ASSERT_TRUE(known && round);
  const auto map = merged(*known, *round);
  EXPECT_EQ(owner_of(map, 0), "a");
  EXPECT_EQ(owner_of(map, 1), "a");
  EXPECT_FALSE(map.is_named[map.owner[1]]);
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
