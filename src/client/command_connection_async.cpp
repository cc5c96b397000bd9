// SPDX-License-Identifier: Apache-2.0
// command_connection's calls that no thread waits for: how they begin, come from elsewhere, are cancelled, and end.
#include "client/command_connection.hpp"

#include "net/clock.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;

void command_connection::start(const std::shared_ptr<async_call>& what) {
  auto held = locked();
  start_under(held, what);
}

void command_connection::take_up(std::shared_ptr<async_call> what) {
  {
    const std::lock_guard arriving{arriving_};
    arrived_.push_back(std::move(what));
    has_arrived_ = true;
  }
  // Not here, also where nobody has our mutex: to begin it our mutex is let go and taken again. Who drives may be about
  // to stop: one of them comes round.
  wake_leader_.set();
  wake_deputy_();
}

void command_connection::start_arrived(connection::lock& held) noexcept {
  while (has_arrived_) {
    std::vector<std::shared_ptr<async_call>> came;
    {
      const std::lock_guard arriving{arriving_};
      came.swap(arrived_);
      has_arrived_ = false;
    }
    for (const auto& what : came) {
      try {
        start_under(held, what);
        // A cancel that found it on its way has left it at that.
        if (what->driver_ == this && what->is_cancelled()) cancel_under(held, *what);
      } catch (...) {
        // No memory: nobody hears of it.
        if (!held.owns_lock()) held.lock();
      }
    }
    // One that is over has its end here, perhaps, and waits there for who cancels it, who waits for our mutex.
    held.unlock();
    came.clear();
    held.lock();
  }
}

void command_connection::start_under(connection::lock& held, const std::shared_ptr<async_call>& what) {
  what->flow().set_companion(what.get());
  what->driver_ = this;
  what->under_way_ = what;
  ++async_calls_;
  try {
    begin(what->flow(), held);
  } catch (...) {
    if (!held.owns_lock()) held.lock();
    // Who is thrown something has nothing under way, and is not told; who is told already is not thrown anything.
    const bool is_ours = what->driver_ == this;
    if (is_ours) take_back(*what);
    pass_lead_on();
    if (is_ours) throw;
  }
}

void command_connection::begin(engine::call& flow, connection::lock& held) {
  if (lead_ == lead::nobody) {
    struct leading {
      command_connection& self;
      connection::lock& held;
      ~leading() {
        if (!held.owns_lock()) held.lock();
        self.lead_ = lead::nobody;
      }
    };
    lead_ = lead::caller;
    const leading until_collected{*this, held};
    line_.collect_if_stale(held);
  }
  unattended_.start(flow, boottime_now());
  if (!leave_to_deputy()) line_.flush(held);
  conclude_ended(held);
  wake_members(held);
  pass_lead_on();
  wake_driver_if_sooner();
}

void command_connection::take_back(async_call& what) {
  unattended_.take_back(what.flow());
  what.driver_ = nullptr;
  what.under_way_.reset();
  --async_calls_;
}

// With many under way, what is started now waits until the deputy comes round: a write for each would take longer than
// all that the server does for it. With few, the switch to another thread would.
bool command_connection::leave_to_deputy() {
  constexpr std::size_t many = 16;
  if (lead_ != lead::deputy && lead_ != lead::deputy_busy) return false;
  if (channel().open_requests() < many) return false;
  if (lead_ == lead::deputy && !std::exchange(deputy_is_called_, true)) wake_deputy_();
  return true;
}

void command_connection::cancel(async_call& what) {
  // What is over is left to whoever drives: to conclude it, our mutex is taken again and again.
  if (connection::lock held{line_.mutex(), std::try_to_lock}; held.owns_lock()) {
    if (what.driver_ != this) return;
    what.cancel(boottime_now());
    unattended_.look_at(what.flow());
    return wake_driver();
  }
  has_cancelled_ = true;
  wake_leader_.set();
  wake_deputy_();
}

// The driver's. Without memory the next round does it.
void command_connection::cancel_marked() noexcept try {
  if (!has_cancelled_.exchange(false)) return;
  const time_point now = boottime_now();
  for (engine::call* flow : unattended_.all()) {
    if (!async_call::of(*flow).is_cancelled()) continue;
    async_call::of(*flow).cancel(now);
    unattended_.look_at(*flow);
  }
} catch (...) {
  has_cancelled_ = true;
}

void command_connection::cancel_under(connection::lock& held, async_call& what) {
  what.cancel(boottime_now());
  unattended_.look_at(what.flow());
  conclude_ended(held);
  wake_members(held);
}

void command_connection::cancel_all_async() {
  auto held = locked();
  const time_point now = boottime_now();
  for (engine::call* flow : unattended_.all()) {
    async_call::of(*flow).cancel(now);
    unattended_.look_at(*flow);
  }
  conclude_ended(held);
  wake_members(held);
}

// The driver's.
void command_connection::drive_async(connection::lock& held) {
  if (async_calls_ == 0) return;
  unattended_.step_due(boottime_now());
  line_.flush(held);
  conclude_ended(held);
}

void command_connection::conclude_ended(connection::lock& held) {
  auto ended = taken_ended(&engine::unattended::take_over);
  if (ended.empty()) return;
  held.unlock();
  conclude_(std::move(ended));
  held.lock();
}

// To be concluded without the mutex.
command_connection::ended_calls command_connection::taken_ended(
    std::vector<engine::call*> (engine::unattended::*take)()) {
  ended_calls ended;
  ended.reserve(unattended_.over());  // What fails behind that would leave them nowhere.
  for (const engine::call* flow : (unattended_.*take)()) {
    async_call::of(*flow).driver_ = nullptr;
    ended.push_back(std::move(async_call::of(*flow).under_way_));
  }
  async_calls_ -= static_cast<int>(ended.size());
  return ended;
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
