// SPDX-License-Identifier: Apache-2.0
// Where our one clock and our one source of randomness are read. net, local, client and cli may; nobody else.
#pragma once

#include "base/random.hpp"
#include "base/time.hpp"

namespace holdfast::net {

// CLOCK_BOOTTIME: runs during suspend, does not step (H2, H6).
time_point boottime_now() noexcept;

// CLOCK_REALTIME, to compare a server's clock with. It steps: no lease is reckoned on it.
server_time wall_clock_now() noexcept;

// getrandom(2): 0.3 us for 16 bytes, and different in a forked child; a user-space generator is neither (H77).
// Aborts if the kernel has none to give, rather than hand out an owner id that can be guessed. Thread-safe.
class kernel_random final : public base::random_source {
public:
  std::array<unsigned char, 16> bytes16() override;
};

// One for all, never destroyed: threads may still want owner ids while the process exits.
kernel_random& system_random();

}  // namespace holdfast::net
