// SPDX-License-Identifier: Apache-2.0
// What one sentinel knows of the primary and of the other sentinels (SENTINEL MASTER), for doctor. As sentinel_talk in
// all but the question.
#pragma once

#include "engine/greeting.hpp"
#include "engine/sentinel_line.hpp"
#include "resp/value.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::engine {

struct sentinel_view {
  std::string host{};  // Of the primary. Empty: it sees none.
  std::string port{};
  std::string failure{};    // Why it sees none.
  errc code{};              // The same, where that is known.
  bool is_unknown = false;  // It is well, and does not know the name.
  bool is_down = false;     // It takes the primary for dead.
  int others = 0;           // Sentinels of the same primary.
  int quorum = 0;           // So many must take the primary for dead.
  std::string identity{};   // Which sentinel it is. Empty: it may not say, or cannot.
};

class sentinel_view_talk {
public:
  using answer_type = sentinel_view;
  static bool is_well(const sentinel_view& of) { return of.failure.empty() || of.is_unknown; }
  static sentinel_view failed(const connection_failure& why) { return {.failure = why.text, .code = why.code}; }

  sentinel_view_talk(credentials who, std::string primary) : line_{std::move(who)}, primary_{std::move(primary)} {}

  void begin() { line_.begin(); }
  void ask(std::string& out);
  bool is_asked() const { return line_.is_asked(); }
  std::optional<sentinel_view> on_bytes(std::string_view bytes);

private:
  sentinel_view read(const resp::value& reply) const;

  sentinel_line line_;
  std::string primary_;
};

}  // namespace holdfast::engine
