// SPDX-License-Identifier: Apache-2.0
#include "client/local_line.hpp"

#include "client/stop_watch.hpp"
#include "net/clock.hpp"

#include <algorithm>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;

void local_line::tell_first(const core::hand_over_queue& q) {
  if (const auto first = q.first()) news_of(first).post();
}

void local_line::forget_if_idle(const std::string& key) {
  const auto at = queues_.find(key);
  if (at->second.is_idle()) queues_.erase(at);
}

local_line::outcome local_line::enter(const std::string& key, const core::hand_over_wish& wish, time_point until,
                                      const std::stop_token& cancel, place where) {
  const auto own = std::make_shared<waiter>();
  waiter& me = *own;
  me.wish = wish;
  const stop_watch stop{cancel, me.news};
  std::unique_lock held{mutex_};
  core::hand_over_queue& q = queues_[key];
  where == place::again ? q.join_again(own) : q.join(own);
  const auto leave_with = [&](turn what) {
    const errc heard = q.heard_by(me);
    q.leave(own);
    tell_first(q);
    forget_if_idle(key);  // Ends q, if nobody is left.
    return outcome{.what = what, .heard = heard};
  };
  for (;;) {
    if (me.given) return {.what = turn::given, .given = std::move(me.given)};  // Who gave it took us out.
    const time_point now = boottime_now();
    if (stop.is_stopped()) return leave_with(turn::cancelled);
    if (now >= until) return leave_with(turn::timed_out);
    if (q.may_ask(me, now)) {
      const errc heard = q.heard_by(me);
      const bool others_wait = q.go_and_ask(own);
      return {.what = turn::ask,
              .others_wait = others_wait,
              .last = q.last(),
              .heard = heard,
              .news = &q.news(),
              .silent_since = me.silent_since};
    }
    // What is waited for here does not count a suspend, behind which `until` is to be seen soon (H2).
    const time_point at = std::min(q.wake_at(me, now, until), now + std::chrono::seconds{5});
    held.unlock();
    me.news.wait_until(at);
    held.lock();
  }
}

void local_line::got(const std::shared_ptr<lease_record>& record, int block, time_point granted_at,
                     const core::hand_over_wish& wish) {
  const std::lock_guard alone{mutex_};
  auto& q = queues_[record->keys.holder];
  q.got({record->owner, record->token}, block, granted_at, wish, limits_);
  tell_first(q);
  forget_if_idle(record->keys.holder);
}

void local_line::failed(const std::string& key, const core::hand_over_queue::in_vain& what) {
  const std::lock_guard alone{mutex_};
  auto& q = queues_[key];
  const bool is_for_all = q.failed(what, boottime_now(), patience_);
  tell_first(q);
  if (is_for_all) {
    for (const auto& one : q.waiting()) news_of(one).post();
  }
  forget_if_idle(key);
}

bool local_line::hand_on(const std::shared_ptr<lease_record>& record, time_point deadline) {
  core::hand_over_queue::waiter_ptr next;
  std::optional<core::hand_over_queue::more> more;
  {
    const std::lock_guard alone{mutex_};
    const auto at = queues_.find(record->keys.holder);
    if (at == queues_.end()) return false;
    const time_point now = boottime_now();
    const auto token = at->second.next_token({record->owner, record->token}, now, deadline);
    if (!token) return false;
    more = at->second.wants_more(now, deadline);
    auto given = give_(record, *token);
    if (!given) return false;
    next = at->second.hand_on(*token);
    static_cast<waiter&>(*next).given = std::move(given);
  }
  news_of(next).post();
  if (more) ask_(*record, *more);
  return true;
}

void local_line::ended(const lease_record& record) {
  const std::lock_guard alone{mutex_};
  const auto at = queues_.find(record.keys.holder);
  if (at == queues_.end() || !at->second.ended({record.owner, record.token})) return;
  tell_first(at->second);
  forget_if_idle(record.keys.holder);
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
