// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include "duration.hpp"
#include "escape.hpp"
#include "suggest.hpp"
#include "uri.hpp"

#include <fmt/format.h>
#include <getopt.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

bool takes(command which, const option_row& row) { return (row.commands & static_cast<unsigned>(which)) != 0; }

std::string_view word_of(command which) {
  for (const auto& row : command_table())
    if (row.id == which) return row.name;
  return "holdfast";
}

// How the option was spelt in the table, for messages.
std::string spelt(const option_row& row) {
  return row.name ? fmt::format("--{}", row.name) : fmt::format("-{}", row.letter);
}

// An option in the place of a value: between them stood a variable that was empty. "-1" is a value, and a wrong one.
void refuse_option(const option_row& row, std::string_view value) {
  if (value.size() < 2 || value[0] != '-' || value[1] == '.' || (value[1] >= '0' && value[1] <= '9')) return;
  throw usage_error{fmt::format("{} needs a value, and '{}' stands in its place", spelt(row), visible(value)),
                    "was a variable empty?"};
}

milliseconds duration_value(const option_row& row, const char* value) {
  refuse_option(row, value);
  std::string why;
  const auto span = parse_duration(value, why);
  if (!span) throw usage_error{fmt::format("{}: {}", spelt(row), why)};
  return *span;
}

int number_value(const option_row& row, std::string_view value, int largest, int smallest = 0) {
  refuse_option(row, value);
  int parsed = 0;
  const auto [end, ec] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  if (ec != std::errc{} || end != value.data() + value.size() || parsed < 0 || parsed > largest)
    throw usage_error{
        fmt::format("{}: '{}' is not a whole number from {} to {}", spelt(row), visible(value), smallest, largest)};
  return parsed;
}

fencing_token token_value(const option_row& row, std::string_view value) {
  const auto parsed = fencing_token::parse(value);
  if (!parsed || !*parsed)
    throw usage_error{fmt::format("{}: '{}' is not a token: up to 16 digits", spelt(row), visible(value)),
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
  throw usage_error{fmt::format("{}: '{}' is not a signal that ends a command", spelt(row), visible(value)),
                    "TERM, INT, HUP, QUIT, USR1, USR2, ABRT or KILL"};
}

on_lost on_lost_value(const option_row& row, std::string_view value) {
  if (value == "term") return on_lost::stop;
  if (value == "kill") return on_lost::kill;
  if (value == "warn") return on_lost::warn;
  throw usage_error{fmt::format("{}: '{}' is none of term, kill, warn", spelt(row), visible(value))};
}

constexpr int largest_limit = 1'000'000;

void choose(settings& s, taking_mode mode) {
  if (s.mode != taking_mode::exclusive && s.mode != mode)
    throw usage_error{"-x, -s and -l exclude each other",
                      "one lock is for writing, for reading, or for a limited number"};
  s.mode = mode;
}

// A variable that was not there, most often. Taken for "not given", it would mean another server, or no TLS.
const char* named_value(const option_row& row, const char* value) {
  if (*value == '\0') throw usage_error{fmt::format("{}: its value is empty", spelt(row)), "name one, or leave it out"};
  return value;
}

// flock's -u takes no value and unlocks. The value is not shown: it may be what a password in a URI was torn from.
void check_uri(std::string_view value) {
  if (value.starts_with('/') || value.starts_with('.'))
    throw usage_error{"--uri: a path is no server, and a lock needs no file: its name is any word",
                      "a socket is redis+unix:///PATH, our own server local:/DIRECTORY; flock's -u is holdfast break"};
  if (value.find(':') == value.npos)
    throw usage_error{"--uri: a server is named by a URI, and this one has no scheme",
                      "redis://HOST:PORT; flock's -u is holdfast break"};
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
    case option::owner: s.owner = value; return true;
    case option::why: s.why = value; return true;
    default: return false;
  }
}

bool apply_child(settings& s, const option_row& row, const char* value) {
  switch (row.id) {
    case option::shell_command: s.shell_command = value; return true;
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
      check_uri(value);
      s.password_in_arguments = blot_out_password(value) || s.password_in_arguments;
      break;
    case option::with:
      s.with = named_value(row, value);
      s.password_in_arguments = blot_out_password(value) || s.password_in_arguments;
      break;
    case option::prefix: s.prefix = value; break;
    case option::plain: s.plain = true; break;
    case option::password_file: s.password_file = named_value(row, value); break;
    case option::cacert: s.cacert = named_value(row, value); break;
    case option::cert: s.cert = named_value(row, value); break;
    case option::key: s.key = named_value(row, value); break;
    case option::server_timeout: s.server_timeout = duration_value(row, value); break;
    case option::max_ttl: s.max_ttl = duration_value(row, value); break;
    case option::trust_synced: s.trusts_synced = true; break;
    case option::replicas: s.replicas = number_value(row, value, 100); break;
    case option::replicas_timeout: s.replicas_timeout = duration_value(row, value); break;
    case option::directory: s.directory = named_value(row, value); break;
    case option::persistent: s.persistent = true; break;
    case option::ready_within: s.ready_within = duration_value(row, value); break;
    default: break;
  }
}

