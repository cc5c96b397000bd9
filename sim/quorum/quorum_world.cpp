// SPDX-License-Identifier: Apache-2.0
#include "quorum/quorum_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t most_events = 3'000'000;

// The others are beyond what a quorum promises, or about what its lines are not needed for.
constexpr std::array faults_of_a_quorum{
    fault::delays,          fault::split_writes,   fault::blocked_routes,   fault::stalls,          fault::cuts,
    fault::lost_replies,    fault::silence,        fault::pauses,           fault::suspends,        fault::kills,
    fault::host_deaths,     fault::data_losses,    fault::server_stalls,    fault::full_memory,     fault::flushes,
    fault::server_restarts, fault::evictions,      fault::script_flushes,   fault::info_denied,     fault::client_kills,
    fault::clock_steps,     fault::publish_denied, fault::subscribe_denied, fault::subscriber_kills};

// In every other schedule, whatever kinds the plan has: most of the trouble is with those.
void make_exclusive(plan& what) {
  for (auto& one : what.locks) {
    one.kind = lock_kind::exclusive;
    one.size = 1;
    one.keys.is_counted = false;
  }
}

}  // namespace

quorum_world::quorum_world(plan what, int nodes, std::shared_ptr<lua_host> scripts, const canary* planted,
                           statistics& into)
    : plan_{std::move(what)}, planted_{planted}, statistics_{&into}, trouble_{seeded_random::of(plan_.seed, 'F')} {
  if (seeded_random::of(plan_.seed, 'K').chance(50)) make_exclusive(plan_);
  auto rng = seeded_random::of(plan_.seed, 'N');
  for (int i = 0; i < nodes; ++i) {
    // As far apart as their clocks may be, and a little less (P24).
    const auto most = std::chrono::duration_cast<std::chrono::microseconds>(plan_.max_ttl) / 5;
    const auto offset = rng.chance(50) ? std::chrono::microseconds{rng.number(0, static_cast<int>(most.count()))} : 0us;
    const auto ppm = rng.number(-2000, 2000);
    const wall_clock clock = plan_.nodes_agree ? wall_clock{server_time{1795212800s}, 0}
                                               : wall_clock{server_time{1795212800s + offset}, ppm};
    clocks_.push_back(clock);
    model_server::hooks hooks;
    hooks.find_lock = [](const std::string&) -> const lock* { return nullptr; };
    hooks.process_of = [](int host) { return host; };
    hooks.on_script = [](const script_run&) {};
    hooks.on_command = [this](const std::string&, const resp::value& reply) {
      ++statistics_->commands;
      mix(reply.as_error() ? 1 : 0);
    };
    servers_.emplace_back(events_, clock, scripts, std::move(hooks), i);
    nets_.emplace_back(events_, servers_.back(), seeded_random::of(plan_.seed, 'n', static_cast<std::uint64_t>(i)));
    servers_.back().attach(nets_.back());
  }
  for (const auto kind : faults_of_a_quorum) {
    if (plan_.faults[static_cast<std::size_t>(kind)]) kinds_.push_back(kind);
  }
  node_trouble_until_.resize(servers_.size());
  for (const auto& one : plan_.processes) start_client(one, record());
}

quorum_world::~quorum_world() = default;

script::quorum_record quorum_world::record() const {
  script::quorum_record made;
  for (std::size_t i = 0; i < servers_.size(); ++i) made.servers += fmt::format("{}n{}:6379", i == 0 ? "" : ",", i);
  return made;
}

quorum_client& quorum_world::start_client(const process_plan& what, script::quorum_record record) {
  const int number = static_cast<int>(clients_.size());
  client_plans_.push_back(what);
  // Slower than a node is waited for, and no majority would ever come together.
  const duration most = patience_of(std::max<std::chrono::milliseconds>(100ms, plan_.ttl / 2), what.timeout) / 8;
  for (auto& net : nets_) {
    net.of(number).least = std::min(what.least_delay, most);
    net.of(number).jitter = std::min(what.jitter, most);
  }
  clients_.push_back(std::make_unique<quorum_client>(
      events_, nets_,
      quorum_client::settings{number, &plan_, what, std::move(record), planted_ ? planted_->what : canary_switch::none},
      client_hooks(number)));
  clients_.back()->start(what.workers);
  return *clients_.back();
}

