// SPDX-License-Identifier: Apache-2.0
// Runs a script's text as Redis runs it: the same Lua 5.1, with KEYS, ARGV, redis.call and redis.pcall bound to a
// function of ours, and with Redis's conversions between Lua and RESP. Its own file because it is the only one that
// sees Lua.
#pragma once

#include "resp/value.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

class lua_host {
public:
  // Answers one command of a script; an answer that is an error is raised by redis.call and returned by redis.pcall.
  using server = std::function<resp::value(const std::vector<std::string>& words)>;

  // `sha1` is only for the text of errors, which name the script as Redis does.
  static resp::value run(std::string_view text, std::string_view sha1, const std::vector<std::string>& keys,
                         const std::vector<std::string>& args, const server& call);
};

}  // namespace holdfast::sim
