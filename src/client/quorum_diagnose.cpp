// SPDX-License-Identifier: Apache-2.0
// Whether the servers of a quorum can be used. Whether they are of our list, a lock will tell.
#include "client/diagnose.hpp"
#include "client/quorum.hpp"
#include "core/quorum_round.hpp"
#include "engine/quorum_question.hpp"
#include "net/clock.hpp"
#include "script/reply.hpp"

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

// What each of them said, or why it said nothing, and who is too far off to count (core::out_of_step).
struct roll_call {
  std::vector<std::string> troubles{};
  std::vector<std::optional<server_time>> clocks{};
  std::vector<bool> is_out{};
  std::size_t voting = 0;

  std::size_t size() const { return troubles.size(); }
};

roll_call call_all(client_state& state) {
  auto& of = *state.of_quorum();
  const auto what = script::inspect(state.keys_of(state.name_of(probe)));
  const time_point give_up_at = net::boottime_now() + state.options().timeout;
  engine::quorum_question call{of.votes().all(), {what}, 300ms, give_up_at};
  of.votes().run(call);
  roll_call out;
  for (std::size_t i = 0; i < of.size(); ++i) {
    const auto& reply = call.reply(i);
    out.troubles.push_back(reply && reply->as_error() ? reply->as_error()->text : call.trouble(i));
    const auto said = reply ? script::parse_inspect(*reply) : std::nullopt;
    out.clocks.push_back(said ? std::optional{said->now} : std::nullopt);
  }
  out.is_out = core::out_of_step(out.clocks, duration{state.options().max_ttl} / 2);
  for (std::size_t i = 0; i < of.size(); ++i) out.voting += out.troubles[i].empty() && !out.is_out[i] ? 1 : 0;
  return out;
}

// While a majority votes, locks are granted all the same.
finding one_is_missing(const roll_call& of, std::string what, std::string repair, std::string_view fault) {
  const std::size_t majority = of.size() / 2 + 1;
  if (of.voting < majority) {
    return {severity::error, "E10", std::move(what),
            fmt::format("{}: no lock is granted while a majority of the {} {}", repair, of.size(), fault)};
  }
  const std::size_t more = of.voting - majority + 1;
  return {severity::warning, "E10", std::move(what),
          more == 1 ? repair + ": when one more is down, no lock is granted"
                    : fmt::format("{}: when {} more are down, no lock is granted", repair, more)};
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
      result.findings.push_back(one_is_missing(there, of.name(i) + ": " + there.troubles[i], "start it", "is down"));
      continue;
    }
    if (there.is_out[i]) {
      result.findings.push_back(one_is_missing(there,
                                               of.name(i) + ": " + apart(there, i) + ", and its vote never counts",
                                               "run chrony or ntpd on all of them", "does not vote"));
    }
    auto one = diagnose(*of.client_of(i));
    result.server_version = one.server_version;
    result.role = one.role;
    result.eviction_policy = one.eviction_policy;
    result.round_trip_median = std::max(result.round_trip_median, one.round_trip_median);
    result.round_trip_max = std::max(result.round_trip_max, one.round_trip_max);
    result.quarantine = std::max(result.quarantine, one.quarantine);
    for (auto& f : one.findings) {
      if (f.level == severity::ok) continue;
      f.what = of.name(i) + ": " + f.what;
      result.findings.push_back(std::move(f));
    }
  }
  result.mode = fmt::format("quorum of {}", of.size());
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
