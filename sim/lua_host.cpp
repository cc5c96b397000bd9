// SPDX-License-Identifier: Apache-2.0
// Lua reports errors by longjmp, which skips destructors. So every function that Lua calls keeps its C++ objects in an
// inner function that returns normally, and raises only afterwards.
#include "lua_host.hpp"

#include "written_number.hpp"

#include "base/assert.hpp"

#include <openssl/evp.h>
#include <lua.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

namespace holdfast::sim {

namespace {

constexpr int deepest = 16;
// Of bytes. So much fits the processor's cache beside the scripts themselves.
constexpr std::size_t most_left_behind = 512 * 1024;

void push(lua_State* lua, const resp::value& value);

void push_text(lua_State* lua, std::string_view text) { lua_pushlstring(lua, text.data(), text.size()); }

void push_named(lua_State* lua, const char* field, std::string_view text) {
  lua_createtable(lua, 0, 1);
  push_text(lua, text);
  lua_setfield(lua, -2, field);
}

// RESP to Lua, as Redis does it: nil becomes false, a status {ok=...}, an error {err=...}.
void push(lua_State* lua, const resp::value& value) {
  if (const auto* number = value.as_integer()) return lua_pushnumber(lua, static_cast<lua_Number>(*number));
  if (const auto* text = value.as_bulk()) return push_text(lua, *text);
  if (const auto* status = value.as_status()) return push_named(lua, "ok", status->text);
  if (const auto* error = value.as_error()) return push_named(lua, "err", error->text);
  if (const auto* all = value.as_array()) {
    lua_createtable(lua, static_cast<int>(all->size()), 0);
    for (std::size_t i = 0; i < all->size(); ++i) {
      push(lua, (*all)[i]);
      lua_rawseti(lua, -2, static_cast<int>(i) + 1);
    }
    return;
  }
  lua_pushboolean(lua, 0);
}

std::optional<std::string> text_field(lua_State* lua, int table, const char* field) {
  lua_pushstring(lua, field);
  lua_rawget(lua, table);
  std::optional<std::string> text;
  if (lua_type(lua, -1) == LUA_TSTRING) text.emplace(lua_tostring(lua, -1), lua_objlen(lua, -1));
  lua_pop(lua, 1);
  return text;
}

// Lua to RESP: numbers lose their fraction, false is nil, an array ends at its first nil.
resp::value take(lua_State* lua, int index, int depth = 0) {
  switch (lua_type(lua, index)) {
    case LUA_TSTRING: return std::string{lua_tostring(lua, index), lua_objlen(lua, index)};
    case LUA_TNUMBER: return static_cast<std::int64_t>(lua_tonumber(lua, index));
    case LUA_TBOOLEAN: return lua_toboolean(lua, index) ? resp::value{std::int64_t{1}} : resp::value{};
    case LUA_TTABLE: break;
    default: return {};
  }
  if (depth == deepest) return resp::server_error{"ERR reached lua stack limit"};
  const int table = index < 0 ? lua_gettop(lua) + index + 1 : index;
  if (auto text = text_field(lua, table, "err")) return resp::server_error{*std::move(text)};
  if (auto text = text_field(lua, table, "ok")) return resp::status{*std::move(text)};
  resp::value::array all;
  for (int i = 1;; ++i) {
    lua_rawgeti(lua, table, i);
    if (lua_isnil(lua, -1)) {
      lua_pop(lua, 1);
      return all;
    }
    all.push_back(take(lua, -1, depth + 1));
    lua_pop(lua, 1);
  }
}

}  // namespace

// What a script calls. The words of a command are kept from one call to the next, because most of a simulation's time
// goes into making them.
struct lua_calls {
  static lua_host& host_of(lua_State* lua) { return *static_cast<lua_host*>(lua_touserdata(lua, lua_upvalueindex(1))); }

  // Leaves the answer on the stack; true when it is an error.
  static bool call_server(lua_State* lua) {
    auto& host = host_of(lua);
    const auto count = static_cast<std::size_t>(lua_gettop(lua));
    if (host.words_.size() < count) host.words_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      const int at = static_cast<int>(i) + 1;
      if (lua_type(lua, at) == LUA_TNUMBER) {
        write_number(lua_tonumber(lua, at), host.words_[i]);
      } else if (lua_type(lua, at) == LUA_TSTRING) {
        host.words_[i].assign(lua_tostring(lua, at), lua_objlen(lua, at));
      } else {
        push(lua, resp::server_error{"ERR Lua redis lib command arguments must be strings or integers"});
        return true;
      }
    }
    const auto answer = count == 0
                            ? resp::server_error{"ERR Please specify at least one argument for this redis.call() call"}
                            : host.by_->call({host.words_.data(), count});
    push(lua, answer);
    return answer.as_error() != nullptr;
  }

  static int call(lua_State* lua) { return call_server(lua) ? lua_error(lua) : 1; }

  static int pcall(lua_State* lua) {
    call_server(lua);
    return 1;
  }

  static int acl_check_cmd(lua_State* lua) {
    const char* command = lua_tostring(lua, 1);
    const auto permits = command ? host_of(lua).by_->permits(command) : std::nullopt;
    if (!permits) {
      push(lua, resp::server_error{"ERR Invalid command passed to redis.acl_check_cmd()"});
      return lua_error(lua);
    }
    lua_pushboolean(lua, *permits);
    return 1;
  }
};

