// SPDX-License-Identifier: Apache-2.0
// Each primary of a cluster by itself, and what they are together. What may be waited for is asked of all at once, so
// that it takes no longer where several do not answer.
#include "client/diagnose.hpp"
#include "net/quiet_thread.hpp"
#include "resp/info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

namespace {

using severity = finding::severity;

struct looked_at {
  cluster_nodes::primary who;
  std::string where = net::text_of(who.where);
  std::string probe{};  // The name that is tried there. Empty: none was found.
  bool is_there = false;
  std::optional<error> trouble{};  // Why it said nothing; of one that is there: nothing of locks.
  diagnosis alone{};
  bool is_hopeless() const { return trouble && !is_there; }
};

// The probe's own name and, behind that, numbers: the first whose slot it serves.
void find_names(client_state& state, std::vector<looked_at>& all) {
  constexpr int most = 8 * int{engine::slot_count};  // One that serves a single slot is found, most likely.
  const std::string usual{probe_of(state)};
  auto left = all.size();
  for (int n = 0; n < most && left > 0; ++n) {
    const auto name = n == 0 ? usual : fmt::format("{}-{}", usual, n);
    const auto& at = state.node_for(state.keys_of(state.name_of(name)));
    const auto whose = std::find_if(all.begin(), all.end(), [&](const looked_at& one) { return one.who.at == at; });
    if (whose == all.end() || !whose->probe.empty()) continue;
    whose->probe = name;
    --left;
  }
}

std::vector<looked_at> primaries_of(client_state& state) {
  (void)state.servers();
  std::vector<looked_at> all;
  for (auto& one : state.cluster()->primaries()) all.push_back({.who = std::move(one)});
  find_names(state, all);
  return all;
}

// Where the cluster says that its replicas are: there its clients go when one of them is promoted.
std::vector<net::tcp_address> replicas_of(client_state& state, const cluster_nodes::primary& one) {
  const auto reply = state.ask_all(one.at, std::vector{request({"CLUSTER", "SLOTS"})})[0];
  const auto said = engine::parse_cluster_slots(reply, {one.where.host, one.where.port});
  std::set<engine::cluster_address> all;
  if (said) {
    for (const auto& r : said->replicas)
      if (said->primaries[r.primary].id == one.id && !r.where.host.empty()) all.insert(r.where);
  }
  std::vector<net::tcp_address> where;
  where.reserve(all.size());
  for (const auto& r : all) where.push_back({r.host, r.port});
  return where;
}

// The first words with it.
void call_one(client_state& state, looked_at& one) {
  try {
    ping(state, one.who.at);
    one.is_there = true;
    judge_quarantine(state, one.who.at, one.alone);
    if (!one.probe.empty()) judge_clock(state, one.probe, one.alone);
    judge_replicas_at(state, one.who.at, replicas_of(state, one.who), true, one.alone);
  } catch (const error& e) {
    one.trouble = e;
  }
}

void call_all(client_state& state, std::vector<looked_at>& all) {
  std::vector<std::exception_ptr> fatal(all.size());
  net::run_each_quietly(all.size(), [&](std::size_t i) {
    try {
      call_one(state, all[i]);
    } catch (...) {
      fatal[i] = std::current_exception();
    }
  });
  for (const auto& why : fatal) {
    if (why) std::rethrow_exception(why);
  }
}

// While a slot is served by nobody the nodes answer nothing about any, unless they were told otherwise.
bool says_that_all_is_down(const looked_at& one) {
  return one.trouble && one.trouble->detail().server_text.starts_with("CLUSTERDOWN");
}

// Of one that does not answer, or will not serve us.
void say_trouble(looked_at& one) {
  const auto& e = *one.trouble;
  auto [code, fix] = way_out_of(e);
  if (one.is_there) {
    one.alone.findings.push_back(
        {severity::error, code, "locks cannot be tried: " + std::string{e.what()}, std::move(fix)});
    return;
  }
  const auto& words = e.detail().server_text;
  if (fix.empty())
    fix = fmt::format("start it, or have a replica promoted: none of its {} slots grants a lock until then",
                      one.who.slots);
  one.alone.findings.push_back(
      {severity::error, *code ? code : "E01", words.empty() ? e.code().message() : words, std::move(fix)});
}

void judge_replicas_of(looked_at& one, std::string_view info) {
  // CLUSTER SLOTS does not name a replica before something was written, and goes on naming one that died until the
  // nodes take it for dead.
  const auto connected = resp::info_field(info, "connected_slaves");
  const bool is_alone = connected.empty() ? one.who.replicas == 0 : connected == "0";
  if (!is_alone) return;
  const bool has_some = one.who.replicas > 0;
  one.alone.findings.push_back({severity::warning, "",
                                fmt::format("{} has no replica{}: its {} slots stop with it", one.where,
                                            has_some ? " that is connected" : "", one.who.slots),
                                has_some ? "start its replicas, or look into their logs"
                                         : "give it one: redis-cli --cluster add-node NEW ANY --cluster-slave"});
}

void judge_one(client_state& state, looked_at& one) {
  auto& result = one.alone;
  measure_round_trip(state, one.who.at, result);
  const auto info = judge_info_of(state, one.who.at, one.where, result);
  judge_settings(state, one.who.at, info, result);
  judge_replicas_of(one, info);
  if (one.trouble) return;
  if (!one.probe.empty()) return try_a_lock(state, one.probe, result);
  result.findings.push_back({severity::warning, "", "no lock was tried: no name was found whose slot it serves",
                             "give it more slots: redis-cli --cluster rebalance ANY"});
}

void add(const looked_at& one, diagnosis& result) {
  if (!one.alone.server_version.empty()) {
    result.server_version = one.alone.server_version;
    result.role = one.alone.role;
    result.mode = one.alone.mode;
    result.eviction_policy = one.alone.eviction_policy;
  }
  result.quarantine = std::max(result.quarantine, one.alone.quarantine);
  result.round_trip_median = std::max(result.round_trip_median, one.alone.round_trip_median);
  result.round_trip_max = std::max(result.round_trip_max, one.alone.round_trip_max);
  for (auto f : one.alone.findings) {
    if (!f.what.starts_with(one.where)) f.what.insert(0, one.where + ": ");
    result.findings.push_back(std::move(f));
  }
}

// False: some slots are served by nobody.
bool judge_coverage(const std::vector<looked_at>& all, diagnosis& result) {
  std::size_t covered = 0;
  for (const auto& one : all) covered += one.who.slots;
  if (covered == engine::slot_count) return true;
  result.findings.push_back({severity::error, "E25",
                             fmt::format("{} of {} slots are served by nobody whom a majority of the primaries names",
                                         engine::slot_count - covered, engine::slot_count),
                             "redis-cli --cluster check ANY says what is wrong"});
  return false;
}

// Of all of them, for what one says. `--cluster fix` gives slots to somebody, and does nothing while a primary is away.
void say_that_all_is_down(const std::vector<looked_at>& all, const looked_at& one, bool is_whole, diagnosis& result) {
  const bool is_one_away = std::any_of(all.begin(), all.end(), [](const looked_at& each) {
    return each.trouble && each.trouble->code() == outcome::unreachable;
  });
  const auto* const first = is_whole || is_one_away ? "redis-cli --cluster check ANY names who is missing: start it"
                                                    : "redis-cli --cluster fix ANY";
  result.findings.push_back(
      {severity::error, "E25", "locks cannot be tried: " + std::string{one.trouble->what()},
       fmt::format("{}; CONFIG SET cluster-require-full-coverage no on each node lets the other slots be served",
                   first)});
}

}  // namespace

