// SPDX-License-Identifier: Apache-2.0
#include "client/errand_threads.hpp"

#include "net/quiet_thread.hpp"

#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

void errand_threads::run(std::function<void()> what) {
  join_ended();
  const std::lock_guard held{mutex_};
  // The thread keeps us alive: the last handle may go away in its errand.
  auto made = net::start_quietly([self = shared_from_this(), errand = std::move(what)]() mutable {
    errand();
    errand = nullptr;  // What it holds ends before we are said to have ended.
    self->on_end();
  });
  const auto id = made.get_id();
  running_.emplace(id, std::move(made));
}

void errand_threads::on_end() {
  {
    const std::lock_guard held{mutex_};
    auto me = running_.extract(std::this_thread::get_id());
    if (me) ended_.push_back(std::move(me.mapped()));  // Else nobody waits for us any more.
  }
  news_.notify_all();
}

void errand_threads::join_ended() {
  std::vector<std::thread> ended;
  {
    const std::lock_guard held{mutex_};
    ended.swap(ended_);
  }
  for (auto& one : ended) one.join();
}

void errand_threads::close(bool wait) noexcept {
  {
    std::unique_lock held{mutex_};
    if (auto me = running_.extract(std::this_thread::get_id())) me.mapped().detach();
    if (!wait) {
      for (auto& [id, one] : running_) one.detach();
      running_.clear();
    }
    news_.wait(held, [&] { return running_.empty(); });
  }
  join_ended();
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
