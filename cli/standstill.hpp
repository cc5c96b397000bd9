// SPDX-License-Identifier: Apache-2.0
// The way from Ctrl-Z to the moment when the command stands, and so may we. Only decides: time and what is seen come
// in, what to do goes out.
//
// From our own stop on nothing is renewed, so the command must not go on. It may ignore TSTP, or have a handler that
// needs a moment to tidy up; STOP cannot be ignored. Whoever is stopped between its vfork and its exec keeps its parent
// from stopping: so, when nothing helps, all run for a moment more.
//
// The command may be a holdfast with a command of its own in another group, which our STOP would not reach: it has to
// be done before our patience ends. So a run is less patient the more of them it has above it.
//
//  phase    | the command stands | else, in time | else
//  ---------+--------------------+---------------+-------------------------
//  asked    | stop_us -> idle    | none          | stop_command -> stopping
//  stopping | stop_us -> idle    | none          | let_run -> asked
#pragma once

#include <chrono>
#include <cstddef>

namespace holdfast::cli {

class standstill {
public:
  using milliseconds = std::chrono::milliseconds;

  enum class act { none, stop_command, let_run, stop_us };
  struct step {
    act what = act::none;
    milliseconds look_again_in = milliseconds::max();
  };

  // `locks_above`: how many runs are above this one.
  explicit standstill(std::size_t locks_above);

  // Somebody asks for it, or the command has been suspended by itself. Asked again, it takes no longer.
  void ask(milliseconds now);
  void cancel() noexcept { phase_ = phase::idle; }
  bool is_asked_for() const noexcept { return phase_ != phase::idle; }

  step look(milliseconds now, bool command_stands);

private:
  enum class phase { idle, asked, stopping };

  step enter(phase next, act what, milliseconds now, milliseconds patience);

  milliseconds for_handlers_;
  phase phase_ = phase::idle;
  milliseconds patient_until_{0};
};

}  // namespace holdfast::cli
