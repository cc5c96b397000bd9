// SPDX-License-Identifier: Apache-2.0
// What the command says to people: on stderr, always in the same shape, with a stable code.
//
//   holdfast: error[E01]: cannot reach redis://127.0.0.1:6379: Connection refused (tried 3 times in 1.2s)
//     why: nothing listens there
//     fix: start it, or point elsewhere: export HOLDFAST_URI=redis://HOST:PORT
//     see: holdfast help E01
//
// An error prints all its lines wherever stderr goes: cron's mail is where the way out is needed most. Busy is no
// error and stays one line. Only the word before the colon is coloured, on a terminal and without NO_COLOR.
#pragma once

#include "escape.hpp"
#include "exit_code.hpp"

#include <holdfast/error.hpp>
#include <holdfast/names.hpp>

#include <chrono>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace holdfast::cli {

// One row for each errc: what it is called outside and what the process exits with.
struct fault_row {
  errc cause;
  const char* code;  // "E01"; docs/errors.md has a section for each.
  exit_code exit;
};
std::span<const fault_row> fault_table();

// A fault, ready to be printed or written as JSON. All texts are safe to show.
struct fault {
  std::string code{};      // "E01"
  std::string cause{};     // The errc's name, "cannot_connect"; empty when the fault is the command's own.
  std::string text{};      // What, with the actual value.
  std::string why{};       // May be empty.
  std::string fix{};       // May be empty.
  std::string endpoint{};  // May be empty.
  std::string server_text{};
  exit_code exit = exit_code::defect;
};

// What the server was asked for: what nobody knows when its answer is lost.
enum class intent { take, look, break_lock, declare, resize };

// What the command knows and the error does not. Views must outlive the call.
struct fault_context {
  std::string_view lock{};    // The lock that the call was about; empty: none.
  std::string_view prefix{};  // What its key begins with.
  bool plain = false;         // --plain.
  intent what = intent::take;
  fencing_token min_fence{};      // --min-fence.
  std::string_view uri{};         // As it was typed; shown only where it can hide no password.
  std::string_view uri_option{};  // --uri alone, which no variable can change; empty: not given.
  server_files files{};
  std::optional<std::chrono::milliseconds> max_ttl{};  // --max-ttl; empty: not given.
  bool has_password = true;                            // Whoever was named had one, for the server.
  bool is_under_another = false;                       // Holdfast, which takes passwords out of our environment.
  std::string_view local_word{};  // What `local` or `lab`, which take no --uri, was told: "start"; empty: neither.
  bool names_directory = false;   // Of a local: server, where HOLDFAST_LOCAL_DIR is not read.
};

fault describe(const error& e, const fault_context& context = {});

// The same for what is thrown around the library: bad_alloc, a defect of ours.
fault describe(const std::exception& e);

// The whole text of it, as printed.
std::string to_text(const fault& what, std::string_view severity = "error");

void say_error(const fault& what);
void say_warning(const fault& what);

// "holdfast: TEXT", one line.
void say(std::string_view text);

// As say_error, but drops the message (false) where writing it would wait for the reader. For as long as we have a lock
// or wait for one: a full pipe must not keep us from starting the command, from stopping it, or from a signal.
bool try_say_error(const fault& what);
bool try_say(std::string_view text);

// Writes to stdout, all of it. Throws cannot_print when that fails.
void print(std::string_view text);

struct cannot_print : std::system_error {
  explicit cannot_print(const std::system_error& why) : std::system_error{why} {}
};

// As print, but what would wait for the reader is left in `text`.
void try_print(std::string_view& text);

// As print, of what has been done and must not look as if it had not: where stdout does not take it, stderr has it, and
// the answer is false.
bool print_done(std::string_view text);

bool stderr_is_terminal();

}  // namespace holdfast::cli
