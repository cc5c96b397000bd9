// SPDX-License-Identifier: Apache-2.0
// Starting, ending and hurting labs: what is behind holdfast/lab.hpp, with the ports as an argument for tests.
#pragma once

#include "local/lab_directory.hpp"
#include "local/lab_ports.hpp"
#include "local/lab_record.hpp"

#include <holdfast/lab.hpp>

#include <string>
#include <string_view>

namespace holdfast::local {

lab start(lab_kind kind, const lab_options& options, const port_source& ports);

// Starts a member's redis-server, with the files that lie in its directory, and writes pid and start time into both.
void launch_member(const lab_place& place, const std::string& server, lab_record& lab, lab_member& member);

// For whoever called: the record in public words.
lab shown(const lab_place& place, const lab_record& lab, const std::vector<lab_member>& members);

}  // namespace holdfast::local
