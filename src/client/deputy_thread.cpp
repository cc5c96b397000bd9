// SPDX-License-Identifier: Apache-2.0
#include "client/deputy_thread.hpp"

#include "net/clock.hpp"
#include "net/quiet_thread.hpp"
#include "net/wait_for.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;

void deputy_thread::stand_by() {
  if (is_started_) return;
  const std::lock_guard held{mutex_};
  if (is_started_ || is_closing_) return;
  thread_ = net::start_quietly([self = shared_from_this()] { self->run(); });
  is_started_ = true;
}

void deputy_thread::wake() noexcept {
  try {
    stand_by();
  } catch (...) {
    // No thread, or no memory for one: it is tried again at the next occasion.
  }
  wake_.set();
}

void deputy_thread::close(duration at_most, bool wait) noexcept {
  std::thread ending;
  {
    const std::lock_guard held{mutex_};
    is_closing_ = true;
    close_at_ = boottime_now() + at_most;
    ending = std::move(thread_);
  }
  wake_.set();
  net::let_end(std::move(ending), wait);
}

void deputy_thread::run() {
  for (;;) {
    const auto lead = commands_->deputy_waits_for();
    const time_point close_at = close_at_;
    if (close_at != never && (!lead || boottime_now() >= close_at)) return;

    const pollfd nothing{-1, 0, 0};
    std::array<pollfd, 4> fds{pollfd{wake_.get(), POLLIN, 0}, pollfd{timer_.get(), POLLIN, 0},
                              lead ? lead->fds[0] : nothing, lead ? lead->fds[1] : nothing};
    timer_.set(std::min(lead ? lead->until : never, close_at));
    net::wait_for(fds, never);
    if (fds[0].revents) wake_.clear();
    if (fds[1].revents) timer_.went_off();
    commands_->deputy_collect(fds[2], fds[3]);
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
