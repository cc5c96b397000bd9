// SPDX-License-Identifier: Apache-2.0
#include "world.hpp"

#include "checkers/one_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

// Whoever waits when the trouble is over is granted in this time: behind everybody else's work and leases, a silent
// waiter's three looks, and a claim window each.
constexpr duration least_patience = 60s;
constexpr std::uint64_t most_events = 100'000;

}  // namespace

world::world(plan what, const std::shared_ptr<lua_host>& scripts, const canary* planted, statistics& into)
    : plan_{std::move(what)},
      planted_{planted},
      statistics_{&into},
      servers_{events_, plan_, scripts, [this](int server) { return server_hooks(server); }},
      checkers_{all_checkers(*this)} {
  for_workers_ = {&plan_,
                  &events_,
                  &store_,
                  [this] { return now().time_since_epoch() >= plan_.horizon; },
                  [this](int lock, std::uint64_t token) {
                    for (auto& c : checkers_) c->on_stale_write(lock, token);
                  },
                  [this](guarded_store::written done) { ++statistics_->writes[static_cast<std::size_t>(done)]; }};
  for (const auto& p : plan_.processes) start_process(p);
}

world::~world() = default;

// ---- who takes part ----

void world::start_process(const process_plan& what) {
  const int number = static_cast<int>(processes_.size());
  auto rng = seeded_random::of(plan_.seed, 'c', static_cast<std::uint64_t>(number));
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    route& path = servers_.net(i).of(number);
    path.least = what.least_delay;
    path.jitter = what.jitter;
  }
  well_since_.push_back(now());
  process_plans_.push_back(what);
  process_settings how{number, what.clock_ppm, what.timeout, seeded_random{rng.next()},
                       what.max_ttl.count() > 0 ? what.max_ttl : plan_.max_ttl};
  how.hand_overs = plan_.hand_overs;
  how.hand_overs.may_go_on = plan_.copies == 0;
  if (servers_.size() > 1) {
    how.servers = &servers_;
    how.is_in_cluster = servers_.shards() > 1;
    how.least_delay = what.least_delay;
    how.jitter = what.jitter;
    how.durable = {plan_.copies, plan_.copy_timeout};
  }
  auto& made = *processes_.emplace_back(
      std::make_unique<process>(events_, servers_.net(0), plan_.locks, std::move(how), process_hooks()));
  for (int i = 0; i < what.workers; ++i) {
    auto& w = *workers_.emplace_back(std::make_unique<worker>(made, for_workers_, seeded_random{rng.next()}));
    worker_homes_.push_back(&made);
    w.start();
  }
}

std::vector<process*> world::living() {
  std::vector<process*> all;
  for (const auto& p : processes_) {
    if (!p->is_dead()) all.push_back(p.get());
  }
  return all;
}

void world::replace(process& dead, duration after) {
  well_since_[static_cast<std::size_t>(dead.number())] = end_of_time;
  ++to_come_;
  events_.after(after, [this, number = static_cast<std::size_t>(dead.number())] {
    --to_come_;
    const process_plan again = process_plans_[number];
    start_process(again);
  });
}

// ---- what is known of them ----

bool world::is_running(int process) const { return processes_[static_cast<std::size_t>(process)]->is_running(); }

int world::largest_size(int lock, instant since) const {
  int most = lock_of(lock).size;
  const bool may_be_older = excuse({cause::data_lost}, instant{}, lock) != nullptr;
  for (const auto& was : past_sizes_) {
    if (was.lock == lock && (may_be_older || was.until >= since)) most = std::max(most, was.size);
  }
  return most;
}

int world::missing_copies(const hold& of) {
  if (plan_.copies == 0) return 0;
  // The replicas have its expiry by the primary's clock.
  auto& primary = server();
  const auto ends = primary.clock().read(of.valid_until).time_since_epoch();
  const auto& what = lock_of(of.lock);
  int copies = 0;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const auto all = recorded_holders_of(servers_.of(i).redis(), what);
    copies += std::any_of(all.begin(), all.end(), [&](const holder& h) {
      return h.owner == of.owner && h.token == fmt::format("{:016}", of.grant) && h.expires_at >= ends;
    });
  }
  return plan_.copies + 1 - copies;
}

instant world::resumed_at(int process) const { return processes_[static_cast<std::size_t>(process)]->resumed_at(); }

