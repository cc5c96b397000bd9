// SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"

#include <iterator>

namespace holdfast::tests {

const std::vector<script_case>& script_cases() {
  static const auto all = [] {
    auto cases = acquire_cases();
    for (auto&& more :
         {renew_release_cases(), inspect_break_cases(), data_cases(), epoch_cases(), quarantine_cases(), line_cases(),
          line_absent_cases(), quorum_cases(), quorum_counted_cases(), semaphore_cases(), shared_cases()}) {
      cases.insert(cases.end(), more.begin(), more.end());
    }
    return cases;
  }();
  return all;
}

}  // namespace holdfast::tests
