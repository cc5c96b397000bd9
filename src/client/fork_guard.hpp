// SPDX-License-Identifier: Apache-2.0
// Which process are we? A number that a fork changes in the child, read before any lock is taken there: the parent's
// mutexes may be held by threads that the child does not have (P33, H46).
#pragma once

namespace holdfast {
inline namespace v0 {
namespace detail {

// Starts watching at the first call; the same value for the life of a process.
unsigned long process_generation() noexcept;

// For what a std::stop_source may call: a forked child has one, too, and with it the callbacks of its parent's threads.
class made_here {
public:
  explicit operator bool() const noexcept { return generation_ == process_generation(); }

private:
  unsigned long generation_ = process_generation();
};

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
