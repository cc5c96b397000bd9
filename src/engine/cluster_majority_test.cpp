// SPDX-License-Identifier: Apache-2.0
// named_by_majority() against a plain count of any few votes.
#include "engine/cluster_slots.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace holdfast::engine {
namespace {

using namespace std::chrono_literals;

constexpr time_point start{100s};

constexpr std::size_t told_slots = 24;  // The first ones, of which anything is said.

struct plain_map {
  std::array<std::string, told_slots> owner;  // By id.
  time_point asked_at = never;
};

std::string named_for(const slots_answer& what, std::size_t slot) {
  std::string who;
  for (const auto& r : what.ranges) {
    if (r.first <= slot && slot <= r.last) who = what.primaries[r.primary].id;
  }
  return who;
}

std::size_t covered(const plain_map& map) {
  return told_slots - static_cast<std::size_t>(std::count(map.owner.begin(), map.owner.end(), ""));
}

bool have_one_in_common(const std::set<std::string>& one, const std::set<std::string>& other) {
  return std::any_of(one.begin(), one.end(), [&](const auto& id) { return other.contains(id); });
}

std::set<std::string> named_in(const slots_answer& what) {
  std::set<std::string> ids;
  for (const auto& p : what.primaries) ids.insert(p.id);
  return ids;
}

using clusters = std::vector<std::vector<slots_vote>>;

clusters plain_clusters(const std::vector<slots_vote>& votes) {
  clusters all;
  for (const auto& one : votes) {
    std::vector<slots_vote> together;
    clusters others;
    for (const auto& cluster : all) {
      const bool is_of_it = std::any_of(cluster.begin(), cluster.end(), [&](const slots_vote& other) {
        return have_one_in_common(named_in(other.what), named_in(one.what));
      });
      if (is_of_it) {
        together.insert(together.end(), cluster.begin(), cluster.end());
      } else {
        others.push_back(cluster);
      }
    }
    together.push_back(one);
    all = others;
    all.push_back(together);
  }
  return all;
}

// By the primaries that one of them names.
plain_map plainly_counted(const std::vector<slots_vote>& answers, const slots_answer& proposal) {
  std::set<cluster_address> electors;
  for (const auto& p : proposal.primaries) electors.insert(p.where);
  plain_map map;
  for (std::size_t slot = 0; slot < told_slots; ++slot) {
    std::map<std::string, std::size_t> in_favour;
    for (const auto& one : answers) {
      if (!electors.contains(one.from)) continue;
      map.asked_at = std::min(map.asked_at, one.asked_at);
      const auto who = named_for(one.what, slot);
      if (!who.empty()) ++in_favour[who];
    }
    for (const auto& [who, count] : in_favour) {
      if (count * 2 > proposal.primaries.size()) map.owner[slot] = who;
    }
  }
  return map;
}

// The words of named_by_majority's comment, one after the other. Several: they are all as good.
std::vector<plain_map> plainly_named(const std::vector<slots_vote>& votes) {
  std::map<std::ptrdiff_t, std::vector<std::vector<plain_map>>> by_uri;
  for (const auto& answers : plain_clusters(votes)) {
    std::map<std::size_t, std::vector<plain_map>> by_size;
    for (const auto& proposal : answers) {
      const auto map = plainly_counted(answers, proposal.what);
      if (covered(map) > 0) by_size[covered(map)].push_back(map);
    }
    if (by_size.empty()) continue;
    const auto of_uri = std::count_if(answers.begin(), answers.end(), [](const auto& one) { return one.is_of_uri; });
    by_uri[of_uri].push_back(by_size.rbegin()->second);
  }
  if (by_uri.empty() || by_uri.rbegin()->second.size() > 1) return {};
  return by_uri.rbegin()->second.front();
}

bool is_the_same(const slot_map& map, const plain_map& plain) {
  if (map.asked_at != plain.asked_at) return false;
  for (std::size_t slot = 0; slot < told_slots; ++slot) {
    const auto owner = map.owner[slot];
    if ((owner == slot_map::nobody ? "" : map.primaries[owner].id) != plain.owner[slot]) return false;
  }
  return true;
}

int up_to(int most) { return *rc::gen::inRange(0, most + 1); }

// Of one of five, at one of six addresses: what its voters say is much alike, so that there are majorities.
slots_answer any_answer(const std::vector<std::size_t>& usual_ends) {
  slots_answer out;
  auto ends = usual_ends;
  if (up_to(3) == 0) ends[static_cast<std::size_t>(up_to(2))] += static_cast<std::size_t>(up_to(3));
  std::sort(ends.begin(), ends.end());
  std::size_t first = static_cast<std::size_t>(up_to(9) / 9);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const int who = up_to(5) > 0 ? static_cast<int>(i) : up_to(4);
    const std::string id{static_cast<char>('a' + who)};
    auto known = std::find_if(out.primaries.begin(), out.primaries.end(), [&](const auto& p) { return p.id == id; });
    if (known == out.primaries.end()) {
      const int where = up_to(9) > 0 ? who : up_to(5);
      out.primaries.push_back({id, {"10.0.0." + std::to_string(where), "7000"}, 1});
      known = out.primaries.end() - 1;
    }
    if (first > ends[i]) continue;
    out.ranges.push_back({first, ends[i], static_cast<std::size_t>(known - out.primaries.begin())});
    first = ends[i] + 1 + static_cast<std::size_t>(up_to(9) / 9);
  }
  return out;
}

TEST(named_by_majority_of_a_cluster, is_what_plain_counting_says_P22) {
  EXPECT_TRUE(rc::check("any few votes", [] {
    std::vector<std::size_t> usual_ends;
    for (int i = 0; i < 3; ++i) usual_ends.push_back(static_cast<std::size_t>(up_to(20)));
    std::vector<slots_vote> votes;
    for (int from = 0; from < 6; ++from) {
      if (up_to(3) == 0) continue;
      votes.push_back(
          {{"10.0.0." + std::to_string(from), "7000"}, any_answer(usual_ends), start + up_to(3) * 1s, up_to(1) == 1});
    }
    const auto map = named_by_majority(votes);
    const auto plain = plainly_named(votes);
    RC_CLASSIFY(!plain.empty(), "somebody is named");
    RC_ASSERT(map.has_value() == !plain.empty());
    if (!map) return;
    RC_ASSERT(map->covered() == covered(plain.front()));
    RC_ASSERT(std::any_of(plain.begin(), plain.end(), [&](const auto& one) { return is_the_same(*map, one); }));
    std::set<std::string> owners;
    for (std::size_t slot = 0; slot < told_slots; ++slot) {
      const auto owner = map->owner[slot];
      owners.insert(owner == slot_map::nobody ? "" : map->primaries[owner].id);
    }
    for (std::size_t i = 0; i < map->primaries.size(); ++i) {
      RC_ASSERT(map->is_named[i] == owners.contains(map->primaries[i].id));
    }
  }));
}

}  // namespace
}  // namespace holdfast::engine
