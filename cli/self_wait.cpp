// SPDX-License-Identifier: Apache-2.0
#include "self_wait.hpp"

#include "environment.hpp"
#include "escape.hpp"
#include "exit_code.hpp"
#include "message.hpp"
#include "take.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <system_error>
#include <vector>

namespace holdfast::cli {
namespace {

// It may be had though a process above us has it too.
bool is_for_several(const settings& s) { return s.mode == taking_mode::reading || s.mode == taking_mode::permit; }

// Without a token, any holder is.
bool has_holder(const lock_info& seen, const std::vector<std::optional<fencing_token>>& tokens) {
  return seen.held &&
         std::any_of(tokens.begin(), tokens.end(), [&](auto one) { return !one || is_held_under(seen, *one); });
}

}  // namespace

bool is_held_under(const lock_info& seen, fencing_token token) {
  constexpr std::size_t listed = 100;  // What inspect() lists. Of more nobody can tell who is no holder.
  const bool is_one =
      seen.token == token || seen.holders.size() >= listed ||
      std::any_of(seen.holders.begin(), seen.holders.end(), [&](const auto& one) { return one.token == token; });
  return seen.held && is_one;
}

bool is_held_above(const server& at, const settings& s, const lock_info& seen) {
  return has_holder(seen, tokens_above(entry_of(at, s)));
}

bool waits_for_itself(server& at, const settings& s, signal_inbox& inbox) {
  const bool is_bounded = s.try_once || s.wait;
  if (is_for_several(s) && is_bounded) return false;
  const auto tokens = tokens_above(entry_of(at, s));
  if (tokens.empty()) return false;
  if (std::find(tokens.begin(), tokens.end(), std::nullopt) != tokens.end()) return true;
  // What was above us may have ended, and its hold with it. A server that does not answer says so when it is asked for
  // the lock, too. A bound is for all of it, and with one there is no waiting for ever.
  const auto patience = is_bounded ? courtesy : s.server_timeout.value_or(client_options{}.timeout);
  return while_signals_end_us(inbox, [&] {
    std::error_code ec;
    const auto seen = at.locks.inspect(s.name, patience, ec);
    return seen ? has_holder(*seen, tokens) : ec == errc::no_permission;
  });
}

int refuse_self_deadlock(const settings& s) {
  const bool is_shared = is_for_several(s);
  say_error(
      {.code = "E16",
       .text = fmt::format("this command already runs under '{}' and {} wait for itself for ever", visible_word(s.name),
                           is_shared ? "might" : "would"),
       .why = s.mode == taking_mode::reading
                  ? "HOLDFAST_HOLDS lists it; who wants it alone goes before us, and waits for this command to end"
              : s.mode == taking_mode::permit
                  ? "HOLDFAST_HOLDS lists it; those who have the other permits may each wait for one more"
                  : "HOLDFAST_HOLDS, which a holdfast above this one set, lists it",
       .fix = is_shared ? "leave the inner holdfast out, or bound its wait (-n, -w)"
                        : "leave the inner holdfast out, or use another name there"});
  return number(exit_code::usage);
}

}  // namespace holdfast::cli
