// SPDX-License-Identifier: Apache-2.0
// One question to a server of a lab, on a connection of its own. Blocking and simple: it is asked some hundred times
// while a lab starts, and never on the way of a lock.
#pragma once

#include "base/time.hpp"
#include "resp/value.hpp"

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::local {

// What 127.0.0.1:`port` answers; nullopt if nobody listens, it closes the connection, or it is silent for too long.
std::optional<resp::value> ask(int port, std::span<const std::string_view> words, time_point give_up_at);
inline std::optional<resp::value> ask(int port, std::initializer_list<std::string_view> words, time_point give_up_at) {
  return ask(port, std::span{words.begin(), words.size()}, give_up_at);
}

// The same as text: a bulk string, a status, or an error's words. Empty for all else.
std::string ask_text(int port, std::span<const std::string_view> words, time_point give_up_at);
inline std::string ask_text(int port, std::initializer_list<std::string_view> words, time_point give_up_at) {
  return ask_text(port, std::span{words.begin(), words.size()}, give_up_at);
}

}  // namespace holdfast::local
