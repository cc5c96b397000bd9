// SPDX-License-Identifier: Apache-2.0
// What is said to one sentinel over one connection: who we are and who it is, once, and who the primary is, again and
// again. Bytes in and out; one question at a time.
#pragma once

#include "engine/greeting.hpp"
#include "engine/sentinel_line.hpp"
#include "resp/value.hpp"

#include <holdfast/error.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::engine {

struct sentinel_answer {
  std::string host{};  // Empty: it names nobody.
  std::string port{};
  // Why it names nobody.
  std::string failure{};
  errc code = errc::no_primary;
  bool is_final = false;    // Asking again will not help.
  bool is_unknown = false;  // It is well, and does not know the name.
  std::string identity{};   // Which sentinel it is. Empty: it may not say, or cannot.
};

class sentinel_talk {
public:
  using answer_type = sentinel_answer;
  static bool is_well(const sentinel_answer& of) { return of.failure.empty() || of.is_unknown; }
  static sentinel_answer failed(const connection_failure& why) {
    return {.failure = why.text, .code = why.code, .is_final = why.is_final};
  }

  // `primary`: the name under which the sentinels watch it.
  sentinel_talk(credentials who, std::string primary) : line_{std::move(who)}, primary_{std::move(primary)} {}

  // A new connection stands.
  void begin() { line_.begin(); }
  // Appends the question to `out`. Not while it is_asked().
  void ask(std::string& out);
  bool is_asked() const { return line_.is_asked(); }

  // Takes what has come. An answer ends the question. One that is not is_well() ends the connection too.
  std::optional<sentinel_answer> on_bytes(std::string_view bytes);

private:
  sentinel_answer read(const resp::value& reply) const;

  sentinel_line line_;
  std::string primary_;
};

}  // namespace holdfast::engine
