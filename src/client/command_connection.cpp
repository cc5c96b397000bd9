// SPDX-License-Identifier: Apache-2.0
#include "client/command_connection.hpp"

#include "client/fork_guard.hpp"
#include "client/lock_soon.hpp"

#include "net/clock.hpp"
#include "net/uncancelled.hpp"
#include "net/wait_for.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;

namespace {

bool is_lobby(const net::endpoint& where) {
  const auto* of_cluster = std::get_if<net::cluster_node_address>(&where.where);
  return of_cluster && !of_cluster->where;
}

}  // namespace

command_connection::command_connection(const net::endpoint& where, const engine::channel::settings& settings,
                                       base::random_source& rng, engine::caller::hooks tell, std::string ear_name)
    : uses_tls_{where.uses_tls},
      is_of_nobody_{is_lobby(where)},
      named_{settings.primary},
      caller_{settings, rng, with_ear(std::move(tell))},
      line_{where, caller_.wire(), mutex_},
      ear_{settings,
           std::move(ear_name),
           caller_.wire(),
           rng,
           {[this](time_point now, std::string_view owner, server_time said_at, duration look_in) {
              caller_.on_hint(now, owner, said_at, look_in);
            },
            [this](time_point now) { caller_.on_hearing_changed(now); }}},
      ear_line_{where, ear_.wire(), mutex_},
      unattended_{caller_} {}

// Called when a connection stands, which is long after our construction.
engine::caller::hooks command_connection::with_ear(engine::caller::hooks tell) {
  tell.on_up = [this, up = std::move(tell.on_up)](time_point now) {
    if (up) up(now);
    ear_.compare(now);
  };
  tell.on_stray_hint = [this](std::string_view owner, server_time said_at) {
    if (tell_of_stray_hint_) tell_of_stray_hint_(owner, said_at);
  };
  return tell;
}

void command_connection::run(engine::call& what, const std::function<void()>& when_asked) {
  run_together({&what}, nullptr, {}, when_asked);
}

void command_connection::run(engine::acquire& what, const std::stop_token& cancel) {
  run_together({&what}, &what, cancel, {});
}

void command_connection::run_all(const std::vector<engine::call*>& all) { run_together(all, nullptr, {}, {}); }

namespace {

bool are_over(const std::vector<engine::call*>& all) {
  return std::all_of(all.begin(), all.end(), [](const engine::call* c) { return c->is_done(); });
}

time_point earliest(const std::vector<engine::call*>& all) {
  time_point at = never;
  for (const auto* c : all) {
    if (!c->is_done()) at = std::min(at, c->wake_at());
  }
  return at;
}

void step_if_due(const std::vector<engine::call*>& all, time_point now) {
  for (auto* c : all) {
    if (!c->is_done() && now >= c->wake_at()) c->step(now);
  }
}

}  // namespace

void command_connection::run_together(const std::vector<engine::call*>& all, engine::acquire* cancelled,
                                      const std::stop_token& cancel, const std::function<void()>& when_asked) {
  const net::uncancelled while_we_may_lead;
  waiting_thread me{all, with_news_, cancel.stop_possible()};
  // On any thread, or here and now, and without a mutex (C4, P32; as stop_watch.hpp). Before the lock: its end waits
  // for it.
  const made_here in_this_process;
  const std::stop_callback on_stop{cancel, [&] {
                                     if (!in_this_process) return;
                                     me.interrupt();
                                     wake_leader_.set();
                                   }};
  auto held = locked();
  members_.push_back(me);
  // Whatever happens in between: the calls leave the engine, and the lead goes on.
  struct at_end {
    command_connection& self;
    connection::lock& held;
    waiting_thread& me;
    ~at_end() {
      if (me.is_done()) return;
      if (!held.owns_lock()) held.lock();
      self.stop_all(me.what());
      self.leave(me);
      self.wake_members(held);
    }
  } const leaving{*this, held, me};

  take_lead_if_free(me);
  if (me.is_leading) line_.collect_if_stale(held);
  if (me.take_interrupt()) cancelled->cancel(boottime_now());  // Before anything is sent.
  for (auto* c : all) {
    c->set_listener(&me);
    caller_.start(*c, boottime_now());
  }
  if (when_asked) {
    write(held, me);
    held.unlock();
    when_asked();
    held.lock();
  }
  while (!are_over(all)) {
    if (me.take_interrupt()) {
      cancelled->cancel(boottime_now());
      continue;
    }
    write(held, me);
    wake_others(held, me);
    if (are_over(all)) break;
    take_lead_if_free(me);
    if (me.is_leading) {
      lead_one_round(held, me, all);
    } else {
      wake_driver_if_sooner();
      if (!me.sleep(held, earliest(all))) return;
    }
    step_if_due(all, boottime_now());
  }
  line_.flush(held);
  if (me.is_leading) wake_others(held, me);
}

