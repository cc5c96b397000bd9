// SPDX-License-Identifier: Apache-2.0
// What a server answered to a test. Not resp::value: the tests look at the server with other eyes than the library.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace holdfast::test {

struct answer {
  enum class kind { none, nil, integer, text, error, list };  // none: the connection ended.
  kind what = kind::none;
  std::int64_t number = 0;
  std::string text{};
  std::vector<answer> items{};

  bool is_error() const { return what == kind::error; }
  bool is_nil() const { return what == kind::nil; }
  friend bool operator==(const answer& a, const std::string& b) { return a.what == kind::text && a.text == b; }
  friend bool operator==(const answer& a, std::int64_t b) { return a.what == kind::integer && a.number == b; }
};

inline void PrintTo(const answer& a, std::ostream* out) {
  switch (a.what) {
    case answer::kind::none: *out << "(no answer)"; break;
    case answer::kind::nil: *out << "(nil)"; break;
    case answer::kind::integer: *out << a.number; break;
    case answer::kind::text: *out << '"' << a.text << '"'; break;
    case answer::kind::error: *out << "(error) " << a.text; break;
    case answer::kind::list:
      *out << '[';
      for (const auto& item : a.items) {
        PrintTo(item, out);
        *out << ' ';
      }
      *out << ']';
      break;
  }
}

}  // namespace holdfast::test
