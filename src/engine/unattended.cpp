// SPDX-License-Identifier: Apache-2.0
#include "engine/unattended.hpp"

#include <utility>

namespace holdfast::engine {

void unattended::start(call& what, time_point now) {
  what.number_ = ++last_number_;
  what.on_news = [this, &what] { look_at(what); };
  caller_->expect_many(now);
  caller_->start(what, now);
  look_at(what);
}

void unattended::look_at(call& what) {
  if (what.number_ == 0) return;
  if (!what.is_over()) return schedule(what, what.wake_at());
  // It stays in the caller's list for now, which may just be going through it.
  schedule(what, never);
  what.number_ = 0;
  over_.push_back(&what);
}

void unattended::step_due(time_point now) {
  std::vector<call*> due;
  for (const auto& [at, number, what] : agenda_) {
    if (at > now) break;
    due.push_back(what);
  }
  for (call* what : due) {
    if (!what->is_over()) what->step(now);
    look_at(*what);
  }
}

std::vector<call*> unattended::take_over() {
  for (call* what : over_) {
    what->on_news = nullptr;
    caller_->stop(*what);
  }
  return std::exchange(over_, {});
}

void unattended::schedule(call& what, time_point at) {
  if (what.on_agenda_at_ == at) return;
  if (what.on_agenda_at_ != never) agenda_.erase({what.on_agenda_at_, what.number_, &what});
  what.on_agenda_at_ = at;
  if (at != never) agenda_.emplace(at, what.number_, &what);
}

}  // namespace holdfast::engine
