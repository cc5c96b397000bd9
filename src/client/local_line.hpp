// SPDX-License-Identifier: Apache-2.0
// The threads of this process that want the same exclusive lock. Only the first of them stands at the server, so a
// process has one entry in a line, however many threads wait; and a release hands the lease on to the next thread
// without Redis, within bounds. Who asks and who is handed what is core/hand_over_queue's; how a thread sleeps and is
// woken is here.
#pragma once

#include "client/reporter.hpp"
#include "client/wake_event.hpp"
#include "core/hand_over_queue.hpp"

#include <holdfast/error.hpp>
#include <holdfast/options.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>

namespace holdfast {
inline namespace v0 {
namespace detail {

class local_line {
public:
  // `pass_on(giver, token)` makes the lease of the receiver out of the giver's and keeps it from then on; null when the
  // giver's was lost meanwhile. Called under our mutex, and must not call back.
  using pass_on = std::function<std::shared_ptr<lease_record>(const std::shared_ptr<lease_record>&, fencing_token)>;

  // Has the server asked for more tokens, for a lease that was just handed on. Called without our mutex; nobody waits.
  using ask_for_more = std::function<void(const lease_record& giver, const core::hand_over_queue::more& what)>;

  // `patience`: so long a silence of the server is put up with.
  local_line(const core::hand_over_limits& limits, duration patience, pass_on give, ask_for_more ask)
      : limits_{limits}, patience_{patience}, give_{std::move(give)}, ask_{std::move(ask)} {}

  bool is_used() const { return limits_.most > 0; }

  enum class turn { ask, given, timed_out, cancelled };
  struct outcome {
    turn what;
    std::shared_ptr<lease_record> given{};
    bool others_wait = false;         // Behind a thread that is to ask.
    fencing_token last{};             // core::hand_over_queue's.
    errc heard{};                     // By those before it.
    std::atomic<errc>* news{};        // Where whoever asks writes down what it hears.
    time_point silent_since = never;  // What whoever asked before met, if that was a silent server.
  };
  // `again`: it was given a lease too late, and does not lose its turn by that.
  enum class place { behind_all, again };
  // `until`: when its wait is over; `never` for no bound. Who is told to ask says `got` or `failed` afterwards.
  outcome enter(const std::string& key, const core::hand_over_wish& wish, time_point until,
                const std::stop_token& cancel, place where = place::behind_all);

  // The server granted `record`, with so many tokens more.
  void got(const std::shared_ptr<lease_record>& record, int block, time_point granted_at,
           const core::hand_over_wish& wish);
  // It did not.
  void failed(const std::string& key, const core::hand_over_queue::in_vain& what);

  // A lease is given back. True: the next thread has it now, and there is nothing to release.
  bool hand_on(const std::shared_ptr<lease_record>& record, time_point deadline);
  // It is given back without that: whoever waits here goes to the server.
  void ended(const lease_record& record);

private:
  // Shared with whoever tells it something: that is done without the mutex, or the woken thread would only wait for it,
  // and by then the waiter may have seen the news already and be gone.
  struct waiter final : core::hand_over_queue::waiter {
    wake_event news{};
    std::shared_ptr<lease_record> given{};
  };
  static wake_event& news_of(const core::hand_over_queue::waiter_ptr& who) { return static_cast<waiter&>(*who).news; }
  static void tell_first(const core::hand_over_queue& q);
  void forget_if_idle(const std::string& key);

  const core::hand_over_limits limits_;
  const duration patience_;
  const pass_on give_;
  const ask_for_more ask_;
  std::mutex mutex_{};
  std::unordered_map<std::string, core::hand_over_queue> queues_{};  // By holder key.
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
