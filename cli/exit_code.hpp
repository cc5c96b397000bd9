// SPDX-License-Identifier: Apache-2.0
// What the command's exit status says. One table, so that the code, `holdfast help exit` and docs/errors.md agree.
//
// The numbers are those of sysexits.h where it has one, as in flock(1); 126, 127 and 128+N are those of env(1),
// timeout(1) and the shell. 79 is ours.
#pragma once

#include <array>

namespace holdfast::cli {

enum class exit_code : int {
  ok = 0,
  usage = 64,          // EX_USAGE
  unavailable = 69,    // EX_UNAVAILABLE
  defect = 70,         // EX_SOFTWARE
  busy = 75,           // EX_TEMPFAIL
  denied = 77,         // EX_NOPERM
  misconfigured = 78,  // EX_CONFIG
  lost = 79,
  not_executable = 126,
  not_found = 127,
};

constexpr int number(exit_code code) noexcept { return static_cast<int>(code); }

struct exit_row {
  const char* status;
  const char* meaning;
};

inline constexpr std::array exit_table{
    exit_row{"0..125", "the command's own status; without a command: 0, it was done"},
    exit_row{"126", "the command was found but could not be run"},
    exit_row{"127", "the command was not found"},
    exit_row{"128+N", "the command was ended by signal N, or we were: while waiting, holding or starting"},
    exit_row{"64", "the command line is wrong, or asks for a lock that it already runs under"},
    exit_row{"69", "the server cannot be reached or cannot serve, does not run, or we do not know what it did"},
    exit_row{"70", "a defect of holdfast, a limit of this machine, or output that could not be written"},
    exit_row{"75",
             "somebody else holds the lock, or did until -w was over (-E changes it), or there was nothing to break"},
    exit_row{"77", "the server refuses the password or the permission"},
    exit_row{"78", "the server or its configuration is not fit for locks"},
    exit_row{"79", "the lock was lost; the command was stopped, if it had not ended, or not started"},
};

}  // namespace holdfast::cli
