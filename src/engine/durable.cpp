// SPDX-License-Identifier: Apache-2.0
#include "engine/durable.hpp"

#include "resp/writer.hpp"
#include "script/server_error.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

namespace holdfast::engine {

bool wants_wait(const script::command& what) {
  return script::may_grant(what) || what.script == script::id::renew || what.script == script::id::renew_counted;
}

void append_wait(std::string& out, int replicas, std::chrono::milliseconds timeout) {
  const std::string count = std::to_string(replicas);
  const std::string ms = std::to_string(timeout.count());
  resp::append_request(out, std::array<std::string_view, 3>{"WAIT", count, ms});
}

connection_failure no_wait(const resp::server_error& error) {
  const auto what = script::classify(error.text);
  connection_failure failure{what.code, error.text, script::ends_a_call(what.what), false};
  if (what.code == errc::no_permission) {
    failure.text += " (what replicas have is asked with WAIT: allow +wait, or say durability.replicas = 0)";
  } else if (failure.is_final) {
    failure.text += " (what replicas have is asked with WAIT: a server that has it, or durability.replicas = 0)";
  }
  return failure;
}

std::optional<confirmation> parse_wait(const resp::value& reply, int wanted, connection_failure& failure) {
  if (const auto* error = reply.as_error()) {
    failure = no_wait(*error);
    const auto what = script::classify(error->text).what;
    if (what == script::reaction::reconnect) return std::nullopt;
    return confirmation{confirmation::word::refused, 0, failure.code, what == script::reaction::try_again,
                        std::move(failure.text)};
  }
  const auto* count = reply.as_integer();
  if (!count || *count < 0) {
    failure = {errc::unexpected_reply, "the answer to WAIT is none that Redis gives", false, false};
    return std::nullopt;
  }
  const int have = static_cast<int>(std::min<std::int64_t>(*count, std::numeric_limits<int>::max()));
  const auto what = have >= wanted ? confirmation::word::enough : confirmation::word::few;
  return confirmation{what, have, {}, true, {}};
}

}  // namespace holdfast::engine
