// SPDX-License-Identifier: Apache-2.0
// A range of seeds, shared out among processes of this machine. Processes and not threads: a job that dies of an
// assertion is found with its seed, and nothing is shared that could make a seed mean two things.
#pragma once

#include "schedule.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace holdfast::sim {

struct range {
  std::uint64_t first = 1;
  std::uint64_t count = 1;
};

struct jobs_result {
  statistics total{};
  // A seed with a violation, the smallest that a job came to; or, when that is smaller, the seed from which on a job
  // played that ended by itself, which one it was that ended it nobody knows.
  std::optional<std::uint64_t> failed{};
  bool has_crashed = false;  // The second.
  std::uint64_t tried = 0;   // By the job that found it, up to that seed.
};

// `on_progress` hears now and then of what has been done. Ends with the first violation.
jobs_result play_all(const range& seeds, int jobs, const limits& within, const canary* planted,
                     const std::function<void(const statistics&)>& on_progress);

}  // namespace holdfast::sim
