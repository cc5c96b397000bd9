// SPDX-License-Identifier: Apache-2.0
// Ends a wait for a wake_event when a stop_token says so. On any thread, or here and now, and without a mutex: who has
// that of the waiters may stand still, and the loss of other leases would wait for it on the callback thread (C4, P32;
// docs/decisions/0036-who-stops-a-wait-waits-for-nobody.md).
#pragma once

#include "client/fork_guard.hpp"
#include "client/wake_event.hpp"

#include <atomic>
#include <stop_token>

namespace holdfast {
inline namespace v0 {
namespace detail {

// Its end waits for the callback, if that runs on another thread: `news` is there until then.
class stop_watch {
public:
  stop_watch(const std::stop_token& cancel, wake_event& news) : news_{&news}, on_stop_{cancel, ask{this}} {}

  bool is_stopped() const noexcept { return is_stopped_; }

private:
  struct ask {
    stop_watch* of;
    void operator()() const noexcept {
      if (!of->in_this_process_) return;
      of->is_stopped_ = true;
      of->news_->post();
    }
  };

  wake_event* news_;
  const made_here in_this_process_;
  std::atomic<bool> is_stopped_{false};
  std::stop_callback<ask> on_stop_;  // The last: it may be called as soon as it is there.
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
