// SPDX-License-Identifier: Apache-2.0
#include "quorum/quorum_world.hpp"

#include "checkers/one_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t most_events = 3'000'000;

// The others are beyond what a quorum promises, or about what its lines are not needed for.
constexpr std::array faults_of_a_quorum{fault::delays,
                                        fault::split_writes,
                                        fault::blocked_routes,
                                        fault::stalls,
                                        fault::cuts,
                                        fault::lost_replies,
                                        fault::silence,
                                        fault::pauses,
                                        fault::suspends,
                                        fault::kills,
                                        fault::host_deaths,
                                        fault::data_losses,
                                        fault::server_stalls,
                                        fault::full_memory,
                                        fault::refused_writes,
                                        fault::flushes,
                                        fault::server_restarts,
                                        fault::evictions,
                                        fault::script_flushes,
                                        fault::info_denied,
                                        fault::client_kills,
                                        fault::clock_steps,
                                        fault::publish_denied,
                                        fault::subscribe_denied,
                                        fault::subscriber_kills,
                                        fault::breaks};

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
    : plan_{std::move(what)},
      planted_{planted},
      statistics_{&into},
      store_{planted && planted->what == canary_switch::store_takes_any_token ? guarded_store::fence::takes_any_token
                                                                              : guarded_store::fence::compares},
      lists_{seeded_random::of(plan_.seed, 'x')},
      later_lists_{seeded_random::of(plan_.seed, 'y')},
      trouble_{seeded_random::of(plan_.seed, 'F')} {
  if (seeded_random::of(plan_.seed, 'K').chance(50)) make_exclusive(plan_);
  draw_lists(nodes);
  auto rng = seeded_random::of(plan_.seed, 'N');
  const auto all = list().nodes.size() + spares_;
  for (std::size_t i = 0; i < all; ++i) {
    // As far apart as their clocks may be, and a little less (P24).
    const auto most = std::chrono::duration_cast<std::chrono::microseconds>(plan_.max_ttl) / 5;
    const auto offset = rng.chance(50) ? std::chrono::microseconds{rng.number(0, static_cast<int>(most.count()))} : 0us;
    const auto ppm = rng.number(-2000, 2000);
    const wall_clock clock = plan_.nodes_agree ? wall_clock{server_time{1795212800s}, 0}
                                               : wall_clock{server_time{1795212800s + offset}, ppm};
    clocks_.push_back(clock);
    add_server(i, clock, scripts);
  }
  for (const auto kind : faults_of_a_quorum) {
    if (plan_.faults[static_cast<std::size_t>(kind)]) kinds_.push_back(kind);
  }
  node_trouble_until_.resize(servers_.size());
  for (const auto& one : plan_.processes) start_client(one, some_list());
}

quorum_world::~quorum_world() = default;

void quorum_world::add_server(std::size_t node, const wall_clock& clock, std::shared_ptr<lua_host> scripts) {
  model_server::hooks hooks;
  hooks.find_lock = [this](const std::string& key) -> const lock* {
    const auto found =
        std::find_if(plan_.locks.begin(), plan_.locks.end(), [&](const lock& l) { return l.keys.holder == key; });
    return found == plan_.locks.end() ? nullptr : &*found;
  };
  hooks.process_of = [](int host) { return host; };
  const auto note = [this](const resp::value& reply) {
    ++statistics_->commands;
    mix(reply.as_error() ? 1 : 0);
  };
  hooks.on_script = [this, note, node](const script_run& run) {
    note(*run.reply);
    check_failure(failure_of_lock_script(*run.reply), node, script::find(run.which).name, *run.reply);
    check_renewal(node, run);
    note_given_back(node, run);
    note_vote(node, run);
    note_break(node, run);
    for (const auto& one : plan_.locks) check_idle(one.number);
    check_only_the_owner(run,
                         [&](const std::string& found) { complain("C9", fmt::format("node {}, {}", node, found)); });
    check_full_memory(run, [&](const std::string& found) { complain("H29", fmt::format("node {}, {}", node, found)); });
  };
  hooks.on_command = [this, note, node](const std::string& name, const resp::value& reply) {
    note(reply);
    check_failure(failure_of_command(reply), node, name, reply);
    if (name.starts_with("EVAL")) note_record(node);
  };
  servers_.emplace_back(events_, clock, scripts, std::move(hooks), static_cast<int>(node));
  nets_.emplace_back(events_, servers_.back(), seeded_random::of(plan_.seed, 'n', node));
  servers_.back().attach(nets_.back());
}

