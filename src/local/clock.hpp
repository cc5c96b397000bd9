// SPDX-License-Identifier: Apache-2.0
// The time of this room, which waits for processes and not for an engine.
#pragma once

#include "base/time.hpp"

#include <chrono>

namespace holdfast::local {

time_point boottime_now() noexcept;

void pause_for(std::chrono::nanoseconds time);

}  // namespace holdfast::local
