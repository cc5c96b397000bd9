// SPDX-License-Identifier: Apache-2.0
// One acquire on a connection: core's decisions turned into requests, the server's words into answers.
#pragma once

#include "base/random.hpp"
#include "core/acquire_call.hpp"
#include "core/clean_up.hpp"
#include "engine/call.hpp"
#include "engine/hints.hpp"
#include "script/command.hpp"
#include "script/keys.hpp"
#include "script/reply.hpp"

#include <holdfast/error.hpp>
#include <holdfast/names.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::engine {

// Let `owner` leave, until the first answer after `not_after`: a copy of its request may take effect until then. The
// epoch: there is no such copy, the first answer settles it.
struct unsettled {
  owner_id owner;
  server_time not_after;
  core::route went_by;
  bool may_stand;  // In line.
  bool was_told;   // A first `leave` is sent already.
};

class acquire final : public call, private line_mate {
public:
  struct request {
    script::lock_keys keys;
    std::shared_ptr<const std::string> label;  // Of the client, for all that do not have their own.
    std::chrono::milliseconds max_ttl;
    fencing_token min_fence;
    script::part part{};    // What it wants of the lock: all of it, unless the keys are of a counted kind.
    int block_at_once = 0;  // Tokens to reserve if the first request gets it; from then on part.permits (P14).
  };

  // `ear`: how the line tells us to look; it outlives the call.
  acquire(channel& to, hints& ear, request what, const core::acquire_settings& how, time_point now,
          base::random_source& rng);

  void step(time_point now) override;
  void cancel(time_point now);
  void on_reply(time_point now, time_point sent_at, const resp::value& reply) override;
  void on_cut(time_point now) override;
  void on_no_connection(time_point now, const connection_failure& failure) override;
  void on_new_connection() override { let_leave_again(); }
  void on_connected(time_point now) override;
  void on_hint(time_point now, std::string_view owner, server_time said_at, duration look_in) override;
  void on_hearing_changed(time_point now) override;
  time_point wake_at() const override { return flow_.sleeps_until(); }
  bool is_over() const override { return flow_.is_over(); }
  void on_stop() override { stand_with_mates(0); }
  void on_left(time_point now) override;
  void on_going_on(time_point now, hints& ear) override;

  // Only when is_over().
  const core::acquire_end& end() const { return flow_.end(); }
  // The server that has answered.
  const channel& by() const { return to(); }
  // The id of the lease that it got.
  const owner_id& owner() const { return flow_.owner(); }
  int attempts() const { return flow_.attempts(); }
  duration round_trip() const { return flow_.round_trip(); }
  bool was_too_far() const { return flow_.was_too_far(); }
  // What must be released in the background. For a lease that was_repeated, the lease's own owner is not among them.
  std::vector<unsettled> take_unsettled();
  // Is it past its first request, and would a subscription help?
  bool wants_hints() const { return flow_.wants_hints(); }
  // The latest not_after of all requests that went out.
  server_time last_not_after() const { return last_not_after_; }
  // Has it asked for a place in a line?
  bool was_in_line() const { return was_in_line_; }
  // Did the line say that it was its turn? Else its own look found that.
  bool was_called() const { return was_called_ || is_called_; }
  // So many tokens behind the granted one are ours too.
  int reserved() const { return reserved_; }
  // What is there instead, when it ended for that.
  std::string found_kind() const { return rare_ ? rare_->found_kind : std::string{}; }
  int found_size() const { return rare_ ? rare_->found_size : 0; }
  // So many replicas had its last grant.
  int replicas() const { return rare_ ? rare_->replicas : 0; }
  const request& wanted() const { return what_; }
  std::chrono::milliseconds ttl() const { return flow_.ttl(); }
  time_point silent_since() const { return flow_.silent_since(); }
  bool is_past_asking() const { return flow_.is_past_asking(); }
  // Writes down what each answer of the server says: read by other threads, for as long as the call goes on.
  void write_news_to(std::atomic<errc>& where) { rarely().news = &where; }

private:
  server_time not_after(time_point now, duration may_take);
  void send(time_point now, const core::acquire_action& action);
  void send(time_point now, const core::ask& what);
  void send(time_point now, const core::stand& what);
  void send(time_point now, const core::look& what);
  void send(time_point now, const core::give_back& what);
  // With this ticket among those who stand in the same line; 0: not there.
  void stand_with_mates(std::uint64_t at);
  // Leaves a heartbeat to the first of us, if there is one before us. True: it does it.
  bool leave_it_to_the_first(time_point now);
  std::vector<owner_id> take_mates_along(time_point now);
  // What came of the look. `missing`: those of them who must look for themselves.
  void tell_mates(time_point now, const core::acquire_answer& answer, const std::vector<std::size_t>& missing);
  void step_and_tell(time_point now);
  void lose_connection(time_point now);
  bool is_doubtful(time_point now, time_point sent_at, const core::acquire_answer& answer, bool is_proof);
  bool have_all_left();
  void let_leave_again();
  void mind_quarantine() { flow_.on_quarantine(to().quarantined_until()); }
  // The owner ids that were given up on the way.
  void let_leave(time_point now);
  void collect_unsettled();
  core::acquire_answer of_worth(time_point now, time_point sent_at, core::acquire_answer grant);
  core::acquire_answer refused(time_point now, const resp::server_error& error);
  core::acquire_answer judge_leave(time_point now, time_point sent_at, const resp::value& reply);
  core::acquire_answer judge(time_point now, time_point sent_at, const resp::value& reply,
                             std::vector<std::size_t>& missing);

  hints* ear_;
  request what_;
  core::acquire_call flow_;
  server_time last_not_after_{};
  int reserved_ = 0;
  bool was_in_line_ = false;
  bool is_called_ = false;   // By a hint, since the last look was sent.
  bool was_called_ = false;  // Before that one was.
  // Apart: most of ten thousand that wait have none of it.
  struct rare {
    std::string found_kind{};
    int found_size = 0;
    int replicas = 0;
    std::atomic<errc>* news = nullptr;
    std::vector<unsettled> left_behind{};
    std::size_t told = 0;  // The first ones of these: over this connection, or known to be through.
    std::size_t through = 0;
    std::uint64_t refused = 0;  // The channel's refused_unheard(), when they were told.
    int doubts = 0;
    std::vector<owner_id> taken_along{};  // With the look that is unanswered.
  };
  rare& rarely();
  std::unique_ptr<rare> rare_{};
};

}  // namespace holdfast::engine
