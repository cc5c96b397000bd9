// SPDX-License-Identifier: Apache-2.0
// What was reached, counted, so that "no violation" says how hard was looked. Plain numbers in one block, so that jobs
// can hand theirs over as bytes.
#pragma once

#include "plan.hpp"

#include "script/reply.hpp"
#include "script/source.hpp"

#include <array>
#include <cstdint>

namespace holdfast::sim {

struct statistics {
  std::uint64_t schedules = 0;
  std::uint64_t events = 0;
  std::uint64_t violations = 0;
  std::uint64_t fingerprint = 0;  // Of all schedules, in no order.
  std::array<std::uint64_t, fault_count> faults{};
  // By script and by the code of its reply; the last is for an error of the server.
  std::array<std::array<std::uint64_t, script::code_count + 1>, script::count> replies{};
  std::array<std::uint64_t, 6> ends{};        // call_end
  std::array<std::uint64_t, 3> releases{};    // release_outcome
  std::array<std::uint64_t, 5> holds{};       // hold_end
  std::array<std::uint64_t, 3> downgrades{};  // downgrade_end
  std::array<std::uint64_t, 3> writes{};      // guarded_store::written
  std::array<std::uint64_t, 3> breaks{};      // Of a lock of a quorum: core::break_count::end.
  std::array<std::uint64_t, 6> attributed{};  // Overlaps, by cause.
  std::array<std::uint64_t, 7> rounds{};      // Of a quorum: quorum_round::result.
  std::array<std::uint64_t, 6> turns{};       // Of its waiters, in the line of one server: call_end.
  std::uint64_t extensions = 0;
  std::uint64_t late_answers = 0;  // To renewals, behind the deadline of a lease at which nobody had looked since.
  std::uint64_t joined = 0;        // Leases that were held with others.
  std::uint64_t commands = 0;
  // How many schedules had so many events: in steps of 10, the last for all above.
  std::array<std::uint64_t, 1000> sizes{};

  void add(const statistics& other) {
    static_assert(sizeof(statistics) % sizeof(std::uint64_t) == 0);
    const auto* from = reinterpret_cast<const std::uint64_t*>(&other);
    auto* to = reinterpret_cast<std::uint64_t*>(this);
    for (std::size_t i = 0; i < sizeof(statistics) / sizeof(std::uint64_t); ++i) to[i] += from[i];
  }
  std::uint64_t median_events() const {
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      seen += sizes[i];
      if (2 * seen >= schedules) return i * 10;
    }
    return 0;
  }
};

}  // namespace holdfast::sim
