// SPDX-License-Identifier: Apache-2.0
#include "engine/unattended.hpp"

namespace holdfast::engine {

void unattended::start(call& what, time_point now) {
  what.number_ = ++last_number_;
  what.on_agenda_at_ = never;
  agenda_.insert(what);
  what.set_listener(this);
  caller_->expect_many(now);
  caller_->start(what, now);
  look_at(what);
}

void unattended::take_back(call& what) {
  if (what.number_ != 0) {
    agenda_.erase(agenda_.iterator_to(what));
    what.number_ = 0;
  } else {
    leave_over(what);
  }
  what.set_listener(nullptr);
  caller_->stop(what);
}

void unattended::look_at(call& what) {
  if (what.number_ == 0) return;
  const bool is_over = what.is_done();
  const time_point at = is_over ? never : what.wake_at();
  if (!is_over && what.on_agenda_at_ == at) return;
  agenda_.erase(agenda_.iterator_to(what));
  if (!is_over) {
    what.on_agenda_at_ = at;
    agenda_.insert(what);
    return;
  }
  // It stays in the caller's list for now, which may just be going through it.
  what.number_ = 0;
  what.on_agenda_at_ = time_point{duration{++last_end_}};
  over_.insert(what);
  ++over_count_;
}

void unattended::leave_over(call& what) {
  if (!what.on_agenda_.is_linked()) return;
  over_.erase(over_.iterator_to(what));
  --over_count_;
}

void unattended::step_due(time_point now) {
  std::vector<call*> due;
  for (call& what : agenda_) {
    if (what.on_agenda_at_ > now) break;
    due.push_back(&what);
  }
  for (call* what : due) {
    if (!what->is_done()) what->step(now);
    look_at(*what);
  }
}

template <class Which>
std::vector<call*> unattended::take(Which which) {
  std::vector<call*> found;
  found.reserve(over_count_);
  for (call& what : over_) {
    if (which(what)) found.push_back(&what);
  }
  for (call* what : found) {
    leave_over(*what);
    what->set_listener(nullptr);
    caller_->stop(*what);
  }
  return found;
}

std::vector<call*> unattended::take_over() {
  return take([](const call&) { return true; });
}

std::vector<call*> unattended::take_moved() {
  return take([](const call& what) { return what.is_moved(); });
}

std::vector<call*> unattended::all() {
  std::vector<call*> found;
  for (call& what : agenda_) found.push_back(&what);
  return found;
}

}  // namespace holdfast::engine
