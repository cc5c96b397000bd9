// SPDX-License-Identifier: Apache-2.0
#include "client/diagnose.hpp"

#include "net/clock.hpp"
#include "resp/writer.hpp"
#include "script/reply.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using severity = finding::severity;

std::string request(std::initializer_list<std::string_view> words) {
  std::string bytes;
  resp::append_request(bytes, std::span{words.begin(), words.size()});
  return bytes;
}

// INFO's "name:value\r\n" lines.
std::string field(const std::string& info, std::string_view name) {
  const std::string key = "\n" + std::string{name} + ":";
  const auto at = ("\n" + info).find(key);
  if (at == std::string::npos) return {};
  const auto from = at + key.size() - 1;
  return info.substr(from, info.find_first_of("\r\n", from) - from);
}

void measure_round_trip(client_state& state, diagnosis& result) {
  std::vector<microseconds> trips;
  for (int i = 0; i < 20; ++i) {
    const time_point sent_at = net::boottime_now();
    state.throw_if_error(state.ask_all(std::vector{request({"PING"})})[0], "PING");
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

// Replicas that follow, as INFO lists them: "slave0:ip=...,port=...,state=online,...".
int replicas_online(const std::string& info) {
  int online = 0;
  for (auto at = info.find("\nslave"); at != std::string::npos; at = info.find("\nslave", at + 1)) {
    const auto line = std::string_view{info}.substr(at, info.find('\r', at) - at);
    if (line.find("state=online") != std::string_view::npos) ++online;
  }
  return online;
}

void judge_replicas(const durability& wanted, const std::string& info, diagnosis& result) {
  const int online = replicas_online(info);
  if (online >= wanted.replicas) return;
  result.findings.push_back(
      {severity::error, "E24",
       fmt::format("{} of {} replicas are connected, so no lock will be granted", online, wanted.replicas),
       fmt::format("start them, and REPLICAOF to this server; or durability.replicas = {} at most", online)});
}

void read_info(client_state& state, diagnosis& result) {
  const auto reply = state.ask_all(std::vector{request({"INFO"})})[0];
  if (reply.as_error()) {
    result.findings.push_back(
        {severity::warning, "E04",
         "INFO is denied, so version, role and eviction policy are not known: " + reply.as_error()->text,
         "allow it: ACL SETUSER USER +info"});
    return;
  }
  const auto* info = reply.as_bulk();
  if (!info) return;
  result.server_version = field(*info, "redis_version");
  result.role = field(*info, "role");
  result.mode = field(*info, "redis_mode");
  result.eviction_policy = field(*info, "maxmemory_policy");
  if (state.options().durability.replicas > 0) judge_replicas(state.options().durability, *info, result);
}

void judge_eviction(diagnosis& result) {
  if (result.eviction_policy.empty() || result.eviction_policy == "noeviction") return;
  result.findings.push_back(
      {severity::warning, "E05",
       result.endpoint + " may throw locks away: maxmemory-policy is '" + result.eviction_policy + "'",
       "CONFIG SET maxmemory-policy noeviction, or give locks their own instance"});
}

void judge_quarantine(client_state& state, diagnosis& result) {
  try {
    const auto found = state.ask_quarantine();
    if (!found) return;
    result.quarantine = found->remaining;
    result.findings.push_back({severity::warning, "E23",
                               quarantine_sentence(found->is_promotion, found->began_ago, found->remaining),
                               "wait; or, if it has forgotten none because this was its first start: holdfast init"});
  } catch (const error& e) {
    result.findings.push_back({severity::error, e.code() == outcome::denied ? "E04" : "",
                               "whether the server has forgotten locks cannot be seen: " + std::string{e.what()},
                               e.code() == outcome::denied ? "give the user the rule of docs/acl.md" : ""});
  }
}

// Everything that a lock needs, done once on a name of its own: the ACL is tried, not read.
void try_a_lock(client_state& state, diagnosis& result) {
  acquire_options what;
  const auto& durable = state.options().durability;
  const auto least = durable.replicas > 0 ? 4 * durable.timeout : std::chrono::milliseconds{0};
  what.ttl = std::min(std::max<std::chrono::milliseconds>(std::chrono::seconds{1}, least), state.options().max_ttl);
  const std::string name = state.options().names == naming::plain
                               ? "holdfast-doctor"
                               : fmt::format("holdfast-doctor:{}", net::boottime_now().time_since_epoch().count());
  try {
    auto held = state.acquire(name, what, client_state::patience::once);
    const auto outcome = held ? held->release() : release_outcome::unknown;
    if (held && outcome != release_outcome::released) {
      result.findings.push_back({severity::error, "", "a lock that was just taken could not be released", ""});
    }
  } catch (const error& e) {
    if (e.code() == errc::quarantined) return;  // Said already.
    const bool is_said =
        std::any_of(result.findings.begin(), result.findings.end(), [](const finding& f) { return f.code == "E24"; });
    if (e.code() == errc::not_replicated && is_said) return;
    result.findings.push_back({severity::error,
                               e.code() == outcome::denied        ? "E04"
                               : e.code() == errc::not_replicated ? "E24"
                                                                  : "",
                               "taking and releasing a lock fails: " + std::string{e.what()},
                               e.code() == outcome::denied ? "give the user the rule of docs/acl.md" : ""});
  }
}

void judge_clock(client_state& state, diagnosis& result) {
  const auto reply =
      state.ask(script::inspect(state.keys_of(state.name_of("holdfast-doctor"))), engine::question::repeat::allowed);
  const auto parsed = script::parse_inspect(reply);
  if (!parsed) return;
  const auto theirs = parsed->now.time_since_epoch();
  if (theirs < std::chrono::hours{24 * 365 * 40} || theirs > std::chrono::hours{24 * 365 * 200}) {
    result.findings.push_back({severity::warning, "E09", "the server's clock is far from any real date",
                               "run chrony or ntpd on it: tokens follow this clock"});
  }
}

}  // namespace

diagnosis diagnose(client_state& state) {
  state.require_ours();
  diagnosis result;
  result.endpoint = state.endpoint();
  measure_round_trip(state, result);
  read_info(state, result);
  judge_eviction(result);
  judge_quarantine(state, result);
  try_a_lock(state, result);
  judge_clock(state, result);
  if (result.worst() == severity::ok) {
    result.findings.push_back({severity::ok, "", "locks can be taken, renewed and released", ""});
  }
  return result;
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
