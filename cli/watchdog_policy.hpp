// SPDX-License-Identifier: Apache-2.0
// When the watchdog has to end the command in its owner's stead: the holdfast that has the lease, and that was killed
// or stopped itself. Only decides: time and what is seen come in, what to do goes out. loss_policy says the same of the
// owner, and has the words.
//
//   end               deadline - margin/2: half a margin after the owner itself should have been done
//   latest            deadline - margin: as the owner, because nobody is before us
//   patience          from the first look at which something is due to the act. After a pause of the whole machine the
//                     deadline that we know may be older than the lease's: the owner, which wakes with us, has so long
//                     to say the new one
//
//  phase    | owner gone, now < latest | owner gone, else | it lives: < end - grace | < end            | >= end
//  ---------+--------------------------+------------------+-------------------------+------------------+---------------
//  watching | stop -> stopping, to the | kill -> killed   | sleep                   | stop ->          | kill -> killed
//           | earlier of now + grace   |                  |                         | stopping, to end |
//           | and latest               |                  |                         |                  |
//  stopping | kill -> killed when that is over, whoever lives; else sleep
//  killed   | the command is gone as soon as the kernel gets to it
//
// While the owner lives, a command that has ended by itself is left alone, and so is one that stands (Ctrl-Z): but from
// the end on it is made to stand again and again, for somebody may have had it go on without its owner. One that the
// owner has begun to stop is not told so again, but killed at the end; also when it has ended by then, because others
// of its group may live on. With a grace of 0 (--on-lost kill) nothing says stop: of an owner that is gone the command
// lives until the latest.
#pragma once

#include <chrono>
#include <optional>

namespace holdfast::cli {

class watchdog_policy {
public:
  using milliseconds = std::chrono::milliseconds;

  enum class act { none, stand, stop, kill };
  struct step {
    act what = act::none;
    milliseconds look_again_in = milliseconds::max();  // max: there is nothing more to do.
  };

  struct limits {
    milliseconds grace;  // Both are loss_policy's.
    milliseconds margin;
    bool kills_with_owner = false;  // When the owner is gone, at once: a lock above it is over.
  };

  // What is seen at a look.
  struct sight {
    bool owner_lives = true;
    bool has_ended = false;    // The command has: by itself, unless its owner has begun to end it.
    bool stands = false;       // It is suspended (Ctrl-Z), and its owner with it.
    bool is_stopping = false;  // The owner has begun to end it.
    milliseconds deadline{0};  // The lease's end as the owner said it last.
  };

  explicit watchdog_policy(const limits& given);

  // `now` and the deadline are of one clock, which runs during suspend.
  step look(milliseconds now, const sight& seen);

private:
  enum class phase { watching, stopping, killed };

  step without_owner(milliseconds now, const sight& seen);
  step beside_owner(milliseconds now, const sight& seen);
  static step beside_standing(milliseconds now, milliseconds end);
  step stop(milliseconds now, milliseconds kill_at);
  step kill();

  limits limits_;
  milliseconds patience_;
  phase phase_ = phase::watching;
  std::optional<milliseconds> due_since_{};
  milliseconds kill_at_{0};
};

}  // namespace holdfast::cli
