// SPDX-License-Identifier: Apache-2.0
#include "engine/sentinel_talk.hpp"

#include "base/assert.hpp"
#include "resp/writer.hpp"

#include <array>
#include <vector>

namespace holdfast::engine {

void sentinel_talk::begin() { *this = sentinel_talk{who_, primary_}; }

void sentinel_talk::ask(std::string& out) {
  HOLDFAST_ASSERT(!is_asked_);
  if (!is_known_ && !who_.password.empty()) {
    std::vector<std::string_view> words{"AUTH"};
    if (!who_.user.empty()) words.push_back(who_.user);
    words.push_back(who_.password);
    resp::append_request(out, words);
    is_introducing_ = true;
  }
  is_known_ = is_asked_ = true;
  resp::append_request(out, std::array<std::string_view, 3>{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", primary_});
}

std::optional<sentinel_answer> sentinel_talk::on_bytes(std::string_view bytes) {
  reader_.feed(bytes);
  while (auto reply = reader_.next()) {
    if (is_introducing_) {
      is_introducing_ = false;
      if (!reply->as_error()) continue;
    }
    is_asked_ = false;
    return read(*reply);
  }
  if (reader_.failure().empty()) return std::nullopt;
  is_asked_ = false;
  sentinel_answer nonsense;
  nonsense.failure = reader_.failure();
  return nonsense;
}

sentinel_answer sentinel_talk::read(const resp::value& reply) const {
  sentinel_answer answer;
  if (const auto* error = reply.as_error()) {
    const bool is_no_sentinel = error->text.starts_with("ERR unknown command");
    answer.failure = is_no_sentinel ? "it is no sentinel: " + error->text : error->text;
    return answer;
  }
  if (reply.is_nil()) {
    answer.is_unknown = true;
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