quorum_client::hooks quorum_world::client_hooks(int client) {
  quorum_client::hooks h;
  h.on_hold = [this, client](const quorum_client::held& one) { on_hold(client, one); };
  h.on_deadline = [this](const quorum_client::held& one, instant until) {
    auto& all = valid_[one.lock];
    const auto found = all.find(one.id);
    if (found == all.end()) return;
    if (until > found->second.valid_until) ++statistics_->extensions;
    found->second.valid_until = until;
  };
  h.on_end = [this, client](const quorum_client::held& one, hold_end how) {
    ++statistics_->holds[static_cast<std::size_t>(how)];
    valid_[one.lock].erase(one.id);
    static constexpr std::array words{"lets go", "is told that it lost", "dies with"};
    if (keeps_trace_) {
      say(fmt::format("c{} {} lock {}, token {}", client, words[static_cast<std::size_t>(how)], one.lock,
                      one.token.value()));
    }
  };
  h.on_round = [this, client](engine::quorum_acquire::result how) {
    ++statistics_->rounds[static_cast<std::size_t>(how)];
    mix(static_cast<std::uint64_t>(how) + 10);
    static constexpr std::array words{"won", "busy", "split", "quarantined", "unreachable", "refused"};
    if (keeps_trace_) say(fmt::format("c{} round: {}", client, words[static_cast<std::size_t>(how)]));
  };
  h.on_turn = [this, client](call_end how) {
    ++statistics_->turns[static_cast<std::size_t>(how)];
    mix(static_cast<std::uint64_t>(how) + 20);
    static constexpr std::array words{"it is", "busy", "timed out", "left", "unknown", "no line"};
    if (keeps_trace_) say(fmt::format("c{} turn: {}", client, words[static_cast<std::size_t>(how)]));
  };
  h.on_no_quorum = [this, client](const script::part& what, duration silence) { check_silence(client, what, silence); };
  h.on_without_effect = [this, client](int lock, const script::part& what, const std::vector<owner_id>& owners) {
    check_that_it_has_none(client, lock, what, owners);
    // A copy that is still under way.
    events_.after(2 * 300ms,
                  [this, client, lock, what, owners] { check_that_it_has_none(client, lock, what, owners); });
  };
  h.on_released = [this, client](release_outcome how) {
    ++statistics_->releases[static_cast<std::size_t>(how)];
    static constexpr std::array words{"released", "already lost", "unknown"};
    if (keeps_trace_) say(fmt::format("c{} release: {}", client, words[static_cast<std::size_t>(how)]));
  };
  h.complain = [this](std::string invariant, std::string what) { complain(std::move(invariant), std::move(what)); };
  h.next_number = [this] { return ++last_number_; };
  return h;
}

// ---- the invariants ----

bool quorum_world::is_excused(int lock, cause& why) const {
  instant since = events_.now();
  for (const auto& [id, v] : valid_.at(lock)) since = std::min(since, v.got_at);
  for (const auto& one : disturbances_) {
    if (one.what != cause::clock_stepped && one.what != cause::keys_deleted) continue;
    // The stamps that a node has lost may be those of longer ago.
    if (one.at + plan_.max_ttl >= since) {
      why = one.what;
      return true;
    }
  }
  return false;
}

void quorum_world::on_hold(int client, const quorum_client::held& one) {
  const instant now = events_.now();
  mix(one.token.value());
  if (keeps_trace_) {
    say(fmt::format("c{} holds lock {} ({} {}) with token {}", client, one.lock, one.part.mode, one.part.permits,
                    one.token.value()));
  }
  const auto& of = lock_of(one.lock);
  const int permits = of.kind == lock_kind::exclusive ? 1 : one.part.permits;
  std::erase_if(valid_[one.lock], [&](const auto& other) { return other.second.valid_until <= now; });
  check_room(client, one, permits);
  valid_[one.lock][one.id] = {now, now, client, one.token.value(), permits};
  check_token(client, one, permits == of.size);
}

