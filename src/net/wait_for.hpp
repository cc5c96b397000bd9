// SPDX-License-Identifier: Apache-2.0
// Waits for descriptors until an instant of our clock.
#pragma once

#include "base/time.hpp"

#include <poll.h>

#include <span>

namespace holdfast::net {

// Until something happens to one of `fds`, which says so in its `revents`, or until `until` as far as ppoll(2) can: it
// does not count a suspend, so callers re-read the clock. Interrupted is like woken. Without memory, or with more
// entries than the process may open files, it looks at each alone, once in a millisecond.
void wait_for(std::span<pollfd> fds, time_point until);

}  // namespace holdfast::net
