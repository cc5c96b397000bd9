// SPDX-License-Identifier: Apache-2.0
// Bugs that are planted on purpose, to know that the checkers bite. A canary changes the text of a script as the server
// learns it, or the way the simulator puts a process together; what we ship stays as it is.
#pragma once

#include "script/source.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

// Bugs of the assembly.
enum class canary_switch {
  none,
  validity_from_reply,
  message_is_grant,
  renews_after_release,
  no_quarantine,
  leases_have_no_last_instant,
  hands_on_what_is_not_reserved,
  parts_are_lost_alone,
  waits_half_as_long,
  answers_count_from_when_they_came,
  nobody_is_told_of_a_risk,
  // Of sim/scenarios only.
  ignores_stray_hints,
  believes_any_answer_to_a_clean_up,
  looks_for_a_copy_only_at_the_end,
  release_has_no_deadline,
  cancel_ends_the_connection,
  calls_a_lost_reply_not_applied,
  each_address_is_another_server,
  a_lease_by_hand_renews_itself,
  // Of those of a quorum.
  quarantine_ignores_drift,
  any_clock_counts,
  clock_stands_in_a_pause,
  store_takes_any_token,
  waits_in_a_line_that_is_gone,
  quarantine_is_silence,
  a_vote_that_is_left_is_forgotten,
  opens_without_waiting,
  // Of those of replicas.
  any_primary_counts,
  asks_no_replica,
  // Of those of a cluster.
  any_node_names,
  calls_stay_behind,
};

struct planted_text {
  std::vector<script::id> in;
  std::string_view from;  // Once in each of them.
  std::string_view to;
};

struct canary {
  std::string_view name;
  std::string_view bug;
  std::string_view caught_by;  // The invariant that is broken; several: whichever is first.
  int schedules;               // It must be caught within so many.
  std::string_view faults;     // The kinds that bring it out, if it is to be found soon; empty: any.
  canary_switch what;
  std::vector<planted_text> texts;
  int nodes = 0;     // Of the quorum in which it shows; 0: it shows with one server,
  int replicas = 0;  // that has so many.
  bool is_cluster = false;
};

std::span<const canary> all_canaries();
// Null: there is none of that name.
const canary* find_canary(std::string_view name);
// The script's text with the bug in it. Ends the program if it does not stand there exactly once.
std::string planted(const canary& in, std::string_view text);

}  // namespace holdfast::sim
