// SPDX-License-Identifier: Apache-2.0
// What all models say alike.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

namespace holdfast::test::history {

// 0 is no token: a lock without them, or a hold that nobody knows of.
inline bool is_above(std::uint64_t token, std::uint64_t last) { return token == 0 || token > last; }

inline void append_number(std::string& key, std::int64_t number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  key.append(bytes, sizeof bytes);
}

}  // namespace holdfast::test::history