instant world::healthy_since(int process) const {
  const auto since = std::max(answered_since(process), all_keys_are_well_since_);
  return since > now() ? end_of_time : since;
}

instant world::answered_since(int process) const {
  const auto since = std::max(well_since_[static_cast<std::size_t>(process)], all_are_well_since_);
  return since > now() ? end_of_time : since;
}

std::vector<const model_redis*> world::all_servers() {
  std::vector<const model_redis*> all;
  for (std::size_t i = 0; i < servers_.size(); ++i) all.push_back(&servers_.of(i).redis());
  return all;
}

duration world::slowest_round_trip(int process) const {
  const auto& plan = process_plans_[static_cast<std::size_t>(process)];
  return 2 * (plan.least_delay + plan.jitter);
}

void world::befall(int process, duration lasts) {
  auto& since = well_since_[static_cast<std::size_t>(process)];
  since = std::max(since, now() + lasts);
}

void world::befall_all(duration lasts) { all_are_well_since_ = std::max(all_are_well_since_, now() + lasts); }

void world::befall_keys(duration lasts) {
  all_keys_are_well_since_ = std::max(all_keys_are_well_since_, now() + lasts);
}

void world::disturb(cause what, duration lasts, int lock) {
  disturbances_.push_back({{what, now(), lock}, now() + lasts});
  for (auto& c : checkers_) c->on_disturbed(what);
}

const disturbance* world::excuse(std::initializer_list<cause> which, instant since, int lock) const {
  for (const auto& d : disturbances_) {
    const bool is_meant = std::find(which.begin(), which.end(), d.what.what) != which.end();
    const bool is_of_it = d.what.lock == any_lock || lock == any_lock || d.what.lock == lock;
    if (is_meant && is_of_it && d.until >= since) return &d.what;
  }
  return nullptr;
}

void world::complain(std::string_view invariant, std::string what) {
  say(fmt::format("VIOLATION of {}: {}", invariant, what));
  violations_.push_back({std::string{invariant}, std::move(what), now()});
}

// ---- what happens ----

void world::say(std::string text) {
  if (!keeps_trace_) return;
  trace_.push_back(fmt::format("{:>13.6f} s  {}", static_cast<double>(now().time_since_epoch().count()) / 1e9, text));
}

void world::mix(std::uint64_t number) { fingerprint_ = (fingerprint_ ^ number) * 1099511628211u; }

void world::mix(std::string_view text) {
  for (const char c : text) mix(static_cast<unsigned char>(c));
}

model_server::hooks world::server_hooks(int server) {
  model_server::hooks h;
  h.find_lock = [this](const std::string& key) -> const lock* {
    for (const auto& l : plan_.locks) {
      if (l.keys.holder == key) return &l;
    }
    return nullptr;
  };
  h.process_of = [](int host) { return host; };
  h.on_script = [this, server](const script_run& run) { see(run, server); };
  h.on_command = [this, server](const std::string& name, const resp::value& reply) {
    ++statistics_->commands;
    if (const char* broken = failure_of_command(reply)) complain(broken, name + ": " + reply.as_error()->text);
    if (name.starts_with("EVAL")) note_quarantine(server, reply);
  };
  return h;
}

namespace {

std::size_t code_of(const resp::value& reply) {
  if (reply.as_error()) return script::code_count;
  const auto* parts = reply.as_array();
  const auto* code = parts && !parts->empty() ? (*parts)[0].as_integer() : nullptr;
  return code && *code >= 0 && static_cast<std::size_t>(*code) < script::code_count ? static_cast<std::size_t>(*code)
                                                                                    : 0;
}

}  // namespace

// Nobody's turn is what it was before.
void world::note_size(const script_run& run) {
  auto& of = plan_.locks[static_cast<std::size_t>(run.lock)];
  past_sizes_.push_back({run.lock, of.size, now()});
  of.size = std::stoi(run.args[0].substr(1));
  befall_all(2s);
}

void world::note_grant(const script_run& run) {
  const auto is_known = [&](const holder& one) {
    return one.owner == run.owner() ||
           std::any_of(run.before.begin(), run.before.end(), [&](const holder& was) { return was.owner == one.owner; });
  };
  const auto granted = std::find_if_not(run.after.begin(), run.after.end(), is_known);
  if (granted == run.after.end()) return;
  events_.after(duration{0}, [what = std::exchange(at_grant_, {}), lock = run.lock, whom = *granted, this] {
    what(lock_of(lock), whom);
  });
}