// The options of one command, in getopt's shape, and one pass over a stretch of the command line.
class option_reader {
public:
  option_reader(command which, settings& into) : which_{which}, into_{into} {
    for (const auto& row : option_table()) {
      if (!takes(which, row)) continue;
      const int argument = row.value ? required_argument : no_argument;
      if (row.name) {
        long_options_.push_back({row.name, argument, nullptr, first_id + static_cast<int>(rows_.size())});
        names_.push_back(row.name);
      }
      if (row.letter) {
        letters_ += row.letter;
        if (row.value) letters_ += ':';
      }
      rows_.push_back(&row);
    }
    long_options_.push_back({nullptr, 0, nullptr, 0});
  }

  // Takes options up to the first word or past `--`; argv[0] is what stands before them. Returns where it stopped.
  int read(int argc, char** argv) {
    optind = 0;  // glibc: begin anew.
    opterr = 0;
    bool first = true;
    while (true) {
      const int next = first ? 1 : optind;
      first = false;
      // Never in the middle of a cluster of letters here, for that begins with one dash.
      if (next < argc && std::strcmp(argv[next], "--") == 0)
        ended_by_dashes_ = true;
      else if (next < argc && std::strncmp(argv[next], "--", 2) == 0)
        refuse_unless_exact(argv[next] + 2);
      const int got = getopt_long(argc, argv, letters_.c_str(), long_options_.data(), nullptr);
      if (got == -1) return optind;
      apply(got, argv[next]);
    }
  }

  bool ended_by_dashes() const { return ended_by_dashes_; }

private:
  static constexpr int first_id = 256;

  void refuse_unless_exact(std::string_view typed) const {
    typed = typed.substr(0, typed.find('='));
    if (std::find(names_.begin(), names_.end(), typed) != names_.end()) return;
    if (typed == "unlock")
      throw usage_error{fmt::format("'{}' has no option '--unlock': a lock ends with its command", word_of(which_)),
                        "somebody's hold is ended with holdfast break"};
    for (const auto name : names_)
      if (!typed.empty() && name.starts_with(typed))
        throw usage_error{
            fmt::format("'--{}' is an abbreviation, and a later release may have another option that begins so",
                        visible(typed)),
            fmt::format("write --{}", name)};
    const auto near = nearest(typed, names_);
    throw usage_error{near.empty()
                          ? fmt::format("'{}' has no option '--{}'", word_of(which_), visible(typed))
                          : fmt::format("unknown option '--{}' \u2014 did you mean '--{}'?", visible(typed), near),
                      way_out_of_unknown()};
  }

  std::string way_out_of_unknown() const {
    if (which_ == command::run && !into_.name.empty())
      return "if it is the command that you want to run, put -- before it";
    return fmt::format("holdfast help {}", word_of(which_));
  }

  void apply(int got, const char* argument) {
    const option_row* row = nullptr;
    if (got >= first_id) {
      row = rows_[static_cast<std::size_t>(got - first_id)];
    } else if (got == '?' || got == ':') {
      complain(got, argument);
    } else {
      for (const auto* candidate : rows_)
        if (candidate->letter == got) row = candidate;
    }
    if (!row) throw std::logic_error{"getopt gave an option that is not in the table"};
    if (apply_taking(into_, *row, optarg) || apply_child(into_, *row, optarg)) return;
    apply_rest(into_, *row, optarg);
  }

  [[noreturn]] void complain(int got, const char* argument) const {
    const bool is_long = std::strncmp(argument, "--", 2) == 0;
    const auto shown = is_long ? std::string{argument} : fmt::format("-{}", static_cast<char>(optopt));
    if (got == ':') throw usage_error{fmt::format("'{}' needs a value", visible(shown))};
    if (is_long) throw usage_error{fmt::format("'{}' takes no value", visible(shown))};
    if (which_ == command::run && !into_.name.empty())
      throw usage_error{fmt::format("command '{}' looks like an option", visible(argument)),
                        "put options before NAME, or add -- before the command"};
    throw usage_error{fmt::format("'{}' has no option '{}'", word_of(which_), visible(shown)), way_out_of_unknown()};
  }

