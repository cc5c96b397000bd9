// SPDX-License-Identifier: Apache-2.0
// A fuzzer's input, read as a series of choices. At its end everything is the first choice, so that any bytes are a
// whole story and shorter ones are simpler.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace holdfast::fuzz {

// What a fuzzer claims. A claim that does not hold ends it, with the input kept.
inline void require(bool fact) {
  if (!fact) std::abort();
}

class input {
public:
  input(const std::uint8_t* data, std::size_t size) : rest_{reinterpret_cast<const char*>(data), size} {}

  bool is_over() const { return rest_.empty(); }
  unsigned byte() {
    if (rest_.empty()) return 0;
    const auto first = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return first;
  }
  std::size_t below(std::size_t count) { return byte() % count; }
  template <class Choices>
  const auto& one_of(const Choices& choices) {
    return choices[below(std::size(choices))];
  }
  std::string_view text(std::size_t size) {
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(taken.size());
    return taken;
  }

private:
  std::string_view rest_;
};

}  // namespace holdfast::fuzz
