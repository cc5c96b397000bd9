// SPDX-License-Identifier: Apache-2.0
#include "client/server_report.hpp"

#include "resp/info.hpp"

#include <fmt/format.h>
#include <holdfast/options.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

namespace {

using severity = finding::severity;
using findings = std::vector<finding>;
using resp::info_field;

std::optional<int> number(std::string_view text) {
  int n = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), n);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return n;
}

void judge_eviction(std::string_view endpoint, std::string_view info, findings& out) {
  const auto policy = info_field(info, "maxmemory_policy");
  if (policy.empty() || policy == "noeviction") return;
  out.push_back({severity::warning, "E05",
                 fmt::format("{} may throw locks away: maxmemory-policy is '{}'", endpoint, policy),
                 "CONFIG SET maxmemory-policy noeviction, or give locks their own instance"});
}

// ---- replicas ----

struct replica {
  net::tcp_address where;
  std::string state;
  int lag = 0;  // Seconds since it was heard of.
};

// A word of "ip=127.0.0.1,port=7001,state=online,offset=42,lag=0".
std::string word(std::string_view line, std::string_view name) {
  const std::string key = fmt::format(",{}=", name);
  const std::string all = fmt::format(",{}", line);
  const auto at = all.find(key);
  if (at == std::string::npos) return {};
  const auto from = at + key.size();
  return all.substr(from, all.find(',', from) - from);
}

std::vector<replica> replicas_in(std::string_view info) {
  std::vector<replica> all;
  for (int i = 0;; ++i) {
    const auto line = info_field(info, fmt::format("slave{}", i));
    if (line.empty()) return all;
    all.push_back({{word(line, "ip"), word(line, "port")}, word(line, "state"), number(word(line, "lag")).value_or(0)});
  }
}

// A third of the ttl of those who ask for none (H26), in whole seconds, as the server counts: so long holders renew on
// a primary that has been cut off.
std::chrono::seconds longest_lag() { return std::chrono::floor<std::chrono::seconds>(acquire_options{}.ttl / 3); }

void judge_replicas(std::string_view info, const relied_on& what, findings& out) {
  const auto all = replicas_in(info);
  int online = 0;
  for (const auto& one : all) {
    constexpr int long_ago_s = 10;  // It says something every second.
    const bool is_online = one.state == "online";
    if (is_online) ++online;
    if (is_online && one.lag <= long_ago_s) continue;
    out.push_back({severity::warning, "",
                   is_online ? fmt::format("replica {} was heard of {} s ago", net::text_of(one.where), one.lag)
                             : fmt::format("replica {} is not in sync: {}", net::text_of(one.where), one.state),
                   "look into its log: if it is promoted, locks are forgotten"});
  }
  if (online < what.replicas) {
    out.push_back({severity::error, "E24",
                   fmt::format("{} of {} replicas are connected, so no lock will be granted", online, what.replicas),
                   fmt::format("{}; or durability.replicas = {} at most",
                               what.is_in_cluster
                                   ? "start them, or give it more: redis-cli --cluster add-node NEW ANY --cluster-slave"
                                   : "start them, and REPLICAOF to this server",
                               online)});
  }
  if (what.is_replaced && all.empty()) {
    out.push_back({severity::warning, "", "no replica is connected, so there is nobody to promote when it fails",
                   "start one: replicaof HOST PORT in its configuration"});
  }
  if (!all.empty() && !what.is_quorum_member && !stops_when_cut_off(info)) {
    const auto settings = fmt::format("CONFIG SET min-replicas-to-write 1, and CONFIG SET min-replicas-max-lag {}",
                                      longest_lag().count());
    out.push_back({severity::warning, "", "cut off from its replicas it goes on taking writes, which nobody will have",
                   all.size() > 1 ? settings
                                  : "a second replica, and then " + settings +
                                        "; with one alone no lock is granted or renewed while it is away"});
  }
}

// ---- its files ----

void judge_persistence(std::string_view info, const relied_on& what, findings& out) {
  const bool has_file = info_field(info, "aof_enabled") == "1";
  if (has_file && info_field(info, "aof_last_write_status") == "err") {
    out.push_back({severity::error, "E15", "it cannot write its append-only file, and refuses writes (MISCONF)",
                   "look into its log: is the disk full?"});
  }
  if (info_field(info, "rdb_last_bgsave_status") == "err") {
    out.push_back({severity::warning, "E15", "its last snapshot failed; it may refuse writes (MISCONF)",
                   "look into its log; or CONFIG SET stop-writes-on-bgsave-error no"});
  }
  if (what.syncs_all && !has_file) {
    out.push_back({severity::warning, "",
                   "you trust that every write is synced, and it has no append-only file: a restart forgets all locks",
                   "CONFIG SET appendonly yes, and CONFIG SET appendfsync always; or leave the quarantine on"});
  }
}

