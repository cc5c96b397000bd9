// SPDX-License-Identifier: Apache-2.0
// holdfast show: everything that is to be seen of one lock.
#include "duration.hpp"
#include "escape.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "message.hpp"
#include "server.hpp"
#include "subcommands.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <numeric>

namespace holdfast::cli {
namespace {

std::string line(const char* label, const std::string& value) { return fmt::format("{:<12}{}\n", label, value); }

// " (to read)", " (2 permits)"; nothing for what wants it all.
template <class One>
std::string what_of(const One& one) {
  if (one.mode == hold_mode::shared) return " (to read)";
  if (one.mode == hold_mode::permits)
    return one.permits == 1 ? " (1 permit)" : fmt::format(" ({} permits)", one.permits);
  return "";
}

std::string shown(const holder_info& holder) {
  return fmt::format("{}{} for {}, token {}, remaining {} of {}{}", visible(holder.owner), what_of(holder),
                     to_text(holder.held_for), holder.token.to_string(), to_text(holder.remaining), to_text(holder.ttl),
                     holder.breaking ? ", then it ends: it was broken" : "");
}

// "10.0.0.2:6379 voted for 'alice', token 1795212800000042, remaining 9.8s".
std::string shown(const node_info& node) {
  std::string said = "voted for nobody";
  if (!node.trouble.empty()) {
    said = "did not answer: " + visible(node.trouble);
  } else if (node.token) {
    said = fmt::format("voted for {}{}, token {}, remaining {}",
                       node.holders > 1 ? fmt::format("{}, the first of them ", node.holders) : "", visible(node.owner),
                       node.token.to_string(), to_text(node.remaining));
  }
  if (node.quarantine.count() > 0) {
    said += fmt::format(", in quarantine for {}: its vote does not count", to_text(node.quarantine));
  }
  return fmt::format("{} {}", visible(node.endpoint), said);
}

// Of a semaphore permits are counted.
bool has_more(const lock_info& info) {
  const auto listed = std::accumulate(info.holders.begin(), info.holders.end(), 0, [&](int sum, const auto& one) {
    return sum + (info.kind == lock_kind::semaphore ? one.permits : 1);
  });
  return listed < info.permits_held;
}

std::string shown(const lock_info& info, const settings& s) {
  std::string out = line("name", visible(info.name));
  out += line("held", info.held ? "yes" : "no");
  if (info.kind == lock_kind::semaphore)
    out += line("permits", fmt::format("{} of {} taken", info.permits_held, info.size));
  if (info.kind == lock_kind::shared) out += line("kind", "shared lock");
  if (info.held && info.foreign) {
    out += line("by", "something that is not holdfast");
    out += line("remaining", info.endless ? "for ever: the key has no expiry" : to_text(info.remaining));
  } else if (info.kind != lock_kind::exclusive) {
    for (const auto& holder : info.holders) out += line("holder", shown(holder));
    if (has_more(info)) out += line("holder", fmt::format("and more: the first {} are listed", info.holders.size()));
  } else if (info.held) {
    out += line("owner", visible(info.owner));
    out += line("token", info.token.to_string());
    out += line("held for", to_text(info.held_for));
    out += line("ttl", to_text(info.ttl));
    out += line("remaining",
                fmt::format("{}{}", to_text(info.remaining), info.breaking ? ", then it ends: it was broken" : ""));
  }
  if (info.last_break)
    out += line("last break", fmt::format("{} ago, token {}, by {}{}", to_text(info.last_break->since),
                                          info.last_break->token.to_string(), visible(info.last_break->by),
                                          info.last_break->why.empty() ? "" : ": " + visible(info.last_break->why)));
  if (info.quarantine.count() > 0)
    out += line("quarantine", fmt::format("nothing is granted for {} more: the server may have forgotten locks; {}",
                                          to_text(info.quarantine), way_out_of_quarantine(s)));
  for (const auto& node : info.nodes) out += line("server", shown(node));
  for (const auto& waiter : info.waiters)
    out += line("waiting", fmt::format("{}{} for {}", visible(waiter.owner), what_of(waiter), to_text(waiter.waiting)));
  if (const auto more = info.waiting - static_cast<std::int64_t>(info.waiters.size()); more > 0)
    out += line("waiting", fmt::format("and {} more: the first {} are listed", more, info.waiters.size()));
  return out;
}

}  // namespace

int show_command(const settings& s) {
  server at = open_server(s);
  const auto info = at.locks.inspect(s.name);
  print(s.json ? json_of(info) : shown(info, s));
  return number(exit_code::ok);
}

}  // namespace holdfast::cli
