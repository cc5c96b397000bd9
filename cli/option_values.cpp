// SPDX-License-Identifier: Apache-2.0
#include "option_values.hpp"

#include "duration.hpp"
#include "escape.hpp"
#include "uri.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <string>
#include <string_view>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

// How the option was spelt in the table, for messages.
std::string spelt(const option_row& row) {
  return row.name ? fmt::format("--{}", row.name) : fmt::format("-{}", row.letter);
}

// An option in the place of a value: between them stood a variable that was empty. "-1" is a value, and a wrong one.
void refuse_option(const option_row& row, std::string_view value) {
  if (value.size() < 2 || value[0] != '-' || value[1] == '.' || (value[1] >= '0' && value[1] <= '9')) return;
  throw usage_error{fmt::format("{} needs a value, and '{}' stands in its place", spelt(row), visible_word(value)),
                    "was a variable empty?"};
}

// Of a text, which may begin with a dash: what an option looks like.
const char* text_value(const option_row& row, const char* value) {
  const std::string_view text{value};
  const bool is_letter = text.size() >= 2 && text[0] == '-' && std::isalpha(static_cast<unsigned char>(text[1])) != 0;
  const bool is_option = is_letter || (text.size() > 2 && text.starts_with("--"));
  if (is_option) refuse_option(row, text);
  return value;
}

milliseconds duration_value(const option_row& row, const char* value) {
  refuse_option(row, value);
  std::string why;
  const auto span = parse_duration(value, why);
  if (!span) throw usage_error{fmt::format("{}: {}", spelt(row), why), "holdfast help durations"};
  return *span;
}

int number_value(const option_row& row, std::string_view value, int largest, int smallest = 0) {
  refuse_option(row, value);
  int parsed = 0;
  const auto [end, ec] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  if (ec != std::errc{} || end != value.data() + value.size() || parsed < 0 || parsed > largest)
    throw usage_error{
        fmt::format("{}: '{}' is not a whole number from {} to {}", spelt(row), visible_word(value), smallest, largest),
        "a number in that range"};
  return parsed;
}

// Of a --min-fence there has to be one above it.
fencing_token token_value(const option_row& row, std::string_view value) {
  const auto parsed = fencing_token::parse(value);
  if (!parsed || !*parsed)
    throw usage_error{fmt::format("{}: '{}' is not a token: a number from 1 to {}", spelt(row), visible_word(value),
                                  fencing_token::max_value - (row.id == option::min_fence ? 1 : 0)),
                      "the number that the resource named when it refused a write"};
  return *parsed;
}

int signal_value(const option_row& row, std::string_view value) {
  constexpr std::array known{std::pair{"TERM", SIGTERM}, std::pair{"INT", SIGINT},   std::pair{"HUP", SIGHUP},
                             std::pair{"QUIT", SIGQUIT}, std::pair{"USR1", SIGUSR1}, std::pair{"USR2", SIGUSR2},
                             std::pair{"KILL", SIGKILL}, std::pair{"ABRT", SIGABRT}};
  const auto bare = value.starts_with("SIG") ? value.substr(3) : value;
  for (const auto& [name, number] : known)
    if (bare == name || bare == std::to_string(number)) return number;
  throw usage_error{fmt::format("{}: '{}' is not a signal that ends a command", spelt(row), visible_word(value)),
                    "TERM, INT, HUP, QUIT, USR1, USR2, ABRT or KILL"};
}

on_lost on_lost_value(const option_row& row, std::string_view value) {
  if (value == "term") return on_lost::stop;
  if (value == "kill") return on_lost::kill;
  if (value == "warn") return on_lost::warn;
  throw usage_error{fmt::format("{}: '{}' is none of term, kill, warn", spelt(row), visible_word(value)),
                    "holdfast help loss"};
}

constexpr int largest_limit = 1'000'000;

void choose(settings& s, taking_mode mode) {
  if (s.mode != taking_mode::exclusive && s.mode != mode)
    throw usage_error{"-x, -s and -l exclude each other",
                      "leave all but one out: a lock is for writing (-x), for reading (-s), or for N at a time (-l N)"};
  s.mode = mode;
}

// A variable that was not there, most often. Taken for "not given", it would mean another server, or no TLS.
const char* named_value(const option_row& row, const char* value) {
  if (*value == '\0') throw usage_error{fmt::format("{}: its value is empty", spelt(row)), "name one, or leave it out"};
  return value;
}

constexpr const char* way_to_list = "redis+quorum://A,B,C, or rediss+quorum:// for TLS";

