// SPDX-License-Identifier: Apache-2.0
// Starts redis-server as a daemon that outlives us and holds nothing of ours. Apart from local_server.cpp because
// everything between fork and exec must be async-signal-safe.
#pragma once

#include "local/directory.hpp"

#include <sys/types.h>
#include <holdfast/error.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::local {

// The program in `search_path` (as PATH), else in the usual places that cron's PATH lacks; empty if not installed.
std::string find_program(std::string_view name, std::string_view search_path);

// The path of redis-server. Throws error with errc::local_server if it is not installed.
std::string find_server();

struct user_and_group {
  uid_t user;
  gid_t group;
};

struct daemon_plan {
  std::vector<std::string> words{};        // The path of the program and its arguments.
  std::string log_file{};                  // Where its output is appended.
  bool shared = false;                     // Its files are 0660, else 0600.
  std::string locked_directory{};          // By the daemon while it lives: server_lock.hpp. Empty: none.
  std::string kept_directory{};            // From cleaners while the daemon lives, with others. Empty: none.
  std::optional<user_and_group> run_as{};  // Only root may say one.
};

// The directory is locked: nothing was run.
struct directory_taken {};

// Who was to tell us of the daemon was killed: the program may run, or not. With errc::local_server.
struct may_be_run final : error {
  using error::error;
};

// Returns the daemon's pid once it is running the program, which may still end at once for reasons of its own: they
// are in the log. Throws directory_taken, may_be_run, and error with errc::local_server if it cannot be run.
int launch(const daemon_plan& plan);

// The same for the local server of `where`; `program` is redis-server's path.
int launch(const std::string& program, const place& where);

// How long a log is, 0 if there is none: what the next server says is behind that.
std::size_t length_of(const std::string& log_file);

// The last line of a log, behind its first `before` bytes, that says something; empty if there is none.
std::string last_line(const std::string& log_file, std::size_t before = 0);

}  // namespace holdfast::local
