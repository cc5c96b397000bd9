// SPDX-License-Identifier: Apache-2.0
#include "client/local_restart.hpp"

#include "local/directory.hpp"
#include "local/local_server.hpp"
#include "net/clock.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;

void local_restart::on_refused() noexcept {
  if (is_under_way_.exchange(true)) return;
  try {
    const std::lock_guard held{mutex_};
    if (!is_closing_) return errands_->run([self = shared_from_this()] { self->run(); });
  } catch (...) {
    // No thread, or no memory for one: the next refusal is another occasion.
  }
  is_under_way_ = false;
}

void local_restart::run() noexcept {
  const time_point at = boottime_now() + pause_.next(net::system_random());
  while (!is_closing_ && boottime_now() < at) closing_.wait_until(at);
  try {
    if (!is_closing_) start_server();
  } catch (const std::exception& e) {
    say_once(e.what());
  }
  is_under_way_ = false;
  ended_.post();
}

void local_restart::start_server() {
  // Whoever has removed it is done with it.
  if (!local::find(directory_).exists) return say_once("its directory was removed");
  const auto now = local::start(directory_);
  pause_.reset();
  said_.clear();
  if (now.was_started) tell_->log(log_level::warning, "started the server of " + tell_->endpoint() + " again");
}

// The same is said once, and not once a second.
void local_restart::say_once(const char* why) noexcept try {
  if (said_ == why) return;
  said_ = why;
  tell_->log(log_level::warning, fmt::format("cannot start the server of {} again: {}", tell_->endpoint(), said_));
} catch (...) {
  // No memory for news.
}

void local_restart::close(time_point until) noexcept {
  {
    const std::lock_guard held{mutex_};
    is_closing_ = true;
  }
  closing_.post();
  while (is_under_way_ && boottime_now() < until) ended_.wait_until(until);
  errands_->close(!is_under_way_);
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