// flock's -u takes no value and unlocks; --with wants a list. The value is not shown: it may be what a password in a
// URI was torn from.
void check_uri(const option_row& row, std::string_view value) {
  const bool is_list = row.id == option::with;
  if (value.starts_with('/') || value.starts_with('.'))
    throw usage_error{
        spelt(row) + ": a path is no server, and a lock needs no file: its name is any word",
        is_list ? way_to_list
                : "a socket is redis+unix:///PATH, our own server local:/DIRECTORY; flock's -u is holdfast break"};
  if (value.find(':') == value.npos)
    throw usage_error{spelt(row) + ": a server is named by a URI, and this one has no scheme",
                      is_list ? way_to_list : "redis://HOST:PORT; flock's -u is holdfast break"};
}

void note_password(settings& s, const option_row& row, char* uri) {
  if (blot_out_password(uri) && s.password_in_arguments.empty()) s.password_in_arguments = spelt(row);
}

bool apply_taking(settings& s, const option_row& row, const char* value) {
  switch (row.id) {
    case option::nonblock: s.try_once = true; return true;
    case option::wait: s.wait = duration_value(row, value); return true;
    case option::conflict_exit: s.conflict_exit = number_value(row, value, 255); return true;
    case option::quiet_busy: s.quiet_busy = true; return true;
    case option::close_lock: return true;
    case option::exclusive: choose(s, taking_mode::writing); return true;
    case option::shared: choose(s, taking_mode::reading); return true;
    case option::limit:
      choose(s, taking_mode::permit);
      s.limit = number_value(row, value, largest_limit, 1);
      if (s.limit == 0) throw usage_error{"--limit: 0 would let nobody in", "1 or more"};
      return true;
    case option::no_fork:
      throw usage_error{"-F cannot be had: somebody has to stay and renew the lease", "leave -F out"};
    case option::ttl: s.ttl = duration_value(row, value); return true;
    case option::no_renew: s.renews = false; return true;
    case option::min_fence: s.min_fence = token_value(row, value); return true;
    case option::max_hold: s.max_hold = duration_value(row, value); return true;
    case option::owner: s.owner = text_value(row, value); return true;
    case option::why: s.why = text_value(row, value); return true;
    default: return false;
  }
}

bool apply_child(settings& s, const option_row& row, const char* value) {
  switch (row.id) {
    case option::shell_command: s.shell_command = text_value(row, value); return true;
    case option::at_least: s.at_least = duration_value(row, value); return true;
    case option::kill_after: s.kill_after = duration_value(row, value); return true;
    case option::stop_signal: s.stop_signal = signal_value(row, value); return true;
    case option::on_lost: s.when_lost = on_lost_value(row, value); return true;
    case option::foreground: s.foreground = true; return true;
    case option::wait_group: s.wait_group = true; return true;
    case option::keep_password: s.keep_password = true; return true;
    default: return false;
  }
}

void apply_rest(settings& s, const option_row& row, char* value) {
  switch (row.id) {
    case option::token: s.token = value; break;
    case option::now: s.now = true; break;
    case option::json: s.json = true; break;
    case option::quiet: s.quiet = true; break;
    case option::verbose: s.verbose = true; break;
    case option::help: s.wants_help = true; break;
    case option::uri:
      s.uri = named_value(row, value);
      check_uri(row, value);
      note_password(s, row, value);
      break;
    case option::with:
      s.with = named_value(row, value);
      check_uri(row, value);
      note_password(s, row, value);
      break;
    case option::prefix: s.prefix = text_value(row, value); break;
    case option::plain: s.plain = true; break;
    case option::password_file: s.password_file = named_value(row, text_value(row, value)); break;
    case option::cacert: s.cacert = named_value(row, text_value(row, value)); break;
    case option::cert: s.cert = named_value(row, text_value(row, value)); break;
    case option::key: s.key = named_value(row, text_value(row, value)); break;
    case option::server_timeout: s.server_timeout = duration_value(row, value); break;
    case option::max_ttl: s.max_ttl = duration_value(row, value); break;
    case option::trust_synced: s.trusts_synced = true; break;
    case option::replicas: s.replicas = number_value(row, value, 100); break;
    case option::replicas_timeout: s.replicas_timeout = duration_value(row, value); break;
    case option::directory: s.directory = named_value(row, text_value(row, value)); break;
    case option::persistent: s.persistent = true; break;
    case option::reopen: s.reopen = true; break;
    case option::ready_within: s.ready_within = duration_value(row, value); break;
    default: break;
  }
}

}  // namespace

void apply_value(settings& s, const option_row& row, char* value) {
  if (apply_taking(s, row, value) || apply_child(s, row, value)) return;
  apply_rest(s, row, value);
}

}  // namespace holdfast::cli
