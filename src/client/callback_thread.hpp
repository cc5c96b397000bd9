// SPDX-License-Identifier: Apache-2.0
// The one thread on which user code runs: stop callbacks, log sink, observer (P29). Never the leader, never the
// keeper, never under a lock of ours.
#pragma once

#include "base/time.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

class callback_thread : public std::enable_shared_from_this<callback_thread> {
  using queue = std::list<std::function<void()>>;

public:
  // `tell` is called on the thread when something posted took longer than C4 allows for (5 ms), at most once a second.
  // Set before the first post.
  void on_slow(std::function<void(duration)> tell) { tell_slow_ = std::move(tell); }
  static constexpr std::chrono::milliseconds longest{5};

  // The thread is there from now on, or it throws: before there is anything that must be told (C4).
  void stand_by();

  // In order; the first one starts the thread, if it is not there. Exceptions that leave `what` are dropped. Never
  // blocks on user code.
  void post(std::function<void()> what) noexcept;
  // The same; but where there is no memory the program ends (docs/threads.md): a loss that is not told is worse.
  void post_or_end(std::function<void()> what) noexcept;

  // What will be posted, with all that it takes: made where it may still fail.
  class made_ahead {
  public:
    explicit made_ahead(std::function<void()> what) { entry_.push_back(std::move(what)); }

  private:
    friend class callback_thread;
    queue entry_{};
  };
  // Likewise, once, and without memory: nothing of `what` ends in the caller, who may have a mutex. It keeps what is
  // dropped.
  void post(made_ahead& what) noexcept;

  // Runs what was posted, then ends. `wait`: until it has, unless called on the thread itself. Later posts are dropped.
  void close(bool wait) noexcept;

private:
  void start();
  void add(queue& what);
  void run();
  void note_time(time_point from);

  std::mutex mutex_{};
  std::condition_variable news_{};
  queue queue_{};
  bool is_closed_ = false;
  std::function<void(duration)> tell_slow_{};
  time_point told_at_{};  // The thread's own.
  std::thread thread_{};
  std::atomic<bool> is_started_{false};
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
