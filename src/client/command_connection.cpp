// SPDX-License-Identifier: Apache-2.0
#include "client/command_connection.hpp"

#include "net/clock.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;

command_connection::command_connection(const net::endpoint& where, const engine::channel::settings& settings,
                                       base::random_source& rng, engine::caller::hooks tell, std::string ear_name)
    : caller_{settings, rng, std::move(tell)},
      line_{where, caller_.wire(), mutex_},
      ear_{settings,
           std::move(ear_name),
           rng,
           {[this](time_point now, std::string_view owner, server_time said_at, duration look_in) {
              caller_.on_hint(now, owner, said_at, look_in);
            },
            [this](time_point now) { caller_.on_hearing_changed(now); }}},
      ear_line_{where, ear_.wire(), mutex_} {}

void command_connection::run(engine::call& what) { run_all({&what}); }

void command_connection::run(engine::acquire& what, const std::stop_token& cancel) {
  if (!cancel.stop_possible()) return run_all({&what});
  // The callback may run on any thread, or here and now.
  const std::stop_callback on_stop{cancel, [&] {
                                     const auto held = locked();
                                     what.cancel(boottime_now());
                                     if (what.on_news) what.on_news();
                                     if (lead_ == lead::caller) wake_leader_.set();
                                   }};
  run_all({&what}, wakeable::yes);
}

namespace {

// The forced unwind of pthread_cancel must not take a leader away with the lead in its hands (P32).
class cancellation_disabled {
public:
  cancellation_disabled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~cancellation_disabled() { pthread_setcancelstate(before_, nullptr); }
  cancellation_disabled(const cancellation_disabled&) = delete;
  cancellation_disabled& operator=(const cancellation_disabled&) = delete;

private:
  int before_ = 0;
};

bool are_over(const std::vector<engine::call*>& all) {
  return std::all_of(all.begin(), all.end(), [](const engine::call* c) { return c->is_over(); });
}

time_point earliest(const std::vector<engine::call*>& all) {
  time_point at = never;
  for (const auto* c : all) {
    if (!c->is_over()) at = std::min(at, c->wake_at());
  }
  return at;
}

void step_if_due(const std::vector<engine::call*>& all, time_point now) {
  for (auto* c : all) {
    if (!c->is_over() && now >= c->wake_at()) c->step(now);
  }
}

void wait_for_news(connection::lock& held, std::condition_variable& news, time_point until) {
  const duration left = std::min<duration>(until - boottime_now(), std::chrono::hours{1});
  if (left > duration{0}) news.wait_for(held, left);
}

}  // namespace

void command_connection::run_all(const std::vector<engine::call*>& all, wakeable how) {
  const cancellation_disabled while_we_may_lead;
  member me;
  me.may_be_woken = how == wakeable::yes;
  auto held = locked();
  members_.push_back(&me);
  // Whatever happens in between: the calls leave the engine, and the lead goes on.
  struct at_end {
    command_connection& self;
    connection::lock& held;
    const std::vector<engine::call*>& all;
    member& me;
    ~at_end() {
      if (!held.owns_lock()) held.lock();
      for (auto* c : all) {
        c->on_news = nullptr;
        self.caller_.stop(*c);
      }
      self.leave(me);
    }
  } const leaving{*this, held, all, me};

  take_lead_if_free(me);
  if (me.is_leading) line_.collect_if_stale(held);
  for (auto* c : all) {
    c->on_news = [&me] { me.news.notify_one(); };
    caller_.start(*c, boottime_now());
  }
  while (!are_over(all)) {
    line_.flush(held);
    if (are_over(all)) break;
    take_lead_if_free(me);
    if (me.is_leading) {
      lead_one_round(held, me, earliest(all));
    } else {
      wake_leader_if_sooner();
      wait_for_news(held, me.news, earliest(all));
    }
    step_if_due(all, boottime_now());
  }
  line_.flush(held);
}

void command_connection::take_lead_if_free(member& me) {
  if (lead_ != lead::nobody && lead_ != lead::keeper) return;
  lead_ = lead::caller;
  me.is_leading = true;
}

void command_connection::lead_one_round(connection::lock& held, const member& me, time_point until) {
  line_.prepare(held);
  line_.flush(held);
  until = std::min(until, line_.wake_at());
  if (ear_.is_wanted()) {
    ear_line_.prepare(held);
    ear_line_.flush(held);
    until = std::min(until, ear_line_.wake_at());
  } else if (!me.may_be_woken && line_.wait_in_read(held, until)) {
    return;
  }
  std::array<pollfd, 3> fds{line_.poll_for(), pollfd{wake_leader_.get(), POLLIN, 0}, ear_line_.poll_for()};
  leader_wakes_at_ = until;
  held.unlock();
  wait_for(fds.data(), fds.size(), until);
  if (fds[1].revents) wake_leader_.clear();
  held.lock();
  leader_wakes_at_ = time_point{};
  line_.collect(held, fds[0].revents);
  if (ear_.is_wanted()) {
    ear_line_.collect(held, fds[2].revents);
    ear_line_.flush(held);
  }
}

// A leader asleep for its own next look does not know of the silence that a request sent since then may meet.
void command_connection::wake_leader_if_sooner() {
  if (lead_ == lead::caller && line_.wake_at() < leader_wakes_at_) wake_leader_.set();
}

void command_connection::leave(member& me) {
  members_.remove(&me);
  if (me.is_leading) lead_ = lead::nobody;
  pass_lead_on();
}

// Also called by one who did not lead: it may have been woken to lead and be leaving instead (P31).
void command_connection::pass_lead_on() {
  if (lead_ != lead::nobody) return;
  if (!members_.empty()) {
    members_.front()->news.notify_one();
  } else if (channel().has_open_requests() && wake_keeper_) {
    lead_ = lead::keeper;
    wake_keeper_();
  }
}

bool command_connection::had_contact() {
  const auto held = locked();
  return channel().was_ever_ready();
}

core::server_clock command_connection::server_clock() {
  const auto held = locked();
  return channel().clock();
}

void command_connection::send_and_forget(const script::command& what) {
  auto held = locked();
  if (!channel().is_ready()) return;
  channel().send_and_forget(boottime_now(), what);
  line_.flush(held);
  pass_lead_on();  // Somebody must read the answer.
}

std::pair<engine::connection_failure, int> command_connection::trouble() {
  const auto held = locked();
  const bool nobody_drives = lead_ == lead::nobody || lead_ == lead::keeper;
  const bool is_silent_handshake = nobody_drives && line_.is_shaking_hands();
  return {is_silent_handshake ? connection::silent_handshake() : channel().last_failure(),
          channel().connect_attempts()};
}

pollfd command_connection::keeper_poll_for() {
  const auto held = locked();
  return lead_ == lead::keeper ? line_.poll_for() : pollfd{-1, 0, 0};
}

time_point command_connection::keeper_wake_at() {
  const auto held = locked();
  return lead_ == lead::keeper ? line_.wake_at() : never;
}

void command_connection::keeper_collect(short happened) {
  auto held = locked();
  if (lead_ != lead::keeper) return;
  lead_ = lead::keeper_busy;
  line_.prepare(held);
  line_.collect(held, happened);
  line_.flush(held);
  lead_ = lead::nobody;
  pass_lead_on();
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