void quorum_world::check_failure(const char* failure, std::size_t node, std::string_view what,
                                 const resp::value& reply) {
  if (failure) complain(failure, fmt::format("node {}, {} failed: {}", node, what, reply.as_error()->text));
}

quorum_client& quorum_world::start_client(const process_plan& what, server_list list) {
  const int number = static_cast<int>(clients_.size());
  client_plans_.push_back(what);
  // Slower than a node is waited for, and no majority would ever come together.
  const duration most = patience_of(std::max<std::chrono::milliseconds>(100ms, plan_.ttl / 2), what.timeout) / 8;
  for (auto& net : nets_) {
    net.of(number).least = std::min(what.least_delay, most);
    net.of(number).jitter = std::min(what.jitter, most);
  }
  clients_.push_back(
      std::make_unique<quorum_client>(events_, nets_,
                                      quorum_client::settings{number, &plan_, what, std::move(list), &store_,
                                                              planted_ ? planted_->what : canary_switch::none},
                                      client_hooks(number)));
  clients_.back()->start(what.workers);
  return *clients_.back();
}

quorum_client::hooks quorum_world::client_hooks(int client) {
  quorum_client::hooks h;
  h.on_hold = [this, client](const quorum_client::held& one, instant until) { on_hold(client, one, until); };
  h.on_deadline = [this, client](const quorum_client::held& one, instant until) { on_deadline(client, one, until); };
  h.on_late_answer = [this, client] {
    ++statistics_->late_answers;
    if (keeps_trace_) say(fmt::format("c{} reads the answer to a renewal behind the deadline", client));
  };
  h.on_end = [this, client](const quorum_client::held& one, hold_end how) {
    ++statistics_->holds[static_cast<std::size_t>(how)];
    check_told(client, one);
    check_lost(client, one, how);
    valid_[one.lock].erase(one.id);
    static constexpr std::array words{"lets go", "is told that it lost", "dies with", "has held for too long"};
    if (keeps_trace_) {
      say(fmt::format("c{} {} lock {}, token {}", client, words[static_cast<std::size_t>(how)], one.lock,
                      one.token.value()));
    }
  };
  h.on_round = [this, client](engine::quorum_acquire::result how) {
    ++statistics_->rounds[static_cast<std::size_t>(how)];
    mix(static_cast<std::uint64_t>(how) + 10);
    if (how == engine::quorum_acquire::result::quarantined) quarantined_at_[client] = events_.now();
    static constexpr std::array words{"won", "busy", "tied", "split", "quarantined", "unreachable", "refused"};
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
  h.on_released = [this, client](const quorum_client::held& one, release_outcome how) {
    released_at_.emplace(one.owner.hex(), events_.now());
    check_release(client, one, how);
    ++statistics_->releases[static_cast<std::size_t>(how)];
    static constexpr std::array words{"released", "already lost", "unknown"};
    if (keeps_trace_) say(fmt::format("c{} release: {}", client, words[static_cast<std::size_t>(how)]));
  };
  h.on_write = [this](int lock, std::uint64_t token, guarded_store::written how) { check_write(lock, token, how); };
  h.complain = [this](std::string invariant, std::string what) { complain(std::move(invariant), std::move(what)); };
  h.next_number = [this] { return ++last_number_; };
  return h;
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
  if (is_replacing()) plan_replacement();
  const instant horizon{plan_.horizon};
  while (goes_on(horizon)) {
  }
  end_trouble();
  if (is_replacing()) finish_replacement();
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
    if (violations_.empty()) check_that_all_losses_were_told();
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
