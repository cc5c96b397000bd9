// SPDX-License-Identifier: Apache-2.0
// Descriptors that become readable when a lease has to be looked at again: a timer that also counts suspended time,
// and the library's word that the lease is lost. The timer alone is enough; the word only comes sooner.
#pragma once

#include <holdfast/lease.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>

namespace holdfast::cli {

class lease_watch {
public:
  // Before the lock is taken: throws std::system_error where there are no descriptors. Then watch() the lease.
  lease_watch();
  ~lease_watch();
  lease_watch(const lease_watch&) = delete;
  lease_watch& operator=(const lease_watch&) = delete;

  // Once, as soon as there is one.
  void watch(const lease& held);

  // When it would have ended if it had never been renewed, by the clock below.
  std::chrono::milliseconds first_end() const noexcept { return first_end_; }

  // Milliseconds of CLOCK_BOOTTIME, the clock of the lease's deadline.
  static std::chrono::milliseconds now();

  // Makes timer() readable once, that much later; milliseconds::max(): never.
  void wake_in(std::chrono::milliseconds span);

  int timer() const noexcept { return timer_; }
  int lost() const noexcept { return lost_; }

  // Reads both empty.
  void drain();

private:
  int timer_ = -1;
  int lost_ = -1;
  std::chrono::milliseconds first_end_{0};
  std::optional<std::stop_callback<std::function<void()>>> on_lost_{};
};

}  // namespace holdfast::cli
