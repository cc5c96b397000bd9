// SPDX-License-Identifier: Apache-2.0
// The texts for a server that is there, is the right one, and grants nothing, or not now.
#include "fault_pieces.hpp"
#include "uri.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace holdfast::cli {
namespace {

// Who was promoted has started long ago, and of a primary that ever had a replica nobody can tell which it was.
std::string_view why_none_is_forgotten(const pieces& p) {
  const bool may_be_old = p.why.find("restarted or was promoted") != p.why.npos;
  return init_condition(p.server, may_be_old ? "it has kept every write" : "this was the server's first start");
}

// Some say what they refuse, and not what for.
std::string way_out_of_refusal(const pieces& p) {
  const auto has = [&](std::string_view part) { return p.words.find(part) != p.words.npos; };
  if (has("CLUSTERDOWN")) return "redis-cli --cluster check HOST:PORT says what is wrong";
  if (has("NOREPLICAS")) return "start its replicas; or CONFIG SET min-replicas-to-write 0";
  if (has(" does not keep what it is told")) return "holdfast doctor" + p.init_argument;
  if (has("MISCONF")) return "look into its log: is the disk full?";
  if (has("max number of clients")) return "raise maxclients, or look who has so many connections: CLIENT LIST";
  return "do what the server says";
}

// Who looks, or breaks a hold, has asked for no lock.
std::string what_was_refused(const pieces& p, const fault_context& context) {
  if (context.what == intent::take) return fmt::format("{} was not granted", p.lock);
  return context.lock.empty() ? "what is held cannot be told" : fmt::format("who holds {} cannot be told", p.lock);
}

// -w is for those who take a lock; `wait` has one that does not wait for this.
sentences for_quarantine(const pieces& p, const fault_context& context) {
  const auto what = what_was_refused(p, context);
  const bool may_wait = context.what == intent::take;
  if (p.why.find("is not open here yet") != p.why.npos) {
    const auto fix = fmt::format("holdfast quorum replace opens it{}", may_wait ? "; wait for that (-w)" : "");
    return {fmt::format("{}: the list of servers of {} is not open yet", what, p.server), p.why,
            fix + "; if its servers have lost their data: the same list once more, holdfast quorum replace --reopen"};
  }
  const auto patience = may_wait ? "wait for it (-w)" : "wait for it";
  return {fmt::format("{}: {} may have forgotten locks", what, p.server), p.why,
          fmt::format("{}; if {}: holdfast init{}", patience, why_none_is_forgotten(p), p.init_argument)};
}

sentences for_missing_replicas(const pieces& p) {
  return {fmt::format("{} was not granted: too few replicas of {} have it; it was given back", p.lock, p.server), p.why,
          fmt::format("look at the replicas (holdfast doctor{} --replicas K), wait for them (-w), or ask for fewer",
                      p.server_argument)};
}

}  // namespace

sentences for_trouble(errc cause, const pieces& p, const fault_context& context) {
  switch (cause) {
    case errc::server_loading:
      return {fmt::format("{} is not ready{}", p.server, p.colon_words), "it loads its data, or its primary is down",
              "wait for it"};
    case errc::server_busy:
      return {fmt::format("{} is blocked{}", p.server, p.colon_words), "a script or a module keeps it",
              "redis-cli SCRIPT KILL"};
    case errc::out_of_memory:
      return {fmt::format("{} is out of memory{}", p.server, p.colon_words),
              "maxmemory is reached and nothing may be evicted",
              "raise maxmemory, or give locks a server of their own"};
    case errc::server_refused:
      return {fmt::format("{} refuses to serve{}", p.server, p.colon_words), p.why, way_out_of_refusal(p)};
    case errc::clock_stepped:
      return {fmt::format("the clock of {} moved{}", p.server, p.colon_words), "Redis ends leases by its wall clock",
              "run ntpd or chrony there, slewing and not stepping"};
    case errc::quarantined: return for_quarantine(p, context);
    case errc::not_replicated: return for_missing_replicas(p);
    default: return {};
  }
}

}  // namespace holdfast::cli
