// SPDX-License-Identifier: Apache-2.0
// A quorum's list of servers is replaced by another one (`holdfast quorum replace`), while its locks are in use.
#include "quorum/quorum_world.hpp"

#include "script/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
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
  old_list_ = made_of(all, 1);
  if (!plan_.faults[static_cast<std::size_t>(fault::replacements)]) return;
  spares_ = lists_.chance(60) ? 1 : static_cast<std::size_t>(lists_.number(1, nodes));
  for (std::size_t i = 0; i < spares_; ++i) {
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(lists_.below(old_list_.nodes.size() - i)));
  }
  for (std::size_t i = 0; i < spares_; ++i) all.push_back(old_list_.nodes.size() + i);
  new_list_ = made_of(all, 2);
}

// Who begins now may have been given the next list before it is open, and the last one long after.
const server_list& quorum_world::some_list() {
  if (!is_replacing()) return old_list_;
  if (must_finish_) return new_list_;
  return lists_.chance(replaced_at_ == end_of_time ? 30 : 80) ? new_list_ : old_list_;
}

// ---- what its operators do ----

void quorum_world::plan_replacement() {
  events_.after(lists_.span(duration{0}, plan_.horizon), [this] {
    if (must_finish_) return;
    for (const auto node : new_list_.nodes) {
      if (!old_list_.has(node) && lists_.chance(50)) servers_[node].restart(events_.now(), {});  // It is started now.
    }
    if (lists_.chance(50)) hold_something();
    replace();
  });
}

