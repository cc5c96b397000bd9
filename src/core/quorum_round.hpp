// SPDX-License-Identifier: Apache-2.0
// Decides one try for a lock that a majority of independent servers gives together: when enough have voted, under
// which token, and when it is no use to wait for more. Pure: no socket, clock or timer here (docs/protocol.md).
#pragma once

#include "base/time.hpp"
#include "core/lease_time.hpp"

#include <holdfast/names.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace holdfast::core {

// So many that two different ones cannot agree without a node in common.
constexpr int majority_of(int nodes) { return nodes / 2 + 1; }

// The token that all nodes may give: ahead of every clock that is known, by what a request may take to get there, and
// above `min_fence` (P23).
fencing_token token_proposal(std::span<const std::optional<server_time>> clocks, fencing_token min_fence);

// Whose clock is farther than `most` from the median of all that are known? Their votes must not count: a token may not
// be behind the clock of any node (P24).
std::vector<bool> out_of_step(std::span<const std::optional<server_time>> clocks, duration most);

//  a node's state | its answer: vote    | its answer: no         | nothing, until the patience ends
//  ---------------+---------------------+------------------------+---------------------------------
//  asked          | voted, with a token | refused                | silent: counted on no more, but a
//                 |                     |                        | vote that comes after all is one
//  being raised   | voted, under the    | silent                 | silent
//                 | round's token       |                        |
//
// Enough votes under one token end the round: a majority, of a semaphore more. Enough under several begin the second
// phase: those with a smaller token than the largest are raised to it, and from then on the round's token does not
// change, whatever comes (P23). The round is lost when too few are left that could be enough, or when the grant would
// be worth little, and over as soon as it is known what it is lost to: whoever waits stands in line for a holder, waits
// for the end of a quarantine, and gives a silence up, so the first refusals do not decide that while others may still
// answer. Nor do those in the name of several, who may have tried at once: then it may be that nobody has it. Never
// does it wait for all, nor for a tie, nor longer than its patience (B54, B56).
class quorum_round {
public:
  struct settings {
    int nodes;  // Odd.
    std::chrono::milliseconds ttl;
    clock_drift drift;
    duration patience;  // With one node, from when it was asked.
    int needed = 0;     // So many votes win; 0: a majority. Never fewer (core/quorum_votes.hpp).
  };
  // `started_at`: before the first request is sent. A grant counts from there (H16, B61).
  quorum_round(const settings& how, time_point started_at);

  // Why a node has no vote of ours, and did not have when it said so.
  enum class refusal : unsigned char {
    busy,         // Another has it.
    quarantined,  // It may have forgotten another's (H24).
    late,         // The request was too long on its way.
    other,        // It will not vote for us: another list of servers, its clock, memory, permission.
    unreachable,  // Nothing was sent to it.
  };
  void on_vote(int node, fencing_token token);
  // `holder`: who has a busy one. Empty: it does not say, and it may be anybody's.
  void on_refusal(int node, refusal why, std::string holder = {});
  // Its connection ended with a request unanswered: it may have a vote of ours.
  void on_cut(int node);
  // It is raised to token(); or it is not, and nobody knows what it has now.
  void on_raised(int node);
  void on_not_raised(int node) { on_cut(node); }

  struct decision {
    std::vector<int> raise{};  // Each once: to token().
    bool is_over = false;
    time_point wake_at = never;  // While it is not over: when to ask again, if nothing happens before.
  };
  decision decide(time_point now);

  // The round's, from the second phase on, or when it is won.
  fencing_token token() const { return token_; }

  enum class result : unsigned char {
    won,
    busy,         // So many have another's that there was nothing to win.
    tied,         // So many have others', and none of these can have enough: nobody has it (R12).
    split,        // Some voted, some are another's: who comes again a little later may win.
    quarantined,  // The votes that fail are those of nodes that may have forgotten a lock.
    unreachable,  // Too few answered.
    refused,      // Too few would vote, for other reasons; or what was won was worth little.
  };
  // Only when is_over.
  result outcome() const { return *outcome_; }
  // Did as many as are needed vote, if not under one token, or too late?
  bool had_enough_votes() const { return had_enough_votes_; }
  time_point deadline() const { return deadline_of(started_at_, how_.ttl, how_.drift); }
  // Has this node the round's token for us? Only of a round that was won: then as many as are needed.
  bool has_vote_of(int node) const;
  // May this node have a vote of ours, under whatever token? If the round failed it must be withdrawn there (B55); if
  // it was won, such a node has an older token, or has not answered.
  bool may_have_voted(int node) const;
  // Empty: it voted, or has not answered.
  std::optional<refusal> why_not(int node) const;

private:
  enum class state : unsigned char { asked, voted, raising, refused, cut };
  struct vote {
    state is = state::asked;
    fencing_token token{};
    refusal why{};
    std::string holder{};
  };

  int count(state what) const;
  int refusals(refusal why) const;
  int with(fencing_token token) const;
  int most_of_another() const;
  bool is_waited_for(const vote& of, time_point now) const;
  std::optional<fencing_token> agreed() const;
  void begin_second_phase(time_point now);
  std::optional<result> lost_to(time_point now) const;

  settings how_;
  time_point started_at_;
  std::vector<vote> votes_;
  fencing_token token_{};
  bool is_second_phase_ = false;
  bool had_enough_votes_ = false;  // At some time.
  time_point phase_began_at_;
  std::optional<result> outcome_{};
};

}  // namespace holdfast::core
