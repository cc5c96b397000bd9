// SPDX-License-Identifier: Apache-2.0
#include "client/errand_threads.hpp"

#include "net/quiet_thread.hpp"

#include <iterator>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

void errand_threads::run(std::function<void()> what) {
  join_ended();
  // All that its end needs is there before it begins.
  threads made(1);
  const auto me = made.begin();
  const std::lock_guard held{mutex_};
  // The thread keeps us alive: the last handle may go away in its errand.
  *me = net::start_quietly([self = shared_from_this(), me, errand = std::move(what)]() mutable {
    errand();
    errand = nullptr;  // What it holds ends before we are said to have ended.
    self->on_end(me);
  });
  running_.splice(running_.end(), made);
}

void errand_threads::on_end(threads::iterator me) noexcept {
  join_ended();  // Else their stacks are kept until another errand comes.
  {
    const std::lock_guard held{mutex_};
    if (me->joinable()) ended_.splice(ended_.end(), running_, me);  // Else nobody waits for us any more.
  }
  news_.notify_all();
}

void errand_threads::join_ended() {
  threads ended;
  {
    const std::lock_guard held{mutex_};
    ended.swap(ended_);
  }
  for (auto& one : ended) one.join();
}

void errand_threads::close(bool wait) noexcept {
  {
    std::unique_lock held{mutex_};
    for (auto one = running_.begin(); one != running_.end();) {
      const auto next = std::next(one);
      if (!wait || one->get_id() == std::this_thread::get_id()) {
        one->detach();
        alone_.splice(alone_.end(), running_, one);
      }
      one = next;
    }
    news_.wait(held, [&] { return running_.empty(); });
  }
  join_ended();
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