// For longer than whoever replaces the list waits, if its servers let him.
void quorum_world::hold_something() {
  auto* who = clients_[lists_.below(clients_.size())].get();
  if (!who->is_running() || who->list() == new_list_) return;
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

void quorum_world::replace() {
  ++statistics_->faults[static_cast<std::size_t>(fault::replacements)];
  quorum_replace::hooks h;
  h.on_written = [this, who = operators_.size()](std::size_t node, const script::quorum_record& record) {
    if (keeps_trace_) say(fmt::format("operator {}: node {} keeps {}", who, node, text_of(record)));
    auto& since = record.is_open ? opened_at_ : closed_since_;
    since = std::min(since, events_.now());
    note_record(node);
  };
  h.on_wait = [this, who = operators_.size()](std::chrono::milliseconds time) {
    if (keeps_trace_) say(fmt::format("operator {} waits for {} ms", who, time.count()));
  };
  h.on_end = [this](errc how) { on_replaced(how); };
  operators_.emplace_back(events_, servers_,
                          quorum_replace::settings{old_list_, new_list_, plan_.max_ttl, lists_.number(-4975, 4975),
                                                   must_finish_ ? 2ms : duration{plan_.ttl}, must_finish_ ? 0 : 10,
                                                   planted_ ? planted_->what : canary_switch::none},
                          seeded_random{lists_.next()}, std::move(h));
  auto& made = operators_.back();
  made.begin();
  if (must_finish_) return;
  if (lists_.chance(30)) {
    events_.after(lists_.any_size(1ms, 2 * duration{plan_.max_ttl}), [this, &made] {
      if (made.is_over()) return;
      made.kill();
      if (keeps_trace_) say("an operator is killed");
      replace_later(lists_.any_size(1ms, 2 * duration{plan_.ttl}));
    });
  }
  if (lists_.chance(10)) replace_later(lists_.any_size(1ms, duration{plan_.max_ttl}));
}

void quorum_world::replace_later(duration wait) {
  events_.after(wait, [this] {
    if (!trouble_is_over_) replace();
  });
}

void quorum_world::on_replaced(errc how) {
  mix(static_cast<std::uint64_t>(how) + 50);
  if (keeps_trace_)
    say(fmt::format("an operator is told: {}", how == errc{} ? "done" : make_error_code(how).message()));
  if (how != errc{}) {
    if (must_finish_) {
      events_.after(100ms, [this] { replace(); });
    } else {
      replace_later(lists_.any_size(1ms, 2 * duration{plan_.ttl}));
    }
    return;
  }
  replaced_at_ = events_.now();
  if (must_finish_) return;
  const auto later = [this](std::function<void()> what) {
    events_.after(lists_.any_size(1ms, 4 * duration{plan_.max_ttl}), [this, what = std::move(what)] {
      if (!trouble_is_over_) what();
    });
  };
  for (std::size_t i = 0; i < clients_.size(); ++i) later([this, i] { move_to_new_list(i); });
  for (const auto node : old_list_.nodes) {
    if (!new_list_.has(node)) later([this, node] { retire(node); });
  }
}

// Its process is started again with what the operator was told to give it.
void quorum_world::move_to_new_list(std::size_t client) {
  auto& who = *clients_[client];
  if (who.is_dead() || who.list() == new_list_) return;
  if (keeps_trace_) say(fmt::format("c{} is started again with the new list", client));
  who.die();
  const auto how = client_plans_[client];
  start_client(how, new_list_);
}

// It belongs to no list any more, and is stopped.
void quorum_world::retire(std::size_t node) {
  if (!retired_.insert(node).second) return;
  if (keeps_trace_) say(fmt::format("node {} is stopped", node));
  servers_[node].restart(events_.now() + 24h, servers_[node].redis().all());
}

// Once more, whatever became of it: servers may have forgotten what was written. For that a majority of the old ones
// must be there. Then everybody has the new list.
void quorum_world::finish_replacement() {
  must_finish_ = true;
  for (auto& one : operators_) one.kill();
  for (const auto node : std::exchange(retired_, {})) {
    if (node != gone_) servers_[node].restart(events_.now(), servers_[node].redis().all());
  }
  replaced_at_ = end_of_time;
  replace();
  const instant until = events_.now() + 30s + 3 * duration{plan_.max_ttl};
  while (replaced_at_ == end_of_time && goes_on(until)) {
  }
  if (!violations_.empty()) return;
  if (replaced_at_ == end_of_time) return complain("replace", "the list is not replaced long after all trouble");
  for (std::size_t i = 0, all = clients_.size(); i < all; ++i) move_to_new_list(i);
  for (const auto node : old_list_.nodes) {
    if (!new_list_.has(node)) retire(node);
  }
}

// ---- what it excuses ----

bool quorum_world::keeps_new_list(std::size_t node) const {
  const auto* text = servers_[node].redis().peek_as<std::string>(script::quorum_key("hf:"));
  const auto kept = text ? script::parse_quorum_record(*text) : std::nullopt;
  return kept && kept->generation > 1;
}

void quorum_world::note_record(std::size_t node) {
  if (is_replacing() && keeps_new_list(node)) knew_new_list_.insert(node);
}

// Servers of the old list that have forgotten that it was closed vote for it again. Before the new one is open that is
// waited for; later it is what decision 19 leaves open, and why clients are to be given the new list and servers that
// were replaced are to be stopped.
bool quorum_world::is_left_open() const {
  const auto forgot = std::count_if(old_list_.nodes.begin(), old_list_.nodes.end(), [this](std::size_t node) {
    return knew_new_list_.contains(node) && !keeps_new_list(node);
  });
  const bool is_open = opened_at_ <= events_.now() || records_deleted_;
  return is_open && 2 * static_cast<std::size_t>(forgot) > old_list_.nodes.size();
}

bool quorum_world::may_overlap(const view& one, const view& other) const {
  if (one.is_of_old_list == other.is_of_old_list) return false;
  return one.is_left_open || other.is_left_open || (records_deleted_ && is_left_open());
}

// Some servers are its, and some are not: was that so since then?
bool quorum_world::is_being_replaced(const server_list& which, instant since) const {
  if (!is_replacing()) return false;
  return which == old_list_ ? closed_since_ != end_of_time : replaced_at_ > since;
}

}  // namespace holdfast::sim
