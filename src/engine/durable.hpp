// SPDX-License-Identifier: Apache-2.0
// WAIT, with which a client asks that replicas have what it was told: its bytes, and what an answer to it means. Its
// own file, because the channel only has to know when it is due.
#pragma once

#include "engine/greeting.hpp"
#include "resp/value.hpp"
#include "script/command.hpp"

#include <holdfast/error.hpp>
#include <holdfast/options.hpp>

#include <optional>
#include <string>

namespace holdfast::engine {

// What WAIT said of an answer that was given before it.
struct confirmation {
  enum class word {
    not_needed,  // This connection asks for none.
    not_asked,   // It does, but not for this request: ask again.
    enough,
    few,      // Only so many `replicas` have it.
    refused,  // The server does not say, for the reason `code`.
  };
  word what = word::not_needed;
  int replicas = 0;
  errc code{};
  bool passes = false;  // The refusal, by itself.
  std::string text{};   // The server's words, and the way out.
};

// Does an answer to it count only when replicas have it? A heartbeat may be granted something, seldom: then it is asked
// once more, and WAIT, which stops the connection, does not go out for each of them.
bool wants_wait(const script::command& what);

void append_wait(std::string& out, int replicas, std::chrono::milliseconds timeout);

// The server refuses WAIT.
connection_failure no_wait(const resp::server_error& error);

// Empty: no answer that WAIT gives, or one that ends the connection; `failure` says which.
std::optional<confirmation> parse_wait(const resp::value& reply, int wanted, connection_failure& failure);

}  // namespace holdfast::engine
