// SPDX-License-Identifier: Apache-2.0
#include "client/replica_report.hpp"

#include "net/ask_each.hpp"
#include "net/clock.hpp"
#include "resp/info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

namespace {

using severity = finding::severity;
using findings = std::vector<finding>;

// What it says of itself, as if it were a primary.
findings judge_settings(const engine::replica_view& view, const relied_on_next& by, server_time now) {
  auto out = judge_server("it", view.info, by.what);
  const auto add = [&](std::optional<finding> found) {
    if (found) out.push_back(std::move(*found));
  };
  add(judge_memory(view.info));
  if (by.hold) add(judge_backlog(view.backlog_ttl, *by.hold));
  if (by.what.syncs_all && resp::info_field(view.info, "aof_enabled") == "1") add(judge_fsync(view.appendfsync));
  if (view.clock) add(judge_clock(*view.clock, now));
  return out;
}

// Users are not copied either.
void judge_rights(const engine::replica_view& view, const relied_on_next& by, findings& out) {
  const std::string fix = "give its user the rights that it has on the primary: ACLs are not replicated";
  if (!view.refusal.empty()) out.push_back({severity::warning, "E04", view.refusal, fix});
  std::string lacks;
  for (const auto& name : view.lacks) {
    const auto& known = by.lacks_anyway;
    if (std::find(known.begin(), known.end(), name) == known.end()) lacks += (lacks.empty() ? "" : ", ") + name;
  }
  if (!lacks.empty())
    out.push_back({severity::warning, "E04", "scripts may not run there what they may here: " + lacks, fix});
}

// Whoever does not follow it need not reach it: the server may name an address that is of its own network.
findings judge_silence(const engine::replica_view& view, bool is_followed) {
  if (view.code == errc::no_password || view.code == errc::wrong_password) {
    return {{severity::warning, "E02", "it does not take our login: " + view.failure,
             "user and password are those of all of them: neither is replicated"}};
  }
  const auto what = "it cannot be asked from here: " + view.failure;
  if (!is_followed) return {{severity::ok, "", what, ""}};
  return {{severity::warning, "E01", what,
           "start it; or let it be reached from here, as the primary is, or no lock is granted once it is that one"}};
}

findings judge(const engine::replica_view& view, const relied_on_next& by, server_time now) {
  if (!view.failure.empty()) return judge_silence(view, by.is_followed);
  if (!view.info.empty() && resp::info_field(view.info, "role") != "slave")
    return judge_silence({.failure = "who answers there is no replica"}, by.is_followed);
  auto out = judge_settings(view, by, now);
  judge_rights(view, by, out);
  return out;
}

}  // namespace

findings judge_replica(const seen_replica& one, const relied_on_next& by, server_time now) {
  const auto where = net::text_of(one.where);
  auto out = judge(one.view, by, now);
  for (auto& f : out) {
    f.level = std::min(f.level, severity::warning);
    f.what = fmt::format("replica {}, which may become the primary: {}", where, f.what);
    if (!f.fix.empty()) f.fix = fmt::format("on {}: {}", where, f.fix);
  }
  return out;
}

std::vector<seen_replica> ask_replicas(const node& primary, const std::vector<net::tcp_address>& where,
                                       const std::string& key, duration at_most) {
  net::asked_lines<engine::replica_view_talk> lines;
  for (const auto& one : where) {
    lines.push_back(std::make_unique<net::asked_line<engine::replica_view_talk>>(
        primary.endpoint_at(one), engine::replica_view_talk{primary.login(), key}));
  }
  auto answers = net::ask_each(lines, net::boottime_now() + std::min(at_most, net::answer_patience));
  std::vector<seen_replica> out;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    out.push_back({where[i], std::move(answers[i]).value_or(engine::replica_view{.failure = "it does not answer"})});
  }
  return out;
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
