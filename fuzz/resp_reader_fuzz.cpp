// SPDX-License-Identifier: Apache-2.0
// Bytes of a hostile peer. Two claims beside "no crash": the same bytes in any split give the same values and the same
// verdict, and what we read stays within the limits that we set.
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

// So small that short inputs reach them: long ones cost executions and find nothing more.
constexpr holdfast::resp::limits small{.max_reply_bytes = 96, .max_elements = 12};

struct outcome {
  std::vector<value> values;
  bool has_failed;
};

// How large the next piece is. Drawn from the bytes themselves, so that an input means the same each time, and another
// one is split elsewhere. One in four goes byte by byte.
class splitter {
public:
  explicit splitter(std::string_view bytes) {
    for (const char c : bytes) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    largest_ = 1 + (state_ >> 60U) / 4 * 5;
  }
  std::size_t next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return 1 + (state_ >> 33U) % largest_;
  }

private:
  std::uint64_t state_ = 0xcbf29ce484222325U;
  std::uint64_t largest_ = 1;
};

// Takes each value as soon as it is whole.
template <class Split>
outcome read_in_pieces(std::string_view bytes, Split&& size_of_piece) {
  reader input{small};
  outcome all{{}, false};
  const auto size = bytes.size();
  while (!bytes.empty()) {
    const auto piece = bytes.substr(0, size_of_piece());
    bytes.remove_prefix(piece.size());
    input.feed(piece);
    while (auto one = input.next()) all.values.push_back(std::move(*one));
  }
  all.has_failed = !input.failure().empty();
  // Not even half a reply is kept beyond the limit.
  if (all.values.empty() && size > small.max_reply_bytes && !all.has_failed) std::abort();
  return all;
}

void check_limits(const value& v, int depth) {
  if (depth > 10) std::abort();
  if (const auto* text = v.as_bulk(); text && text->size() > small.max_reply_bytes) std::abort();
  const auto* elements = v.as_array();
  if (elements == nullptr) return;
  if (elements->size() > small.max_elements) std::abort();
  for (const auto& element : *elements) check_limits(element, depth + 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  const auto at_once = read_in_pieces(bytes, [&] { return bytes.size(); });
  for (const auto& one : at_once.values) check_limits(one, 0);
  splitter pieces{bytes};
  const auto split = read_in_pieces(bytes, [&] { return pieces.next(); });
  if (split.values != at_once.values || split.has_failed != at_once.has_failed) std::abort();
  return 0;
}
