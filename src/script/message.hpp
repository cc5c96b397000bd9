// SPDX-License-Identifier: Apache-2.0
// What src/script/advance.lua says to a waiting process.
//
//   v1|grant|owner id|now_us|until_ms   it is your turn until then: look now
//   v1|look|owner id|now_us|at_us       look at that time, if you are still in line
#pragma once

#include "base/time.hpp"

#include <optional>
#include <string_view>

namespace holdfast::script {

struct message {
  std::string_view owner;  // 32 hex digits; of the text that was parsed.
  server_time said_at;
  duration look_in;  // From said_at on; at most a minute, whatever the message says.
};

// nullopt for anything else: it is not ours, or of a later version.
std::optional<message> parse_message(std::string_view text);

}  // namespace holdfast::script