void quorum_world::check_room(int client, const quorum_client::held& one, int permits) {
  const auto& all = valid_.at(one.lock);
  int taken = permits;
  for (const auto& [id, other] : all) taken += other.permits;
  if (taken <= lock_of(one.lock).size) return;
  cause why{};
  if (is_excused(one.lock, why)) {
    ++statistics_->attributed[static_cast<std::size_t>(why)];
    return;
  }
  const auto& other = all.begin()->second;
  complain("C1",
           fmt::format("lock {}: client {} got token {} while client {} is valid with token {} for {} us, {} of {}",
                       one.lock, client, one.token.value(), other.client, other.token,
                       (other.valid_until - events_.now()).count() / 1000, taken, lock_of(one.lock).size));
}

void quorum_world::check_token(int client, const quorum_client::held& one, bool is_all) {
  auto& last = last_token_[one.lock];
  auto& last_full = last_full_token_[one.lock];
  const auto before = is_all ? last : last_full;
  cause why{};
  if (one.token.value() <= before && !is_excused(one.lock, why)) {
    complain("C2",
             fmt::format("lock {}: client {} got token {} after {}", one.lock, client, one.token.value(), before));
  }
  last = std::max(last, one.token.value());
  if (is_all) last_full = std::max(last_full, one.token.value());
}

// A quarantine is no silence: who waits waits for its end.
void quorum_world::check_silence(int client, const script::part& what, duration silence) {
  const duration timeout = client_plans_[static_cast<std::size_t>(client)].timeout;
  // It had less time to wait than that; or what befalls them is written by hand, and we do not know of it.
  if (silence < timeout || !is_drawn_) return;
  const instant since = events_.now() - timeout;
  if (const auto own = client_trouble_until_.find(client); own != client_trouble_until_.end() && own->second > since) {
    return;
  }
  const auto untroubled = static_cast<int>(std::count_if(node_trouble_until_.begin(), node_trouble_until_.end(),
                                                         [&](instant until) { return until <= since; }));
  if (untroubled < engine::votes_needed(servers_.size(), what)) return;
  complain("C5", fmt::format("client {} is told that there is no quorum, and {} of {} servers were there for {} ms",
                             client, untroubled, servers_.size(), timeout / 1ms));
}

bool quorum_world::has_vote(std::size_t node, int lock, const owner_id& owner) {
  const auto now = std::chrono::floor<std::chrono::microseconds>(servers_[node].now().time_since_epoch());
  const auto& holder = lock_of(lock).keys.holder;
  if (const auto* text = servers_[node].redis().peek_as<std::string>(holder)) {
    return text->size() > 36 && text->substr(3, 32) == owner.hex();
  }
  const auto* all = servers_[node].redis().peek_as<model_redis::sorted_set>(holder);
  if (!all) return false;
  const auto found = all->scores.find(std::string{owner.hex()});
  return found != all->scores.end() && found->second > static_cast<double>(now.count());
}

void quorum_world::check_that_it_has_none(int client, int lock, const script::part& what,
                                          const std::vector<owner_id>& owners) {
  const auto is_step = [](const disturbance& one) { return one.what == cause::clock_stepped; };
  if (std::any_of(disturbances_.begin(), disturbances_.end(), is_step)) return;  // A late copy may take effect.
  for (const auto& owner : owners) {
    int votes = 0;
    for (std::size_t i = 0; i < servers_.size(); ++i) votes += has_vote(i, lock, owner) ? 1 : 0;
    if (votes < engine::votes_needed(servers_.size(), what)) continue;
    complain("C5", fmt::format("client {} was told that nothing has come of it, and has {} votes for lock {}", client,
                               votes, lock));
  }
}

void quorum_world::check_that_nothing_is_left() {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (i == gone_) continue;
    servers_[i].now();
    for (const auto& one : plan_.locks) {
      if (servers_[i].redis().peek(one.keys.holder)) {
        complain("C5", fmt::format("lock {} is still held on node {}, and nobody is there", one.number, i));
      }
    }
    for (const auto& [key, entry] : servers_[i].redis().all()) {
      if (!entry.expires_at) complain("C8", fmt::format("key {} of node {} never expires", key, i));
    }
  }
}

// With a server gone there may be too few for all of a semaphore (hazards.md, section 0, point 12).
bool quorum_world::is_to_be_had(const lock& of) const {
  const auto left = static_cast<int>(servers_.size()) - (gone_ ? 1 : 0);
  return engine::votes_needed(servers_.size(), all_of(of)) <= left;
}

