// SPDX-License-Identifier: Apache-2.0
// One connection to a server that is asked the same again and again: who we are, once, and then the question. Bytes in
// and out; one question at a time. What sentinel_talk and cluster_talk have in common.
#pragma once

#include "engine/greeting.hpp"
#include "resp/reader.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::engine {

class repeated_question {
public:
  explicit repeated_question(credentials who) : who_{std::move(who)} {}

  // A new connection stands.
  void begin();
  // Appends the question to `out`. Not while it is_asked().
  void ask(std::string& out, std::span<const std::string_view> question);
  bool is_asked() const { return is_asked_; }

  struct answer {
    std::optional<resp::value> reply{};
    std::string nonsense{};  // No reply: why this is no answer at all.
  };
  // Takes what has come. An answer ends the question; a refused login is one.
  std::optional<answer> on_bytes(std::string_view bytes);

private:
  credentials who_;
  bool is_known_ = false;        // We have said who we are,
  bool is_introducing_ = false;  // and have not heard of it yet.
  bool is_asked_ = false;
  resp::reader reader_{};
};

}  // namespace holdfast::engine