// ---- its version ----

// Who may run a script may do more than that, below these. A distribution may have repaired it under the old number.
struct repaired {
  int major, minor, patch;
  const char* cve;
};
constexpr std::array repairs_of_redis{
    repaired{6, 2, 20, "CVE-2025-49844"}, repaired{7, 0, 12, "CVE-2022-24834"}, repaired{7, 2, 11, "CVE-2025-49844"},
    repaired{7, 4, 6, "CVE-2025-49844"},  repaired{8, 0, 4, "CVE-2025-49844"},  repaired{8, 2, 2, "CVE-2025-49844"},
};
constexpr std::array repairs_of_valkey{
    repaired{7, 2, 11, "CVE-2025-49844"},
    repaired{8, 0, 6, "CVE-2025-49844"},
    repaired{8, 1, 4, "CVE-2025-49844"},
};

void judge_version(std::string_view info, findings& out) {
  // A fork counts its own: Valkey says 7.2.4 as Redis for ever.
  const auto of_valkey = info_field(info, "valkey_version");
  const auto version = of_valkey.empty() ? info_field(info, "redis_version") : of_valkey;
  const std::span<const repaired> repairs =
      of_valkey.empty() ? std::span<const repaired>{repairs_of_redis} : std::span<const repaired>{repairs_of_valkey};
  const auto first = version.find('.');
  const auto second = first == std::string::npos ? first : version.find('.', first + 1);
  if (second == std::string::npos) return;
  const auto major = number(std::string_view{version}.substr(0, first));
  const auto minor = number(std::string_view{version}.substr(first + 1, second - first - 1));
  const auto patch = number(std::string_view{version}.substr(second + 1));
  for (const auto& r : repairs) {
    if (major != r.major || minor != r.minor || !patch || *patch >= r.patch) continue;
    out.push_back(
        {severity::warning, "",
         fmt::format("version {} lets scripts do more than they may ({}), unless your distribution repaired it",
                     version_of(info), r.cve),
         fmt::format("{}.{}.{} or later", r.major, r.minor, r.patch)});
  }
}

}  // namespace

std::string version_of(std::string_view info) {
  const auto of_valkey = info_field(info, "valkey_version");
  return of_valkey.empty() ? info_field(info, "redis_version") : "Valkey " + of_valkey;
}

std::string mode_of(std::string_view info) {
  const auto mode = info_field(info, "redis_mode");
  return mode.empty() ? info_field(info, "server_mode") : mode;
}

bool stops_when_cut_off(std::string_view info) {
  return !replicas_in(info).empty() && number(info_field(info, "min_slaves_good_slaves"));
}

std::optional<finding> judge_min_replicas(std::string_view info, std::string_view wanted) {
  const int there = number(info_field(info, "min_slaves_good_slaves")).value_or(0);
  const auto least = number(wanted);
  if (!least || there >= *least) return std::nullopt;
  return finding{severity::error, "E15",
                 fmt::format("it takes no writes: {} of the {} replicas that it must have are good "
                             "(min-replicas-to-write)",
                             there, *least),
                 fmt::format("start its replicas; or CONFIG SET min-replicas-to-write {} at most", there)};
}

std::optional<finding> judge_clock(server_time theirs, server_time ours) {
  const auto of_date = theirs.time_since_epoch();
  if (of_date < std::chrono::hours{24 * 365 * 40} || of_date > std::chrono::hours{24 * 365 * 200}) {
    return finding{severity::warning, "E09", "the server's clock is far from any real date",
                   "run chrony or ntpd on it: tokens follow this clock"};
  }
  constexpr auto far = std::chrono::seconds{5};
  const auto apart = theirs - ours;
  if (std::chrono::abs(apart) < far) return std::nullopt;
  return finding{severity::warning, "E09",
                 fmt::format("the server's clock is {} s {} this machine's",
                             std::chrono::duration_cast<std::chrono::seconds>(std::chrono::abs(apart)).count(),
                             apart.count() > 0 ? "ahead of" : "behind"),
                 "run chrony or ntpd on both; a clock that is stepped ends leases early or late"};
}

