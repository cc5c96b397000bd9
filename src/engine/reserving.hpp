// SPDX-License-Identifier: Apache-2.0
// The keeper's task for tokens to hand a lease on with; keeper.cpp alone sees it.
#pragma once

#include "engine/keeper_task.hpp"
#include "script/command.hpp"
#include "script/reply.hpp"

#include <utility>

namespace holdfast::engine {

class keeper::reserving final : public task, public reply_sink {
public:
  reserving(keeper& of, reservation what) : task{of}, what_{std::move(what)} {}
  ~reserving() override { of().channel_.forget(*this); }
  reserving(const reserving&) = delete;
  reserving& operator=(const reserving&) = delete;

  void run(time_point now) override {
    if (of().channel_.is_ready()) {
      return of().channel_.send(now, script::reserve(what_.keys, what_.owner, what_.grant, what_.last, what_.block),
                                *this);
    }
    of().is_waiting_for_connection_ = true;
    end();
  }
  void on_ready(time_point /*now*/) override {}

  void on_reply(time_point now, time_point sent_at, const resp::value& reply) override {
    if (const auto said = script::parse_release(reply)) {
      of().channel_.observe_clock(said->now, sent_at, now);
      if (said->what == script::release_answer::released) *what_.is_granted = true;
    }
    end();
  }
  void on_cut(time_point /*now*/) override { end(); }

private:
  void end() { of().reservations_.erase(this); }  // Ends our own life.

  reservation what_;
};

}  // namespace holdfast::engine
