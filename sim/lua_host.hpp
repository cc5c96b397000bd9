// SPDX-License-Identifier: Apache-2.0
// Runs a script's text as Redis runs it: the same Lua 5.1, with KEYS, ARGV, redis.call and redis.pcall bound to a
// function of ours, and with Redis's conversions between Lua and RESP. Its own file because it is the only one that
// sees Lua.
#pragma once

#include "lua_memory.hpp"
#include "model_words.hpp"

#include "resp/value.hpp"

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct lua_State;

namespace holdfast::sim {

class lua_host {
public:
  // Changes a script's text as it is learned: how a simulation plants a bug without touching what we ship.
  using rewriting = std::function<std::string(std::string_view text)>;
  explicit lua_host(rewriting rewrite = {});
  ~lua_host();
  lua_host(const lua_host&) = delete;
  lua_host& operator=(const lua_host&) = delete;

  struct script {
    std::string text;     // As it was given.
    std::string sha1;     // Of that.
    int function;         // Of what it became, compiled; or below zero,
    std::string problem;  // and why there is none.
  };
  // Compiled once. The reference stays.
  const script& learn(std::string_view text);

  struct server {
    // Answers one command of a script; an error is raised by redis.call and returned by redis.pcall.
    std::function<resp::value(words_t words)> call;
    // redis.acl_check_cmd, which raises an error for a command that there is not.
    std::function<std::optional<bool>(const std::string& command)> permits;
  };
  resp::value run(const script& what, words_t keys, words_t args, const server& by);

private:
  friend struct lua_calls;
  struct close_state {
    void operator()(lua_State* lua) const noexcept;
  };

  void save();
  void tidy();
  static void* allocate(void* memory, void* old, std::size_t old_size, std::size_t size) noexcept;

  rewriting rewrite_;
  lua_memory memory_{};
  std::unique_ptr<lua_State, close_state> state_;
  bool is_saved_ = false;       // As it is now, but for what scripts have left behind.
  const server* by_ = nullptr;  // While a script runs.
  std::vector<std::string> words_{};
  std::list<script> known_{};
};

}  // namespace holdfast::sim
