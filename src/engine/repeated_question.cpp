// SPDX-License-Identifier: Apache-2.0
#include "engine/repeated_question.hpp"

#include "base/assert.hpp"
#include "resp/writer.hpp"

#include <vector>

namespace holdfast::engine {

void repeated_question::begin() {
  reader_ = resp::reader{};  // First: without memory nothing has begun, and who we are is not lost on the way.
  is_known_ = is_introducing_ = is_asked_ = false;
}

void repeated_question::ask(std::string& out, std::span<const std::string_view> question) {
  HOLDFAST_ASSERT(!is_asked_);
  if (!is_known_ && who_.is_somebody()) {
    std::vector<std::string_view> words{"AUTH"};
    if (!who_.user.empty()) words.push_back(who_.user);
    words.push_back(who_.password);
    resp::append_request(out, words);
    is_introducing_ = true;
  }
  is_known_ = is_asked_ = true;
  resp::append_request(out, question);
}

std::optional<repeated_question::answer> repeated_question::on_bytes(std::string_view bytes) {
  reader_.feed(bytes);
  while (auto reply = reader_.next()) {
    if (is_introducing_) {
      is_introducing_ = false;
      if (!reply->as_error()) continue;
    }
    is_asked_ = false;
    answer heard;
    heard.reply = std::move(reply);
    return heard;
  }
  if (reader_.failure().empty()) return std::nullopt;
  is_asked_ = false;
  answer heard;
  heard.nonsense = reader_.failure();
  return heard;
}

}  // namespace holdfast::engine
