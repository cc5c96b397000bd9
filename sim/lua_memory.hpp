// SPDX-License-Identifier: Apache-2.0
// The memory of a Lua state: one region, cut into blocks, with a list of free ones for each size; above `small` these
// are powers of two. Lua says how large what it gives back was, so a block needs no header and its list is found by an
// index.
//
// All that a state is lies in the region, so that a copy of it is a copy of the state: save() while it rests, and
// restore() makes it what it was. That sweeps away what scripts have left behind, without a look at any of it, as Lua's
// collector looks at each object of all scripts: a simulation is a fifth faster.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace holdfast::sim {

class lua_memory {
public:
  lua_memory() : region_{std::make_unique_for_overwrite<std::byte[]>(capacity)} {}
  lua_memory(const lua_memory&) = delete;
  lua_memory& operator=(const lua_memory&) = delete;

  // For any type. `size` is above zero. Null when there is none.
  void* take(std::size_t size) noexcept {
    if (size > capacity) return nullptr;
    block*& first = free_[index_of(size)];
    if (!first) return carve(size_of(index_of(size)));
    block* const taken = first;
    first = taken->next;
    return taken;
  }
  // `size`: as it was taken.
  void give_back(void* what, std::size_t size) noexcept {
    block*& first = free_[index_of(size)];
    first = new (what) block{first};
  }
  // Is what was taken for one size good for the other as it is?
  static bool is_same_block(std::size_t size, std::size_t other) {
    return size > 0 && other > 0 && index_of(size) == index_of(other);
  }

  // While nobody is between two calls of the state.
  void save() {
    saved_.assign(region_.get(), region_.get() + used_);
    saved_free_ = free_;
  }
  void restore() {
    used_ = saved_.size();
    std::memcpy(region_.get(), saved_.data(), used_);
    free_ = saved_free_;
  }
  // Bytes that were cut off since save().
  std::size_t used_since() const { return used_ - saved_.size(); }

private:
  struct block {
    block* next;
  };
  static constexpr std::size_t step = alignof(std::max_align_t);
  static constexpr std::size_t small = 64 * step;
  static constexpr std::size_t steps = small / step;
  static constexpr int largest_power = 26;
  // Of addresses: what is never used takes no memory.
  static constexpr std::size_t capacity = std::size_t{1} << largest_power;
  using lists = std::array<block*, steps + largest_power + 1>;

  static std::size_t index_of(std::size_t size) {
    return size <= small ? (size - 1) / step : steps + static_cast<std::size_t>(std::bit_width(size - 1));
  }
  static std::size_t size_of(std::size_t index) {
    return index < steps ? (index + 1) * step : std::size_t{1} << (index - steps);
  }

  void* carve(std::size_t size) noexcept {
    if (capacity - used_ < size) return nullptr;
    return region_.get() + std::exchange(used_, used_ + size);
  }

  std::unique_ptr<std::byte[]> region_;
  std::size_t used_ = 0;
  lists free_{};
  std::vector<std::byte> saved_{};
  lists saved_free_{};
};

}  // namespace holdfast::sim
