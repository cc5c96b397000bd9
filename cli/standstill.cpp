// SPDX-License-Identifier: Apache-2.0
#include "standstill.hpp"

#include <algorithm>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds longest_for_handlers{100};
constexpr milliseconds for_the_kernel{250};
constexpr milliseconds for_an_exec{20};

// Those of the group whose parent we are not stop without a word.
constexpr milliseconds look_interval{10};

}  // namespace

standstill::standstill(std::size_t locks_above)
    : for_handlers_{longest_for_handlers / static_cast<milliseconds::rep>(1 + locks_above)} {}

void standstill::ask(milliseconds now) {
  if (!is_asked_for()) enter(phase::asked, act::none, now, for_handlers_);
}

standstill::step standstill::look(milliseconds now, bool command_stands) {
  if (!is_asked_for()) return {};
  if (command_stands) {
    cancel();
    return {act::stop_us};
  }
  if (now < patient_until_) return {act::none, std::min(look_interval, patient_until_ - now)};
  if (phase_ == phase::asked) return enter(phase::stopping, act::stop_command, now, for_the_kernel);
  return enter(phase::asked, act::let_run, now, for_an_exec);
}

standstill::step standstill::enter(phase next, act what, milliseconds now, milliseconds patience) {
  phase_ = next;
  patient_until_ = now + patience;
  return {what, look_interval};
}

}  // namespace holdfast::cli
