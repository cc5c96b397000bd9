// SPDX-License-Identifier: Apache-2.0
// The keeper's task for what is released in the background; keeper.cpp and keeper_moves.cpp alone see it.
#pragma once

#include "core/clean_up.hpp"
#include "engine/keeper_task.hpp"
#include "script/command.hpp"
#include "script/reply.hpp"
#include "script/server_error.hpp"

#include <string_view>
#include <utility>

namespace holdfast::engine {

class keeper::releasing final : public task, public reply_sink {
public:
  releasing(keeper& of, background_release what, core::clean_up plan) : task{of}, what_{std::move(what)}, plan_{plan} {}
  ~releasing() override { of().channel_.forget(*this); }
  releasing(const releasing&) = delete;
  releasing& operator=(const releasing&) = delete;

  void run(time_point now) override {
    const bool can_send = of().channel_.is_ready();
    if (plan_.on_wake(now, can_send)) {
      of().channel_.send(
          now,
          what_.token ? script::release(what_.keys, what_.owner, what_.token) : script::leave(what_.keys, what_.owner),
          *this);
    }
    if (plan_.is_over(now)) {
      if (!what_.token) of().remember(what_.keys, what_.owner, {});
      of().releases_.erase(this);  // Ends our own life.
      return;
    }
    if (!can_send) of().is_waiting_for_connection_ = true;
    of().schedule(*this, plan_.wake_at(can_send));
  }

  void on_ready(time_point now) override { run(now); }

  // As renewing's.
  departing depart(time_point now) {
    if (channel::open_requests(*this) > 0) plan_.on_failed(now, of().jitter_);
    departing out;
    out.release = std::move(what_);
    out.release_plan = plan_;
    return out;
  }
  const script::lock_keys& keys() const { return what_.keys; }

  bool is_of(std::string_view owner) const { return what_.owner.hex() == owner; }
  void hurry(time_point now) {
    plan_.hurry(now);
    of().schedule(*this, now);
  }

  void on_reply(time_point now, time_point sent_at, const resp::value& reply) override {
    if (const auto parsed = script::parse_release(reply)) {
      of().channel_.observe_clock(parsed->now, sent_at, now);
      plan_.on_definite(now, parsed->now, of().jitter_);
      return run(now);
    }
    channel& from = of().channel_;
    plan_.on_failed(now, of().jitter_);
    run(now);  // May end our own life.
    if (const auto* error = reply.as_error()) {
      const auto what = from.judge(error->text);
      if (what.what == script::reaction::reconnect) from.hang_up(now, {what.code, error->text, false, false});
    }
  }

  void on_cut(time_point now) override {
    plan_.on_failed(now, of().jitter_);
    run(now);
  }

private:
  background_release what_;
  core::clean_up plan_;
};

}  // namespace holdfast::engine
