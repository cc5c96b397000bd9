// SPDX-License-Identifier: Apache-2.0
// holdfast ls: all locks that are held, one line each. None is no error and prints the head line only.
#include "duration.hpp"
#include "escape.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "message.hpp"
#include "server.hpp"
#include "subcommands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace holdfast::cli {
namespace {

// How much of it is taken. One word, for awk.
std::string mode_of(const lock_info& info) {
  if (info.foreign) return "-";
  if (info.kind == lock_kind::semaphore) return fmt::format("permits:{}/{}", info.permits_held, info.size);
  const bool is_read = !info.holders.empty() && info.holders.front().mode == hold_mode::shared;
  return is_read ? "shared" : "exclusive";
}

// The line of a quorum is not asked, nor is that of a key which is no lock's.
std::string waiting_of(const lock_info& info, bool is_of_quorum) {
  return info.foreign || is_of_quorum ? "-" : std::to_string(info.waiting);
}

}  // namespace

int ls_command(const settings& s) {
  server at = open_server(s);
  const auto locks = at.locks.list(s.name.empty() ? "*" : s.name);
  if (s.json) {
    print(json_of(locks));
    return number(exit_code::ok);
  }
  std::size_t width = 4;
  for (const auto& info : locks) width = std::max(width, std::min<std::size_t>(visible(info.name).size(), 40));
  const bool is_of_quorum = at.locks.endpoint().find("+quorum://") != std::string::npos;
  constexpr auto columns = "{:<{}}  {:<16}  {:>7}  {:>9}  {:<11}  {:>7}  {}\n";
  auto out = fmt::format(columns, "NAME", width, "TOKEN", "HELD", "REMAINING", "MODE", "WAITING", "OWNER");
  for (const auto& info : locks)
    out +=
        fmt::format(columns, visible(info.name), width, info.foreign ? "-" : info.token.to_string(),
                    info.foreign ? "-" : to_text(info.held_for), info.endless ? "-" : to_text(info.remaining),
                    mode_of(info), waiting_of(info, is_of_quorum), info.foreign ? "not holdfast" : visible(info.owner));
  print(out);
  return number(exit_code::ok);
}

}  // namespace holdfast::cli
