// SPDX-License-Identifier: Apache-2.0
// The command line as data: which command takes which option, what was asked for, and every complaint about it.
// One table feeds the parser, the help and the tests.
//
// getopt_long does the reading, in `+` mode and again after NAME, so that options are accepted on both sides of NAME
// but never taken from CMD. It would also accept abbreviated long options; those are refused here, because a new
// option must not change what an old crontab line means.
#pragma once

#include "escape.hpp"

#include <holdfast/names.hpp>

#include <chrono>
#include <csignal>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

enum class command : unsigned {
  run = 1U << 0,
  hold = 1U << 1,
  check = 1U << 2,
  show = 1U << 3,
  ls = 1U << 4,
  break_lock = 1U << 5,
  doctor = 1U << 6,
  local = 1U << 7,
  help = 1U << 8,
  version = 1U << 9,
  wait = 1U << 10,
  lab = 1U << 11,
  init = 1U << 12,
  quorum = 1U << 13,
  resize = 1U << 14,
};

enum class option {
  nonblock,
  wait,
  conflict_exit,
  quiet_busy,
  exclusive,
  shared,
  limit,
  shell_command,
  close_lock,
  no_fork,
  ttl,
  no_renew,
  max_hold,
  at_least,
  min_fence,
  kill_after,
  stop_signal,
  on_lost,
  foreground,
  wait_group,
  keep_password,
  owner,
  why,
  token,
  now,
  json,
  quiet,
  verbose,
  uri,
  prefix,
  plain,
  password_file,
  cacert,
  cert,
  key,
  server_timeout,
  max_ttl,
  trust_synced,
  replicas,
  replicas_timeout,
  directory,
  persistent,
  ready_within,
  with,
  reopen,
  help,
};

struct option_row {
  option id;
  char letter;        // 0: none.
  const char* name;   // nullptr: none.
  const char* value;  // What stands for its value in the help; nullptr: it takes none.
  unsigned commands;  // Which commands take it: bits of `command`.
  const char* text;   // nullptr: another spelling of the row before.
};

std::span<const option_row> option_table();

struct command_row {
  command id;
  const char* name;
  const char* usage;
  const char* text;
};

std::span<const command_row> command_table();

// What --on-lost asks for.
enum class on_lost { stop, kill, warn };

// Which kind of lock, and how much of it. By itself `run` takes an exclusive lock, or the name for writing if it is
// used as a shared lock; -x asks for the latter, -s for reading.
enum class taking_mode { exclusive, writing, reading, permit };

// Everything that was asked for, with the defaults.
struct settings {
  std::string name{};                  // NAME, or GLOB for ls.
  bool is_name_behind_dashes = false;  // `run -- NAME CMD`.
  std::vector<std::string> words{};  // CMD and its arguments; N of `resize`; the words after `local`, `lab`, `quorum`.
  std::optional<std::string> shell_command{};  // -c

  taking_mode mode = taking_mode::exclusive;
  int limit = 0;  // Of taking_mode::permit: how many there are.

  bool try_once = false;
  std::optional<std::chrono::milliseconds> wait{};
  std::optional<int> conflict_exit{};  // Unset: exit_code::busy, or 0 with --quiet-busy.
  bool quiet_busy = false;

  std::chrono::milliseconds ttl = std::chrono::seconds{10};
  bool renews = true;
  std::optional<std::chrono::milliseconds> max_hold{};
  std::optional<std::chrono::milliseconds> at_least{};
  fencing_token min_fence{};
  std::optional<std::chrono::milliseconds> kill_after{};
  int stop_signal = SIGTERM;
  on_lost when_lost = on_lost::stop;
  bool foreground = false;
  bool wait_group = false;
  bool keep_password = false;
  std::string owner{};
  std::string why{};

  std::optional<std::string> token{};
  bool now = false;

  bool json = false;
  bool quiet = false;
  bool verbose = false;
  bool wants_help = false;

  std::optional<std::string> uri{};
  std::string password_in_arguments{};  // Of which option.
  std::optional<std::string> prefix{};
  bool plain = false;
  std::string password_file{};
  std::string cacert{};
  std::string cert{};
  std::string key{};
  std::optional<std::chrono::milliseconds> server_timeout{};
  std::optional<std::chrono::milliseconds> max_ttl{};
  bool trusts_synced = false;  // No quarantine.
  int replicas = 0;            // To have each grant and renewal.
  std::optional<std::chrono::milliseconds> replicas_timeout{};

  std::optional<std::string> with{};  // The URI of the list that comes instead.
  bool reopen = false;

  std::string directory{};
  bool persistent = false;
  std::optional<std::chrono::milliseconds> ready_within{};
};

// The command line is wrong (E17). what() names the value; `fix` may be empty.
struct usage_error : std::runtime_error {
  explicit usage_error(const std::string& text, std::string way_out = {})
      : std::runtime_error{text}, fix{std::move(way_out)} {}
  std::string fix;
};

// A name was given and is empty: for whoever reads the message that is a bad name (errc::invalid_name), and no mistake
// of the command line.
struct empty_name : usage_error {
  empty_name() : usage_error{"the lock's name is empty"} {}
};

// The command that `word` names. Throws usage_error with the nearest one for a word that is none, and with a
// sentence of its own for one that is not there yet.
command parse_command(std::string_view word);

// Does the command have a lock's name, or a pattern of names, for its first word?
bool takes_name(command which);

// The files that were named, for commands that we print; refers to `s`.
server_files files_of(const settings& s);
// The server that was named, and the lock that was asked for, as server_argument and lock_argument (escape.hpp) have
// them.
std::string server_argument(const settings& s);
std::string lock_argument(const settings& s);
// The same behind what it was asked for as (-s, -x, -l N): for commands that take it. As another kind it is refused, or
// the name is one of that kind from then on.
std::string taking_argument(const settings& s);
// The same, with the server of HOLDFAST_URI: for commands that change something. Who copies them from cron's mail has
// another server in that variable, or none.
std::string meant_lock_argument(const settings& s);
// The same of `holdfast init`, which has the --max-ttl, too: it writes down for how long a lease may live.
std::string init_argument(const settings& s);
// Of a quarantine that somebody saw who looked: "if this is its first start: holdfast init --uri ...".
std::string way_out_of_quarantine(const settings& s);

// For complaints about a command line that could not be read: is --json somewhere on it?
bool asks_for_json(command which, int argc, char* const* argv);

// Reads what follows the command's word, which is argv[0] here. Throws usage_error. A password in a --uri argument is
// overwritten in place, because everybody on the machine can read /proc/PID/cmdline.
settings parse_options(command which, int argc, char** argv);

}  // namespace holdfast::cli
