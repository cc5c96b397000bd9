// SPDX-License-Identifier: Apache-2.0
// Who we are, for the people who ask who holds a lock. A file of its own, because whoever knows the user's name may be
// another machine, which nobody must wait for.
#pragma once

#include "base/time.hpp"

#include <functional>
#include <string>

namespace holdfast {
inline namespace v0 {
namespace detail {

// user@host:pid program. Never the arguments: they hold secrets. The user is a number where the name service does not
// say its name within 100 ms.
std::string default_owner_label();

// What `ask` says, on a thread of its own; `instead` when that takes longer, and when there is no thread to be had.
std::string asked_within(duration at_most, std::function<std::string()> ask, const std::string& instead);

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
