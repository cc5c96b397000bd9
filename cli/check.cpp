// SPDX-License-Identifier: Apache-2.0
// holdfast check: is it free? Advisory: by the time the answer is read, it may not be.
#include "escape.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "message.hpp"
#include "server.hpp"
#include "subcommands.hpp"
#include "take.hpp"

#include <fmt/format.h>

namespace holdfast::cli {

int check_command(const settings& s) {
  server at = open_server(s);
  const auto info = at.locks.inspect(s.name);
  if (s.json)
    print(json_of(info));
  else if (!s.quiet)
    print(
        fmt::format("'{}' {}\n", visible_word(s.name), info.held || !is_free(info) ? holder_text(info, s) : "is free"));
  return number(is_free(info) ? exit_code::ok : exit_code::busy);
}

}  // namespace holdfast::cli
