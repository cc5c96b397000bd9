// SPDX-License-Identifier: Apache-2.0
#include "bench/figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace bench {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

namespace {

std::vector<double> ratios_of(const figure& what) {
  std::vector<double> ratios = what.ours;
  for (std::size_t i = 0; i < what.theirs.size(); ++i) ratios[i] /= what.theirs[i];
  std::sort(ratios.begin(), ratios.end());
  return ratios;
}

}  // namespace

// The texts are ours and have nothing in them that would have to be escaped.
void tell(const figure& what) {
  const auto ratios = ratios_of(what);
  const double ratio = median(ratios);
  const bool holds = what.goal_is == bound::at_least ? ratio >= what.goal : ratio <= what.goal;
  fmt::print(R"({{"id": "{}", "what": "{}", "unit": "{}", "value": {:.4g}, )", what.id, what.what, what.unit,
             median(what.ours));
  if (what.theirs.empty()) {
    fmt::print(R"("yardstick": null, "yardstick_value": null, )");
  } else {
    fmt::print(R"("yardstick": "{}", "yardstick_value": {:.4g}, )", what.yardstick, median(what.theirs));
  }
  fmt::print(R"("ratio": {:.4g}, "spread": [{:.4g}, {:.4g}], "rounds": {}, "goal": "{} {:g}", "holds": {}}})"
             "\n",
             ratio, ratios.front(), ratios.back(), ratios.size(),
             what.goal_is == bound::at_least ? ">=" : "<=", what.goal, holds);
  std::fflush(stdout);
}

}  // namespace bench
