// SPDX-License-Identifier: Apache-2.0
// One acquire on a connection: core's decisions turned into requests, the server's words into answers.
#pragma once

#include "base/random.hpp"
#include "core/acquire_call.hpp"
#include "engine/call.hpp"
#include "engine/hints.hpp"
#include "script/command.hpp"
#include "script/keys.hpp"

#include <holdfast/names.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::engine {

// Let `owner` leave, until the first answer after `not_after`: a copy of its request may take effect until then. The
// epoch: there is no such copy, the first answer settles it.
struct unsettled {
  owner_id owner;
  server_time not_after;
};

class acquire final : public call {
public:
  struct request {
    script::lock_keys keys;
    std::shared_ptr<const std::string> label;  // Of the client, for all that do not have their own.
    std::chrono::milliseconds max_ttl;
    fencing_token min_fence;
    core::acquire_settings settings;
    script::part part{};    // What it wants of the lock: all of it, unless the keys are of a counted kind.
    int block_at_once = 0;  // Tokens to reserve if the first request gets it; from then on part.permits (P14).
  };

  // `ear`: how the line tells us to look; it outlives the call.
  acquire(channel& to, hints& ear, request what, time_point now, base::random_source& rng);

  void step(time_point now) override;
  void cancel(time_point now);
  void on_reply(time_point now, time_point sent_at, const resp::value& reply) override;
  void on_cut(time_point now) override;
  void on_no_connection(time_point now, const connection_failure& failure) override;
  void on_connected(time_point now) override;
  void on_hint(time_point now, std::string_view owner, server_time said_at, duration look_in) override;
  void on_hearing_changed(time_point now) override;
  time_point wake_at() const override { return wake_at_; }
  bool is_over() const override { return flow_.is_over(); }

  // Only when is_over().
  const core::acquire_end& end() const { return flow_.end(); }
  int attempts() const { return flow_.attempts(); }
  // What must be released in the background. For a lease that was_repeated, the lease's own owner is not among them.
  std::vector<unsettled> take_unsettled();
  // Is it past its first request, and would a subscription help?
  bool wants_hints() const { return flow_.wants_hints(); }
  // The latest not_after of all requests that went out.
  server_time last_not_after() const { return last_not_after_; }
  // So many tokens behind the granted one are ours too.
  int reserved() const { return reserved_; }
  const std::string& found_kind() const { return found_kind_; }
  int found_size() const { return found_size_; }
  const request& wanted() const { return what_; }

private:
  server_time not_after(time_point now, duration may_take);
  void send(time_point now, const core::ask& what);
  void send(time_point now, const core::stand& what);
  core::acquire_answer judge(time_point now, time_point sent_at, const resp::value& reply);

  hints* ear_;
  request what_;
  core::acquire_call flow_;
  time_point wake_at_;
  server_time last_not_after_{};
  std::string found_kind_;
  int found_size_ = 0;
  int reserved_ = 0;
};

}  // namespace holdfast::engine
