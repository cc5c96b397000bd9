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

#include <cstddef>
#include <string>
#include <system_error>

namespace holdfast::cli {
namespace {

// Of several that hold it together, one hold was broken, and the lock is the others' still. Who looks at it now may see
// those who came later, so that "free" is said only where it is so.
std::string what_follows(server& at, const settings& s) {
  std::error_code ec;
  const auto seen = at.locks.inspect(s.name, courtesy, ec);
  const std::size_t ours = s.now ? 0 : 1;
  const bool was_alone = seen && (seen->kind == lock_kind::exclusive || seen->holders.size() <= ours);
  if (s.now && was_alone && !is_free(*seen))
    return "ended now, and it is the next one's; until its holder hears of it, two may believe that they hold it";
  if (s.now)
    return was_alone ? "free now; until its holder hears of it, two may believe that they hold it"
                     : "that hold is ended now; until its holder hears of it, it goes on as if it had it";
  return was_alone ? "it is renewed no more, and free when its ttl is over"
                   : "that hold is renewed no more, and ends with its ttl";
}

}  // namespace

int break_command(const settings& s) {
  const auto seen = fencing_token::parse(*s.token);
  if (!seen || !*seen)
    throw usage_error{fmt::format("--token: '{}' is not a token: a number from 1 to {}, as `show` prints it",
                                  visible_word(*s.token), fencing_token::max_value),
                      fmt::format("holdfast show {}", lock_argument(s))};
  // Recorded under the name that `run` and `hold` give the same person; --why has a place of its own in the record.
  auto who = s;
  who.why.clear();
  who.owner = owner_label(who, "break");
  server at = open_server(who);
  at.locks.break_lock(s.name, *seen, {.why = s.why, .mode = s.now ? break_mode::immediately : break_mode::at_expiry});
  if (s.quiet) return number(exit_code::ok);
  print_done(fmt::format("broke '{}': {}\n", visible_word(s.name), what_follows(at, s)));
  return number(exit_code::ok);
}

}  // namespace holdfast::cli
