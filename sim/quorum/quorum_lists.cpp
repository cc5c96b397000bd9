// SPDX-License-Identifier: Apache-2.0
// A quorum's list of servers is replaced by another one (`holdfast quorum replace`), while its locks are in use.
#include "quorum/quorum_world.hpp"

#include "checkers/one_script.hpp"

#include "script/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

server_list made_of(std::vector<std::size_t> nodes, std::uint32_t generation) {
  std::sort(nodes.begin(), nodes.end(),
            [](std::size_t a, std::size_t b) { return name_of_server(a) < name_of_server(b); });
  server_list made{{.generation = generation}, std::move(nodes)};
  for (const auto node : made.nodes)
    made.record.servers += (made.record.servers.empty() ? "" : ",") + name_of_server(node);
  return made;
}

}  // namespace

// Mostly one server is replaced, now and then all of them.
void quorum_world::draw_lists(int nodes) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < static_cast<std::size_t>(nodes); ++i) all.push_back(i);
  history_.add(made_of(all, 1));
  if (!plan_.faults[static_cast<std::size_t>(fault::replacements)]) return;
  history_.add(with_spares(2, lists_));
  if (later_lists_.chance(30)) rival_ = history_.add(with_spares(2, later_lists_));
  if (later_lists_.chance(50)) return;
  static constexpr std::array kinds{next_list::other, next_list::first_servers, next_list::same_servers};
  third_kind_ = kinds[later_lists_.below(kinds.size())];
  if (third_kind_ == next_list::other) third_list_ = with_spares(3, later_lists_);
  if (third_kind_ == next_list::first_servers) third_list_ = made_of(all, 3);
}

// The first list, with others for some of its servers.
server_list quorum_world::with_spares(std::uint32_t generation, seeded_random& rng) {
  auto all = list().nodes;
  std::sort(all.begin(), all.end());
  const auto size = all.size();
  const auto count = rng.chance(60) ? 1 : static_cast<std::size_t>(rng.number(1, static_cast<int>(size)));
  for (std::size_t i = 0; i < count; ++i) {
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(rng.below(size - i)));
  }
  for (std::size_t i = 0; i < count; ++i) all.push_back(size + spares_++);
  return made_of(all, generation);
}

// Who begins now may have been given the next list before it is open, and the last one long after.
const server_list& quorum_world::some_list() {
  if (!is_replacing() || must_finish_) return current_list();
  const auto now = history_.current();
  const bool is_new = lists_.chance(now == 0 ? 30 : 80);
  if (now == 0) return history_.list(!is_new ? 0 : rival_ && later_lists_.chance(50) ? *rival_ : 1);
  if (!third_) return is_new ? current_list() : list();
  if (now == third_) return is_new ? current_list() : history_.list(later_lists_.chance(50) ? third_from_ : 0);
  return is_new ? history_.list(later_lists_.chance(30) ? *third_ : now) : list();
}

// ---- what its operators do ----

void quorum_world::plan_replacement() {
  events_.after(lists_.span(duration{0}, plan_.horizon), [this] {
    if (must_finish_) return;
    start_spares(1);
    if (lists_.chance(50)) hold_something();
    if (rival_) return plan_rival();
    replace({0, 1});
  });
  if (third_kind_ == next_list::none || third_kind_ == next_list::same_servers || !later_lists_.chance(20)) return;
  // Before he knows that there is a list to be replaced, or which one.
  events_.after(later_lists_.span(duration{0}, plan_.horizon), [this] {
    if (!trouble_is_over_) begin_third(rival_ && later_lists_.chance(50) ? *rival_ : 1);
  });
}

// Two who do not know of each other.
void quorum_world::plan_rival() {
  start_spares(*rival_);
  const bool is_first = later_lists_.chance(50);
  replace({0, is_first ? *rival_ : 1});
  replace_later({0, is_first ? 1 : *rival_}, later_lists_.any_size(1ms, 2 * duration{plan_.max_ttl}));
}

// Some of them only now.
void quorum_world::start_spares(std::size_t which) {
  auto& rng = which == 1 ? lists_ : later_lists_;
  for (const auto node : history_.list(which).nodes) {
    if (list().has(node) || !rng.chance(50)) continue;
    servers_[node].restart(events_.now(), {});
  }
}

// For longer than whoever replaces the list waits, if its servers let him.
void quorum_world::hold_something() {
  auto* who = clients_[lists_.below(clients_.size())].get();
  if (!who->is_running() || who->list() != list()) return;
  const auto& of = plan_.locks[lists_.below(plan_.locks.size())];
  quorum_client::wish wish{.lock = of.number, .ttl = plan_.ttl};
  wish.part = all_of(of);
  who->acquire(wish, [this, who](const quorum_client::lease_ptr& lease) {
    if (!lease) return;
    events_.after(4 * duration{plan_.max_ttl}, [who, lease] {
      if (!who->is_dead()) who->release(lease);
    });
  });
}

