// SPDX-License-Identifier: Apache-2.0
#include "quorum/quorum_client.hpp"

#include "node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;
using round = engine::quorum_acquire;

namespace {

constexpr int most_rounds = 500;

engine::channel::settings channel_settings(const quorum_client::settings& what) {
  engine::channel::settings s;
  s.connect_timeout = std::min(s.connect_timeout, what.how.timeout);
  if (what.planted == canary_switch::no_quarantine) return s;
  s.epoch.prefix = "hf:";
  s.epoch.hold = what.of->max_ttl + 3ms;
  if (what.planted != canary_switch::quarantine_ignores_drift) s.epoch.hold += what.of->max_ttl / 100;
  return s;
}

engine::quorum_keeper::settings keeper_settings(const quorum_client::settings& what, std::size_t nodes) {
  auto s = channel_settings(what);
  s.epoch.may_be_unknown = true;
  return {std::vector(nodes, s), rho, "hf:", what.list.record, what.of->max_ttl};
}

std::vector<network*> nets_of(const server_list& list, std::deque<network>& all) {
  std::vector<network*> nets;
  for (const auto node : list.nodes) nets.push_back(&all[node]);
  return nets;
}

}  // namespace

duration patience_of(std::chrono::milliseconds ttl, duration timeout) {
  const auto wanted = std::clamp<duration>(duration{ttl} / 20, 50ms, 300ms);
  return std::min<duration>({wanted, duration{ttl} / 4, timeout});
}

quorum_client::quorum_client(event_queue& events, std::deque<network>& nets, settings what, hooks tell)
    : events_{&events},
      what_{std::move(what)},
      tell_{std::move(tell)},
      rng_{seeded_random::of(what_.of->seed, 'q', static_cast<std::uint64_t>(what_.number))},
      clock_{time_point{1h * (1 + what_.number)}, what_.how.clock_ppm},
      node_listeners_(what_.list.nodes.size(), this),
      keeper_{keeper_settings(what_, what_.list.nodes.size()), rng_, node_listeners_, *this},
      lines_{events, nets_of(what_.list, nets),
             quorum_lines::settings{what_.number, what_.how, what_.of,
                                    seeded_random::of(what_.of->seed, 'l', static_cast<std::uint64_t>(what_.number)),
                                    what_.planted != canary_switch::waits_in_a_line_that_is_gone},
             quorum_lines::hooks{[this](std::size_t server) { on_line_down(server); },
                                 [this](const std::string& spins) { tell_.complain("spin", spins); }}} {
  const auto& nodes = what_.list.nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    engine::voter::hooks hear;
    hear.on_clock_step = [this, i](duration step, const core::server_clock& seen) {
      keeper_.on_step_seen(now(), i, step, seen);
    };
    voters_.push_back(std::make_unique<engine::voter>(fmt::format("node {}", nodes[i]), channel_settings(what_), rng_,
                                                      std::move(hear)));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    wires_.emplace_back(*this, voters_[i]->wire(), nets[nodes[i]]);
    wires_.emplace_back(*this, keeper_.wire(i), nets[nodes[i]]);
  }
}

// ---- what befalls it ----

void quorum_client::pause() {
  if (is_paused_) return;
  is_paused_ = true;
  paused_at_ = events_->now();
  lines_.pause();
}

void quorum_client::resume() {
  if (is_dead_ || !is_paused_) return;
  is_paused_ = false;
  resumed_at_ = events_->now();
  if (what_.planted == canary_switch::clock_stands_in_a_pause) stood_still_ += events_->now() - paused_at_;
  if (rng_.chance(50)) drive();
  const bool is_in_order = rng_.chance(30);
  is_driving_ = what_.planted == canary_switch::answers_count_from_when_they_came;
  while (!missed_.empty() && is_running()) {
    const auto what = is_in_order ? missed_.take_first() : missed_.take_any(rng_);
    what();
  }
  is_driving_ = false;
  if (is_running()) drive();
  lines_.resume();
}

void quorum_client::die(process::death how) {
  if (is_dead_) return;
  is_dead_ = true;
  missed_.clear();
  for (auto& of : wires_) {
    if (how == process::death::host && of.id != 0 && of.net->is_open(of.id)) {
      of.net->silence(of.id, network::way::to_server);
      of.net->silence(of.id, network::way::to_client);
    }
    close(of);
  }
  lines_.die(how);
  for (const auto& one : leases_) tell_.on_end(*one, hold_end::died);
  leases_.clear();
}

instant quorum_client::when(time_point at) const {
  const instant found = clock_.when(at);
  return found == end_of_time ? found : found + stood_still_;
}

void quorum_client::when_running(missed_news::source from, std::function<void()> what) {
  if (is_dead_) return;
  if (is_paused_) return missed_.push(from, std::move(what));
  what();
}

void quorum_client::after(duration wait, std::function<void()> what) {
  events_->after(wait, [this, what = std::move(what)] {
    when_running(missed_news::timers, [this, what] {
      what();
      drive();
    });
  });
}

missed_news::source quorum_client::source_of(const wire& of) const {
  const auto at = std::find_if(wires_.begin(), wires_.end(), [&](const wire& one) { return &one == &of; });
  return 1 + static_cast<int>(at - wires_.begin());
}

