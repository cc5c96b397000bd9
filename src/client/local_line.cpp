// SPDX-License-Identifier: Apache-2.0
#include "client/local_line.hpp"

#include "net/clock.hpp"

#include <algorithm>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;

namespace {

// Who is not the first looks so often whether it has become it, so that a hand-over wakes nobody but its receiver.
constexpr duration look_around = std::chrono::milliseconds{100};

}  // namespace

// May the first of them go to the server?
bool local_line::is_open(const queue& q, time_point now) {
  return q.asking == 0 && (!q.chain || now >= q.chain->ends_at());
}

void local_line::tell_first(queue& q) {
  if (!q.waiting.empty()) q.waiting.front()->news.notify_one();
}

void local_line::forget_if_idle(const std::string& key) {
  const auto at = queues_.find(key);
  const queue& q = at->second;
  if (q.waiting.empty() && q.asking == 0 && !q.chain) queues_.erase(at);
}

local_line::outcome local_line::enter(const std::string& key, const core::hand_over_wish& wish, time_point until,
                                      const std::stop_token& cancel) {
  const auto own = std::make_shared<waiter>();
  waiter& me = *own;
  me.wish = wish;
  // Before the lock, because it may call back at once; and its end waits for a callback under way.
  const std::stop_callback on_stop{cancel, [&] {
                                     const std::lock_guard alone{mutex_};
                                     me.is_cancelled = true;
                                     me.news.notify_one();
                                   }};
  std::unique_lock held{mutex_};
  queue& q = queues_[key];
  const auto place = q.waiting.insert(q.waiting.end(), own);
  const auto leave_with = [&](turn what) {
    q.waiting.erase(place);
    if (what == turn::ask) {
      ++q.asking;
    } else {
      tell_first(q);
      forget_if_idle(key);  // Ends q, if nobody is left.
      return outcome{what};
    }
    return outcome{what, {}, !q.waiting.empty()};
  };
  for (;;) {
    if (me.given) return {turn::given, std::move(me.given)};  // Who gave it took us out.
    const time_point now = boottime_now();
    if (me.is_cancelled) return leave_with(turn::cancelled);
    if (now >= until) return leave_with(turn::timed_out);
    const bool is_first = q.waiting.front() == own;
    if (me.is_told_to_ask || (is_first && is_open(q, now))) return leave_with(turn::ask);

    time_point wake_at = std::min(until, now + look_around);
    if (is_first) wake_at = q.asking > 0 || !q.chain ? until : std::min(until, q.chain->ends_at());
    const duration left = std::min<duration>(wake_at - now, std::chrono::hours{1});
    me.news.wait_for(held, left);
  }
}

void local_line::got(const std::shared_ptr<lease_record>& record, int block, time_point granted_at,
                     const core::hand_over_wish& wish) {
  const std::lock_guard alone{mutex_};
  queue& q = queues_[record->keys.holder];
  --q.asking;
  q.chain.reset();
  q.holder = nullptr;
  if (block > 0) {
    q.chain.emplace(record->grant, block, granted_at, wish, limits_);
    q.holder = record.get();
  }
  tell_first(q);
  forget_if_idle(record->keys.holder);
}

void local_line::failed(const std::string& key, bool is_trouble) {
  const std::lock_guard alone{mutex_};
  queue& q = queues_[key];
  --q.asking;
  tell_first(q);
  if (is_trouble) {
    for (const auto& one : q.waiting) {
      one->is_told_to_ask = true;
      one->news.notify_one();
    }
  }
  forget_if_idle(key);
}

bool local_line::hand_on(const std::shared_ptr<lease_record>& record, time_point deadline) {
  std::shared_ptr<waiter> next;
  {
    const std::lock_guard alone{mutex_};
    const auto at = queues_.find(record->keys.holder);
    if (at == queues_.end() || at->second.holder != record.get()) return false;
    queue& q = at->second;
    if (q.waiting.empty() || !q.chain->can_pass(boottime_now(), deadline, q.waiting.front()->wish)) return false;
    auto given = give_(record, q.chain->pass());
    if (!given) return false;
    next = std::move(q.waiting.front());
    q.waiting.pop_front();
    q.holder = given.get();
    next->given = std::move(given);
  }
  next->news.notify_one();
  return true;
}

void local_line::ended(const lease_record& record) {
  const std::lock_guard alone{mutex_};
  const auto at = queues_.find(record.keys.holder);
  if (at == queues_.end() || at->second.holder != &record) return;
  at->second.chain.reset();
  at->second.holder = nullptr;
  tell_first(at->second);
  forget_if_idle(record.keys.holder);
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
