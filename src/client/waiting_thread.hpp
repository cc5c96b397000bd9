// SPDX-License-Identifier: Apache-2.0
// One thread that waits for calls of its own while another one drives the connection. Whoever reads its answer does
// what is left to do for it and wakes it without the connection's mutex, so that it need not take that: of threads that
// are woken by the dozen, each would find it held by the one that wakes them.
#pragma once

#include "base/time.hpp"
#include "engine/call.hpp"

#include <boost/intrusive/list_hook.hpp>

#include <semaphore.h>

#include <atomic>
#include <mutex>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

//  state  | set, under the connection's mutex, by   | the thread then
//  -------+-----------------------------------------+-----------------------------------------------------
//  awake  | itself                                  | runs, or waits for the mutex
//  asleep | itself                                  | sleeps until it is woken, or its time comes
//  called | who wakes it                            | waits for wake() if need be, and takes the mutex
//  done   | who has stopped its calls and wakes it  | waits for wake() if need be, and leaves without the mutex
//
// Whoever sets called or done wakes it, later and perhaps without the mutex: it does not go away before.
class waiting_thread final : public engine::call_listener {
public:
  using calls = std::vector<engine::call*>;
  using list = std::vector<waiting_thread*>;

  // `with_news`: where it is put when something happened to one of its calls.
  waiting_thread(const calls& what, list& with_news, bool wakeable);
  ~waiting_thread();

  // Under the connection's mutex, all but wake().
  void on_news(engine::call& of) override;
  void forget_news();
  const calls& what() const { return *what_; }
  bool is_asleep() const { return state_ == state::asleep; }
  bool is_done() const { return state_ == state::done; }
  // Only while it is asleep.
  void be_called() { state_ = state::called; }
  void be_done() { state_ = state::done; }
  void wake();

  // Sleeps without `mutex`, which is the connection's. False: it is done, and does not have the mutex.
  [[nodiscard]] bool sleep(std::unique_lock<std::mutex>& held, time_point until);

  boost::intrusive::list_member_hook<> listed{};
  bool is_leading = false;
  const bool may_be_woken;  // Another thread may end one of its calls: then it must not wait in a read.

private:
  enum class state { awake, asleep, called, done };

  bool is_woken_by(time_point until);

  const calls* what_;
  list* with_news_;
  bool has_news_ = false;
  state state_ = state::awake;
  // A semaphore, because it may be gone as soon as it is posted, and because who waits for a condition variable wakes
  // only to wait for its mutex.
  sem_t woken_{};
  std::atomic<bool> is_woken_{false};  // What happened before wake() is seen behind sleep().
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
