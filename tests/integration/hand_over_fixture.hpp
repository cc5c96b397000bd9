// SPDX-License-Identifier: Apache-2.0
// Threads of one process that want one lock, in a line of their own.
#pragma once

#include "integration/fixture.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <utility>

namespace holdfast::test {

class hand_over : public on_redis {
protected:
  // Nobody outside sees who stands in the line of a process. So long who gives to the next one there waits for it, in a
  // span of a second.
  static constexpr auto giver_holds = 100ms;

  client make(int most, std::chrono::milliseconds span = 20ms) {
    client_options how = options();
    how.hand_overs = most;
    how.hand_over_span = span;
    return make_client(how);
  }
  std::string holder() { return server_("GET", "hf:{x}").text; }
  std::string owner_id() { return holder().substr(3, 32); }
  std::int64_t in_line() { return server_("ZCARD", "hf:{x}:line").number; }

  // A thread that stands behind others in this process; `with` runs when it has the lease.
  template <class With>
  std::thread behind(client& locks, acquire_options how, With with) {
    std::thread t{[this, &locks, how = std::move(how), with] {
      ++started_;
      auto held = locks.acquire("x", how);
      with(held);
    }};
    const int want = ++wanted_;
    EXPECT_TRUE(eventually([&] { return started_ == want; }));
    let_pass(3ms);  // It is on its way, and before the next one, but on a busy machine.
    return t;
  }
  // The same, where it is the first of them, and returns when it stands in the server's line for all of them.
  template <class With>
  std::thread in_front(client& locks, acquire_options how, With with) {
    auto t = behind(locks, std::move(how), with);
    EXPECT_TRUE(eventually([&] { return in_line() == 1; }));
    return t;
  }

  std::atomic<int> started_{0};
  int wanted_ = 0;
};

}  // namespace holdfast::test
