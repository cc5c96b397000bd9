// SPDX-License-Identifier: Apache-2.0
// How one thread wakes another that waits for nothing else. A semaphore: it may be posted without a mutex, from a stop
// callback too, and before anybody waits; and who waits for a condition variable wakes only to wait for its mutex.
#pragma once

#include "base/time.hpp"

#include <semaphore.h>

namespace holdfast {
inline namespace v0 {
namespace detail {

class wake_event {
public:
  wake_event() { sem_init(&posted_, 0, 0); }
  ~wake_event() { sem_destroy(&posted_); }
  wake_event(const wake_event&) = delete;
  wake_event& operator=(const wake_event&) = delete;

  void post() noexcept { sem_post(&posted_); }
  // Takes one post. False: there was none until then, or for an hour, or a signal came. `until` is on CLOCK_BOOTTIME,
  // and a suspend is not counted while it waits: who must see the end of one soon waits for less at a time (H2).
  bool wait_until(time_point until) noexcept;

private:
  sem_t posted_{};
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
