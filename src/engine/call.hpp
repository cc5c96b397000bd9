// SPDX-License-Identifier: Apache-2.0
// One thing that a caller wants of the server and waits for: an acquire, a release, a question. A call lives on its
// caller's stack, hears of its replies and of the connection, and is over when is_over() says so.
#pragma once

#include "base/random.hpp"
#include "core/acquire_call.hpp"
#include "core/release_call.hpp"
#include "engine/channel.hpp"
#include "script/keys.hpp"
#include "script/reply.hpp"

#include <holdfast/error.hpp>

#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::engine {

// What every call has. Not thread-safe: the driver calls everything under one mutex.
class call : public reply_sink {
public:
  virtual ~call() = default;

  // Does what is due. Called at the start, at wake_at(), and when a connection became ready.
  virtual void step(time_point now) = 0;
  virtual void on_no_connection(time_point now, const connection_failure& failure) = 0;
  virtual time_point wake_at() const = 0;
  virtual bool is_over() const = 0;

  // The last words of the server, or of the system about the connection; for people.
  const std::string& server_text() const { return server_text_; }

  // Set by the driver: told after every event that reached this call.
  std::function<void()> on_news{};

protected:
  explicit call(channel& to) : channel_{&to} {}

  channel& to() const { return *channel_; }
  void note(const std::string& text) { server_text_ = text; }

private:
  channel* channel_;
  std::string server_text_;
};

// A request whose copy may still take effect: release `owner` until the first answer after `not_after`.
struct unsettled {
  owner_id owner;
  server_time not_after;
};

class acquire final : public call {
public:
  struct request {
    script::lock_keys keys;
    std::string label;
    std::chrono::milliseconds max_ttl;
    fencing_token min_fence;
    core::acquire_settings settings;
  };

  acquire(channel& to, request what, time_point now, base::random_source& rng);

  void step(time_point now) override;
  void cancel(time_point now);
  void on_reply(time_point now, time_point sent_at, const resp::value& reply) override;
  void on_cut(time_point now) override;
  void on_no_connection(time_point now, const connection_failure& failure) override;
  time_point wake_at() const override { return wake_at_; }
  bool is_over() const override { return flow_.is_over(); }

  // Only when is_over().
  const core::acquire_end& end() const { return flow_.end(); }
  int attempts() const { return flow_.attempts(); }
  // What must be released in the background. For a lease that was_repeated, the lease's own owner is not among them.
  std::vector<unsettled> take_unsettled();
  // The latest not_after of all requests that went out.
  server_time last_not_after() const { return last_not_after_; }
  const std::string& found_kind() const { return found_kind_; }

private:
  core::acquire_answer judge(time_point now, time_point sent_at, const resp::value& reply);

  request what_;
  core::acquire_call flow_;
  time_point wake_at_;
  server_time last_not_after_{};
  std::string found_kind_;
};

class release final : public call {
public:
  release(channel& to, script::lock_keys keys, owner_id owner, fencing_token token, time_point lease_deadline,
          time_point give_up_at);

  void step(time_point now) override;
  void on_reply(time_point now, time_point sent_at, const resp::value& reply) override;
  void on_cut(time_point now) override;
  void on_no_connection(time_point now, const connection_failure& failure) override;
  time_point wake_at() const override { return flow_.wake_at(to().is_ready()); }
  bool is_over() const override { return flow_.end().has_value(); }

  release_outcome end() const { return *flow_.end(); }

private:
  script::lock_keys keys_;
  owner_id owner_;
  fencing_token token_;
  core::release_call flow_;
};

// Any one request whose reply the caller reads itself. Repeated after a cut only if `repeatable`.
class question final : public call {
public:
  enum class repeat { allowed, refused };

  question(channel& to, script::command what, repeat how, time_point give_up_at);
  question(channel& to, std::string encoded, repeat how, time_point give_up_at);

  void step(time_point now) override;
  void on_reply(time_point now, time_point sent_at, const resp::value& reply) override;
  void on_cut(time_point now) override;
  void on_no_connection(time_point now, const connection_failure& failure) override;
  time_point wake_at() const override { return wake_at_; }
  bool is_over() const override { return reply_.has_value() || failure_.has_value(); }

  // Only when is_over(): a reply, which may be the server's error, or why there is none.
  const std::optional<resp::value>& reply() const { return reply_; }
  errc failure() const { return *failure_; }
  int attempts() const { return attempts_; }
  duration round_trip() const { return round_trip_; }

private:
  std::optional<script::command> command_;
  std::string encoded_;
  repeat how_;
  time_point give_up_at_;
  time_point wake_at_;
  bool is_asked_ = false;
  bool is_cut_ = false;
  int attempts_ = 0;
  int refusals_ = 0;
  errc last_news_ = errc::server_silent;
  duration round_trip_{0};
  std::optional<resp::value> reply_{};
  std::optional<errc> failure_{};
};

// The calls of one connection: hands the connection's news to each of them.
class caller final : public channel_listener {
public:
  // What the client wants to know for its observer. Called under the driver's mutex; must not call back.
  struct hooks {
    std::function<void()> on_up{};
    std::function<void(const connection_failure&)> on_down{};
    std::function<void(duration)> on_clock_step{};
  };

  caller(channel::settings settings, base::random_source& rng, hooks tell)
      : tell_{std::move(tell)}, channel_{std::move(settings), rng, *this} {}

  channel& wire() { return channel_; }

  // A call must be stopped before it goes away: late replies to it are dropped from then on.
  void start(call& what, time_point now);
  void stop(call& what);

  void on_ready(time_point now) override;
  void on_down(time_point now, const connection_failure& failure, bool was_ready) override;
  void on_clock_step(duration step) override;

private:
  template <class Tell>
  void tell_all(Tell&& tell);

  hooks tell_;
  std::vector<call*> calls_;
  channel channel_;
};

}  // namespace holdfast::engine
