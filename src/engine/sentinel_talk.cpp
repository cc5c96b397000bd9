// SPDX-License-Identifier: Apache-2.0
#include "engine/sentinel_talk.hpp"

#include "script/server_error.hpp"

#include <array>

namespace holdfast::engine {

void sentinel_talk::ask(std::string& out) {
  line_.ask(out, std::array<std::string_view, 3>{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", primary_});
}

std::optional<sentinel_answer> sentinel_talk::on_bytes(std::string_view bytes) {
  const auto heard = line_.on_bytes(bytes);
  if (!heard) return std::nullopt;
  auto answer = heard->reply ? read(*heard->reply) : sentinel_answer{.failure = heard->nonsense};
  answer.identity = line_.identity();
  return answer;
}

sentinel_answer sentinel_talk::read(const resp::value& reply) const {
  sentinel_answer answer;
  if (const auto* error = reply.as_error()) {
    const auto what = script::classify(error->text);
    answer.failure = what.code == errc::wrong_server ? "it is no sentinel: " + error->text : error->text;
    answer.code = what.code;
    answer.is_final = script::ends_a_call(what.what);
    return answer;
  }
  if (reply.is_nil()) {
    answer.is_unknown = answer.is_final = true;
    answer.failure = "it knows no primary '" + primary_ + "'";
    return answer;
  }
  const auto* parts = reply.as_array();
  const auto* host = parts && parts->size() == 2 ? (*parts)[0].as_bulk() : nullptr;
  const auto* port = parts && parts->size() == 2 ? (*parts)[1].as_bulk() : nullptr;
  if (!host || !port || host->empty() || port->empty()) {
    answer.failure = "its answer is none that a sentinel gives";
    return answer;
  }
  answer.host = *host;
  answer.port = *port;
  return answer;
}

}  // namespace holdfast::engine
