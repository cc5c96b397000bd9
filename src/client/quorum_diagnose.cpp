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

constexpr std::string_view far_away = "E08";

// What each of them said, or why it said nothing, who is too far off to count (core::out_of_step), and what there is to
// be said of each alone.
struct roll_call {
  std::vector<std::string> troubles{};
  std::vector<errc> codes{};  // Of those.
  std::vector<std::optional<server_time>> clocks{};
  std::vector<bool> is_out{};
  std::vector<std::optional<std::string>> other_records{};  // Of what list each says it is, if that is not ours.
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
  // Until a majority votes. Zero: one does, or never will.
  std::chrono::milliseconds quarantine() const {
    std::vector<std::chrono::milliseconds> all;
    for (std::size_t node = 0; node < size(); ++node)
      if (is_fit(node)) all.push_back(alone[node].quarantine);
    const std::size_t majority = size() / 2 + 1;
    if (all.size() < majority) return 0ms;
    std::sort(all.begin(), all.end());
    return all[majority - 1];
  }

private:
  template <class Test>
  std::size_t count(Test is_one) const {
    std::size_t n = 0;
    for (std::size_t node = 0; node < size(); ++node) n += is_one(node) ? 1 : 0;
    return n;
  }
};

// One that cannot be diagnosed does not keep us from the others.
void diagnose_alone(client_state& one, std::size_t node, roll_call& out) {
  try {
    out.alone[node] = diagnose(one);
  } catch (const error& e) {
    out.troubles[node] = e.detail().server_text.empty() ? e.what() : e.detail().server_text;
    out.codes[node] = e.code().category() == error_category() ? errc{e.code().value()} : errc{};
  }
}

roll_call call_all(client_state& state) {
  auto& of = *state.of_quorum();
  const auto what =
      script::inspect_vote(state.keys_of(state.name_of(probe_of(state))), state.options().prefix, of.record());
  const duration most = state.options().timeout;
  // Who is far away is not to be called down: all the time is for the last one, too.
  engine::quorum_question call{of.votes().all(), {what}, most, net::boottime_now() + most};
  of.votes().run(call);
  const auto known = of.votes().states();
  const time_point now = net::boottime_now();
  roll_call out;
  for (std::size_t i = 0; i < of.size(); ++i) {
    const auto& reply = call.reply(i);
    const auto* refusal = reply ? reply->as_error() : nullptr;
    out.troubles.push_back(refusal ? refusal->text : call.trouble(i));
    out.codes.push_back(refusal ? script::classify(refusal->text).code : call.trouble_code(i));
    const auto said = reply ? script::parse_inspect(*reply) : std::nullopt;
    out.other_records.push_back(said ? said->other_record : std::nullopt);
    // All at one instant: they may have said it seconds apart.
    out.clocks.push_back(said ? std::optional{known[i].clock.at(now)} : std::nullopt);
  }
  out.is_out = core::out_of_step(out.clocks, duration{state.options().max_ttl} / 2);
  out.alone.resize(of.size());
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (out.troubles[i].empty()) diagnose_alone(*of.client_of(i), i, out);
  }
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
finding one_is_silent(const roll_call& of, const std::string& name, std::size_t node) {
  const auto& trouble = of.troubles[node];
  auto what = name + ": " + trouble;
  const auto missing = [&](std::string repair, std::string_view fault = "does not vote") {
    return one_is_missing(of, std::move(what), std::move(repair), fault);
  };
  if (of.codes[node] == errc{}) return missing("start it", "is down");
  switch (of.codes[node]) {
    case errc::no_permission: {
      auto out = missing(way_out_of_denial);
      out.code = "E04";
      return out;
    }
    case errc::no_password:
    case errc::wrong_password: return missing("user and password are those of all of them");
    case errc::not_a_primary: return missing("REPLICAOF NO ONE, or another server in its place");
    case errc::server_loading: return missing("wait for it");
    case errc::cannot_resolve:
      return missing("name it as it resolves here; if it has another address now: holdfast quorum replace");
    case errc::cannot_connect:
    case errc::server_silent:
    case errc::connection_lost: return missing("start it", "is down");
    default: return missing("do what it says");
  }
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

// Where so many say that it is not open that no majority can have it open, no lock is ever granted. A round would not
// tell: servers in quarantine may decide it before the others are heard.
void judge_list(const quorum& of, const roll_call& there, diagnosis& result) {
  std::size_t not_open = 0;
  std::string first;
  for (std::size_t i = 0; i < of.size(); ++i) {
    const auto& kept = there.other_records[i];
    if (!kept || !script::is_not_open_yet(*kept, of.record())) continue;
    if (not_open++ == 0) first = of.name(i) + ": " + script::why_it_does_not_count(*kept, of.record());
  }
  if (2 * (of.size() - not_open) > of.size()) return;
  result.findings.push_back({severity::error, "E23", "no lock is granted: the list of servers is not open: " + first,
                             "finish the replacement: holdfast quorum replace"});
}

// A try waits for its votes for a twentieth of the ttl, at least 50 ms and at most 300 (patience_of); for those that
// make a majority.
void judge_distance(const roll_call& of, diagnosis& result) {
  std::vector<std::chrono::microseconds> trips;
  for (std::size_t i = 0; i < of.size(); ++i)
    if (of.is_fit(i)) trips.push_back(of.alone[i].round_trip_max);
  const std::size_t majority = of.size() / 2 + 1;
  if (trips.size() < majority) return;
  std::sort(trips.begin(), trips.end());
  const auto trip = std::chrono::ceil<std::chrono::milliseconds>(trips[majority - 1]);
  if (trip < 50ms) return;
  result.findings.push_back(
      {severity::warning, std::string{far_away},
       fmt::format("round trips take up to {} ms to a majority", trip.count()),
       trip < 300ms ? fmt::format("use a ttl of {} ms or more", trip.count() * 20 + 100)
                    : "servers that are nearer: with 300 ms and more no ttl is long enough (docs/topologies.md)"});
}

}  // namespace

void diagnose_quorum(client_state& state, diagnosis& result) {
  auto& of = *state.of_quorum();
  const auto there = call_all(state);
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (!there.troubles[i].empty()) {
      result.findings.push_back(one_is_silent(there, of.name(i), i));
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
    for (auto f : one.findings) {
      if (f.level == severity::ok || f.code == far_away) continue;  // That is another matter here.
      f.what = of.name(i) + ": " + f.what;
      result.findings.push_back(one_is_unfit(there, std::move(f)));
    }
  }
  judge_list(of, there, result);
  result.quarantine = there.quarantine();
  judge_distance(there, result);
  result.mode = fmt::format("quorum of {}", of.size());
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
