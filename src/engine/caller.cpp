// SPDX-License-Identifier: Apache-2.0
#include "engine/caller.hpp"

namespace holdfast::engine {

void caller::start(call& what, time_point now) {
  calls_.push_back(what);
  what.index_ = &index_;
  if (what.gives_back()) ++giving_back_;
  update_demand();
  channel_.mind_primary(now);
  what.step(now);
}

void caller::stop(call& what) {
  what.on_stop();
  what.expect_no_hints();
  what.index_ = nullptr;
  if (what.listed_.is_linked()) {
    calls_.erase(calls_.iterator_to(what));
    if (what.gives_back()) --giving_back_;
  }
  channel_.forget(what);
  update_demand();
}

// A call that is told may end but never leaves the list by itself, so the list stays as it is.
template <class Tell>
void caller::tell_all(Tell&& tell) {
  for (call& c : calls_) {
    if (c.is_done()) continue;
    tell(c);
    c.tell_news();
  }
}

void caller::expect_many(time_point now) {
  expects_many_ = true;
  if (!channel_.is_ready()) return;
  for (const auto which : {script::id::wait, script::id::look, script::id::leave}) channel_.load(now, which);
}

void caller::on_ready(time_point now) {
  if (tell_.on_up) tell_.on_up(now);
  if (!channel_.takes_back()) return;  // It was not what it should be.
  if (expects_many_) expect_many(now);
  // One of them may step another one, in the same line.
  tell_all([](call& c) { c.on_new_connection(); });
  tell_all([&](call& c) { c.on_connected(now); });
}

void caller::on_hint(time_point now, std::string_view owner, server_time said_at, duration look_in) {
  call* const found = index_.by_owner.find(owner);
  if (!found || found->is_done()) {
    if (tell_.on_stray_hint) tell_.on_stray_hint(owner, said_at);
    return;
  }
  found->on_hint(now, owner, said_at, look_in);
  found->tell_news();
}

void caller::on_hearing_changed(time_point now) {
  tell_all([&](call& c) { c.on_hearing_changed(now); });
}

void caller::leave_server(time_point now, const std::function<bool(int slot)>& is_served_here) {
  tell_all([&](call& c) {
    if (c.slot() != call::no_slot && !is_served_here(c.slot())) c.leave_server(now);
  });
}

void caller::on_down(time_point now, const connection_failure& failure, bool was_ready) {
  if (was_ready && tell_.on_down) tell_.on_down(failure);
  if (!was_ready) tell_all([&](call& c) { c.on_no_connection(now, failure); });
}

void caller::on_clock_step(time_point /*now*/, duration step) {
  if (tell_.on_clock_step) tell_.on_clock_step(step, channel_.clock());
}

}  // namespace holdfast::engine
