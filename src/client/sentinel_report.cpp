// SPDX-License-Identifier: Apache-2.0
#include "client/sentinel_report.hpp"

#include "core/quorum_round.hpp"
#include "engine/sentinel_line.hpp"
#include "net/ask_each.hpp"
#include "net/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

namespace {

using severity = finding::severity;
using findings = std::vector<finding>;

// ---- one of them ----

// What helps with one that says nothing of the primary.
std::string fix_of(errc why, const std::string& primary) {
  switch (why) {
    case errc::no_permission:
      return "let the sentinels' user ask, on it: ACL SETUSER USER +sentinel|master (locks work without)";
    case errc::wrong_password:
    case errc::no_password:
      return "HOLDFAST_SENTINEL_USER and HOLDFAST_SENTINEL_PASSWORD, or client_options, must be what it takes";
    case errc::wrong_server:
      return fmt::format("is that a sentinel of '{}'? Its port is 26379, if not another", primary);
    case errc::server_refused: return "do what it says: its protected mode, say, or too many clients";
    case errc::tls_failed: return "the same certificates, and TLS or none, must do for it as for the others";
    default: return "start it: with half of them gone nobody is named the primary, and no lock is granted";
  }
}

void judge_view(const std::string& primary, const seen_by_sentinel& one, const std::optional<std::string>& named,
                findings& out) {
  const auto& view = one.view;
  if (view.is_unknown) {
    out.push_back({severity::warning, "E25", fmt::format("sentinel {} knows no primary '{}'", one.who, primary),
                   fmt::format("SENTINEL MONITOR {} HOST PORT QUORUM on it; or leave it out of the URI", primary)});
    return;
  }
  if (!view.failure.empty()) {
    out.push_back(
        {severity::warning, "E25", fmt::format("sentinel {}: {}", one.who, view.failure), fix_of(view.code, primary)});
    return;
  }
  const auto sees = net::text_of(net::tcp_address{view.host, view.port});
  if (named && sees != *named) {
    out.push_back(
        {severity::warning, "E25", fmt::format("sentinel {} names {}, most name {}", one.who, sees, *named),
         fmt::format("it hears of a failover within seconds; if it stays so, SENTINEL RESET {} on it", primary)});
  } else if (view.is_down) {
    out.push_back({severity::warning, "E25", fmt::format("sentinel {} takes the primary {} for dead", one.who, sees),
                   "can it reach that server? If most of them cannot, another one is promoted"});
  }
}

// ---- all of them ----

// One under two names would be a majority of three, and could name a primary that was replaced long ago.
void judge_identities(const std::vector<seen_by_sentinel>& all, const std::vector<engine::sentinel_voice>& voices,
                      findings& out) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto twin = engine::same_sentinel_as(voices, i);
    if (!twin) continue;
    out.push_back({severity::error, "E25",
                   fmt::format("{} and {} are one sentinel, and have one voice", all[*twin].who, all[i].who),
                   "name each sentinel once in the URI; if they are two, one has the other's configuration file: take "
                   "the line 'sentinel myid' out of it and restart it"});
  }
  std::string unsaid;
  for (const auto& one : all)
    if (one.view.failure.empty() && one.view.identity.empty()) unsaid += (unsaid.empty() ? "" : ", ") + one.who;
  if (unsaid.empty() || all.size() < 2) return;
  out.push_back(
      {severity::warning, "E25",
       fmt::format("these do not say which sentinel they are: {}; one under two names would count twice", unsaid),
       "let the sentinels' user ask: ACL SETUSER USER +sentinel|myid on each of them"});
}

// The URI's majority must be one of all sentinels, or the rest can promote somebody whom nobody here hears of.
// Sentinels count those that died, too, until they are told to forget them.
void judge_number(const std::string& primary, const std::vector<seen_by_sentinel>& all, findings& out) {
  int most = 0;
  int quorum = 0;
  for (const auto& one : all) {
    if (!one.view.failure.empty()) continue;
    most = std::max(most, one.view.others + 1);
    quorum = std::max(quorum, one.view.quorum);
  }
  if (most == 0) return;
  const auto listed = static_cast<int>(all.size());
  if (core::majority_of(listed) < core::majority_of(most)) {
    out.push_back(
        {severity::warning, "E25",
         fmt::format("there are {} sentinels, and the URI names {}: a majority of those is none of all", most, listed),
         "name all of them in the URI; if some are gone for good: SENTINEL RESET " + primary +
             " on each that is left, one after the other, half a minute apart"});
  }
  if (most < 3) {
    out.push_back(
        {severity::warning, "E25",
         fmt::format("{} sentinel{} cannot outvote a dead one: a failover may never come", most, most == 1 ? "" : "s"),
         "run three or more, on machines that fail apart"});
  }
  if (quorum > most) {
    out.push_back({severity::warning, "E25",
                   fmt::format("{} sentinels must take the primary for dead, and there are {}: no failover ever comes",
                               quorum, most),
                   "SENTINEL SET NAME quorum N on each of them"});
  }
}

}  // namespace

findings judge_sentinels(const std::string& primary, const std::vector<seen_by_sentinel>& all) {
  std::vector<engine::sentinel_voice> voices;
  voices.reserve(all.size());
  for (const auto& one : all) {
    voices.push_back({.identity = one.view.identity});
    if (!one.view.host.empty()) voices.back().names = net::text_of(net::tcp_address{one.view.host, one.view.port});
  }
  const auto named = engine::named_by_majority(voices);
  findings out;
  for (const auto& one : all) judge_view(primary, one, named, out);
  judge_identities(all, voices, out);
  judge_number(primary, all, out);
  return out;
}

std::vector<seen_by_sentinel> ask_sentinels(const net::sentinel_set& whom) {
  net::asked_lines<engine::sentinel_view_talk> lines;
  for (const auto& one : whom.sentinels) {
    lines.push_back(std::make_unique<net::asked_line<engine::sentinel_view_talk>>(
        net::endpoint{one, whom.uses_tls, whom.tls}, engine::sentinel_view_talk{whom.who, whom.primary}));
  }
  auto answers = net::ask_each(lines, net::boottime_now() + net::answer_patience);
  std::vector<seen_by_sentinel> out;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    out.push_back({net::text_of(whom.sentinels[i]),
                   std::move(answers[i]).value_or(engine::sentinel_view{.failure = "it does not answer"})});
  }
  return out;
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