void world::note_quarantine(int server, const resp::value& reply) {
  const auto* parts = reply.as_array();
  if (code_of(reply) != 8 || parts->size() < 3) return;
  const auto* remaining = (*parts)[2].as_integer();
  if (!remaining) return;
  quarantined_until_[server] = now() + std::chrono::milliseconds{*remaining};
  // A clock that goes back lets a quarantine begin anew, when a client next asks: that may be long after the step (H5).
  if (!excuse({cause::clock_stepped}, instant{}, any_lock)) return;
  befall_all(std::chrono::milliseconds{*remaining + *remaining / 10} + 2s);
}

// Whoever hears long after the keys were deleted that it is not in line takes its subscription for broken and makes it
// anew: so long nobody of its process can be told, also who came to the line since (seed 26334739).
void world::note_lost_place(const script_run& run, std::size_t code) {
  const bool is_look = run.which == script::id::look || run.which == script::id::look_counted;
  constexpr std::size_t not_in_line = 15;
  if (is_look && code == not_in_line && excuse({cause::keys_deleted}, instant{}, run.lock)) befall(run.process, 1s);
}

void world::see(const script_run& run, int server) {
  seen_ = server;
  const auto code = code_of(*run.reply);
  constexpr std::size_t unseen = 18;
  if (run.which == script::id::resize && (code == 0 || code == unseen)) note_size(run);
  note_lost_place(run, code);
  if (at_grant_) note_grant(run);
  ++statistics_->replies[static_cast<std::size_t>(run.which)][code];
  mix(static_cast<std::uint64_t>(now().time_since_epoch().count()));
  mix(run.owner());
  mix(code);
  if (const char* broken = failure_of_lock_script(*run.reply)) {
    complain(broken, fmt::format("{} failed: {}", script::find(run.which).name, run.reply->as_error()->text));
  }
  if (keeps_trace_) {
    say(fmt::format("server{}: {} of p{} for {:.6} -> {}{}", servers_.size() > 1 ? fmt::format(" {}", server) : "",
                    script::find(run.which).name, run.process, run.owner(), code,
                    run.after.empty()
                        ? ""
                        : fmt::format("; held by {:.6} with {}", run.after.front().owner, run.after.front().token)));
  }
  for (auto& c : checkers_) c->on_script(run);
  seen_ = nobody;
}