void quorum_world::replace(const replacement& what) {
  ++statistics_->faults[static_cast<std::size_t>(fault::replacements)];
  const auto who = operators_.size();
  if (keeps_trace_) {
    say(fmt::format("operator {}: {} by {}{}", who, text_of(history_.list(what.from).record),
                    text_of(history_.list(what.to).record), what.reopen ? ", reopened" : ""));
  }
  quorum_replace::hooks h;
  h.on_answer = [this](std::size_t node, const std::string& name, const resp::value& reply) {
    check_failure(failure_of_command(reply), node, name, reply);
  };
  h.on_written = [this, who, what](std::size_t node, const script::quorum_record& record) {
    if (keeps_trace_) say(fmt::format("operator {}: node {} keeps {}", who, node, text_of(record)));
    if (what.to == third_) third_from_ = what.from;
    if (!history_.note_written(what.to, record, events_.now()))
      complain("lists", "two lists of one generation are open");
    note_record(node);
  };
  h.on_wait = [this, who](std::chrono::milliseconds time) {
    if (keeps_trace_) say(fmt::format("operator {} waits for {} ms", who, time.count()));
  };
  h.on_end = [this, what](errc how, const std::string& why) { on_replaced(what, how, why); };
  // In this order, whatever the compiler does with arguments: it is what g++ made of them when both were drawn there.
  const seeded_random own{lists_.next()};
  const auto clock_ppm = lists_.number(-4975, 4975);
  auto& made = operators_.emplace_back(
      events_, servers_,
      quorum_replace::settings{history_.list(what.from), history_.list(what.to), plan_.max_ttl, clock_ppm,
                               must_finish_ ? 2ms : duration{plan_.ttl}, must_finish_ ? 0 : 10,
                               planted_ ? planted_->what : canary_switch::none, what.reopen},
      own, std::move(h));
  made.begin();
  if (must_finish_) return;
  if (lists_.chance(30)) {
    events_.after(lists_.any_size(1ms, 2 * duration{plan_.max_ttl}), [this, what, &made] {
      if (made.is_over()) return;
      made.kill();
      if (keeps_trace_) say("an operator is killed");
      replace_later(what, lists_.any_size(1ms, 2 * duration{plan_.ttl}));
    });
  }
  if (lists_.chance(10)) replace_later(what, lists_.any_size(1ms, duration{plan_.max_ttl}));
}

void quorum_world::replace_later(const replacement& what, duration wait) {
  events_.after(wait, [this, what] {
    if (!trouble_is_over_) replace(what);
  });
}

// On all servers of that list that are there: one whose write was lost is opened by nobody but its operator.
bool quorum_world::is_open_everywhere(std::size_t which) const {
  const auto& list = history_.list(which);
  return std::all_of(list.nodes.begin(), list.nodes.end(), [&](std::size_t node) {
    const auto* kept = servers_[node].redis().peek_as<std::string>(script::quorum_key("hf:"));
    return node == gone_ || (kept && *kept == text_of(list.record));
  });
}

void quorum_world::on_replaced(const replacement& what, errc how, const std::string& why) {
  mix(static_cast<std::uint64_t>(how) + 50);
  if (keeps_trace_) {
    say(fmt::format("an operator is told: {} {}", how == errc{} ? "done" : make_error_code(how).message(), why));
  }
  if (how != errc{}) return on_not_replaced(what, how, why);
  history_.note_told(what.to, events_.now());
  is_finished_ = !must_finish_ || is_open_everywhere(what.to);
  if (!is_finished_) events_.after(100ms, [this, what] { replace(what); });  // It has said which one it lacks.
  if (must_finish_) return;
  const auto later = [this](std::function<void()> then) {
    events_.after(lists_.any_size(1ms, 4 * duration{plan_.max_ttl}), [this, then = std::move(then)] {
      if (!trouble_is_over_) then();
    });
  };
  for (std::size_t i = 0; i < clients_.size(); ++i) later([this, i] { move_to_current_list(i); });
  for (const auto node : history_.list(what.from).nodes) {
    if (!history_.list(what.to).has(node)) later([this, node] { retire(node); });
  }
  if (third_kind_ == next_list::none || history_.list(what.to).record.generation != 2) return;
  events_.after(later_lists_.any_size(1ms, 4 * duration{plan_.max_ttl}), [this, from = what.to] {
    if (!trouble_is_over_) begin_third(from);
  });
}

// Its process is started again with what the operator was told to give it.
void quorum_world::move_to_current_list(std::size_t client) {
  auto& who = *clients_[client];
  const bool is_early = !must_finish_ && who.list().record.generation > current_list().record.generation;
  if (who.is_dead() || who.list() == current_list() || is_early) return;
  if (keeps_trace_) say(fmt::format("c{} is started again with the new list", client));
  who.die();
  dead_have_turns_until_ = events_.now() + quorum_client::turn_ttl;
  const auto how = client_plans_[client];
  start_client(how, current_list());
}

bool quorum_world::is_wanted(std::size_t node) const {
  return current_list().has(node) || (third_ && history_.list(*third_).has(node));
}

// It belongs to no list any more, and is stopped.
void quorum_world::retire(std::size_t node) {
  if (is_wanted(node) || !retired_.insert(node).second) return;
  if (keeps_trace_) say(fmt::format("node {} is stopped", node));
  servers_[node].restart(events_.now() + 24h, servers_[node].redis().all());
}

// ---- what its servers keep ----

std::uint32_t quorum_world::generation_at(std::size_t node) const {
  const auto* text = servers_[node].redis().peek_as<std::string>(script::quorum_key("hf:"));
  const auto kept = text ? script::parse_quorum_record(*text) : std::nullopt;
  return kept ? kept->generation : 0;
}

void quorum_world::note_record(std::size_t node) {
  if (is_replacing()) history_.note_kept(node, generation_at(node));
}

}  // namespace holdfast::sim
