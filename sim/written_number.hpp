// SPDX-License-Identifier: Apache-2.0
// A number as Redis writes it, whether a script's or a score. Its own file because those two are apart, and schedules
// are full of both: printf needs some 4,000 instructions for one.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

namespace holdfast::sim {

// "%.17g"; a whole number, which is what there is most, without printf.
inline void write_number(double number, std::string& out) {
  constexpr double exact = 9007199254740992.0;  // 2^53
  char digits[64];
  if (number > -exact && number < exact && number == static_cast<double>(static_cast<std::int64_t>(number)) &&
      !(number == 0 && std::signbit(number))) {
    const auto end = std::to_chars(digits, digits + sizeof digits, static_cast<std::int64_t>(number)).ptr;
    out.assign(digits, end);
  } else {
    const int size = std::snprintf(digits, sizeof digits, "%.17g", number);
    out.assign(digits, static_cast<std::size_t>(size));
  }
}

}  // namespace holdfast::sim
