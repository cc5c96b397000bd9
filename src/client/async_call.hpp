// SPDX-License-Identifier: Apache-2.0
// An acquire, a release or a downgrade that no thread waits for: the engine's call, and what is done when it is over. A
// blocking caller keeps all this on its stack; here it must live by itself until somebody has been told.
#pragma once

#include "base/time.hpp"
#include "engine/call.hpp"

#include <atomic>
#include <memory>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

class callback_thread;
class client_state;
class command_connection;

// What a cancel_handle of holdfast/start.hpp can end early. From any thread; nothing when it is over, and in a forked
// child.
class cancellable {
public:
  cancellable() = default;
  virtual ~cancellable() = default;
  cancellable(const cancellable&) = delete;
  cancellable& operator=(const cancellable&) = delete;
  virtual void cancel() noexcept = 0;
};

//  where             | what is called          | on which thread
//  ------------------+-------------------------+----------------------------------------
//  under way         | flow(), cancel()        | any, under the connection's mutex
//  its flow is moved | go_on(); it may be over | the one that noticed, without the mutex
//  on its way there  | is_cancelled()          | the one that takes it up, under the mutex
//  its flow is over  | conclude(), once        | the one that noticed, without the mutex
//  concluded         | tell(), once            | the callback thread
class async_call : public engine::call_companion {
public:
  async_call() = default;
  virtual ~async_call() = default;
  async_call(const async_call&) = delete;
  async_call& operator=(const async_call&) = delete;

  virtual engine::call& flow() = 0;
  // Another server serves its keys now (engine/call.hpp): goes on there. `self`: this. False: it cannot, and is over.
  virtual bool go_on(std::shared_ptr<async_call> self) noexcept = 0;
  // For those that can be; the others go on.
  virtual void cancel(time_point /*now*/) {}
  // Has somebody asked for that, also while it was on its way to another server? Not when it is over.
  virtual bool is_cancelled() const { return false; }
  // What the client must do about it: keep the lease, clean up. It does not wait. Gives the client, which this call has
  // kept until now and which must live until tell() is on its way; its end ends the callback thread.
  virtual std::shared_ptr<client_state> conclude() noexcept = 0;
  virtual void tell() noexcept = 0;

private:
  friend class command_connection;
  static async_call& of(const engine::call& flow) { return static_cast<async_call&>(*flow.companion()); }

  std::shared_ptr<async_call> under_way_{};  // Itself, until its flow is over.
  // Whose mutex guards all this. Null: it is on its way from one to another, or over.
  std::atomic<const command_connection*> driver_{nullptr};
};

// Concludes them here and now, and has them told on the callback thread, in order.
void conclude_all(std::vector<std::shared_ptr<async_call>> ended, callback_thread& callbacks) noexcept;

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
