// SPDX-License-Identifier: Apache-2.0
// script, model: no script goes wrong by itself, and nothing is asked that the model does not know: a simulation that
// goes on behind either proves nothing.
#include "checkers/one_script.hpp"

#include <string>
#include <string_view>

namespace holdfast::sim {

namespace {

bool has_words(const resp::value& reply, std::string_view words) {
  const auto* error = reply.as_error();
  return error && error->text.find(words) != std::string::npos;
}

}  // namespace

// What Lua raises names a line, `user_script:12:`. What a server refuses to a script ends with `on @user_script.`
// instead, and may be somebody's doing, who denies it INFO (epoch.lua).
const char* failure_of_command(const resp::value& reply) {
  if (has_words(reply, "the model")) return "model";
  return has_words(reply, "user_script:") ? "script" : nullptr;
}

const char* failure_of_lock_script(const resp::value& reply) {
  if (const char* broken = failure_of_command(reply)) return broken;
  if (!has_words(reply, "user_script")) return nullptr;
  const bool takes_no_writes =
      reply.as_error()->text.starts_with("OOM") || reply.as_error()->text.starts_with("NOREPLICAS");
  return takes_no_writes ? nullptr : "script";
}

}  // namespace holdfast::sim
