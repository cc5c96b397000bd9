// SPDX-License-Identifier: Apache-2.0
#include "loss_policy.hpp"

#include <holdfast/error.hpp>

#include <algorithm>

namespace holdfast::cli {

using std::chrono::milliseconds;

// 50 ms for a busy machine and ttl/20 as the library's lost() has it, but never more than a tenth of a short ttl:
// grace and margin together stay below two thirds of it, in which a renewal (due at a third) must have come.
loss_policy::loss_policy(milliseconds ttl, std::optional<milliseconds> kill_after, on_lost when_lost)
    : when_lost_{when_lost},
      grace_{when_lost == on_lost::stop ? std::min(kill_after.value_or(std::chrono::seconds{5}), ttl / 4)
                                        : milliseconds{0}},
      margin_{std::min(milliseconds{50} + ttl / 20, ttl / 10)} {}

loss_policy::step loss_policy::look(milliseconds now, milliseconds remaining, std::error_code reason) {
  switch (phase_) {
    case phase::stopping: return now >= kill_at_ ? kill() : step{act::none, kill_at_ - now};
    case phase::warned:
    case phase::killed: return {};
    case phase::running: break;
  }
  const bool is_over = reason || remaining == milliseconds{0};
  if (when_lost_ == on_lost::warn) {
    if (!is_over) return {act::none, remaining};
    phase_ = phase::warned;
    return {act::warn, milliseconds::max()};
  }
  // The server says so: another may hold it already, and no waiting of ours changes that. But the command may yet
  // end well by itself, which serves everybody more than a torn write.
  if (reason && reason != errc::lease_expired && reason != errc::lease_held_too_long)
    return start_stopping(now, grace_);
  if (remaining <= margin_) return kill();
  if (remaining <= grace_ + margin_) return start_stopping(now, remaining - margin_);
  return {act::none, remaining - grace_ - margin_};
}

loss_policy::step loss_policy::start_stopping(milliseconds now, milliseconds kill_in) {
  if (kill_in <= milliseconds{0}) return kill();
  phase_ = phase::stopping;
  kill_at_ = now + kill_in;
  return {act::stop, kill_in};
}

loss_policy::step loss_policy::kill() {
  phase_ = phase::killed;
  return {act::kill, milliseconds::max()};
}

}  // namespace holdfast::cli
