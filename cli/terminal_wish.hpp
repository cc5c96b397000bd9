// SPDX-License-Identifier: Apache-2.0
// What becomes of a command that stands because it used a terminal which nobody gives it: our lock is kept meanwhile.
// Only decides: time and what is seen come in, what to do goes out.
//
//  who could give it             | what we do
//  ------------------------------+--------------------------------------------------------------------
//  somebody (fg)                 | it stands, and we say so, once
//  nobody: we are left behind    | HUP; when it wants it all the same --signal, and then KILL
//  the same, and it hears nobody | it stands, and we say so, once
//
// HUP is what a job gets that stands when its shell ends; with nohup it is deaf to that, and it may be so to the next.
// Who hears nobody is another user's. The kernel lets CONT through within a session, but that wakes it for the same
// wish again, and so on without end.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

namespace holdfast::cli {

class terminal_wish {
public:
  using milliseconds = std::chrono::milliseconds;

  enum class act { none, hint, deny };
  struct step {
    act what = act::none;
    int signal = 0;  // What `deny` sends.
  };

  explicit terminal_wish(int stop_signal) : stop_signal_{stop_signal} {}

  // It stands, and the terminal is not to be had now. Asks `is_left_behind` less and less often, since that reads all
  // of /proc, but at once when it wants again what was denied.
  step look(milliseconds now, const std::function<bool()>& is_left_behind);

  // The signal of `deny` was sent: heard, it has to go on without the terminal. True: it is to be said.
  bool is_news(bool is_heard);

private:
  int stop_signal_;
  milliseconds look_at_{0};
  milliseconds pause_{0};
  std::size_t denied_ = 0;
  bool is_hinted_ = false;
  bool is_out_of_reach_told_ = false;
};

}  // namespace holdfast::cli
