// SPDX-License-Identifier: Apache-2.0
// Starts the server of `local:` again that has ended under a client, as it does with the control group of whoever
// started it (docs/decisions/0037). A wait has no bound and would never end, though nobody holds the lock: nobody else
// starts the server, until another command happens to be run.
//
//  whose connection is refused        | why it is started again
//  -----------------------------------+-----------------------------------------------------------------
//  that of a call which waits or asks | the call has nobody else to ask
//  the keeper's, when it is to renew  | the lease is in the append-only file, and lost without a server
//  an idle client's: none is tried    | it is not; its next call finds it refused
//
// So `holdfast local stop` lasts while nobody needs the server. It is not undone at once: each try comes behind a
// pause, in which a unit that stays may start it, to whose control group it belongs then, or its directory be removed,
// which is not made anew.
#pragma once

#include "base/time.hpp"
#include "client/errand_threads.hpp"
#include "client/reporter.hpp"
#include "client/wake_event.hpp"
#include "core/backoff.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

namespace holdfast {
inline namespace v0 {
namespace detail {

class local_restart : public std::enable_shared_from_this<local_restart> {
public:
  local_restart(std::string directory, std::shared_ptr<reporter> tell)
      : directory_{std::move(directory)}, tell_{std::move(tell)} {}
  local_restart(const local_restart&) = delete;
  local_restart& operator=(const local_restart&) = delete;

  // A connection was refused. On a thread of its own the server is started, once at a time and behind a pause; what
  // that fails of is logged once, until it is good, and the next refusal tries again. Waits for nobody: the keeper
  // calls it, too (P32).
  void on_refused() noexcept;

  // No more tries. One that is only in its pause ends at once; one that starts a server is waited for until then, and
  // ends by itself after that.
  void close(time_point until) noexcept;

private:
  void run() noexcept;
  void start_server();
  void begin_anew() noexcept;
  void say_once(const char* why) noexcept;

  const std::string directory_;
  const std::shared_ptr<reporter> tell_;
  const std::shared_ptr<errand_threads> errands_ = std::make_shared<errand_threads>();
  std::mutex mutex_{};  // Around the begin of an errand, so that none begins behind close().
  std::atomic<bool> is_closing_{false};
  std::atomic<bool> is_under_way_{false};
  wake_event closing_{};
  wake_event ended_{};
  // The errand's, of which there is one at a time.
  core::backoff pause_{std::chrono::seconds{1}, std::chrono::minutes{1}};
  bool has_said_why_ = false;
  time_point tried_at_{};
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
