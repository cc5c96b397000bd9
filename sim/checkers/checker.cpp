// SPDX-License-Identifier: Apache-2.0
#include "checkers/checker.hpp"

#include <algorithm>

namespace holdfast::sim {

instant comes_until(const surroundings& in, const call_record& call) {
  if (call.gives_up_at == end_of_time) return end_of_time;
  return call.gives_up_at - std::max<duration>(std::chrono::milliseconds{5}, 2 * in.slowest_round_trip(call.process));
}

std::vector<std::unique_ptr<checker>> all_checkers(surroundings& in) {
  std::vector<std::unique_ptr<checker>> all;
  for (const auto make :
       {make_exclusion, make_token_order, make_stale_write, make_loss_told, make_lost_for_nothing, make_outcomes,
        make_reasons, make_no_late_renewal, make_line_order, make_idle_lock, make_expiry, make_only_the_owner,
        make_full_memory, make_copies, make_broken, make_hand_overs, make_line_price, make_gone_told, make_by_hand}) {
    all.push_back(make(in));
  }
  return all;
}

}  // namespace holdfast::sim
