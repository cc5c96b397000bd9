// SPDX-License-Identifier: Apache-2.0
// The fields that our keys, arguments and replies are made of: percent-escapes and numbers of fixed width. One place,
// because what one side writes the other must read back byte for byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::script {

// Each control byte (0x00 to 0x1F, 0x7F), `%` and byte of `also` as %XX with capital hex digits.
std::string escape(std::string_view text, std::string_view also);

// The reverse; nullopt when a `%` is not followed by two hex digits.
std::optional<std::string> unescape(std::string_view text);

// Decimal with leading zeros to 16 digits: equal length makes strings compare as numbers do.
std::string digits16(std::uint64_t number);

// Exactly 16 decimal digits, else nullopt.
std::optional<std::uint64_t> parse_digits16(std::string_view text);

// One to `most` decimal digits, else nullopt. `most` is at most 18.
std::optional<std::uint64_t> parse_digits(std::string_view text, std::size_t most);

}  // namespace holdfast::script
