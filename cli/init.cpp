// SPDX-License-Identifier: Apache-2.0
// holdfast init: the operator knows that the server has forgotten no lock, so that it grants at once. The explicit act
// behind a server's first start, which looks like a restart that lost everything.
#include "escape.hpp"
#include "exit_code.hpp"
#include "message.hpp"
#include "server.hpp"
#include "subcommands.hpp"

#include <fmt/format.h>

namespace holdfast::cli {

int init_command(const settings& s) {
  server at = open_server(s);
  at.locks.declare_nothing_forgotten();
  const auto under = at.prefix == client_options{}.prefix ? "" : fmt::format(" under '{}'", visible(at.prefix));
  if (!s.quiet)
    print_done(fmt::format("{} is told that it has forgotten no lock{}: it grants at once\n",
                           visible(at.locks.endpoint()), under));
  return number(exit_code::ok);
}

}  // namespace holdfast::cli
