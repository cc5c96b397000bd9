// SPDX-License-Identifier: Apache-2.0
// Bytes to values: hiredis's reader behind one .cpp, with limits of our own. A peer can be hostile (wrong port, no
// TLS), so a violation is final: the reader stays failed and the connection must be closed.
#pragma once

#include "resp/value.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::resp {

struct limits {
  std::size_t max_reply_bytes = 8u << 20;  // Unconsumed bytes of one reply; counted before each feed.
  std::size_t max_elements = 65'536;       // Of one array. No allocation is made from a declared count.
};

class reader {
public:
  explicit reader(limits = {});
  ~reader();
  reader(reader&&) noexcept;
  reader& operator=(reader&&) noexcept;

  // Takes bytes as they came, in any split. Nothing is parsed after a failure.
  void feed(std::string_view bytes);

  // The next whole reply; nullopt when more bytes are needed or after a failure.
  std::optional<value> next();

  // Empty while all is well, else one sentence. RESP3 types, pushes and bad lengths are failures.
  const std::string& failure() const;

private:
  struct hidden;
  std::unique_ptr<hidden> hidden_;
};

}  // namespace holdfast::resp