void command_connection::take_lead_if_free(waiting_thread& me) {
  if (lead_ != lead::nobody && lead_ != lead::deputy) return;
  lead_ = lead::caller;
  me.is_leading = true;
}

void command_connection::prepare(connection::lock& held) {
  line_.prepare(held);
  line_.flush(held);
  if (!ear_.is_wanted()) return;
  ear_line_.prepare(held);
  ear_line_.flush(held);
}

time_point command_connection::wake_at() const {
  const time_point soonest = std::min(line_.wake_at(), unattended_.wake_at());
  return ear_.is_wanted() ? std::min(soonest, ear_line_.wake_at()) : soonest;
}

void command_connection::lead_one_round(connection::lock& held, const waiting_thread& me,
                                        const std::vector<engine::call*>& all) {
  start_arrived(held);
  cancel_marked();
  prepare(held);
  // It takes in what came while nobody was there, and tells of connections that fail at once: whose calls are over by
  // that sleeps no more.
  wake_others(held, me);
  if (unattended_.over() > 0) conclude_ended(held);
  if (are_over(all) || me.is_interrupted()) return;
  const time_point until = std::min(earliest(all), wake_at());
  if (ear_.is_wanted() || me.may_be_woken || !line_.wait_in_read(held, until)) wait_in_poll(held, until);
  drive_async(held);
}

void command_connection::wait_in_poll(connection::lock& held, time_point until) {
  std::array<pollfd, 3> fds{line_.poll_for(), pollfd{wake_leader_.get(), POLLIN, 0}, ear_line_.poll_for()};
  leader_wakes_at_ = until;
  held.unlock();
  net::wait_for(fds, until);
  if (fds[1].revents) wake_leader_.clear();
  held.lock();
  leader_wakes_at_ = time_point{};
  line_.collect(held, fds[0].revents);
  if (ear_.is_wanted()) {
    ear_line_.collect(held, fds[2].revents);
    ear_line_.flush(held);
  }
}

void command_connection::wake_driver() {
  if (lead_ == lead::caller) wake_leader_.set();
  if (lead_ == lead::deputy || lead_ == lead::deputy_busy) wake_deputy_();
}

// Who sleeps for its own next look does not know of the silence that a request sent since then may meet.
void command_connection::wake_driver_if_sooner() {
  if (lead_ == lead::caller && wake_at() < leader_wakes_at_) wake_leader_.set();
  if (lead_ == lead::deputy && wake_at() < deputy_wakes_at_) wake_deputy_();
}

void command_connection::stop_all(const waiting_thread::calls& all) {
  for (auto* c : all) {
    c->set_listener(nullptr);
    caller_.stop(*c);
  }
}

// Whoever has news and sleeps goes on. Whose calls are over leaves the connection here, so that it needs nothing of it.
void command_connection::wake_members(connection::lock& held) {
  auto to_wake = called_members();
  if (to_wake.empty()) return;
  held.unlock();
  waiting_thread::wake_all(to_wake);
  held.lock();
}

void command_connection::write(connection::lock& held, const waiting_thread& me) {
  constexpr int most = 16;
  if (!me.is_leading && leader_is_waking_ && left_to_leader_ < most) {
    ++left_to_leader_;
  } else {
    left_to_leader_ = 0;
    line_.flush(held);
  }
}

void command_connection::wake_others(connection::lock& held, const waiting_thread& me) {
  if (!me.is_leading) return wake_members(held);
  leader_is_waking_ = true;
  wake_members(held);
  leader_is_waking_ = false;
  if (std::exchange(left_to_leader_, 0) > 0) line_.flush(held);
}

// To be woken without the mutex.
waiting_thread::list command_connection::called_members() {
  waiting_thread::list to_wake;
  while (!with_news_.empty()) {
    auto& m = with_news_.front();
    m.forget_news();
    if (!m.is_asleep()) continue;
    if (are_over(m.what())) {
      stop_all(m.what());
      members_.erase(members_.iterator_to(m));
      m.be_done();
    } else {
      m.be_called();
    }
    to_wake.push_back(m);
  }
  return to_wake;
}

void command_connection::leave(waiting_thread& me) {
  me.forget_news();
  members_.erase(members_.iterator_to(me));
  if (me.is_leading) lead_ = lead::nobody;
  pass_lead_on();
}

