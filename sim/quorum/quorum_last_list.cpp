// SPDX-License-Identifier: Apache-2.0
// How operators come to one list of servers in the end: they do what they are told by `holdfast quorum replace` itself,
// and nothing that it did not say.
#include "quorum/quorum_world.hpp"

#include "script/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

bool says(const std::string& why, std::string_view words) { return why.find(words) != std::string::npos; }

}  // namespace

// ---- a list behind the second ----

auto quorum_world::third_from(std::size_t from) -> replacement {
  const bool is_same = third_kind_ == next_list::same_servers;
  if (!third_) {
    if (is_same) third_list_ = history_.list(from);
    third_list_.record.generation = 3;
    third_ = history_.add(third_list_);
    third_from_ = from;
  }
  return {from, *third_, is_same};
}

// Of its servers some were stopped when they were replaced, and some have lost their data since.
void quorum_world::begin_third(std::size_t from) {
  const auto what = third_from(from);
  for (const auto node : history_.list(what.to).nodes) {
    if (retired_.erase(node) == 0) continue;
    const bool has_data = later_lists_.chance(70);
    servers_[node].restart(events_.now(), has_data ? servers_[node].redis().all() : model_redis::keyspace{});
    note_record(node);
  }
  replace(what);
}

// ---- what they are told ----

// What to do next, as the words say.
auto quorum_world::told_to(const replacement& what, errc how, const std::string& why) -> replacement {
  if (how != errc::other_quorum) return what;
  for (std::size_t i = 0; i < history_.size(); ++i) {
    const auto& record = history_.list(i).record;
    if (record.generation != history_.list(what.to).record.generation || i == what.to) continue;
    if (says(why, ", with " + record.servers + " as the new list")) return {what.from, i, what.reopen};
  }
  if (!says(why, "is not open: finish")) return what;
  // He knows whether it was.
  if (history_.at(what.from).told_at != end_of_time) return {what.from, what.to, true};
  return {0, what.from};
}

void quorum_world::on_not_replaced(const replacement& what, errc how, const std::string& why) {
  const auto next = told_to(what, how, why);
  if (must_finish_) {
    // Or each of two lists is open on some servers: it is for him to choose.
    const bool is_split = how == errc::other_quorum && history_.has_forgotten() && ++refusals_ % 20 == 0;
    if (says(why, "redis-cli DEL") || is_split) clear_records(what);
    events_.after(100ms, [this, next] { replace(next); });
    return;
  }
  const bool is_refused = how == errc::other_quorum && (rival_ || third_kind_ != next_list::none);
  if (is_refused && later_lists_.chance(50)) return;  // He gives up.
  replace_later(next, lists_.any_size(1ms, 2 * duration{plan_.ttl}));
}

// Nobody else replaces any more, so what stands in the way is not used: not by a client either, once it has another
// one. A client of a first list would write its record anew (seed 60182986).
void quorum_world::clear_records(const replacement& what) {
  const auto& to = history_.list(what.to).record;
  for (std::size_t i = 0, all = clients_.size(); i < all; ++i) {
    const auto& has = clients_[i]->list().record;
    if (has != to && has != history_.list(what.from).record) move_to_current_list(i);
  }
  const auto key = script::quorum_key("hf:");
  for (std::size_t node = 0; node < servers_.size(); ++node) {
    const auto* text = servers_[node].redis().peek_as<std::string>(key);
    const auto kept = text ? script::parse_quorum_record(*text) : std::nullopt;
    const auto is_of = [&](const script::quorum_record& list) {
      return kept->generation == list.generation && kept->servers == list.servers;
    };
    if (!kept || is_of(to) || is_of(history_.list(what.from).record)) continue;
    if (!servers_[node].is_up()) continue;
    if (kept->is_open && kept->generation >= to.generation && !history_.has_forgotten())
      complain("lists", fmt::format("an operator is told to delete {}, which is in use", *text));
    if (keeps_trace_) say(fmt::format("an operator deletes {} on node {}", *text, node));
    history_.note_cleared(node);
    servers_[node].operate({"DEL", key});
  }
}

// ---- the end ----

// Once more, whatever became of it: servers may have forgotten what was written. For that a majority of the old ones
// must be there. Then everybody has the last list.
void quorum_world::finish_replacement() {
  must_finish_ = true;
  for (auto& one : operators_) one.kill();
  for (const auto node : std::exchange(retired_, {})) {
    if (node != gone_) servers_[node].restart(events_.now(), servers_[node].redis().all());
  }
  const auto is_begun = [this](std::size_t which) {
    return history_.at(which).closed_since != end_of_time || history_.at(which).told_at != end_of_time;
  };
  if (third_ && is_begun(*third_)) {
    finish(third_from(third_from_));
  } else {
    finish({0, std::max<std::size_t>(history_.current(), 1)});
    if (third_kind_ != next_list::none && violations_.empty()) finish(third_from(history_.current()));
  }
  if (!violations_.empty()) return;
  for (std::size_t i = 0, all = clients_.size(); i < all; ++i) move_to_current_list(i);
  for (std::size_t i = 0; i < history_.size(); ++i) {
    if (i != 0 && history_.at(i).opened_at == end_of_time) continue;
    for (const auto node : history_.list(i).nodes) retire(node);
  }
}

void quorum_world::finish(const replacement& what) {
  is_finished_ = false;
  replace(what);
  const instant until = events_.now() + 30s + 3 * duration{plan_.max_ttl};
  while (!is_finished_ && goes_on(until)) {
  }
  if (violations_.empty() && !is_finished_) complain("replace", "the list is not replaced long after all trouble");
}

}  // namespace holdfast::sim
