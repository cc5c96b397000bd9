// SPDX-License-Identifier: Apache-2.0
#include "client/diagnose.hpp"

#include "client/replica_report.hpp"
#include "client/sentinel_report.hpp"
#include "client/server_report.hpp"
#include "client/settings.hpp"
#include "engine/epoch_watch.hpp"
#include "net/clock.hpp"
#include "resp/info.hpp"
#include "resp/writer.hpp"
#include "script/reply.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using severity = finding::severity;

const std::string unseen_quarantine = "whether the server has forgotten locks cannot be seen: ";

relied_on relied_on_by(const client_state& state) {
  return {.replicas = state.options().durability.replicas,
          .is_replaced = state.has_sentinels(),
          .syncs_all = state.options().quarantine == quarantine_mode::trust_every_write_is_synced,
          .is_in_cluster = state.cluster() != nullptr,
          .is_quorum_member = state.is_quorum_member()};
}

// Empty: the server does not tell.
std::string setting(client_state& state, const std::shared_ptr<node>& whom, std::string_view name) {
  const auto reply = state.ask_all(whom, std::vector{request({"CONFIG", "GET", name})})[0];
  const auto* pair = reply.as_array();
  const auto* said = pair && pair->size() == 2 ? (*pair)[1].as_bulk() : nullptr;
  return said ? *said : std::string{};
}

}  // namespace

std::string request(std::initializer_list<std::string_view> words) {
  std::string bytes;
  resp::append_request(bytes, std::span{words.begin(), words.size()});
  return bytes;
}

void ping(client_state& state, const std::shared_ptr<node>& whom) {
  const auto reply = state.ask_all(whom, std::vector{request({"PING"})})[0];
  // A server that cannot write its disk says so even to that, and is there.
  const auto* error = reply.as_error();
  if (!error || !error->text.starts_with("MISCONF")) state.throw_if_error(reply, "PING");
}

void measure_round_trip(client_state& state, const std::shared_ptr<node>& whom, diagnosis& result) {
  std::vector<microseconds> trips;
  for (int i = 0; i < 20; ++i) {
    const time_point sent_at = net::boottime_now();
    ping(state, whom);
    trips.push_back(duration_cast<microseconds>(net::boottime_now() - sent_at));
  }
  std::sort(trips.begin(), trips.end());
  result.round_trip_median = trips[trips.size() / 2];
  result.round_trip_max = trips.back();
  const std::chrono::milliseconds least_ttl{100};
  if (result.round_trip_max * 10 > least_ttl) {
    result.findings.push_back(
        {severity::warning, "E08",
         fmt::format("round trips take up to {} ms",
                     duration_cast<std::chrono::milliseconds>(result.round_trip_max).count()),
         fmt::format("use a ttl of {} ms or more",
                     duration_cast<std::chrono::milliseconds>(result.round_trip_max).count() * 10)});
  }
}

std::string judge_info_of(client_state& state, const std::shared_ptr<node>& whom, const std::string& where,
                          diagnosis& result) {
  const auto reply = state.ask_all(whom, std::vector{request({"INFO"})})[0];
  if (reply.as_error()) {
    result.findings.push_back(
        {severity::warning, "E04",
         "INFO is denied, so version, role and eviction policy are not known: " + reply.as_error()->text,
         "allow it: ACL SETUSER USER +info"});
    return {};
  }
  const auto* info = reply.as_bulk();
  if (!info) return {};
  result.server_version = version_of(*info);
  result.role = resp::info_field(*info, "role");
  result.mode = mode_of(*info);
  if (result.mode == "cluster" && !state.cluster()) {
    result.findings.push_back({severity::warning, "",
                               "it is a node of a cluster: of a server alone no failover is followed, and no slot "
                               "that moves",
                               "a server that is of no cluster; or, if it is the cluster's locks that are wanted, "
                               "redis+cluster://HOST:PORT,..."});
  }
  result.eviction_policy = resp::info_field(*info, "maxmemory_policy");
  for (auto& one : judge_info(where, *info, relied_on_by(state))) result.findings.push_back(std::move(one));
  return *info;
}

std::string epoch_key_of(const client_state& state, const node& at) {
  const auto tag = state.cluster() ? std::optional<int>{state.cluster()->epoch_tag_of(at)} : std::nullopt;
  return script::epoch_key(state.options().prefix, tag);
}