// Also called by one who did not lead: it may have been woken to lead and be leaving instead (P31).
void command_connection::pass_lead_on() {
  if (lead_ != lead::nobody) return;
  if (!members_.empty()) {
    // Who is awake finds the lead by itself.
    if (auto& next = members_.front(); next.is_asleep()) {
      next.be_called();
      next.wake();
    }
  } else if (is_deputy_needed()) {
    lead_ = lead::deputy;
    wake_deputy_();
  }
}

bool command_connection::is_deputy_needed() {
  return members_.empty() &&
         (has_arrived_ || channel().has_open_requests() || async_calls_ > 0 || boottime_now() < listen_until_);
}

void command_connection::listen_until(time_point at) {
  const auto held = locked();
  if (!ear_.is_wanted()) return;
  listen_until_ = std::max(listen_until_, at);
  pass_lead_on();
}

command_connection::past command_connection::so_far() {
  const auto held = locked();
  return {channel().was_ever_ready(), channel().connect_attempts(), channel().round_trip()};
}

bool command_connection::is_going_on() {
  const auto held = locked();
  return channel().is_going_on();
}

core::server_clock command_connection::server_clock() {
  const auto held = locked();
  return channel().clock();
}

std::optional<engine::quarantine> command_connection::quarantine() {
  const auto held = locked();
  return channel().in_quarantine(boottime_now());
}

void command_connection::look_around() { wake_leader_.set(); }

void command_connection::leave_server(const std::function<bool(int slot)>& is_served_here) {
  connection::lock held{line_.mutex(), std::defer_lock};
  if (!lock_soon(held)) return;
  caller_.leave_server(boottime_now(), is_served_here);
  wake_driver();
  // Our mutex is not waited for once more, neither here nor by what is done for a call that is over: those are left to
  // whoever drives.
  auto to_wake = called_members();
  ended_calls moved;
  try {
    moved = taken_ended(&engine::unattended::take_moved);
  } catch (...) {
    // No memory: whoever drives finds them.
  }
  held.unlock();
  waiting_thread::wake_all(to_wake);
  if (!moved.empty()) conclude_(std::move(moved));
}

void command_connection::send_and_forget(const script::command& what) {
  auto held = locked();
  if (!channel().is_ready()) return;
  channel().send_and_forget(boottime_now(), what);
  line_.flush(held);
  pass_lead_on();  // Somebody must read the answer.
  wake_driver_if_sooner();
}

bool command_connection::is_somebody_named() const { return !is_of_nobody_ && (!named_ || named_->term() != 0); }

std::pair<engine::connection_failure, int> command_connection::trouble() {
  const auto held = locked();
  const int attempts = channel().connect_attempts();
  const bool nobody_drives = lead_ == lead::nobody || lead_ == lead::deputy;
  if (nobody_drives) {
    if (auto silence = line_.silence()) return {*std::move(silence), attempts};
  }
  auto why = channel().last_failure();
  if (attempts == 0 || why.code != errc::server_silent) return {why, attempts};
  if (!is_somebody_named()) return {{errc::no_primary, "no majority has answered yet", false, false}, attempts};
  // The first connection may not have failed by now, and its words say so from the moment at which it is there; where
  // somebody drives it may shake hands.
  if (why.text.empty() && (nobody_drives || !uses_tls_)) why.text = "no connection";
  return {why, attempts};
}

// ---- The deputy's ----

std::optional<command_connection::deputy_wait> command_connection::deputy_waits_for() {
  const auto held = locked();
  if (lead_ != lead::deputy) return std::nullopt;
  deputy_wakes_at_ = wake_at();
  if (!channel().has_open_requests() && async_calls_ == 0) {
    deputy_wakes_at_ = std::min(deputy_wakes_at_, listen_until_);
  }
  const pollfd nothing{-1, 0, 0};
  return deputy_wait{{line_.poll_for(), ear_.is_wanted() ? ear_line_.poll_for() : nothing}, deputy_wakes_at_};
}

void command_connection::deputy_collect(const pollfd& commands, const pollfd& ear) {
  auto held = locked();
  deputy_wakes_at_ = time_point{};
  deputy_is_called_ = false;
  if (lead_ == lead::nobody && has_arrived_) lead_ = lead::deputy;
  if (lead_ != lead::deputy) return;
  lead_ = lead::deputy_busy;
  start_arrived(held);
  cancel_marked();
  prepare(held);
  line_.collect(held, commands.revents);
  if (ear_.is_wanted()) ear_line_.collect(held, ear.revents);
  drive_async(held);
  prepare(held);  // Nothing that is to be done now may wait for the next wake-up, which would come at once.
  if (unattended_.over() > 0) conclude_ended(held);
  wake_members(held);
  lead_ = is_deputy_needed() ? lead::deputy : lead::nobody;  // The deputy comes round by itself.
  pass_lead_on();
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
