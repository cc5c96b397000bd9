// SPDX-License-Identifier: Apache-2.0
#include "core/quorum_votes.hpp"

#include "core/quorum_round.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

namespace holdfast::core {

namespace {

constexpr int most_nodes = 9;
constexpr int most_places = 10;

TEST(votes_for, one_place_takes_a_majority) {
  for (int nodes = 1; nodes <= most_nodes; ++nodes) EXPECT_EQ(votes_for(nodes, 1), majority_of(nodes)) << nodes;
}

TEST(votes_for, is_never_more_than_there_are_nor_less_than_a_majority) {
  for (int nodes = 1; nodes <= most_nodes; ++nodes) {
    for (int places = 1; places <= 1'000'000; places *= 10) {
      EXPECT_LE(votes_for(nodes, places), nodes);
      EXPECT_GE(votes_for(nodes, places), majority_of(nodes));
    }
  }
}

// Several holders, each with some permits and so many votes: is there a way to give them, when a node gives at most
// `places` permits? Every way is tried, but for those that differ only in which of two equal holders is which.
class every_way {
public:
  every_way(int nodes, int places, int votes) : free_(static_cast<std::size_t>(nodes), places) {
    for (unsigned set = 0; set < 1U << nodes; ++set) {
      if (std::popcount(set) == votes) sets_.push_back(set);
    }
  }

  // `weights`: largest first.
  bool lets_in(const std::vector<int>& weights, std::size_t holder = 0, std::size_t from = 0) {
    if (holder == weights.size()) return true;
    const bool is_like_the_last = holder > 0 && weights[holder] == weights[holder - 1];
    for (std::size_t i = is_like_the_last ? from : 0; i < sets_.size(); ++i) {
      if (!take(sets_[i], weights[holder])) continue;
      const bool is_possible = lets_in(weights, holder + 1, i);
      give(sets_[i], weights[holder]);
      if (is_possible) return true;
    }
    return false;
  }

private:
  bool take(unsigned set, int permits) {
    for (std::size_t node = 0; node < free_.size(); ++node) {
      if ((set >> node & 1) != 0 && free_[node] < permits) return false;
    }
    for (std::size_t node = 0; node < free_.size(); ++node) free_[node] -= (set >> node & 1) != 0 ? permits : 0;
    return true;
  }
  void give(unsigned set, int permits) {
    for (std::size_t node = 0; node < free_.size(); ++node) free_[node] += (set >> node & 1) != 0 ? permits : 0;
  }

  std::vector<int> free_;
  std::vector<unsigned> sets_{};
};

// All weights, largest first, that make `sum` together.
void each_split(int sum, int most, std::vector<int>& so_far, const auto& what) {
  if (sum == 0) return what(so_far);
  for (int one = std::min(sum, most); one >= 1; --one) {
    so_far.push_back(one);
    each_split(sum - one, one, so_far, what);
    so_far.pop_back();
  }
}

TEST(votes_for, one_holder_more_than_there_are_places_is_never_let_in_H59) {
  for (int nodes = 1; nodes <= most_nodes; ++nodes) {
    for (int places = 1; places <= most_places; ++places) {
      const int votes = votes_for(nodes, places);
      EXPECT_GT(votes * (places + 1), nodes * places) << "by counting";
      const std::vector<int> one_each(static_cast<std::size_t>(places + 1), 1);
      EXPECT_FALSE(every_way(nodes, places, votes).lets_in(one_each)) << nodes << " nodes, " << places << " places";
    }
  }
}

TEST(votes_for, with_one_vote_less_it_can_be_H59) {
  for (int nodes = 1; nodes <= most_nodes; ++nodes) {
    for (int places = 1; places <= most_places; ++places) {
      const std::vector<int> one_each(static_cast<std::size_t>(places + 1), 1);
      EXPECT_TRUE(every_way(nodes, places, votes_for(nodes, places) - 1).lets_in(one_each))
          << nodes << " nodes, " << places << " places";
    }
  }
}

// More permits than one too many are more of the same: some of those that hold them make one too many, or one of them
// is heavier than the rest can be.
TEST(votes_for, holders_of_several_permits_are_never_more_than_there_are_places_H59) {
  for (int nodes = 1; nodes <= 7; ++nodes) {
    for (int places = 1; places <= 6; ++places) {
      for (int sum = places + 1; sum <= 2 * places; ++sum) {
        std::vector<int> weights;
        each_split(sum, places, weights, [&](const std::vector<int>& all) {
          EXPECT_FALSE(every_way(nodes, places, votes_for(nodes, places)).lets_in(all))
              << nodes << " nodes, " << places << " places, " << sum << " permits of " << all.size() << " holders";
        });
      }
    }
  }
}

// H59: a majority of readers and a majority of writers have a node in common, which has voted for one of them only.
TEST(votes_for, readers_and_a_writer_cannot_both_have_a_majority_H59) {
  for (int nodes = 1; nodes <= most_nodes; nodes += 2) {
    for (unsigned readers = 0; readers < 1U << nodes; ++readers) {
      const int left = nodes - std::popcount(readers);
      EXPECT_FALSE(std::popcount(readers) >= majority_of(nodes) && left >= majority_of(nodes));
    }
  }
}

}  // namespace

}  // namespace holdfast::core
