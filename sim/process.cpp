// SPDX-License-Identifier: Apache-2.0
// A process and its wires: as src/client/connection.cpp and the leading thread of command_connection.cpp.
#include "process.hpp"

#include "replicas/server_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast::sim {

namespace {

// As src/client/client_state.cpp.
engine::channel::settings channel_settings(const process_settings& what, const process::hooks& tell,
                                           const std::unique_ptr<primary_watch>& watch) {
  engine::channel::settings s;
  if (watch && !tell.is_planted(canary_switch::any_primary_counts)) s.primary = watch->primary();
  if (!tell.is_planted(canary_switch::asks_no_replica)) s.durable = what.durable;
  s.connect_timeout = std::min(s.connect_timeout, what.timeout);
  if (!what.is_quarantined || tell.is_planted(canary_switch::no_quarantine)) return s;
  s.epoch.prefix = what.prefix;
  s.epoch.hold = what.max_ttl + what.max_ttl / 100 + std::chrono::milliseconds{3};
  return s;
}

engine::channel::settings keeper_settings(const process_settings& what, const process::hooks& tell,
                                          const std::unique_ptr<primary_watch>& watch) {
  auto s = channel_settings(what, tell, watch);
  s.epoch.may_be_unknown = true;
  return s;
}

// A process that has something to do at once, again and again, does it for ever.
constexpr int most_rounds = 500;

}  // namespace

process::process(event_queue& events, network& net, const std::vector<lock>& locks, process_settings what, hooks tell)
    : events_{&events},
      net_{&net},
      locks_{&locks},
      what_{std::move(what)},
      tell_{std::move(tell)},
      clock_{time_point{std::chrono::hours{1 + what_.number}}, what_.clock_ppm},
      watch_{watch_primary()},
      map_watch_{watch_map()},
      nodes_{} {
  engine::keeper_listener& listener = *this;
  nodes_.push_back(std::make_unique<node>(home_settings(), what_.rng, listener, node_hooks()));
}

node::settings process::home_settings() const {
  return {channel_settings(what_, tell_, watch_), keeper_settings(what_, tell_, watch_),
          fmt::format("{}wake:{:032}", what_.prefix, what_.number)};
}

node::hooks process::node_hooks() {
  node::hooks h;
  h.now = [this] { return now(); };
  h.on_down = [this] { tell_.on_down(); };
  h.is_planted = tell_.is_planted;
  h.on_believed = [this](time_point at, std::string_view owner, server_time said_at) {
    believe_message(at, owner, said_at);
  };
  return h;
}

// As src/client/client_state.cpp: watch_for.
std::unique_ptr<primary_watch> process::watch_primary() {
  if (!what_.servers || what_.is_in_cluster) return nullptr;
  return std::make_unique<primary_watch>(*events_, what_.servers->named(), watch_settings(),
                                         seeded_random{what_.rng.next()}, watch_hooks(), [this] { drive(); });
}

watch::settings process::watch_settings() const {
  return {what_.number, core::usable(what_.max_ttl, rho), what_.least_delay, what_.jitter};
}

watch::hooks process::watch_hooks() {
  return {[this] { return now(); },
          [this](std::function<void()> then) { when_running(missed_news::watches, std::move(then)); }};
}

// ---- what befalls it ----

void process::pause() { is_paused_ = true; }

void process::resume() {
  if (is_dead_ || !is_paused_) return;
  is_paused_ = false;
  resumed_at_ = events_->now();
  // Which of its threads runs first is chance: who looks after timers, or who reads what has come meanwhile.
  if (what_.rng.chance(50)) drive();
  const bool is_in_order = what_.rng.chance(30);
  while (!missed_.empty() && is_running()) {
    const auto what = is_in_order ? missed_.take_first() : missed_.take_any(what_.rng);
    what();
  }
  if (is_running()) drive();
}

void process::die(death how) {
  if (is_dead_) return;
  is_dead_ = true;
  missed_.clear();
  close();
  for (const auto& at : nodes_) {
    for (wire* of : at->wires()) {
      if (of->id == 0) continue;
      // A host that is gone says nothing any more, not even that.
      if (how == death::host) {
        of->net->silence(of->id, network::way::to_server);
        of->net->silence(of->id, network::way::to_client);
      }
      close(*of);
    }
  }
  for (const auto& held : leases_) tell_.on_hold_ended(held.lease->seen, hold_end::died);
  leases_.clear();
}

void process::when_running(missed_news::source from, std::function<void()> what) {
  if (is_dead_) return;
  if (is_paused_) return missed_.push(from, std::move(what));
  what();
}

void process::after(duration wait, std::function<void()> what) {
  events_->after(wait, [this, what = std::move(what)] {
    when_running([this, what] {
      what();
      drive();
    });
  });
}

// ---- the network ----

wire* process::wire_of(int id) {
  for (const auto& at : nodes_) {
    for (wire* of : at->wires()) {
      if (of->id == id) return of;
    }
  }
  return nullptr;
}

