// SPDX-License-Identifier: Apache-2.0
// What the sentinels say of the primary and of each other, and what of it can cost a lock: one finding for each thing,
// with its fix. Views in, findings out, as server_report.hpp.
#pragma once

#include "engine/sentinel_view.hpp"
#include "net/sentinel_watch.hpp"

#include <holdfast/info.hpp>

#include <string>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

struct seen_by_sentinel {
  std::string who;  // host:port, as the URI has it.
  engine::sentinel_view view;
};

// Asks each of them once, all at the same time, for a second at most.
std::vector<seen_by_sentinel> ask_sentinels(const net::sentinel_set& whom);

std::vector<finding> judge_sentinels(const std::string& primary, const std::vector<seen_by_sentinel>& all);

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