void diagnose_cluster(client_state& state, diagnosis& result) {
  auto all = primaries_of(state);
  const bool is_whole = judge_coverage(all, result);
  call_all(state, all);
  const auto down = std::find_if(all.begin(), all.end(), says_that_all_is_down);
  // A primary that is dead keeps its slots, and each of the others says what that means.
  const bool none_serves = std::all_of(all.begin(), all.end(), [](const looked_at& one) { return !!one.trouble; });
  const bool is_down = down != all.end() && (!is_whole || none_serves);
  if (is_down) {
    say_that_all_is_down(all, *down, is_whole, result);
  } else if (is_whole && std::all_of(all.begin(), all.end(), [](const looked_at& one) { return one.is_hopeless(); })) {
    throw error{*all.front().trouble};
  }
  for (auto& one : all) {
    if (one.trouble && !(is_down && says_that_all_is_down(one))) say_trouble(one);
    if (!one.is_hopeless()) {
      try {
        judge_one(state, one);
      } catch (const error& e) {
        one.is_there = false;
        one.trouble = e;
        say_trouble(one);
      }
    }
    add(one, result);
  }
  if (all.size() < 3) {
    result.findings.push_back(
        {severity::warning, "",
         fmt::format("{} primaries cannot outvote a dead one: no replica is ever promoted", all.size()),
         "a cluster that fails over has three primaries or more"});
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
