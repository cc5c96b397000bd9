// SPDX-License-Identifier: Apache-2.0
// When the command has to be stopped because its lock is ending. Only decides: time and the lease's state come in,
// what to do goes out, so that every edge can be tried without a server, a process or a clock.
//
//   deadline          the local end of the lease, which renewals move
//   margin            kept free before it: a KILL needs a moment, and so do we to wake up
//   grace             from TERM to KILL
//
//  phase    | remaining > grace + margin | less          | <= margin     | gone, taken, broken    | kill_at
//  ---------+----------------------------+---------------+---------------+------------------------+--------
//  running  | sleep                      | stop ->       | kill ->       | stop -> stopping, with | -
//           |                            | stopping      | killed        | a whole grace          |
//  stopping | -                          | -             | -             | -                      | kill -> killed
//  killed   | the command is gone as soon as the kernel gets to it
//
// Once it said stop or kill, the lock counts as lost, whatever renewals say later: the work was interrupted.
#pragma once

#include "options.hpp"

#include <chrono>
#include <system_error>

namespace holdfast::cli {

class loss_policy {
public:
  using milliseconds = std::chrono::milliseconds;

  enum class act { none, stop, kill, warn };
  struct step {
    act what = act::none;
    milliseconds look_again_in = milliseconds::max();  // max: only news wakes us.
  };

  // `kill_after` unset is 5 s; it is never more than a quarter of the ttl.
  loss_policy(milliseconds ttl, std::optional<milliseconds> kill_after, on_lost when_lost);

  // `now` is any clock that runs during suspend; `remaining` is lease::remaining() and `reason` lease::lost_reason()
  // at that instant.
  step look(milliseconds now, milliseconds remaining, std::error_code reason);

  // True from the first stop or kill; with on_lost::warn never.
  bool has_stopped() const noexcept { return phase_ == phase::stopping || phase_ == phase::killed; }
  bool has_killed() const noexcept { return phase_ == phase::killed; }

  milliseconds grace() const noexcept { return grace_; }
  milliseconds margin() const noexcept { return margin_; }

private:
  enum class phase { running, warned, stopping, killed };

  step start_stopping(milliseconds now, milliseconds kill_in);
  step kill();

  on_lost when_lost_;
  milliseconds grace_;
  milliseconds margin_;
  phase phase_ = phase::running;
  milliseconds kill_at_{0};
};

}  // namespace holdfast::cli
