// SPDX-License-Identifier: Apache-2.0
#include "bench/figure.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>

namespace bench {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double heap_bytes() {
  const auto all = mallinfo2();
  return static_cast<double>(all.uordblks + all.hblkhd);
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
  fmt::print(R"({{"id": "{}", "what": "{}", "unit": "{}", "value": {:.4g}, )", what.id, what.what, what.unit,
             median(what.ours));
  if (what.theirs.empty()) {
    fmt::print(R"("yardstick": null, "yardstick_value": null, )");
  } else {
    fmt::print(R"("yardstick": "{}", "yardstick_value": {:.4g}, )", what.yardstick, median(what.theirs));
  }
  fmt::print(R"("ratio": {:.4g}, "spread": [{:.4g}, {:.4g}], "rounds": {}, )", ratio, ratios.front(), ratios.back(),
             ratios.size());
  if (what.goal) {
    const bool is_floor = what.goal_is == bound::at_least;
    const bool holds = is_floor ? ratio >= *what.goal : ratio <= *what.goal;
    fmt::print(R"("goal": "{} {:g}", "holds": {}}})", is_floor ? ">=" : "<=", *what.goal, holds);
  } else {
    fmt::print(R"("goal": null, "holds": null}})");
  }
  std::puts("");
  std::fflush(stdout);
}

void tell(const point& what) {
  const auto [low, high] = std::minmax_element(what.rounds.begin(), what.rounds.end());
  fmt::print(R"({{"curve": "{}", "series": "{}", "x": {:g}, "y": {:.4g}, "low": {:.4g}, "high": {:.4g}}})"
             "\n",
             what.curve, what.series, what.x, median(what.rounds), *low, *high);
  std::fflush(stdout);
}

std::vector<std::pair<double, double>> percentiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::vector<std::pair<double, double>> all;
  for (const double p : {1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 100.0}) {
    const auto at = static_cast<std::size_t>(static_cast<double>(values.size()) * p / 100);
    all.emplace_back(p, values[std::min(at, values.size() - 1)]);
  }
  return all;
}

}  // namespace bench
