// SPDX-License-Identifier: Apache-2.0
// How many votes a holder needs where several may hold at once. Apart from quorum_round.hpp, because it is arithmetic
// that its test tries out in every way there is.
#pragma once

namespace holdfast::core {

// The least number of votes at which `nodes` servers, each of which gives at most `places` permits, cannot have let in
// more than `places` permits together (H59).
//
// Enough: a holder of p permits has taken p from each of the q servers that voted for it. Together the servers give
// nodes * places at most, so the permits P of all holders satisfy P * q <= nodes * places; with P >= places + 1 that is
// q <= nodes * places / (places + 1), and one vote more makes it impossible, whatever the weights are.
// The least: with one vote fewer places + 1 holders of one permit each fit, dealt out to the servers in turn.
//
// One place is an exclusive lock, and a majority. It is more for more places: all of the servers from nodes - 1 places
// on, so that none of them may be down. Readers and a writer are not counted so: no server votes for a reader and a
// writer, so a majority of each cannot be, however many readers there are.
constexpr int votes_for(int nodes, int places) {
  return static_cast<int>(static_cast<long long>(nodes) * places / (places + 1LL)) + 1;
}

}  // namespace holdfast::core
