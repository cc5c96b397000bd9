// SPDX-License-Identifier: Apache-2.0
// What happened, for logs and metrics. Off until you set client_options::log or client_options::observe.
//
// Every call comes on the client's one callback thread (docs/threads.md), in order, never under a lock of ours, so
// you may call any function of the library from it. A slow one delays the callbacks behind it, lost() among them;
// valid() never depends on it. Exceptions that leave a sink or an observer are caught and dropped.
#pragma once

#include <holdfast/error.hpp>
#include <holdfast/names.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <system_error>

namespace holdfast {
inline namespace v0 {

enum class log_level { debug, info, warning, error };

struct log_record {
  log_level level;
  std::string text;  // One line, without secrets; names are escaped.
};

using log_sink = std::function<void(const log_record&)>;

// How an acquire ended, for counting.
enum class acquire_result { acquired, busy, timed_out, cancelled, unknown, failed };

enum class release_outcome {
  released,      // It was ours and is now free.
  already_lost,  // It had ended before: expired, taken, deleted or broken. What the server may still have of it is
                 // let go in the background.
  unknown,       // No definite answer. We go on trying in the background until the ttl is over.
};

// Override what you need; the defaults do nothing.
class HOLDFAST_EXPORT observer {
public:
  observer() = default;
  observer(const observer&) = delete;
  observer& operator=(const observer&) = delete;
  virtual ~observer();

  // One acquire ended that was not refused before anything could be sent. `waited` is the time in the call, `attempts`
  // the requests it sent; of a quorum, the rounds.
  virtual void on_acquire(const std::string& /*name*/, acquire_result, std::chrono::microseconds /*waited*/,
                          int /*attempts*/) {}

  // A renewal was confirmed `margin` before the lease would have ended.
  virtual void on_renewed(const std::string& /*name*/, std::chrono::microseconds /*margin*/) {}

  // A renewal failed, or the server refuses each connection for one (told again when the reason is another); the lease
  // goes on until its deadline.
  virtual void on_renew_failed(const std::string& /*name*/, std::error_code) {}

  // The lease ended without our release. The code is one of the lease_* values.
  virtual void on_lost(const std::string& /*name*/, fencing_token, std::error_code /*reason*/,
                       std::chrono::microseconds /*held*/) {}

  // It was given back by release(), or handed on in the process. How a lease ended that was dropped is not told.
  virtual void on_released(const std::string& /*name*/, release_outcome, std::chrono::microseconds /*held*/) {}

  // A connection to the server was made or ended.
  virtual void on_connected(const std::string& /*endpoint*/) {}
  virtual void on_disconnected(const std::string& /*endpoint*/, std::error_code) {}

  // The server's clock and ours moved apart by `step` between two replies: its clock stepped, or we were frozen.
  // Whose key has vanished by that is lost with its next renewal.
  virtual void on_clock_step(std::chrono::microseconds /*step*/) {}
};

}  // namespace v0
}  // namespace holdfast
