// SPDX-License-Identifier: Apache-2.0
// The small language of the script cases: what a step sends and what it must get, without a word of C++ around it.
//
// Text may hold placeholders, replaced when the step runs: <name> is what an earlier step saved, <now> the server's
// time in microseconds at the start of the step; +n and -n are added to either and the result is 16 digits again.
#pragma once

#include "resp/value.hpp"
#include "script/source.hpp"

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace holdfast::tests {

// What a reply must look like.
struct shape {
  // denied: by an ACL, in the words of this version; token: any 16 digits; anything: but nil, kept under its name if it
  // has one.
  enum class kind { nil, integer, text, saved_now, status, error, denied, list, token, anything };
  kind what;
  std::int64_t low = 0;  // integer: the bounds.
  std::int64_t high = 0;
  std::string text{};  // text: exactly this; saved_now: its name, or empty; error: how it begins.
  std::vector<shape> parts{};
};

inline shape none() { return {shape::kind::nil}; }
inline shape number(std::int64_t n) { return {shape::kind::integer, n, n}; }
inline shape number(std::int64_t low, std::int64_t high) { return {shape::kind::integer, low, high}; }
inline shape text(std::string t) { return {shape::kind::text, 0, 0, std::move(t)}; }
inline shape status(std::string t) { return {shape::kind::status, 0, 0, std::move(t)}; }
inline shape error(std::string start) { return {shape::kind::error, 0, 0, std::move(start)}; }
inline shape denied() { return {shape::kind::denied}; }
inline shape list(std::vector<shape> parts) { return {shape::kind::list, 0, 0, {}, std::move(parts)}; }

// Any text, kept under `name` for later steps.
inline shape saved(std::string name) { return {shape::kind::anything, 0, 0, std::move(name)}; }

// A time of the server within this step, 16 digits; kept under `name` for later steps.
inline shape now(std::string name = {}) { return {shape::kind::saved_now, 0, 0, std::move(name)}; }

struct step {
  enum class kind {
    command,
    script,
    listen,
    listen_to_all,
    hears,
    until_gone,
    memory_full,
    memory_free,
    deny,
    allow_all
  };
  kind what;
  script::id which{};
  std::vector<std::string>
      words{};  // command: all of it; script: the keys, then the arguments; deny: the command, in capitals.
  std::size_t keys = 0;
  shape expected = none();
};

inline step send(std::vector<std::string> words, shape expected = status("OK")) {
  return {step::kind::command, {}, std::move(words), 0, std::move(expected)};
}
inline step run(script::id which, std::vector<std::string> keys, std::vector<std::string> args, shape expected) {
  const auto count = keys.size();
  keys.insert(keys.end(), args.begin(), args.end());
  return {step::kind::script, which, std::move(keys), count, std::move(expected)};
}
// Waits until the key has expired; with a real server that takes as long as it takes.
inline step until_gone(std::string key) { return {step::kind::until_gone, {}, {std::move(key)}}; }
// Somebody subscribes to the channel; and the next thing that was said there, none() for nothing.
inline step listen(std::string channel) { return {step::kind::listen, {}, {std::move(channel)}}; }
// Somebody subscribes to a pattern.
inline step listen_to_all() { return {step::kind::listen_to_all}; }
inline step hears(shape expected) { return {step::kind::hears, {}, {}, 0, std::move(expected)}; }
inline step memory_full() { return {step::kind::memory_full}; }
inline step memory_free() { return {step::kind::memory_free}; }
inline step deny(std::string command) { return {step::kind::deny, {}, {std::move(command)}}; }
inline step allow_all() { return {step::kind::allow_all}; }

struct script_case {
  const char* name;  // A claim, and the numbers it stands for.
  std::vector<step> steps;
  std::vector<std::string> foreign{};  // Keys of somebody else that have no expiry; all others must have one (C8).
};

// GoogleTest names a failing case by this.
inline void PrintTo(const script_case& c, std::ostream* out) { *out << c.name; }

// The one table.
const std::vector<script_case>& script_cases();

}  // namespace holdfast::tests