// Who trusts that nothing is forgotten has no quarantine that could miss it, and rests on the file instead.
void judge_settings(client_state& state, const std::shared_ptr<node>& whom, std::string_view info, diagnosis& result) {
  std::optional<finding> found;
  if (state.options().quarantine == quarantine_mode::on) {
    const auto hold = hold_of(state.options());
    found = judge_backlog(setting(state, whom, "repl-backlog-ttl"), hold);
    const auto key = epoch_key_of(state, *whom);
    const auto epoch = state.ask_all(whom, std::vector{request({"GET", key})})[0];
    if (const auto longer = judge_hold(epoch.as_bulk() ? *epoch.as_bulk() : "", hold, key))
      result.findings.push_back(*longer);
  } else if (resp::info_field(info, "aof_enabled") == "1") {
    found = judge_fsync(setting(state, whom, "appendfsync"));
  }
  if (found) result.findings.push_back(*found);
  if (!stops_when_cut_off(info)) return;
  if (const auto few = judge_min_replicas(info, setting(state, whom, "min-replicas-to-write")))
    return result.findings.push_back(*few);
  if (state.is_quorum_member()) return;
  if (const auto late = judge_max_lag(setting(state, whom, "min-replicas-max-lag"))) result.findings.push_back(*late);
}

void judge_quarantine(client_state& state, const std::shared_ptr<node>& whom, diagnosis& result) {
  try {
    const auto found = state.ask_quarantine(whom);
    if (!found) return;
    const duration remaining = engine::by_our_clock(found->remaining);
    result.quarantine = std::chrono::ceil<std::chrono::milliseconds>(remaining);
    // `holdfast init` tells all nodes of a cluster.
    const char* fix = state.cluster()       ? "wait; or, if none of its nodes has forgotten a lock: holdfast init"
                      : found->is_promotion ? "wait; or, if it has kept every write: holdfast init"
                                            : "wait; or, if it has forgotten none because this was its first start: "
                                              "holdfast init";
    result.findings.push_back(
        {severity::warning, "E23", quarantine_sentence(found->is_promotion, found->began_ago, remaining), fix});
  } catch (const error& e) {
    if (e.code() != outcome::denied) throw;
    result.findings.push_back({severity::error, "E04", unseen_quarantine + e.what(), way_out_of_denial});
  }
}

void judge_replicas_at(client_state& state, const std::shared_ptr<node>& whom,
                       const std::vector<net::tcp_address>& where, bool is_followed, diagnosis& result) {
  if (where.empty()) return;
  const auto key = state.keys_of(state.name_of(probe_of(state))).holder;
  std::string question;
  engine::ask_what_is_lacked(question, key);
  relied_on_next by{.what = relied_on_by(state),
                    .is_followed = is_followed,
                    .lacks_anyway = engine::lacked(state.ask_all(whom, std::vector{std::move(question)})[0])};
  if (state.options().quarantine == quarantine_mode::on) by.hold = hold_of(state.options());
  for (const auto& one : ask_replicas(*whom, where, key, state.options().timeout))
    for (auto& f : judge_replica(one, by, net::wall_clock_now())) result.findings.push_back(std::move(f));
}

void judge_clock(client_state& state, std::string_view probe, diagnosis& result) {
  const auto keys = state.keys_of(state.name_of(probe));
  const auto reply = state.ask(keys, script::inspect(keys), engine::question::repeat::allowed);
  const auto parsed = script::parse_inspect(reply);
  if (!parsed) return;
  if (const auto found = judge_clock(parsed->now, net::wall_clock_now())) result.findings.push_back(*found);
}

namespace {

void diagnose_server(client_state& state, diagnosis& result) {
  const auto whom = state.servers().front();
  measure_round_trip(state, whom, result);
  const auto info = judge_info_of(state, whom, result.endpoint, result);
  judge_settings(state, whom, info, result);
  judge_replicas_at(state, whom, replicas_named_in(info), state.has_sentinels(), result);
  if (state.has_sentinels()) {
    const auto& all = state.sentinels();
    for (auto& one : judge_sentinels(all.primary, ask_sentinels(all))) result.findings.push_back(std::move(one));
  }
  try {
    judge_quarantine(state, whom, result);
  } catch (const error& e) {
    result.findings.push_back({severity::error, "", unseen_quarantine + e.what(), ""});
  }
  judge_clock(state, probe_of(state), result);
  try_a_lock(state, probe_of(state), result);
}

}  // namespace

diagnosis diagnose(client_state& state) {
  state.require_ours();
  diagnosis result;
  result.endpoint = state.endpoint();
  if (state.of_quorum()) {
    diagnose_quorum(state, result);
    try_a_lock(state, probe_of(state), result);
  } else if (state.cluster()) {
    diagnose_cluster(state, result);
  } else {
    diagnose_server(state, result);
  }
  if (result.worst() == severity::ok) {
    result.findings.push_back({severity::ok, "", "locks can be taken, renewed, waited for and released", ""});
  }
  return result;
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
