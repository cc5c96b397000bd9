// SPDX-License-Identifier: Apache-2.0
// Threads of ours for blocking calls that nobody waits for. Each call has its own, because it may wait for a lock that
// another of them is to release.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

namespace holdfast {
inline namespace v0 {
namespace detail {

class errand_threads : public std::enable_shared_from_this<errand_threads> {
public:
  errand_threads() = default;
  errand_threads(const errand_threads&) = delete;
  errand_threads& operator=(const errand_threads&) = delete;

  // Runs `what`, which must not throw, on a thread of its own. Throws std::system_error when there is none to be had:
  // then nothing has begun. Its end needs no memory.
  void run(std::function<void()> what);

  // `wait`: until all have ended, but for the one that calls this. Else they end by themselves.
  void close(bool wait) noexcept;

private:
  using threads = std::list<std::thread>;

  void on_end(threads::iterator me) noexcept;
  void join_ended();

  std::mutex mutex_{};
  std::condition_variable news_{};
  threads running_{};
  threads ended_{};  // But for the last steps of each.
  threads alone_{};  // Nobody waits for them.
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