std::optional<finding> judge_memory(std::string_view info) {
  const auto bytes = [&](std::string_view name) {
    const auto text = info_field(info, name);
    std::uint64_t n = 0;
    std::from_chars(text.data(), text.data() + text.size(), n);
    return n;
  };
  const auto most = bytes("maxmemory");
  const auto all_used = bytes("used_memory");
  const auto used = all_used - std::min(all_used, bytes("mem_not_counted_for_evict"));
  if (most > 0 && used > most && info_field(info, "maxmemory_policy") == "noeviction") {
    return finding{severity::error, "E15",
                   fmt::format("it has no memory left for a lock: {} bytes of {} are used, and nothing may be evicted",
                               used, most),
                   "raise maxmemory, or give locks a server of their own"};
  }
  return std::nullopt;
}

findings judge_refusals(std::string_view info) {
  findings out;
  if (auto full = judge_memory(info)) out.push_back(std::move(*full));
  if (replicas_in(info).empty() && number(info_field(info, "min_slaves_good_slaves")) == 0) {
    out.push_back({severity::error, "E15", "it takes no writes: none of the replicas that it must have is connected",
                   "start its replicas; or CONFIG SET min-replicas-to-write 0"});
  }
  return out;
}

std::optional<finding> judge_max_lag(std::string_view max_lag) {
  const auto said = number(max_lag);
  const auto most = longest_lag();
  if (!said || std::chrono::seconds{*said} <= most) return std::nullopt;
  return finding{
      severity::warning, "",
      fmt::format("cut off from its replicas it goes on taking writes for {} s (min-replicas-max-lag), which nobody "
                  "will have",
                  *said),
      fmt::format("CONFIG SET min-replicas-max-lag {}, a third of the default ttl", most.count())};
}

std::optional<finding> judge_backlog(std::string_view backlog_ttl, std::chrono::milliseconds hold) {
  constexpr int of_redis = 3600;
  const auto said = number(backlog_ttl);
  const std::chrono::seconds forgets_after{said.value_or(of_redis)};
  if (forgets_after == std::chrono::seconds{0} || forgets_after >= hold) return std::nullopt;  // 0: never.
  const auto least = std::chrono::ceil<std::chrono::seconds>(hold).count();
  return finding{
      severity::warning, "E23",
      fmt::format("{} s after its last replica left it cannot be seen that it was a replica itself, and forgot "
                  "locks; they may live for {} s (repl-backlog-ttl{})",
                  forgets_after.count(), least, said ? "" : ", if nobody changed it: CONFIG cannot be read"),
      fmt::format("CONFIG SET repl-backlog-ttl {}, or a smaller max_ttl", least)};
}

std::optional<finding> judge_hold(std::string_view epoch, std::chrono::milliseconds hold, std::string_view key) {
  const auto last = epoch.rfind('|');
  const auto said = last == epoch.npos ? std::nullopt : number(epoch.substr(last + 1));
  if (!said || std::chrono::milliseconds{*said} <= hold) return std::nullopt;
  return finding{
      severity::warning, "E23",
      fmt::format("a quarantine lasts for {} s, and not for {}: a client with a larger max_ttl took locks",
                  std::chrono::ceil<std::chrono::seconds>(std::chrono::milliseconds{*said}).count(),
                  std::chrono::ceil<std::chrono::seconds>(hold).count()),
      fmt::format("the same max_ttl for all clients; when none has the larger one any more: redis-cli DEL {}", key)};
}

std::optional<finding> judge_fsync(std::string_view appendfsync) {
  if (appendfsync == "always") return std::nullopt;
  return finding{severity::warning, "",
                 appendfsync.empty()
                     ? "you trust that every write is synced, and whether appendfsync is 'always' cannot be read"
                     : fmt::format("you trust that every write is synced, and appendfsync is '{}': when the machine "
                                   "stops, locks are forgotten",
                                   appendfsync),
                 "CONFIG SET appendfsync always; or leave the quarantine on"};
}

findings judge_server(std::string_view endpoint, std::string_view info, const relied_on& what) {
  findings out;
  judge_eviction(endpoint, info, out);
  judge_persistence(info, what, out);
  judge_version(info, out);
  return out;
}

findings judge_info(std::string_view endpoint, std::string_view info, const relied_on& what) {
  auto out = judge_server(endpoint, info, what);
  judge_replicas(info, what, out);
  return out;
}

std::vector<net::tcp_address> replicas_named_in(std::string_view info) {
  std::vector<net::tcp_address> all;
  for (auto& one : replicas_in(info))
    if (!one.where.host.empty() && number(one.where.port).value_or(0) > 0) all.push_back(std::move(one.where));
  return all;
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
