// SPDX-License-Identifier: Apache-2.0
// The thread that leads a command_connection while no caller does: it reads late replies and drives the calls that no
// thread waits for. It shares the callers' mutex, so that whoever stands still with that stops it, too. That is why it
// is not the keeper (P32).
#pragma once

#include "client/command_connection.hpp"
#include "net/event_fd.hpp"
#include "net/timer_fd.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

namespace holdfast {
inline namespace v0 {
namespace detail {

class deputy_thread : public std::enable_shared_from_this<deputy_thread> {
public:
  explicit deputy_thread(std::shared_ptr<command_connection> commands) : commands_{std::move(commands)} {}

  // Starts the thread if need be: before a call that no thread waits for. Throws std::system_error when there is none
  // to be had.
  void stand_by();
  // It is to lead, or to look around. Starts the thread if need be; where there is none to be had the next caller
  // leads.
  void wake() noexcept;
  // Something has changed that its connections must mind, if it leads. Waits for nobody, and starts nothing.
  void look_around() noexcept { wake_.set(); }

  // Ends the thread: at once if it does not lead, else when it does not any more or `at_most` has passed.
  // `wait`: until it has ended; not on the thread itself. It is not started again.
  void close(duration at_most, bool wait) noexcept;

private:
  void run();

  // Shared, because the thread may outlive the client.
  const std::shared_ptr<command_connection> commands_;
  net::event_fd wake_{};
  net::timer_fd timer_{};  // The thread's own.
  std::mutex mutex_{};     // Of what follows. Taken under the connection's, never around it.
  std::thread thread_{};
  bool is_closing_ = false;
  std::atomic<bool> is_started_{false};
  std::atomic<time_point> close_at_{never};
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
