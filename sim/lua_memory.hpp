// SPDX-License-Identifier: Apache-2.0
// The memory of a Lua state: lists of free blocks, one for each size up to `largest`, and nothing else. Lua says how
// large what it gives back was, so a block needs no header and its list is found by an index. std::pmr's pool has the
// same idea, but searches for the pool of a size and for the chunk of what comes back: a tenth of a simulation.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace holdfast::sim {

class lua_memory {
public:
  lua_memory() = default;
  lua_memory(const lua_memory&) = delete;
  lua_memory& operator=(const lua_memory&) = delete;

  // For any type. `size` is above zero; std::bad_alloc when there is none.
  void* take(std::size_t size) {
    if (size > largest) return ::operator new(size);
    block*& first = free_[index_of(size)];
    if (!first) return carve((index_of(size) + 1) * step);
    block* const taken = first;
    first = taken->next;
    return taken;
  }
  // `size`: as it was taken.
  void give_back(void* what, std::size_t size) {
    if (size > largest) return ::operator delete(what);
    block*& first = free_[index_of(size)];
    first = new (what) block{first};
  }
  // Is what was taken for one size good for the other as it is?
  static bool is_same_block(std::size_t size, std::size_t other) {
    return size > 0 && size <= largest && other > 0 && other <= largest && index_of(size) == index_of(other);
  }

private:
  struct block {
    block* next;
  };
  static constexpr std::size_t step = alignof(std::max_align_t);
  static constexpr std::size_t largest = 64 * step;
  static constexpr std::size_t chunk_size = 64 * largest;

  static std::size_t index_of(std::size_t size) { return (size - 1) / step; }

  // A new block; what is left of the chunk before is too small for it, and stays unused.
  void* carve(std::size_t size) {
    if (left_ < size) {
      chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(chunk_size));
      at_ = chunks_.back().get();
      left_ = chunk_size;
    }
    left_ -= size;
    return std::exchange(at_, at_ + size);
  }

  std::array<block*, largest / step> free_{};
  std::vector<std::unique_ptr<std::byte[]>> chunks_{};
  std::byte* at_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace holdfast::sim
