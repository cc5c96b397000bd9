// SPDX-License-Identifier: Apache-2.0
#include "script/glob.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace holdfast::script {

namespace {

std::size_t place_of(char c) { return static_cast<unsigned char>(c); }

// What is behind a `[`, which it takes from `rest` with its `]`. As Redis reads it: a `]` ends it even where it comes
// first, one that ends a range does not, and the two ends of a range may be in either order.
std::bitset<256> take_one_of(std::string_view& rest) {
  std::bitset<256> bytes;
  const bool is_negated = rest.starts_with('^');
  if (is_negated) rest.remove_prefix(1);
  while (!rest.empty() && rest.front() != ']') {
    if (rest.size() >= 2 && rest.front() == '\\') {
      bytes.set(place_of(rest[1]));
      rest.remove_prefix(2);
    } else if (rest.size() >= 3 && rest[1] == '-') {
      const auto [first, last] = std::minmax({place_of(rest[0]), place_of(rest[2])});
      for (std::size_t i = first; i <= last; ++i) bytes.set(i);
      rest.remove_prefix(3);
    } else {
      bytes.set(place_of(rest.front()));
      rest.remove_prefix(1);
    }
  }
  if (!rest.empty()) rest.remove_prefix(1);
  return is_negated ? ~bytes : bytes;
}

bool takes(const glob::piece& one, char c) {
  return one.what == glob::piece::kind::byte ? one.byte == c : one.bytes[place_of(c)];
}

}  // namespace

glob::glob(std::string_view text) {
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c == '*') {
      pieces_.push_back({piece::kind::any_run});
    } else if (c == '?') {
      pieces_.push_back({piece::kind::one_of, 0, std::bitset<256>{}.set()});
    } else if (c == '[') {
      pieces_.push_back({piece::kind::one_of, 0, take_one_of(text)});
    } else if (c == '\\' && !text.empty()) {
      pieces_.push_back({piece::kind::byte, text.front()});
      text.remove_prefix(1);
    } else {
      pieces_.push_back({piece::kind::byte, c});
    }
  }
}

bool glob::matches(std::string_view name) const {
  std::size_t at = 0;
  std::size_t piece_at = 0;
  // Behind the last `*` that we passed, and what it has taken so far: only this one needs to take more, since whatever
  // an earlier one could take instead, this one can take too.
  std::size_t behind_run = 0;
  std::size_t run_end = 0;
  while (at < name.size()) {
    if (piece_at < pieces_.size() && pieces_[piece_at].what == piece::kind::any_run) {
      behind_run = ++piece_at;
      run_end = at;
    } else if (piece_at < pieces_.size() && takes(pieces_[piece_at], name[at])) {
      ++piece_at;
      ++at;
    } else if (behind_run > 0) {
      piece_at = behind_run;
      at = ++run_end;
    } else {
      return false;
    }
  }
  return std::all_of(pieces_.begin() + static_cast<std::ptrdiff_t>(piece_at), pieces_.end(),
                     [](const piece& one) { return one.what == piece::kind::any_run; });
}

}  // namespace holdfast::script
