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

namespace {

// Who has not tried for so long has had a server meanwhile, that somebody else started. Longer than any pause.
constexpr std::chrono::minutes another_end{2};

}  // namespace

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
  if (boottime_now() - tried_at_ > another_end) begin_anew();
  const time_point at = boottime_now() + pause_.next(net::system_random());
  while (!is_closing_ && boottime_now() < at) closing_.wait_until(at);
  try {
    if (!is_closing_) start_server();
  } catch (const std::exception& e) {
    say_once(e.what());
  }
  tried_at_ = boottime_now();
  is_under_way_ = false;
  ended_.post();
}

void local_restart::start_server() {
  // Whoever has removed it is done with it.
  if (!local::find(directory_).exists) return say_once("its directory was removed");
  const auto now = local::start(directory_);
  begin_anew();
  if (now.was_started) tell_->log(log_level::warning, "started the server of " + tell_->endpoint() + " again");
}

void local_restart::begin_anew() noexcept {
  pause_.reset();
  has_said_why_ = false;
}

// And not once a second: what redis-server says has its number and the time in it, and is new each time.
void local_restart::say_once(const char* why) noexcept try {
  if (std::exchange(has_said_why_, true)) return;
  tell_->log(log_level::warning, fmt::format("cannot start the server of {} again: {}", tell_->endpoint(), why));
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
