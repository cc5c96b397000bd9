// SPDX-License-Identifier: Apache-2.0
// holdfast break: ends somebody's hold, if it is still the one that was seen. Without --now the holder keeps what is
// left of its ttl, so that it hears of it before anybody else gets the lock.
#include "escape.hpp"
#include "exit_code.hpp"
#include "message.hpp"
#include "server.hpp"
#include "subcommands.hpp"
#include "take.hpp"

#include <fmt/format.h>

namespace holdfast::cli {

int break_command(const settings& s) {
  const auto seen = fencing_token::parse(*s.token);
  if (!seen || !*seen)
    throw usage_error{fmt::format("--token: '{}' is not a token: a number from 1 to {}, as `show` prints it",
                                  visible(*s.token), fencing_token::max_value)};
  // Recorded under the name that `run` and `hold` give the same person; --why has a place of its own in the record.
  auto who = s;
  who.why.clear();
  who.owner = owner_label(who, "break");
  server at = open_server(who);
  at.locks.break_lock(s.name, *seen, {.why = s.why, .mode = s.now ? break_mode::immediately : break_mode::at_expiry});
  if (s.quiet) return number(exit_code::ok);
  if (s.now)
    print(fmt::format("broke '{}': free now; until its holder hears of it, two may believe that they hold it\n",
                      visible(s.name)));
  else
    print(fmt::format("broke '{}': it is renewed no more, and free when its ttl is over\n", visible(s.name)));
  return number(exit_code::ok);
}

}  // namespace holdfast::cli