  command which_;
  settings& into_;
  std::string letters_ = "+:";
  std::vector<::option> long_options_{};
  std::vector<std::string_view> names_{};
  std::vector<const option_row*> rows_{};
  bool ended_by_dashes_ = false;
};

// The first word is NAME (or GLOB); for `run` what follows is the command, whatever it looks like.
void read_words(command which, int argc, char** argv, settings& s) {
  option_reader reader{which, s};
  bool named = !takes_name(which);
  int at = 0;
  while (true) {
    at += reader.ended_by_dashes() ? 1 : reader.read(argc - at, argv + at);
    if (at >= argc) return;
    if (named && which == command::run) break;
    if (named)
      s.words.emplace_back(argv[at]);
    else
      s.name = argv[at];
    if (!named && s.name.empty() && which == command::ls)
      throw usage_error{"the pattern is empty", "leave it out for all locks"};
    if (!named && s.name.empty()) throw empty_name{};
    named = true;
  }
  if (std::strcmp(argv[at], "--") == 0) ++at;
  s.words.assign(argv + at, argv + argc);
}

void check_run(const settings& s) {
  if (s.shell_command && !s.words.empty())
    throw usage_error{"both -c and a command were given", "put all of it into the string of -c, or leave -c out"};
  if (!s.shell_command && s.words.empty())
    throw usage_error{"run needs a command",
                      fmt::format("holdfast run {0} -- CMD; to hold the lock without one: holdfast hold {0}",
                                  shell_quoted(visible(s.name)))};
  if (s.foreground && s.wait_group)
    throw usage_error{"--foreground and --wait-group exclude each other: the command would have no group of its own",
                      "leave one of them out"};
  if (s.kill_after && *s.kill_after >= s.ttl / 2)
    throw usage_error{
        fmt::format("--kill-after {} is half of --ttl {} or more, so the command would have to be stopped while its "
                    "lease is good",
                    to_text(*s.kill_after), to_text(s.ttl)),
        "a longer --ttl, or a shorter --kill-after"};
}

void check_words(command which, const settings& s) {
  if (s.max_hold && *s.max_hold < s.ttl)
    throw usage_error{fmt::format("--max-hold {} is shorter than --ttl {}", to_text(*s.max_hold), to_text(s.ttl)),
                      "a longer --max-hold, or a shorter --ttl"};
  if (takes_name(which) && which != command::ls && s.name.empty())
    throw usage_error{fmt::format("{} needs a lock's name", word_of(which)),
                      fmt::format("holdfast help {}", word_of(which))};
  if (which == command::run) return check_run(s);
  if (which != command::local && which != command::lab && which != command::quorum && !s.words.empty())
    throw usage_error{fmt::format("'{}' is one word too many for {}", visible(s.words.front()), word_of(which)),
                      which == command::hold ? "hold runs nothing; to run a command: holdfast run" : ""};
  if (which == command::break_lock && !s.token)
    throw usage_error{"break needs --token, so that it ends the hold that you saw and no newer one",
                      fmt::format("holdfast show {}", shell_quoted(visible(s.name)))};
}

}  // namespace

bool takes_name(command which) {
  constexpr unsigned without = static_cast<unsigned>(command::doctor) | static_cast<unsigned>(command::init) |
                               static_cast<unsigned>(command::local) | static_cast<unsigned>(command::lab) |
                               static_cast<unsigned>(command::quorum) | static_cast<unsigned>(command::help) |
                               static_cast<unsigned>(command::version);
  return (static_cast<unsigned>(which) & without) == 0;
}

bool asks_for_json(command which, int argc, char* const* argv) {
  const auto table = option_table();
  const auto json = std::find_if(table.begin(), table.end(), [](const auto& row) { return row.id == option::json; });
  if (json == table.end() || !takes(which, *json)) return false;
  for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i)
    if (std::strcmp(argv[i], "--json") == 0) return true;
  return false;
}

command parse_command(std::string_view word) {
  std::vector<std::string_view> words;
  for (const auto& row : command_table()) {
    if (word == row.name) return row.id;
    words.push_back(row.name);
  }
  for (const auto later : {"top", "serve", "bench", "man", "completion"})
    if (word == later) throw usage_error{fmt::format("'{}' is not there yet; a later release brings it", word)};
  const auto near = nearest(word, words);
  throw usage_error{near.empty() ? fmt::format("unknown command '{}'", visible(word))
                                 : fmt::format("unknown command '{}' \u2014 did you mean '{}'?", visible(word), near),
                    near.empty() ? "holdfast help" : ""};
}

settings parse_options(command which, int argc, char** argv) {
  settings s;
  read_words(which, argc, argv, s);
  if (!s.wants_help) check_words(which, s);
  return s;
}

}  // namespace holdfast::cli
