// SPDX-License-Identifier: Apache-2.0
// Starting, ending and hurting labs: what is behind holdfast/lab.hpp, with the ports as an argument for tests.
#pragma once

#include "local/clock.hpp"
#include "local/failure.hpp"
#include "local/lab_directory.hpp"
#include "local/lab_ports.hpp"
#include "local/lab_record.hpp"

#include <holdfast/lab.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::local {

lab start(lab_kind kind, const lab_options& options, const port_source& ports);

// Starts a member's redis-server, with the files that lie in its directory, and writes pid and start time into both.
void launch_member(const lab_place& place, const std::string& server, lab_record& lab, lab_member& member);

// What `attempt` gives, an optional, as soon as that is something: others have the lock of a node's directory for a
// moment, a cleaner, or a former server that is just ending.
template <class Attempt>
auto when_free(const std::string& home, Attempt attempt) {
  const auto give_up_at = boottime_now() + std::chrono::seconds{2};
  for (;;) {
    if (auto got = attempt()) return std::move(*got);
    if (boottime_now() >= give_up_at)
      fail(home,
           "A server of it runs that the lab's record does not have, or another program has locked it: kill_lab_node "
           "ends the one, `holdfast lab stop` all of the lab.");
    pause_for(std::chrono::milliseconds{2});
  }
}

// For whoever called: the record in public words.
lab shown(const lab_place& place, const lab_record& lab, const std::vector<lab_member>& members);

}  // namespace holdfast::local
