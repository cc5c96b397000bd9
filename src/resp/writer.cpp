// SPDX-License-Identifier: Apache-2.0
#include "resp/writer.hpp"

#include <charconv>
#include <cstddef>

namespace holdfast::resp {

namespace {

void append_count(std::string& out, char mark, std::size_t count) {
  char digits[24];
  digits[0] = mark;
  char* end = std::to_chars(digits + 1, digits + sizeof digits - 2, count).ptr;
  *end++ = '\r';
  *end++ = '\n';
  out.append(digits, end);
}

}  // namespace

void append_header(std::string& out, std::size_t words) { append_count(out, '*', words); }

void append_word(std::string& out, std::string_view word) {
  append_count(out, '$', word.size());
  out.append(word);
  out.append("\r\n", 2);
}

void append_request(std::string& out, std::span<const std::string_view> words) {
  append_header(out, words.size());
  for (auto word : words) append_word(out, word);
}

}  // namespace holdfast::resp
