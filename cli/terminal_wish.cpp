// SPDX-License-Identifier: Apache-2.0
#include "terminal_wish.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds first_pause{100};
constexpr milliseconds longest_pause{5000};

}  // namespace

terminal_wish::step terminal_wish::look(milliseconds now, const std::function<bool()>& is_left_behind) {
  if (now < look_at_) return {};
  pause_ = std::clamp(2 * pause_, first_pause, longest_pause);
  look_at_ = now + pause_;
  if (!is_left_behind()) return {std::exchange(is_hinted_, true) ? act::none : act::hint};
  const std::array ends{SIGHUP, stop_signal_, SIGKILL};
  return {act::deny, ends[std::min(denied_, ends.size() - 1)]};
}

bool terminal_wish::is_news(bool is_heard) {
  if (!is_heard) return !std::exchange(is_out_of_reach_told_, true);
  look_at_ = pause_ = milliseconds{0};
  return denied_++ == 0;
}

}  // namespace holdfast::cli