// Who waits for as long as it takes. Who does so in the line of a server that is gone goes elsewhere (P25).
void quorum_world::check_that_all_are_served() {
  for (const auto& one : clients_) {
    one->wind_down();
    for (const auto& of : plan_.locks) {
      if (!is_to_be_had(of)) one->stop_waiting_for(of.number);
    }
  }
  const auto somebody_waits = [this] {
    return std::any_of(clients_.begin(), clients_.end(), [](const auto& one) { return one->is_waiting(); });
  };
  const instant until = events_.now() + 10s + 2 * duration{plan_.max_ttl} + 10 * duration{plan_.ttl};
  while (somebody_waits() && goes_on(until)) {
  }
  if (violations_.empty() && somebody_waits()) complain("liveness", "somebody waits still, long after all trouble");
}

// By somebody new, and by whoever has been there longest: what he knows of the servers is old.
void quorum_world::check_that_all_is_to_be_had() {
  const auto old = std::find_if(clients_.begin(), clients_.end(), [](const auto& one) { return one->is_running(); });
  if (old != clients_.end()) check_that_all_is_to_be_had_by(**old);
  const process_plan somebody = plan_.processes.empty() ? process_plan{0, 1s, 100us, 50us, 0, {}} : plan_.processes[0];
  check_that_all_is_to_be_had_by(start_client(somebody, record()));
  clients_.back()->stop();
}

void quorum_world::check_that_all_is_to_be_had_by(quorum_client& who) {
  for (const auto& one : plan_.locks) {
    if (!is_to_be_had(one)) continue;
    ++probes_;
    who.probe(one.number, 10s + 2 * duration{plan_.max_ttl}, [this, lock = one.number, &who](bool is_got) {
      --probes_;
      if (is_got) return;
      complain("liveness", fmt::format("lock {} is not to be had by c{} after all trouble", lock, who.number()));
    });
  }
}

// ---- the course of it ----

void quorum_world::complain(std::string invariant, std::string what) {
  if (keeps_trace_) say(fmt::format("VIOLATION {}: {}", invariant, what));
  violations_.push_back({std::move(invariant), std::move(what), events_.now()});
}

void quorum_world::say(std::string text) {
  trace_.push_back(fmt::format("{:>12.6f}  {}", std::chrono::duration<double>(events_.now().time_since_epoch()).count(),
                               std::move(text)));
}

void quorum_world::mix(std::uint64_t number) {
  fingerprint_ =
      (fingerprint_ ^ number ^ static_cast<std::uint64_t>(events_.now().time_since_epoch().count())) * 1099511628211u;
}

bool quorum_world::is_everybody_done() const {
  return to_come_ == 0 && probes_ == 0 &&
         std::all_of(clients_.begin(), clients_.end(), [](const auto& one) { return one->is_done(); });
}

bool quorum_world::goes_on(instant until) {
  return violations_.empty() && events_.count() < most_events && events_.step(until);
}

void quorum_world::run() {
  is_drawn_ = true;
  if (!kinds_.empty()) plan_trouble();
  const instant horizon{plan_.horizon};
  while (goes_on(horizon)) {
  }
  end_trouble();
  check_that_all_are_served();
  const instant stopped_at = events_.now();
  for (auto& one : clients_) one->stop();
  const duration patience = 60s + 8 * duration{plan_.max_ttl} + 12 * duration{plan_.ttl};
  while (!is_everybody_done() && goes_on(stopped_at + patience)) {
  }
  if (violations_.empty() && !is_everybody_done()) complain("progress", "somebody is not done long after the trouble");
  if (violations_.empty()) {
    check_that_all_is_to_be_had();
    const instant rest = events_.now() + 40s + 4 * duration{plan_.max_ttl};
    while (goes_on(rest)) {
    }
    if (violations_.empty()) check_that_nothing_is_left();
    if (violations_.empty() && probes_ > 0) complain("liveness", "the probe never ended");
  }
  if (events_.count() >= most_events) complain("progress", "too much happens for so few");

  ++statistics_->schedules;
  statistics_->events += events_.count();
  statistics_->violations += violations_.empty() ? 0 : 1;
  statistics_->fingerprint += fingerprint_;
  ++statistics_->sizes[std::min<std::uint64_t>(events_.count() / 10, statistics_->sizes.size() - 1)];
}

}  // namespace holdfast::sim
