// SPDX-License-Identifier: Apache-2.0
// Which names a glob matches, by the rules of Redis's SCAN. Not left to the server, which sees names as their keys have
// them: there a `?` is one byte of `%7B`, and `[{]` would be any byte of it.
#pragma once

#include <bitset>
#include <string_view>
#include <vector>

namespace holdfast::script {

class glob {
public:
  struct piece {
    enum class kind { byte, one_of, any_run };
    kind what;
    char byte = 0;             // Of kind::byte.
    std::bitset<256> bytes{};  // Of kind::one_of: all of them for `?`.
  };

  // `*`, `?`, `[abc]`, `[a-z]`, `[^a]`, and `\` before what stands for itself. Every text is a glob: a `[` without its
  // end goes on to the end of the text.
  explicit glob(std::string_view text);

  // In time of the product of both lengths.
  bool matches(std::string_view name) const;

  const std::vector<piece>& pieces() const { return pieces_; }

private:
  std::vector<piece> pieces_;
};

}  // namespace holdfast::script
