// SPDX-License-Identifier: Apache-2.0
// What all replies of our scripts have in common, and the fields that several of them are made of.
#pragma once

#include "resp/value.hpp"
#include "script/reply.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::script {

// What each value of ours begins with.
constexpr std::string_view our_version = "v1|";

std::optional<server_time> time_of(std::string_view digits);
std::optional<fencing_token> token_of(std::string_view digits);

// The text up to the next `|`, which is taken too; nullopt without one.
std::optional<std::string_view> take_field(std::string_view& rest);

// Of what people wrote, without our percent-escapes.
std::string people_text(std::string_view field);

// Any reply of ours, taken apart: the lone now, or {code, now, ...}.
class answer {
public:
  static std::optional<answer> of(const resp::value& reply);

  server_time now{};
  code what = code::done;

  bool lone() const { return all_ == nullptr; }

  // Whether it is an array with exactly that many fields behind the time.
  bool has(std::size_t fields) const { return all_ && all_->size() == 2 + fields; }

  const resp::value& field(std::size_t i) const { return (*all_)[2 + i]; }

  // A field that is a string, else null.
  const std::string* text(std::size_t i) const { return field(i).as_bulk(); }

  // PTTL's answer: -2, -1 or milliseconds. A century and a half at most, so that no sum overflows in nanoseconds.
  std::optional<std::chrono::milliseconds> ms(std::size_t i) const {
    const auto* number = field(i).as_integer();
    if (!number || *number < -2) return std::nullopt;
    return std::chrono::milliseconds{std::min<std::int64_t>(*number, std::int64_t{1} << 42)};
  }

private:
  const resp::value::array* all_ = nullptr;  // Of the reply that is being parsed.
};

}  // namespace holdfast::script
