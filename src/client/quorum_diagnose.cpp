// SPDX-License-Identifier: Apache-2.0
// Whether the servers of a quorum can be used. Whether they are of our list, a lock will tell.
#include "client/diagnose.hpp"
#include "client/quorum.hpp"
#include "core/quorum_round.hpp"
#include "engine/quorum_question.hpp"
#include "net/clock.hpp"
#include "script/reply.hpp"
#include "script/server_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

namespace {

using severity = finding::severity;
using namespace std::chrono_literals;

// What each of them said, or why it said nothing, who is too far off to count (core::out_of_step), and what there is to
// be said of each alone.
struct roll_call {
  std::vector<std::string> troubles{};
  std::vector<std::optional<server_time>> clocks{};
  std::vector<bool> is_out{};
  std::vector<diagnosis> alone{};

  std::size_t size() const { return troubles.size(); }
  bool is_there(std::size_t node) const { return troubles[node].empty() && !is_out[node]; }
  bool is_in_quarantine(std::size_t node) const { return alone[node].quarantine > 0ms; }
  bool is_fit(std::size_t node) const { return is_there(node) && alone[node].worst() != severity::error; }
  std::size_t voting() const {
    return count([&](std::size_t node) { return is_fit(node) && !is_in_quarantine(node); });
  }
  // As soon as their quarantine is over.
  std::size_t will_vote() const {
    return count([&](std::size_t node) { return is_fit(node); });
  }

private:
  template <class Test>
  std::size_t count(Test is_one) const {
    std::size_t n = 0;
    for (std::size_t node = 0; node < size(); ++node) n += is_one(node) ? 1 : 0;
    return n;
  }
};

roll_call call_all(client_state& state) {
  auto& of = *state.of_quorum();
  const auto what = script::inspect(state.keys_of(state.name_of(probe)));
  const duration most = state.options().timeout;
  // Who is far away is not to be called down: all the time is for the last one, too.
  engine::quorum_question call{of.votes().all(), {what}, most, net::boottime_now() + most};
  of.votes().run(call);
  const auto known = of.votes().states();
  const time_point now = net::boottime_now();
  roll_call out;
  for (std::size_t i = 0; i < of.size(); ++i) {
    const auto& reply = call.reply(i);
    out.troubles.push_back(reply && reply->as_error() ? reply->as_error()->text : call.trouble(i));
    const auto said = reply ? script::parse_inspect(*reply) : std::nullopt;
    // All at one instant: they may have said it seconds apart.
    out.clocks.push_back(said ? std::optional{known[i].clock.at(now)} : std::nullopt);
  }
  out.is_out = core::out_of_step(out.clocks, duration{state.options().max_ttl} / 2);
  for (std::size_t i = 0; i < of.size(); ++i)
    out.alone.push_back(out.troubles[i].empty() ? diagnose(*of.client_of(i)) : diagnosis{});
  return out;
}

// While a majority votes, locks are granted all the same.
finding one_is_missing(const roll_call& of, std::string what, std::string repair, std::string_view fault) {
  const std::size_t majority = of.size() / 2 + 1;
  if (of.will_vote() < majority) {
    return {severity::error, "E10", std::move(what),
            fmt::format("{}: no lock is granted while a majority of the {} {}", repair, of.size(), fault)};
  }
  if (of.voting() < majority) {
    return {severity::warning, "E10", std::move(what),
            repair + ": no lock is granted until a majority is out of quarantine"};
  }
  const std::size_t more = of.voting() - majority + 1;
  return {severity::warning, "E10", std::move(what),
          more == 1 ? repair + ": when one more is down, no lock is granted"
                    : fmt::format("{}: when {} more are down, no lock is granted", repair, more)};
}

// Of a server that does not answer, or answers and will not serve us.
finding one_is_silent(const roll_call& of, const std::string& name, const std::string& trouble) {
  const auto code = script::classify(trouble).code;
  auto what = name + ": " + trouble;
  if (std::error_code{code} == outcome::denied)
    return one_is_missing(of, std::move(what), "user and password are those of all of them", "does not vote");
  if (code == errc::not_a_primary || trouble.find("role replica") != std::string::npos)
    return one_is_missing(of, std::move(what), "REPLICAOF NO ONE, or another server in its place", "does not vote");
  if (code == errc::server_loading) return one_is_missing(of, std::move(what), "wait for it", "does not vote");
  return one_is_missing(of, std::move(what), "start it", "is down");
}

// What is wrong with one of them is no more than a warning while the others are enough.
finding one_is_unfit(const roll_call& of, finding what) {
  if (what.level != severity::error || of.will_vote() <= of.size() / 2) return what;
  auto beside = one_is_missing(of, std::move(what.what), what.fix.empty() ? "look into its log" : what.fix, {});
  beside.code = what.code;
  return beside;
}

// The others: those that vote. Their clocks lie around the median.
std::string apart(const roll_call& of, std::size_t node) {
  std::vector<server_time> others;
  for (std::size_t i = 0; i < of.size(); ++i)
    if (of.clocks[i] && !of.is_out[i]) others.push_back(*of.clocks[i]);
  std::sort(others.begin(), others.end());
  if (others.empty()) return "its clock is far from that of the others";
  const auto by = *of.clocks[node] - others[others.size() / 2];
  return fmt::format("its clock is {:.1f} s {} the others'", std::abs(std::chrono::duration<double>{by}.count()),
                     by.count() > 0 ? "ahead of" : "behind");
}

}  // namespace

void diagnose_quorum(client_state& state, diagnosis& result) {
  auto& of = *state.of_quorum();
  const auto there = call_all(state);
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (!there.troubles[i].empty()) {
      result.findings.push_back(one_is_silent(there, of.name(i), there.troubles[i]));
      continue;
    }
    if (there.is_out[i]) {
      result.findings.push_back(one_is_missing(there,
                                               of.name(i) + ": " + apart(there, i) + ", and its vote never counts",
                                               "run chrony or ntpd on all of them", "does not vote"));
    }
    const auto& one = there.alone[i];
    result.server_version = one.server_version;
    result.role = one.role;
    result.eviction_policy = one.eviction_policy;
    result.round_trip_median = std::max(result.round_trip_median, one.round_trip_median);
    result.round_trip_max = std::max(result.round_trip_max, one.round_trip_max);
    result.quarantine = std::max(result.quarantine, one.quarantine);
    for (auto f : one.findings) {
      if (f.level == severity::ok) continue;
      f.what = of.name(i) + ": " + f.what;
      result.findings.push_back(one_is_unfit(there, std::move(f)));
    }
  }
  result.mode = fmt::format("quorum of {}", of.size());
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
