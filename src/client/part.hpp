// SPDX-License-Identifier: Apache-2.0
// How much of a lock of a counted kind an acquire takes, for those who wait and for those who do not.
#pragma once

#include "script/command.hpp"

#include <holdfast/error.hpp>
#include <holdfast/info.hpp>
#include <holdfast/options.hpp>

#include <string>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

inline constexpr script::part reading{'r', 1, script::most_permits};
inline constexpr script::part writing{'w', script::most_permits, script::most_permits};

inline bool is_counted(const script::part& taken) { return taken.mode != script::part{}.mode; }

inline lock_kind kind_of(const script::part& taken) {
  if (taken.mode == 'p') return lock_kind::semaphore;
  return is_counted(taken) ? lock_kind::shared : lock_kind::exclusive;
}

// Throws errc::invalid_option when there are not so many.
inline script::part permits_of(const std::string& name, const acquire_options& options, int size) {
  if (options.permits >= 1 && options.permits <= size) return {'p', options.permits, size};
  error_detail detail;
  detail.subject = std::to_string(options.permits) + " permits of '" + name + "'";
  detail.why = "it has " + std::to_string(size);
  throw error{errc::invalid_option, std::move(detail)};
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
