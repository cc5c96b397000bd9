// SPDX-License-Identifier: Apache-2.0
// The thing that a lock protects, guarded by fencing tokens: raise, then read, then write conditionally (C3, R1, H65).
// A small file under flock(2), so that workers of other processes use the same store and no Redis is involved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::test {

class fenced_store {
public:
  explicit fenced_store(std::string path) : path_{std::move(path)} {}

  // From now on nothing below `token` is accepted. False: something larger was raised before.
  bool raise(std::uint64_t token);

  // The value, if `token` is not stale.
  std::optional<std::int64_t> read(std::uint64_t token);

  // True: written. False: stale, refused, nothing changed.
  bool write(std::uint64_t token, std::int64_t value);

  std::int64_t value();
  std::int64_t refused();

private:
  struct content {
    std::uint64_t largest = 0;
    std::int64_t value = 0;
    std::int64_t refused = 0;
  };
  template <class Change>
  bool change(Change how);

  std::string path_;
};

}  // namespace holdfast::test
