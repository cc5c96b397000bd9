// SPDX-License-Identifier: Apache-2.0
#include "client/vote_connections.hpp"

#include "client/fork_guard.hpp"
#include "net/clock.hpp"
#include "net/uncancelled.hpp"
#include "net/wait_for.hpp"

#include <algorithm>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;

vote_connections::vote_connections(std::vector<server> servers, base::random_source& rng) {
  for (auto& one : servers) {
    voters_.push_back(
        std::make_unique<engine::voter>(std::move(one.name), std::move(one.how), rng, std::move(one.tell)));
    lines_.push_back(std::make_unique<connection>(std::move(one.where), voters_.back()->wire(), mutex_));
  }
}

void vote_connections::run(engine::quorum_call& what, const std::stop_token& cancel) {
  const net::uncancelled while_we_may_lead;
  member me{&what};
  // On any thread, or here and now, and without a mutex (C4, P32; as stop_watch.hpp).
  const made_here in_this_process;
  const std::stop_callback on_stop{cancel, [&] {
                                     if (!in_this_process) return;
                                     me.is_to_end = true;
                                     wake_leader_.set();
                                   }};
  connection::lock held{mutex_};
  members_.push_back(&me);
  struct at_end {
    vote_connections& self;
    connection::lock& held;
    member& me;
    ~at_end() {
      if (!held.owns_lock()) held.lock();
      self.leave(me);
    }
  } const leaving{*this, held, me};

  if (!has_leader_) {
    has_leader_ = me.is_leading = true;
    // An answer that nobody was there to read is no silence.
    for (auto& line : lines_) line->collect_if_stale(held);
  }
  step(me, boottime_now());
  flush_all(held);
  while (!what.is_over()) {
    if (me.is_leading) {
      lead_one_round(held);
      continue;
    }
    // Nothing else has changed since the leader reckoned with it. All of them would be gone through by each, here.
    if (std::min(me.what->wake_at(), lines_wake_at()) < leader_wakes_at_) wake_leader_.set();
    follow(held, me);
  }
}

// Whoever leads steps us, too, and reads what has come before that; but it may get no time itself. Then what is due is
// done here, if a little later, so that ours ends when its time is over. Not by who got no time either, as when the
// whole process stood still: the leader comes first.
void vote_connections::follow(connection::lock& held, member& me) {
  constexpr std::chrono::milliseconds a_look{100};
  constexpr std::chrono::milliseconds for_the_leader{250};
  const time_point slept_at = boottime_now();
  me.news.wait_for(held, a_look, [&] { return me.is_over || me.is_leading; });
  const time_point now = boottime_now();
  if (me.is_over || me.is_leading || now - slept_at > 2 * a_look) return;
  heed(me);
  const bool is_due = now >= me.what->wake_at() && now - me.what->wake_at() >= for_the_leader;
  if (!is_due && !me.what->has_news()) return;
  step(me, now);
  flush_all(held);
}

// Its caller wants it no longer.
void vote_connections::heed(member& of) {
  if (!of.is_to_end.exchange(false)) return;
  of.what->cancel();
  of.what->tell_news();
}

// Whoever is over is told; it may sleep.
void vote_connections::step(member& of, time_point now) {
  heed(of);
  of.what->forget_news();
  of.what->step(now);
  if (!of.what->is_over()) return;
  of.is_over = true;
  of.news.notify_one();
}

// All of it before anything is read, so that all servers have a request at about the same time (B62).
void vote_connections::flush_all(connection::lock& held) {
  for (auto& line : lines_) line->flush(held);
}

time_point vote_connections::lines_wake_at() const {
  time_point at = never;
  for (const auto& line : lines_) at = std::min(at, line->wake_at());
  return at;
}

time_point vote_connections::wake_at() const {
  time_point at = lines_wake_at();
  for (const auto* one : members_) {
    if (!one->what->is_over()) at = std::min(at, one->what->wake_at());
  }
  return at;
}

void vote_connections::lead_one_round(connection::lock& held) {
  for (auto& line : lines_) line->prepare(held);
  step_if_due();  // A connection may have failed at once.
  flush_all(held);
  bool is_urgent = false;
  for (const auto* one : members_) {
    if (one->is_leading && one->is_over) return;
    is_urgent = is_urgent || (!one->is_over && one->what->has_news());
  }
  const time_point until = is_urgent ? time_point{} : wake_at();
  std::vector<pollfd> fds;
  for (const auto& line : lines_) fds.push_back(line->poll_for());
  fds.push_back({wake_leader_.get(), POLLIN, 0});
  leader_wakes_at_ = until;
  held.unlock();
  net::wait_for(fds, until);
  if (fds.back().revents) wake_leader_.clear();
  held.lock();
  leader_wakes_at_ = time_point{};
  for (std::size_t i = 0; i < lines_.size(); ++i) lines_[i]->collect(held, fds[i].revents);

  step_if_due();
  flush_all(held);
}

void vote_connections::step_if_due() {
  const time_point now = boottime_now();
  bool all_are_due = false;
  for (auto& one : voters_) all_are_due = one->take_news() || all_are_due;
  for (auto* one : members_) {
    if (one->is_over) continue;
    heed(*one);
    if (all_are_due || one->what->has_news() || now >= one->what->wake_at()) step(*one, now);
  }
}

void vote_connections::leave(member& me) {
  members_.remove(&me);
  me.what->forget_all();
  if (!me.is_leading) return;
  has_leader_ = false;
  for (auto* next : members_) {
    if (next->is_over) continue;
    has_leader_ = next->is_leading = true;
    next->news.notify_one();
    return;
  }
}

std::vector<vote_connections::state> vote_connections::states() {
  const connection::lock held{mutex_};
  const time_point now = boottime_now();
  std::vector<state> out;
  for (const auto& one : voters_) {
    auto& wire = one->wire();
    out.push_back({one->name(), one->trouble(), wire.is_ready(), wire.in_quarantine(now), wire.run_id(), wire.clock()});
  }
  return out;
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
