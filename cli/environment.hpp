// SPDX-License-Identifier: Apache-2.0
// The environment: what the command that we run gets to know, what it must not, and which locks our ancestors hold.
//
// Every variable of ours is overwritten, so that an inherited token is never taken for the new one. Passwords are
// taken out (--keep-password leaves them): REDISCLI_AUTH goes, a HOLDFAST_URI keeps all but user and password.
#pragma once

#include <holdfast/lease.hpp>
#include <holdfast/names.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// One lock as HOLDFAST_HOLDS lists it, but for the token at its end: server, prefix, naming and name, so that the same
// name elsewhere is another.
std::string hold_entry(std::string_view endpoint, std::string_view prefix, naming how, std::string_view name);

// How many locks processes above us have taken for the command that we are.
std::size_t locks_above();

// Under which tokens processes above us got that lock. An environment is inherited by what outlives them: only as long
// as one of these is a holder's, acquiring it would wait for ourselves. nullopt: an older holdfast, which wrote none.
std::vector<std::optional<fencing_token>> tokens_above(std::string_view entry);

struct held_lock {
  std::string_view name;
  fencing_token token;
  std::string_view owner;
  std::chrono::milliseconds ttl;
  std::string_view entry;               // hold_entry's.
  std::string_view mode = "exclusive";  // Or shared, or permit.
};

// The environment for the command, as "NAME=value".
std::vector<std::string> environment_under(const held_lock& lock, bool keep_password);

// Who runs us, for people: LOGNAME, else USER, as cron and sudo set them; else as /etc/passwd calls our user, in a
// container or a unit; else uidN. No name service is asked: it may be another machine, which nobody must wait for.
std::string user_name();

// A variable's value; empty when unset.
std::string_view variable(const char* name);

// The same, for those where set and empty is a mistake: nullopt when unset.
std::optional<std::string_view> variable_if_set(const char* name);

}  // namespace holdfast::cli
