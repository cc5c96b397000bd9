// SPDX-License-Identifier: Apache-2.0
#include "engine/caller.hpp"

#include <vector>

namespace holdfast::engine {

void caller::start(call& what, time_point now) {
  calls_.push_back(&what);
  channel_.set_demand(true);
  what.step(now);
}

void caller::stop(call& what) {
  std::erase(calls_, &what);
  channel_.forget(what);
  if (calls_.empty()) channel_.set_demand(false);
}

// A call that is told may end but never leaves the list by itself, so the list stays as it is.
template <class Tell>
void caller::tell_all(Tell&& tell) {
  for (call* c : calls_) {
    if (c->is_over()) continue;
    tell(*c);
    if (c->on_news) c->on_news();
  }
}

void caller::on_ready(time_point now) {
  if (tell_.on_up) tell_.on_up();
  tell_all([&](call& c) { c.on_connected(now); });
}

void caller::on_hint(time_point now, std::string_view owner, server_time said_at, duration look_in) {
  tell_all([&](call& c) { c.on_hint(now, owner, said_at, look_in); });
}

void caller::on_hearing_changed(time_point now) {
  tell_all([&](call& c) { c.on_hearing_changed(now); });
}

void caller::on_down(time_point now, const connection_failure& failure, bool was_ready) {
  if (was_ready && tell_.on_down) tell_.on_down(failure);
  if (!was_ready) tell_all([&](call& c) { c.on_no_connection(now, failure); });
}

void caller::on_clock_step(duration step) {
  if (tell_.on_clock_step) tell_.on_clock_step(step);
}

}  // namespace holdfast::engine