namespace {

int no_such_global(lua_State* lua) {
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'", lua_tostring(lua, 2));
}

int no_new_global(lua_State* lua) {
  return luaL_error(lua, "Attempt to modify a readonly table script: '%s'", lua_tostring(lua, 2));
}

void bind_list(lua_State* lua, const char* name, words_t words) {
  lua_createtable(lua, static_cast<int>(words.size()), 0);
  for (std::size_t i = 0; i < words.size(); ++i) {
    push_text(lua, words[i]);
    lua_rawseti(lua, -2, static_cast<int>(i) + 1);
  }
  lua_pushstring(lua, name);
  lua_insert(lua, -2);
  lua_rawset(lua, LUA_GLOBALSINDEX);
}

void bind_redis(lua_State* lua, lua_host& host) {
  lua_createtable(lua, 0, 3);
  const auto add = [&](const char* name, lua_CFunction function) {
    lua_pushlightuserdata(lua, &host);
    lua_pushcclosure(lua, function, 1);
    lua_setfield(lua, -2, name);
  };
  add("call", lua_calls::call);
  add("pcall", lua_calls::pcall);
  add("acl_check_cmd", lua_calls::acl_check_cmd);
  lua_setglobal(lua, "redis");
}

// Only the libraries that a script of ours may use; no clock, no files.
void open_libraries(lua_State* lua) {
  const luaL_Reg libraries[] = {{"", luaopen_base},
                                {LUA_TABLIBNAME, luaopen_table},
                                {LUA_STRLIBNAME, luaopen_string},
                                {LUA_MATHLIBNAME, luaopen_math}};
  for (const auto& library : libraries) {
    lua_pushcfunction(lua, library.func);
    lua_pushstring(lua, library.name);
    lua_call(lua, 1, 0);
  }
  for (const char* name : {"dofile", "loadfile", "loadstring", "load", "print", "module", "require"}) {
    lua_pushnil(lua);
    lua_setglobal(lua, name);
  }
}

void guard_globals(lua_State* lua) {
  lua_createtable(lua, 0, 2);
  lua_pushcfunction(lua, no_such_global);
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, no_new_global);
  lua_setfield(lua, -2, "__newindex");
  lua_setmetatable(lua, LUA_GLOBALSINDEX);
}

std::string sha1_of(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    constexpr std::string_view digits = "0123456789abcdef";
    hex += digits[digest[i] >> 4];
    hex += digits[digest[i] & 15];
  }
  return hex;
}

}  // namespace

void lua_host::close_state::operator()(lua_State* lua) const noexcept { lua_close(lua); }

void* lua_host::allocate(void* memory, void* old, std::size_t old_size, std::size_t size) noexcept {
  if (lua_memory::is_same_block(old_size, size)) return old;
  auto& from = *static_cast<lua_memory*>(memory);
  void* made = size > 0 ? from.take(size) : nullptr;
  if (old && made) std::memcpy(made, old, std::min(old_size, size));
  if (old) from.give_back(old, old_size);
  return made;
}

lua_host::lua_host(rewriting rewrite) : rewrite_{std::move(rewrite)}, state_{lua_newstate(allocate, &memory_)} {
  HOLDFAST_ASSERT(state_ != nullptr);
  open_libraries(state_.get());
  bind_redis(state_.get(), *this);
  guard_globals(state_.get());
  save();
}

lua_host::~lua_host() = default;

void lua_host::save() {
  lua_gc(state_.get(), LUA_GCCOLLECT, 0);
  lua_gc(state_.get(), LUA_GCSTOP, 0);
  memory_.save();
  is_saved_ = true;
}

// What scripts have left behind is seen by none that comes after: it may stay until it is much.
void lua_host::tidy() {
  if (memory_.used_since() < most_left_behind) return;
  if (is_saved_) return memory_.restore();
  save();
}

const lua_host::script& lua_host::learn(std::string_view text) {
  for (const auto& s : known_) {
    if (s.text == text) return s;
  }
  lua_State* lua = state_.get();
  auto& made = known_.emplace_back(script{std::string{text}, sha1_of(text), LUA_NOREF, {}});
  const std::string becomes = rewrite_ ? rewrite_(text) : made.text;
  if (luaL_loadbuffer(lua, becomes.data(), becomes.size(), "@user_script") == 0) {
    made.function = luaL_ref(lua, LUA_REGISTRYINDEX);
  } else {
    made.problem = std::string{"ERR Error compiling script (new function): "} + lua_tostring(lua, -1);
  }
  lua_settop(lua, 0);
  is_saved_ = false;
  return made;
}

resp::value lua_host::run(const script& what, words_t keys, words_t args, const server& by) {
  if (what.function < 0) return resp::server_error{what.problem};
  lua_State* lua = state_.get();
  by_ = &by;
  bind_list(lua, "KEYS", keys);
  bind_list(lua, "ARGV", args);
  lua_rawgeti(lua, LUA_REGISTRYINDEX, what.function);
  resp::value answer;
  if (lua_pcall(lua, 0, 1, 0) == 0) {
    answer = take(lua, -1);
  } else {
    // What redis.call raised is a table with the server's text; a fault of the script itself is a string.
    const std::string why = lua_type(lua, -1) == LUA_TTABLE
                                ? text_field(lua, lua_gettop(lua), "err").value_or("ERR unknown error")
                                : std::string{"ERR "} + lua_tostring(lua, -1);
    answer = resp::server_error{why + " script: " + what.sha1 + ", on @user_script."};
  }
  lua_settop(lua, 0);
  tidy();
  return answer;
}

}  // namespace holdfast::sim
