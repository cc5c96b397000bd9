// SPDX-License-Identifier: Apache-2.0
#include "canary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace holdfast::sim {

namespace {

using script::id;

const std::vector<id> with_line{id::wait, id::look, id::release, id::leave};

const std::vector<canary>& canaries() {
  static const std::vector<canary> all{
      {"release_compares_nothing",
       "release deletes whatever it finds",
       "C9",
       2000,
       "",
       canary_switch::none,
       {{{id::release},
         "if not holder or sub(holder, 1, 53) ~= 'v1|' .. owner .. '|' .. token .. '|' then",
         "if not holder then"}}},
      {"renew_creates",
       "a renewal of a lock that is gone makes it anew",
       "C9",
       5000,
       "",
       canary_switch::none,
       {{{id::renew},
         "return {5, now, 'gone'}",
         "call('SET', KEYS[1], 'v1|' .. owner .. '|' .. token .. '|' .. ttl .. '|' .. now .. '|', 'PX', ttl) return "
         "now"}}},
      {"no_not_after",
       "a request takes effect however late it comes",
       "C5",
       5000,
       "",
       canary_switch::none,
       {{{id::acquire, id::wait, id::wait_counted}, "if now > not_after then", "if false then"}}},
      {"no_fence_floor",
       "a token is the clock's, whatever was granted before",
       "C2",
       5000,
       "",
       canary_switch::none,
       {{{id::acquire}, "if last > now then", "if false then"},
        {with_line, "if #before == 16 and before >= stamp and", "if false and"}}},
      {"equal_stamps",
       "`>` where it must be `>=`: two grants of one microsecond have one token",
       "C2",
       5000,
       "",
       canary_switch::none,
       {{{id::acquire}, "if last > now then", "if sub(last, 1, 16) > now then"},
        {with_line, "before >= stamp and", "before > stamp and"}}},
      {"dead_waiter_blocks",
       "who does not listen is granted, and who is silent stays in line",
       "C7",
       5000,
       "",
       canary_switch::none,
       {{with_line, "return listening.err or tonumber(listening[2]) ~= 0", "return true"},
        {with_line, "if silence > dead_us then", "if not entry then"},
        {with_line, "entry.id ~= me and silence > silent_us then", "false then"}}},
      {"ticket_is_lost",
       "who comes back into the line comes last",
       "C7",
       5000,
       "",
       canary_switch::none,
       {{{id::wait}, "if ticket == '0' or ticket > stamp then", "if true then"}}},
      {"memory_stops_release",
       "release writes before it deletes",
       "H29",
       5000,
       "",
       canary_switch::none,
       {{{id::release},
         "call('DEL', KEYS[1])\nif fence and",
         "call('SET', KEYS[2], fence or now, 'PX', 604800000) call('DEL', KEYS[1])\nif fence and"}}},
      {"no_expiry",
       "acquire sets the holder without an expiry",
       "C8",
       2000,
       "",
       canary_switch::none,
       {{{id::acquire}, "'NX', 'PX', ttl) then", "'NX') then"}}},
      {"validity_from_reply",
       "a lease counts from the reply instead of the request",
       "C1",
       10000,
       "",
       canary_switch::validity_from_reply,
       {}},
      {"message_is_grant",
       "a message is believed without asking the server",
       "C5",
       5000,
       "",
       canary_switch::message_is_grant,
       {}},
      {"renews_after_release",
       "the keeper goes on after release() returned",
       "C6",
       2000,
       "",
       canary_switch::renews_after_release,
       {}},
      {"longest_hold_is_ignored",
       "a renewal moves any deadline",
       "C4",
       2000,
       "",
       canary_switch::leases_have_no_last_instant,
       {}},
      {"permits_are_not_counted",
       "a semaphore lets everybody in",
       "C1",
       2000,
       "",
       canary_switch::none,
       {{{id::wait_counted, id::look_counted}, "return used + entry.permits <= size", "return true"},
        {{id::wait_counted, id::look_counted}, "return used < size", "return true"}}},
      {"a_size_is_exceeded",
       "a semaphore that is made larger lets one more in than there is room for",
       "C1",
       10000,
       "resizes",
       canary_switch::none,
       {{{id::resize}, "kind, size = wanted, tonumber(new_size)", "kind, size = wanted, tonumber(new_size) + 1"}}},
      {"downgrade_changes_nothing",
       "a downgrade says that it is done, and the writer stays one",
       "C5",
       2000,
       "",
       canary_switch::none,
       {{{id::downgrade}, "\nread_only(owner)\n", "\n"}}},
      {"claim_keeps_the_window",
       "a claim does not lengthen the window to the ttl",
       "C1",
       5000,
       "",
       canary_switch::none,
       {{{id::look}, "call('PEXPIRE', KEYS[1], its_ttl)\n", ""}}},
      {"no_quarantine",
       "nobody asks whether the server has forgotten locks",
       "C1",
       5000,
       "",
       canary_switch::no_quarantine,
       {}},
      {"quorum_without_quarantine",
       "nobody asks whether a node has forgotten its vote",
       "C1",
       3000,
       "data_losses",
       canary_switch::no_quarantine,
       {},
       3},
      {"a_vote_for_everybody",
       "a node votes for whoever asks",
       "C1",
       500,
       "",
       canary_switch::none,
       {{{id::vote}, "\nif value then\n", "\nif false then\n"}},
       3},
      {"any_proposal",
       "a node takes a token that is behind its clock, or not above its last one",
       "C2",
       3000,
       "data_losses",
       canary_switch::none,
       {{{id::vote}, "if proposal > stamp then", "if true then"}},
       5},
      {"no_second_phase",
       "a node says that it has raised its token, and has not",
       "C2",
       3000,
       "blocked_routes,stalls,cuts",
       canary_switch::none,
       {{{id::raise}, "if not last or sub(last, 1, 16) < token then", "if false then"}},
       5},
      {"waits_in_a_line_that_is_gone",
       "whoever waits in the line of a server that is gone waits for it to come back",
       "liveness",
       5000,
       "",
       canary_switch::waits_in_a_line_that_is_gone,
       {},
       3},
      {"permits_for_everybody",
       "a node votes for more permits than there are, and for a reader beside a writer",
       "C1",
       1000,
       "",
       canary_switch::none,
       {{{id::vote_counted}, "if not has_room(entry) or wanted and standing == '-' then", "if false then"}},
       5},
      {"any_proposal_for_permits",
       "a writer's token need not be above those of the readers before it",
       "C2",
       5000,
       "data_losses",
       canary_switch::none,
       {{{id::vote_counted}, "local stamp = next_token(last)", "local stamp = proposal"}},
       5},
  };
  return all;
}

bool is_in(const planted_text& what, std::string_view text) {
  return std::any_of(what.in.begin(), what.in.end(), [&](id which) { return script::find(which).text == text; });
}

}  // namespace

std::span<const canary> all_canaries() { return canaries(); }

const canary* find_canary(std::string_view name) {
  const auto found =
      std::find_if(canaries().begin(), canaries().end(), [&](const canary& c) { return c.name == name; });
  return found == canaries().end() ? nullptr : &*found;
}

std::string planted(const canary& in, std::string_view text) {
  std::string becomes{text};
  for (const auto& what : in.texts) {
    if (!is_in(what, text)) continue;
    const auto at = becomes.find(what.from);
    if (at == std::string::npos || becomes.find(what.from, at + 1) != std::string::npos) {
      fmt::print(stderr, "canary {}: `{}` does not stand exactly once in a script any more\n", in.name, what.from);
      std::exit(2);
    }
    becomes.replace(at, what.from.size(), what.to);
  }
  return becomes;
}

}  // namespace holdfast::sim
