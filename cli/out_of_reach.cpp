// SPDX-License-Identifier: Apache-2.0
#include "out_of_reach.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holdfast::cli {

std::string out_of_reach(pid_t command) {
  return fmt::format("pid {} cannot be stopped: it runs as another user; put holdfast inside, sudo holdfast run ..",
                     command);
}

std::string out_of_reach(const std::vector<std::string>& processes) {
  return fmt::format("{} cannot be stopped: another user's; put holdfast inside, sudo holdfast run ..",
                     fmt::join(processes, ", "));
}

}  // namespace holdfast::cli
