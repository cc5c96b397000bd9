// SPDX-License-Identifier: Apache-2.0
// One thread that waits for calls of its own while another one drives the connection. Whoever reads its answer does
// what is left to do for it and wakes it without the connection's mutex, so that it need not take that: of threads that
// are woken by the dozen, each would find it held by the one that wakes them.
//
// What is kept of it is linked where it is (Boost.Intrusive), so that no memory is needed to wake it.
#pragma once

#include "base/time.hpp"
#include "client/wake_event.hpp"
#include "engine/call.hpp"

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/slist.hpp>

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
  boost::intrusive::list_member_hook<> as_member_{};
  boost::intrusive::list_member_hook<> as_one_with_news_{};
  boost::intrusive::slist_member_hook<> as_one_to_wake_{};

public:
  using calls = std::vector<engine::call*>;
  using members = boost::intrusive::list<
      waiting_thread,
      boost::intrusive::member_hook<waiting_thread, boost::intrusive::list_member_hook<>, &waiting_thread::as_member_>,
      boost::intrusive::constant_time_size<false>>;
  using news =
      boost::intrusive::list<waiting_thread,
                             boost::intrusive::member_hook<waiting_thread, boost::intrusive::list_member_hook<>,
                                                           &waiting_thread::as_one_with_news_>,
                             boost::intrusive::constant_time_size<false>>;
  // Those that one thread is to wake, in order: nobody else puts them anywhere before they are awake.
  using list =
      boost::intrusive::slist<waiting_thread,
                              boost::intrusive::member_hook<waiting_thread, boost::intrusive::slist_member_hook<>,
                                                            &waiting_thread::as_one_to_wake_>,
                              boost::intrusive::constant_time_size<false>, boost::intrusive::cache_last<true>>;

  // `with_news`: where it is put when something happened to one of its calls. `wakeable`: interrupt() may be called.
  waiting_thread(const calls& what, news& with_news, bool wakeable)
      : may_be_woken{wakeable}, what_{&what}, with_news_{&with_news} {}

  // Under the connection's mutex, all but wake(), interrupt() and is_interrupted().
  void on_news(engine::call& of) override;
  void forget_news();
  const calls& what() const { return *what_; }
  bool is_asleep() const { return state_ == state::asleep; }
  bool is_done() const { return state_ == state::done; }
  // Only while it is asleep.
  void be_called() { state_ = state::called; }
  void be_done() { state_ = state::done; }
  void wake();
  // Wakes each, without the mutex.
  static void wake_all(list& which);

  // It is to look what it is wanted for. By any thread, which waits for nobody: a stop callback, say, on which the loss
  // of other leases may wait (P32). Not behind its end.
  void interrupt() noexcept;
  bool is_interrupted() const noexcept { return is_interrupted_; }
  // Whether it was, once.
  bool take_interrupt() noexcept { return is_interrupted_.exchange(false); }

  // Sleeps without `mutex`, which is the connection's. False: it is done, and does not have the mutex.
  [[nodiscard]] bool sleep(std::unique_lock<std::mutex>& held, time_point until);

  bool is_leading = false;
  const bool may_be_woken;  // Another thread may interrupt it: then it must not wait in a read.

private:
  enum class state { awake, asleep, called, done };

  bool is_woken_by(time_point until);

  const calls* what_;
  news* with_news_;
  state state_ = state::awake;
  wake_event woken_{};    // Posted by wake() and interrupt(): it may be gone as soon as it is posted.
  wake_event through_{};  // Where it may be interrupted, by wake() alone, which touches nothing of it behind that.
  std::atomic<bool> is_woken_{false};  // What happened before wake() is seen behind sleep().
  std::atomic<bool> is_interrupted_{false};
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
