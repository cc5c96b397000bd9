// SPDX-License-Identifier: Apache-2.0
// What the locks of the world protect: one number for each, guarded as docs/fencing.md says (raise, then read, then
// write conditionally). It is no Redis and loses nothing.
#pragma once

#include <cstdint>
#include <map>

namespace holdfast::sim {

class guarded_store {
public:
  enum class fence { compares, takes_any_token };  // The second is a canary's.
  explicit guarded_store(fence how = fence::compares) : how_{how} {}

  // From now on only this token and larger ones may write. False: there was a larger one.
  bool raise(int lock, std::uint64_t token) {
    auto& it = items_[lock];
    if (is_stale(it, token)) return false;
    it.fence = token;
    return true;
  }
  std::uint64_t read(int lock) { return items_[lock].number; }

  enum class written { yes, refused, lost_an_update };
  // Adds one to what was read. It is told what was read only to find out that an update was lost.
  written write(int lock, std::uint64_t token, std::uint64_t was_read) {
    auto& it = items_[lock];
    if (is_stale(it, token)) return written::refused;
    const bool is_lost = it.number != was_read;
    it.number = was_read + 1;
    return is_lost ? written::lost_an_update : written::yes;
  }

private:
  struct item {
    std::uint64_t fence = 0;
    std::uint64_t number = 0;
  };
  bool is_stale(const item& it, std::uint64_t token) const { return how_ == fence::compares && token < it.fence; }

  fence how_;
  std::map<int, item> items_;
};

}  // namespace holdfast::sim