void process::on_connected(int id) {
  when_running(id, [this, id] {
    wire* of = wire_of(id);
    if (!of) return;
    of->is_open = true;
    of->channel->on_connected(now(), of->term);
    drive();
  });
}

void process::on_refused(int id) {
  when_running(id, [this, id] {
    wire* of = wire_of(id);
    if (!of) return;
    of->id = 0;
    of->channel->on_closed(now(), {errc::cannot_connect, "Connection refused", false, of->term == 0});
    drive();
  });
}

void process::on_bytes(int id, std::string_view bytes) {
  if (is_running()) return read(id, bytes, now());
  when_running(id, [this, id, text = std::string{bytes}, came_at = now()] { read(id, text, came_at); });
}

void process::read(int id, std::string_view bytes, time_point came_at) {
  wire* of = wire_of(id);
  if (!of) return;
  if (is_late_answer(*of, now())) tell_.on_late_answer();
  const bool is_known_late = !tell_.is_planted(canary_switch::answers_count_from_when_they_came);
  of->channel->on_bytes(is_known_late ? now() : came_at, bytes);
  if (of->channel->must_close()) close(*of);
  drive();
}

void process::on_closed(int id) {
  when_running(id, [this, id] {
    wire* of = wire_of(id);
    if (!of) return;
    of->id = 0;
    of->is_open = false;
    of->channel->on_closed(now(), {errc::connection_lost, "the server closed the connection", false, false});
    drive();
  });
}

void process::close(wire& of) {
  if (of.id != 0 && of.net->is_open(of.id)) of.net->close(of.id);
  of.id = 0;
  of.is_open = false;
}

// As src/net/link.cpp and resolver.cpp.
void process::connect(wire& of, node& at) {
  ++of.attempt;
  of.term = 0;
  of.has_open_renewal = false;
  if (map_watch_) return connect_in_cluster(of, at);
  if (!watch_) {
    of.net = net_;
    of.id = net_->connect(*this, what_.number);
    return;
  }
  watch_->find([this, &of, attempt = of.attempt](const primary_watch::found& primary) {
    if (of.attempt != attempt || of.channel->is_closed()) return;
    if (primary.term == 0) {
      of.channel->on_closed(now(), {errc::no_primary, "no majority of the sentinels names one", false, false});
    } else {
      of.term = primary.term;
      of.net = &what_.servers->net(static_cast<std::size_t>(primary.server));
      of.id = of.net->connect(*this, what_.number);
    }
    drive();
  });
}

void process::prepare(wire& of, node& whose) {
  const time_point at = now();
  if (of.channel->mind_primary(at, of.term)) close(of);
  if (of.channel->on_wake(at) || (of.channel->is_closed() && of.id != 0)) close(of);
  if (!of.channel->wants_connection(at)) return;
  if (of.id != 0) close(of);
  of.channel->on_connecting(at);
  connect(of, whose);
}

void process::flush(wire& of) {
  auto& bytes = of.channel->output();
  if (!of.is_open || bytes.empty()) return;
  if (of.net->is_open(of.id)) of.net->send(of.id, bytes);
  if (has_renewal(bytes)) {
    of.has_open_renewal = true;
    if (at_renewal_) events_->after(duration{0}, std::exchange(at_renewal_, {}));
  }
  bytes.clear();
}

// ---- driving ----

void process::drive() {
  // Whoever does something inside is driven on by who is at it already.
  if (is_driving_ || !is_running()) return;
  is_driving_ = true;
  int rounds = 0;
  for (; rounds < most_rounds; ++rounds) {
    const time_point at = now();
    for (const auto& one : nodes_) drive_one(*one, at);
    const bool is_news = conclude_ended();
    if (!is_running()) break;
    if (!is_news && wake_at() > at) break;
  }
  is_driving_ = false;
  if (!is_running()) return;
  tell_.on_step(what_.number);
  if (rounds == most_rounds) {
    return tell_.on_spin(fmt::format("process {} goes round and round and never sleeps", what_.number));
  }
  plan_wake();
}

void process::drive_one(node& what, time_point at) {
  what.keeper.on_wake(at);
  for (wire* of : {&what.keeping, &what.commands}) prepare(*of, what);
  if (what.ear.is_wanted()) prepare(what.listening, what);
  what.unattended.step_due(at);
  for (wire* of : {&what.keeping, &what.commands, &what.listening}) flush(*of);
}

time_point process::wake_at() const {
  time_point soonest = never;
  for (const auto& one : nodes_) soonest = std::min(soonest, one->wake_at());
  return soonest;
}

// Timers are a little late.
void process::plan_wake() {
  const instant at = clock_.when(wake_at());
  if (at >= wake_planned_at_ || at == end_of_time) return;
  wake_planned_at_ = at + what_.rng.span(duration{0}, std::chrono::microseconds{200});
  events_->at(wake_planned_at_, [this, number = ++wake_number_] {
    if (number != wake_number_) return;
    wake_planned_at_ = end_of_time;
    when_running([this] { drive(); });
  });
}

}  // namespace holdfast::sim