process::hooks world::process_hooks() {
  process::hooks h;
  h.on_call_started = [this](const call_record& call) {
    if (keeps_trace_) say(fmt::format("p{} wants lock {} ({})", call.process, call.lock, call.label));
    for (auto& c : checkers_) c->on_call_started(call);
  };
  h.on_call_ended = [this](const call_record& call) {
    ++statistics_->ends[static_cast<std::size_t>(call.end)];
    mix(static_cast<std::uint64_t>(call.number) * 8 + static_cast<std::uint64_t>(call.end));
    static constexpr std::array words{"acquired", "busy", "timed out", "cancelled", "unknown", "not applied"};
    if (keeps_trace_) {
      const auto code = call.code == 0 ? "" : holdfast::to_string(static_cast<errc>(call.code));
      say(fmt::format("p{} {}: {} {}", call.process, call.label, words[static_cast<std::size_t>(call.end)], code));
    }
    for (auto& c : checkers_) c->on_call_ended(call);
  };
  h.on_hold = [this](const hold& one) {
    if (keeps_trace_) {
      say(fmt::format("p{} holds lock {} with token {} for {} ms", one.process, one.lock, one.token,
                      (one.valid_until - now()).count() / 1'000'000));
    }
    for (auto& c : checkers_) c->on_hold(one);
  };
  h.on_extended = [this](const hold& one) {
    ++statistics_->extensions;
    if (keeps_trace_) {
      say(fmt::format("p{} renewed lock {} for {} ms", one.process, one.lock,
                      (one.valid_until - now()).count() / 1'000'000));
    }
    for (auto& c : checkers_) c->on_extended(one);
  };
  h.on_at_risk = [this](const hold& one) {
    if (keeps_trace_)
      say(fmt::format("p{} is told that lock {}, token {} is at risk", one.process, one.lock, one.token));
    for (auto& c : checkers_) c->on_at_risk(one);
  };
  h.on_late_answer = [this] {
    ++statistics_->late_answers;
    say("a renewal is answered behind the deadline");
  };
  h.on_joined = [this](const hold& one) {
    ++statistics_->joined;
    if (keeps_trace_) {
      say(fmt::format("p{} holds lock {} with others for {} ms", one.process, one.lock,
                      (one.valid_until - now()).count() / 1'000'000));
    }
    for (auto& c : checkers_) c->on_extended(one);
  };
  h.on_hold_ended = [this](const hold& one, hold_end how) {
    ++statistics_->holds[static_cast<std::size_t>(how)];
    static constexpr std::array words{"lets go", "is told that it lost", "dies with", "has held for too long",
                                      "hands on"};
    if (keeps_trace_) {
      say(fmt::format("p{} {} lock {}, token {}", one.process, words[static_cast<std::size_t>(how)], one.lock,
                      one.token));
    }
    for (auto& c : checkers_) c->on_hold_ended(one, how);
  };
  h.on_validity = [this](const hold& one, bool is) {
    for (auto& c : checkers_) c->on_validity(one, is);
  };
  h.on_released = [this](const hold& one, release_outcome outcome) {
    ++statistics_->releases[static_cast<std::size_t>(outcome)];
    mix(static_cast<std::uint64_t>(outcome));
    static constexpr std::array words{"released", "already lost", "unknown"};
    if (keeps_trace_) {
      say(fmt::format("p{} release of lock {}: {}", one.process, one.lock, words[static_cast<std::size_t>(outcome)]));
    }
    for (auto& c : checkers_) c->on_released(one, static_cast<int>(outcome));
  };
  h.on_narrowed = [this](const hold& one) {
    if (keeps_trace_) say(fmt::format("p{} downgrades lock {}, token {}", one.process, one.lock, one.token));
    for (auto& c : checkers_) c->on_narrowed(one);
  };
  h.on_downgraded = [this](const hold& one, downgrade_end how) {
    ++statistics_->downgrades[static_cast<std::size_t>(how)];
    mix(static_cast<std::uint64_t>(how));
    static constexpr std::array words{"it reads", "it is gone", "unknown"};
    if (keeps_trace_) {
      say(fmt::format("p{} downgrade of lock {}: {}", one.process, one.lock, words[static_cast<std::size_t>(how)]));
    }
    for (auto& c : checkers_) c->on_downgraded(one, how);
  };
  h.on_down = [] {};
  h.on_step = [this](int process) {
    for (auto& c : checkers_) c->on_process_step(process);
  };
  h.on_spin = [this](const std::string& text) { complain("progress", text); };
  h.is_planted = [this](canary_switch what) { return planted_ && planted_->what == what; };
  h.next_number = [this] { return ++last_number_; };
  return h;
}

// ---- the course of it ----

bool world::is_everybody_done() const {
  if (to_come_ > 0) return false;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (!worker_homes_[i]->is_dead() && !workers_[i]->is_done()) return false;
  }
  return std::all_of(processes_.begin(), processes_.end(), [](const auto& p) { return p->is_dead() || p->is_idle(); });
}

void world::run() {
  trouble befalls{*this, *statistics_};
  befalls.start();
  const auto goes_on = [this](instant until) {
    return violations_.empty() && events_.count() < most_events && events_.step(until);
  };
  const instant horizon{plan_.horizon};
  while (goes_on(horizon)) {
  }
  befalls.end();
  const duration patience = least_patience + 2 * duration{plan_.max_ttl} +
                            2 * static_cast<int>(workers_.size()) * (5 * duration{plan_.ttl} + 3s);
  while (!is_everybody_done() && goes_on(horizon + patience)) {
  }
  if (violations_.empty() && !is_everybody_done() && events_.count() < most_events) {
    complain("C7", "somebody still waits long after the trouble was over");
  }
  for (const auto& p : processes_) p->close();
  // Orphans have their time to go.
  const instant rest = now() + 60s;
  while (goes_on(rest)) {
  }
  if (events_.count() >= most_events) complain("progress", "too much happens for so few");
  for (auto& c : checkers_) c->at_rest();

  ++statistics_->schedules;
  statistics_->events += events_.count();
  statistics_->violations += violations_.empty() ? 0 : 1;
  statistics_->fingerprint += fingerprint_;
  ++statistics_->sizes[std::min<std::uint64_t>(events_.count() / 10, statistics_->sizes.size() - 1)];
}

}  // namespace holdfast::sim