std::vector<int> quorum_client::connections_to(std::size_t node) const {
  const auto& nodes = what_.list.nodes;
  const auto place = static_cast<std::size_t>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin());
  if (place == nodes.size()) return {};
  std::vector<int> all = lines_.connections_to(place);
  for (std::size_t i = 2 * place; i < 2 * place + 2; ++i) {
    if (wires_[i].id != 0 && wires_[i].is_open) all.push_back(wires_[i].id);
  }
  return all;
}

// ---- the network ----

void quorum_client::wire::on_connected(int which) {
  of->when_running(of->source_of(*this), [this, which] {
    if (which != id) return;
    is_open = true;
    channel->on_connected(of->now());
    of->drive();
  });
}

void quorum_client::wire::on_refused(int which) {
  of->when_running(of->source_of(*this), [this, which] {
    if (which != id) return;
    id = 0;
    channel->on_closed(of->now(), {errc::cannot_connect, "Connection refused", false, true});
    of->drive();
  });
}

void quorum_client::wire::on_bytes(int which, std::string_view bytes) {
  of->when_running(of->source_of(*this), [this, which, text = std::string{bytes}, came_at = of->now()] {
    if (which == id) of->read(*this, text, came_at);
  });
}

void quorum_client::read(wire& from, std::string_view bytes, time_point came_at) {
  if (is_late_answer(from)) tell_.on_late_answer();
  const bool is_known_late = what_.planted != canary_switch::answers_count_from_when_they_came;
  from.channel->on_bytes(is_known_late ? now() : came_at, bytes);
  if (!is_known_late) keeper_.on_wake(came_at);
  if (from.channel->must_close()) close(from);
  drive();
}

bool quorum_client::is_late_answer(wire& of) const {
  if (!std::exchange(of.has_open_renewal, false)) return false;
  return std::any_of(leases_.begin(), leases_.end(), [&](const lease_ptr& one) {
    const time_point ends = one->deadline.at();
    return ends != time_point{} && ends <= now();
  });
}

void quorum_client::wire::on_closed(int which) {
  of->when_running(of->source_of(*this), [this, which] {
    if (which != id) return;
    id = 0;
    is_open = false;
    channel->on_closed(of->now(), {errc::connection_lost, "the server closed the connection", false, false});
    of->drive();
  });
}

void quorum_client::close(wire& of) {
  if (of.id != 0 && of.net->is_open(of.id)) of.net->close(of.id);
  of.id = 0;
  of.is_open = false;
}

void quorum_client::prepare(wire& of) {
  const time_point at = now();
  if (of.channel->on_wake(at) || (of.channel->is_closed() && of.id != 0)) close(of);
  if (!of.channel->wants_connection(at)) return;
  if (of.id != 0) close(of);
  of.channel->on_connecting(at);
  of.has_open_renewal = false;
  of.id = of.net->connect(of, what_.number);
}

void quorum_client::flush(wire& of) {
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

void quorum_client::drive() {
  if (is_driving_ || !is_running()) return;
  is_driving_ = true;
  int rounds = 0;
  for (; rounds < most_rounds; ++rounds) {
    const time_point at = now();
    keeper_.on_wake(at);
    for (auto& of : wires_) prepare(of);
    for (auto& call : calls_) call.flow().step(at);
    for (auto& of : wires_) flush(of);
    const bool is_news = conclude_ended();
    if (!is_running()) break;
    if (!is_news && wake_at() > at) break;
  }
  is_driving_ = false;
  if (!is_running()) return;
  watch_deadlines();
  if (rounds == most_rounds) {
    return tell_.complain("spin", fmt::format("client {} goes round and round and never sleeps", what_.number));
  }
  plan_wake();
}

// C4: who runs is told in time. And what is renewed by hand ends when nobody does.
void quorum_client::watch_deadlines() {
  for (const auto& one : std::list{leases_}) {
    const duration left = one->deadline.left(now());
    const bool is_over = one->mode == renewal::none && one->open_wishes == 0 && now() + left > one->may_last_until;
    if (is_over && left > duration{0}) {
      tell_.complain("hand", fmt::format("client {}: token {} goes on, and nobody has renewed it", what_.number,
                                         one->token.value()));
    }
    if (left > duration{0}) {
      tell_.on_deadline(*one, when(now() + left));
    } else if (std::find(leases_.begin(), leases_.end(), one) != leases_.end()) {
      tell_.complain("C4",
                     fmt::format("client {} was not told that it lost token {}", what_.number, one->token.value()));
    }
  }
}

time_point quorum_client::wake_at() const {
  time_point at = keeper_.wake_at();
  for (const auto& of : wires_) at = std::min(at, of.channel->wake_at());
  for (const auto& call : calls_) at = std::min(at, call.flow().wake_at());
  return at;
}

void quorum_client::plan_wake() {
  const instant at = when(wake_at());
  if (at >= wake_planned_at_ || at == end_of_time) return;
  wake_planned_at_ = at + rng_.span(duration{0}, 200us);
  events_->at(wake_planned_at_, [this, number = ++wake_number_] {
    if (number != wake_number_) return;
    wake_planned_at_ = end_of_time;
    when_running(missed_news::timers, [this] { drive(); });
  });
}

}  // namespace holdfast::sim
