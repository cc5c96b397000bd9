// SPDX-License-Identifier: Apache-2.0
// Keeps what a majority of servers has granted: each server's vote is kept as a lease of that one server would be, by
// an engine::keeper of its own, and what they make together is decided here. So a vote is renewed, retried and given up
// in the ways that are proved for one server, and this file is only about how many of them there are.
#pragma once

#include "core/quorum_deadline.hpp"
#include "engine/agenda.hpp"
#include "engine/keeper.hpp"
#include "script/quorum_record.hpp"

#include <holdfast/error.hpp>
#include <holdfast/names.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace holdfast::engine {

// What is known of one server's vote for a lease.
struct quorum_vote {
  fencing_token token{};         // Under which it was given. Zero: none is known, but there may be one.
  server_time not_after{};       // A request for it is unanswered, and may take effect until then. The epoch: none is.
  time_point not_after_local{};  // Our estimate of the same instant.
  std::uint64_t asked_over = 0;  // The voter's connection over which it was; zero: another's.
};

// What the servers may have of a lease that is not kept any more.
struct votes_left {
  std::vector<quorum_vote> of_each;  // Empty: the lease was lost before, and what they have is not known.
  int needed = 0;                    // So many of them made it.
};

//  of a server's vote      | counts towards the deadline  | what is done about it
//  ------------------------+------------------------------+---------------------------------------------------------
//  given in the round      | until its own deadline       | renewed
//  lost, or not known      | no                           | asked for again, while the others are enough without it,
//                          |                              | and not when the lease is not renewed by itself
//  given later, or again   | from its first renewal       | renewed: all of them at once, and it when the others were
//                          | behind those of enough others
//
// A lease is lost when fewer votes count than are needed, a majority or of a semaphore more: at its deadline, or at
// once when one of the servers that make just so many says that its vote is gone (B57).
class quorum_keeper {
public:
  struct settings {
    std::vector<channel::settings> nodes;
    core::clock_drift drift;
    std::string prefix;
    script::quorum_record record;
    std::chrono::milliseconds max_ttl;
  };
  // `of_nodes`: who hears of each server's connection and clock, one for each; `listener`: who hears of the leases.
  quorum_keeper(settings how, base::random_source& rng, std::vector<keeper_listener*> of_nodes,
                keeper_listener& listener);
  ~quorum_keeper();

  std::size_t size() const { return servers_.size(); }
  channel& wire(std::size_t node);

  // `votes`: one for each server; those with a token were given by requests that were sent at `sent_at`. `what`: of a
  // counted kind, how much of it.
  void keep(std::shared_ptr<held_lease> lease, std::string label, std::vector<quorum_vote> votes, time_point sent_at,
            renewal mode, const script::part& what = {});
  // Ends the keeping: nothing is renewed and nothing is reported any more.
  votes_left let_go(const held_lease& lease);
  bool is_kept(const held_lease& lease) const { return leases_.contains(&lease); }
  // What is kept as `lease` is kept as `next` from now on, which has its keys, owner id and token. It must be kept.
  void go_on_as(const held_lease& lease, std::shared_ptr<held_lease> next);
  // The servers are asked to make it less than it is, a reader's place: until end_narrowing() no vote is asked for that
  // is missing, because nobody knows as what. The token of each server's vote, which may be another than the lease's;
  // zero: it has none that is known. Empty when it is lost.
  std::vector<fencing_token> begin_narrowing(const held_lease& lease);
  // As what votes are asked for from now on; empty: as what they were.
  void end_narrowing(const held_lease& lease, const std::optional<script::part>& to);
  // As keeper::renew_now: renewed is what so many have renewed as are needed.
  bool renew_now(time_point now, const held_lease& lease, time_point give_up_at, std::shared_ptr<renewal_wish> whose);
  // As keeper::cancel: in flight as soon as one server may have been asked.
  void cancel(const held_lease& lease, const renewal_wish& whose);
  void release_later(time_point now, std::size_t node, keeper::background_release what);
  // As keeper::on_step_seen.
  void on_step_seen(time_point now, std::size_t node, duration step, const core::server_clock& seen);

  // Does what is due. Call it after anything has come in, too: what an answer means for a lease is decided here.
  void on_wake(time_point now);
  time_point wake_at() const;
  bool has_background_releases() const;

private:
  class server;
  class share;
  class kept;
  class repair;
  class wish;

  void look_at(kept& whole, time_point at);
  std::vector<kept*> in_order() const;

  settings how_;
  base::random_source* rng_;
  keeper_listener* listener_;
  agenda<kept> agenda_;
  std::vector<std::unique_ptr<server>> servers_;
  std::unordered_map<const held_lease*, std::unique_ptr<kept>> leases_;
  std::uint64_t last_number_ = 0;
};

}  // namespace holdfast::engine
