// SPDX-License-Identifier: Apache-2.0
// A connection to one sentinel: who we are and which sentinel it is, once, and the question, again and again. And how
// many voices there are behind several such lines: a URI may have one sentinel under two names, as localhost and as
// 127.0.0.1, or as its pod and as its service, and one of three would make a majority then. What names look like does
// not tell it; a sentinel does (SENTINEL MYID, Redis 6.2). One that is older, or whose ACL forbids it, is believed to
// be another than all the rest.
#pragma once

#include "base/assert.hpp"
#include "engine/named_primary.hpp"
#include "engine/repeated_question.hpp"
#include "resp/value.hpp"
#include "resp/writer.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::engine {

class sentinel_line {
public:
  explicit sentinel_line(credentials who) : line_{std::move(who)} {}

  // A new connection stands. Another sentinel may be at its other end than was before.
  void begin() {
    line_.begin();
    next_ = reply::none;
    is_asked_ = false;
    held_.reset();
    identity_.clear();
  }

  // Appends the question to `out`. Not while it is_asked().
  void ask(std::string& out, std::span<const std::string_view> question) {
    HOLDFAST_ASSERT(!is_asked_);
    is_asked_ = true;
    line_.ask(out, question);
    if (next_ != reply::none) return;
    resp::append_request(out, std::array<std::string_view, 2>{"SENTINEL", "MYID"});
    next_ = reply::first_answer;
  }
  bool is_asked() const { return is_asked_; }

  // As repeated_question. An answer that is no error comes when the identity is known, or is known to be refused.
  std::optional<repeated_question::answer> on_bytes(std::string_view bytes) {
    for (auto heard = line_.on_bytes(bytes); heard; heard = line_.on_bytes({})) {
      if (heard->reply && !is_due(heard)) continue;
      is_asked_ = false;
      return heard;
    }
    return std::nullopt;
  }

  // Of the sentinel at the other end of this connection. Empty: it has not said so.
  const std::string& identity() const { return identity_; }

private:
  enum class reply { none, first_answer, identity, answer };

  // Is that the answer to the question? If so, it is in `heard`.
  bool is_due(std::optional<repeated_question::answer>& heard) {
    switch (next_) {
      case reply::first_answer:
        next_ = reply::identity;
        // Behind an error nothing more may come: it may have been for our login, or for the connection.
        if (heard->reply->as_error()) return true;
        held_ = std::move(heard);
        return false;
      case reply::identity:
        next_ = reply::answer;
        if (const auto* id = heard->reply->as_bulk()) identity_ = *id;
        heard = std::exchange(held_, std::nullopt);
        return heard.has_value();
      case reply::none:
      case reply::answer: return true;
    }
    return true;
  }

  repeated_question line_;
  reply next_ = reply::none;
  bool is_asked_ = false;
  std::optional<repeated_question::answer> held_{};  // The first answer, until the identity is there.
  std::string identity_{};
};

// What was heard over one line.
struct sentinel_voice {
  std::string identity{};              // Empty: not known.
  std::optional<std::string> names{};  // The primary.
};

// Which line before the i-th leads to the same sentinel, so that this one counts no more.
inline std::optional<std::size_t> same_sentinel_as(std::span<const sentinel_voice> all, std::size_t i) {
  if (all[i].identity.empty()) return std::nullopt;
  for (std::size_t j = 0; j < i; ++j)
    if (all[j].identity == all[i].identity) return j;
  return std::nullopt;
}

// The primary that more than half name. Half of the lines: a sentinel that is there twice makes it harder, never
// easier. Of one that answers this and that on two lines the first counts: each was true when it was asked.
inline std::optional<std::string> named_by_majority(std::span<const sentinel_voice> all) {
  std::vector<std::optional<std::string>> counted;
  counted.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    counted.push_back(same_sentinel_as(all, i) ? std::nullopt : all[i].names);
  return named_by_majority(std::span<const std::optional<std::string>>{counted});
}

}  // namespace holdfast::engine
