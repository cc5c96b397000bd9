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

namespace holdfast::cli {

int ls_command(const settings& s) {
  server at = open_server(s);
  const auto locks = at.locks.list(s.name.empty() ? "*" : s.name);
  if (s.json) {
    print(json_of(locks));
    return number(exit_code::ok);
  }
  std::size_t width = 4;
  for (const auto& info : locks) width = std::max(width, std::min<std::size_t>(visible(info.name).size(), 40));
  auto out = fmt::format("{:<{}}  {:<16}  {:>7}  {:>9}  {}\n", "NAME", width, "TOKEN", "HELD", "REMAINING", "OWNER");
  for (const auto& info : locks)
    out +=
        fmt::format("{:<{}}  {:<16}  {:>7}  {:>9}  {}\n", visible(info.name), width,
                    info.foreign ? "-" : info.token.to_string(), info.foreign ? "-" : to_text(info.held_for),
                    info.endless ? "-" : to_text(info.remaining), info.foreign ? "not holdfast" : visible(info.owner));
  print(out);
  return number(exit_code::ok);
}

}  // namespace holdfast::cli
