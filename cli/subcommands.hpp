// SPDX-License-Identifier: Apache-2.0
// The commands, one file each. Every one returns the exit status; faults leave as exceptions, and main.cpp words them.
#pragma once

#include "options.hpp"

#include <span>
#include <string>
#include <string_view>

namespace holdfast::cli {

int run_command(const settings& s);
int hold_command(const settings& s);
int check_command(const settings& s);
int wait_command(const settings& s);
int show_command(const settings& s);
int ls_command(const settings& s);
int break_command(const settings& s);
int resize_command(const settings& s);
int doctor_command(const settings& s);
int init_command(const settings& s);
int local_command(const settings& s);
int lab_command(const settings& s);
int quorum_command(const settings& s);
int version_command();

// `holdfast help TOPIC`: a command, a topic, an error code. Empty: the list of them.
int help_command(std::string_view topic);

// `holdfast` alone: six examples.
std::string examples();

}  // namespace holdfast::cli
