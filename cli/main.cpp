// SPDX-License-Identifier: Apache-2.0
// The holdfast command: from the first word to a subcommand, and from every exception to a message and a status.
#include "early_option.hpp"
#include "environment.hpp"
#include "escape.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "message.hpp"
#include "option_ranges.hpp"
#include "options.hpp"
#include "subcommands.hpp"
#include "uri.hpp"

#include <holdfast/error.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <string_view>
#include <system_error>

namespace holdfast::cli {
namespace {

// A closed stdin, stdout or stderr would lend its number to a socket of ours, and a message would go to the server.
// Opened the other way round, so that using it fails as on a closed one: what could not be printed is an error. Closed
// again by exec, so that the command finds what our parent gave it.
void keep_standard_descriptors_taken() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

const char* word_of(command which) {
  for (const auto& row : command_table())
    if (row.id == which) return row.name;
  return "";
}

int dispatch(command which, const settings& s) {
  switch (which) {
    case command::run: return run_command(s);
    case command::hold: return hold_command(s);
    case command::check: return check_command(s);
    case command::wait: return wait_command(s);
    case command::show: return show_command(s);
    case command::ls: return ls_command(s);
    case command::break_lock: return break_command(s);
    case command::resize: return resize_command(s);
    case command::doctor: return doctor_command(s);
    case command::init: return init_command(s);
    case command::local: return local_command(s);
    case command::lab: return lab_command(s);
    case command::quorum: return quorum_command(s);
    case command::help:
    case command::version: break;
  }
  return version_command();
}

intent intent_of(command which) {
  switch (which) {
    case command::run:
    case command::hold: return intent::take;
    case command::break_lock: return intent::break_lock;
    case command::init: return intent::declare;
    case command::resize: return intent::resize;
    default: return intent::look;
  }
}

// For messages alone. Of two that were named, as by `quorum replace`, nobody can say which was meant.
std::string_view server_named(const settings& s) {
  if (s.with) return {};
  return s.uri ? std::string_view{*s.uri} : variable("HOLDFAST_URI");
}

// Without one the server refuses a user as it refuses a wrong password.
bool has_password(const settings& s) {
  return s.with || !s.password_file.empty() || !variable("REDISCLI_AUTH").empty() || find_password(server_named(s));
}

fault_context context_of(command which, const settings& s) {
  const bool is_local = which == command::local || which == command::lab;
  return {.lock = takes_name(which) && which != command::ls ? std::string_view{s.name} : std::string_view{},
          .prefix = s.prefix ? std::string_view{*s.prefix} : "hf:",
          .plain = s.plain,
          .what = intent_of(which),
          .min_fence = s.min_fence,
          .uri = server_named(s),
          .uri_option = s.uri ? std::string_view{*s.uri} : std::string_view{},
          .files = files_of(s),
          .max_ttl = s.max_ttl,
          .has_password = has_password(s),
          .is_under_another = locks_above() > 0,
          .local_word = is_local && !s.words.empty() ? std::string_view{s.words.front()} : std::string_view{},
          .names_directory = is_local ? s.words.size() == 2 : server_named(s).starts_with("local:/")};
}

fault from(const usage_error& e) { return {.code = "E17", .text = e.what(), .fix = e.fix, .exit = exit_code::usage}; }

// The status is that of what went wrong first, also when nobody can be given the document about it.
int fail(const fault& what, bool json) {
  say_error(what);
  try {
    if (json) print(json_of(what));
  } catch (const std::system_error& e) {
    say_error({.text = fmt::format("the --json document of this error is not on stdout: {}", visible(e.what()))});
  }
  return number(what.exit);
}

int main_of_command(command which, int argc, char** argv) {
  settings s;
  try {
    s = parse_options(which, argc, argv);
    if (s.wants_help) return help_command(word_of(which));
    check_ranges(which, s);
    return dispatch(which, s);
  } catch (const empty_name&) {
    return fail(describe(error{errc::invalid_name}), asks_for_json(which, argc, argv));
  } catch (const usage_error& e) {
    return fail(from(e), s.json || asks_for_json(which, argc, argv));
  } catch (const error& e) {
    return fail(describe(e, context_of(which, s)), s.json);
  } catch (const std::exception& e) {
    return fail(describe(e), s.json);
  }
}

int help_of(int argc, char** argv) {
  if (argc > 3)
    throw usage_error{fmt::format("'{}' is one word too many for help", visible_word(argv[3])), "holdfast help TOPIC"};
  const std::string_view topic = argc > 2 ? argv[2] : "";
  return help_command(topic == "--help" || topic == "-h" ? "help" : topic);
}

int version_of(int argc, char** argv) {
  if (argc <= 2) return version_command();
  const std::string_view word = argv[2];
  if (word == "--help" || word == "-h") return help_command("version");
  throw usage_error{fmt::format("'{}' is one word too many for version", visible_word(word)), "holdfast version"};
}

int main_of(int argc, char** argv) {
  ::mallopt(M_ARENA_MAX, 1);  // A few threads that hardly allocate: an arena for each costs more than it saves.
  keep_standard_descriptors_taken();
  try {
    if (argc < 2) {
      print(examples());
      return number(exit_code::usage);  // A crontab line whose variables were empty has not succeeded.
    }
    const std::string_view word = argv[1];
    if (word == "--help" || word == "-h") return help_of(argc, argv);
    if (word == "--version" || word == "-V") return version_command();
    if (word.starts_with("-"))
      throw usage_error{fmt::format("'{}' comes too early: first the command, then its options", shown_option(word)),
                        in_order(argc, argv)};
    const auto which = parse_command(word);
    if (which == command::help) return help_of(argc, argv);
    if (which == command::version) return version_of(argc, argv);
    return main_of_command(which, argc - 1, argv + 1);
  } catch (const usage_error& e) {
    return fail(from(e), false);
  } catch (const std::exception& e) {
    return fail(describe(e), false);
  }
}

}  // namespace
}  // namespace holdfast::cli

int main(int argc, char** argv) { return holdfast::cli::main_of(argc, argv); }
