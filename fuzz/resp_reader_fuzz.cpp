// SPDX-License-Identifier: Apache-2.0
// Bytes of a hostile peer. Two claims beside "no crash": any split of the bytes gives the same values, and what we
// read stays within the limits that we set.
#include "resp/reader.hpp"
#include "resp/value.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

using holdfast::resp::reader;
using holdfast::resp::value;

constexpr holdfast::resp::limits small{.max_reply_bytes = 4096, .max_elements = 64};

struct outcome {
  std::vector<value> values;
  bool failed;
};

// Feeds `bytes` in pieces of `step`, taking each value as soon as it is whole.
outcome read_in_steps(std::string_view bytes, std::size_t step) {
  reader input{small};
  outcome all{{}, false};
  while (!bytes.empty()) {
    const auto piece = bytes.substr(0, step);
    bytes.remove_prefix(piece.size());
    input.feed(piece);
    while (auto one = input.next()) all.values.push_back(std::move(*one));
  }
  all.failed = !input.failure().empty();
  return all;
}

void check_limits(const value& v, int depth) {
  if (depth > 10) std::abort();
  const auto* elements = v.as_array();
  if (elements == nullptr) return;
  if (elements->size() > small.max_elements) std::abort();
  for (const auto& element : *elements) check_limits(element, depth + 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  const auto slowly = read_in_steps(bytes, 1);
  for (const auto& one : slowly.values) check_limits(one, 0);
  // What one call takes at once may exceed the limit that the same bytes in pieces keep, so inputs stay below it.
  if (size > small.max_reply_bytes) return 0;
  for (const std::size_t step : {std::size_t{2}, std::size_t{7}, std::size_t{4096}}) {
    const auto other = read_in_steps(bytes, step);
    if (other.values != slowly.values || other.failed != slowly.failed) std::abort();
  }
  return 0;
}
