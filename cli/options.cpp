// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include "duration.hpp"
#include "escape.hpp"
#include "option_values.hpp"
#include "suggest.hpp"

#include <fmt/format.h>
#include <getopt.h>

#include <algorithm>
#include <array>
#include <chrono>
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
      throw usage_error{
          fmt::format("'{}' has no option '--unlock': a lock ends with its command", word_of(which_)),
          which_ == command::break_lock ? "leave it out" : "somebody's hold is ended with holdfast break"};
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
    apply_value(into_, *row, optarg);
  }

  [[noreturn]] void complain(int got, const char* argument) const {
    const bool is_long = std::strncmp(argument, "--", 2) == 0;
    // A URI may be glued to it, with its password.
    const auto word = visible_word(argument);
    const auto shown = is_long ? word : visible(fmt::format("-{}", static_cast<char>(optopt)));
    const auto help = fmt::format("holdfast help {}", word_of(which_));
    if (got == ':') throw usage_error{fmt::format("'{}' needs a value", shown), help};
    if (is_long) throw usage_error{fmt::format("'{}' takes no value", shown), help};
    if (which_ == command::run && !into_.name.empty())
      throw usage_error{fmt::format("command '{}' looks like an option", word),
                        "put options before NAME, or add -- before the command"};
    throw usage_error{fmt::format("'{}' has no option '{}'", word_of(which_), shown), way_out_of_unknown()};
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
    if (!named) s.is_name_behind_dashes = reader.ended_by_dashes();
    named = true;
  }
  if (std::strcmp(argv[at], "--") == 0) ++at;
  s.words.assign(argv + at, argv + argc);
}

// A lease is lost a lead before its end (docs/lease_time.md), and --at-least counts from when its grant has come.
milliseconds kept_of(milliseconds span, const settings& s) {
  constexpr milliseconds grant_and_start{100};
  return std::max(milliseconds{0}, span - std::max(milliseconds{5}, s.ttl / 20) - grant_and_start);
}

void check_kept(const settings& s, milliseconds kept, std::string_view by, std::string_view way_out) {
  if (*s.at_least <= kept) return;
  throw usage_error{fmt::format("--at-least {} cannot be kept: with {} the lock is given up after {}",
                                to_text(*s.at_least), by, to_text(kept)),
                    fmt::format("{}, or --at-least {} at most", way_out, to_text(kept))};
}

void check_at_least(const settings& s) {
  if (!s.at_least) return;
  constexpr milliseconds longest = std::chrono::hours{24 * 366};
  if (*s.at_least > longest)
    throw usage_error{fmt::format("--at-least {} is more than a year", to_text(*s.at_least)), "a shorter --at-least"};
  if (s.max_hold)
    check_kept(s, kept_of(*s.max_hold, s), fmt::format("--max-hold {}", to_text(*s.max_hold)), "a longer --max-hold");
  constexpr milliseconds rounding{2};  // The server's and ours.
  if (!s.renews)
    check_kept(s, kept_of(s.ttl - s.ttl / 100 - rounding, s), fmt::format("--no-renew and --ttl {}", to_text(s.ttl)),
               "leave --no-renew out, or a longer --ttl");
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Of the words of a command the first that is run: others run it in their own place, with options and numbers of
// theirs.
std::size_t first_that_stays(const std::vector<std::string_view>& words) {
  constexpr std::array in_its_place{"chrt", "env", "exec", "ionice", "nice", "nohup", "stdbuf", "taskset"};
  std::size_t at = 0;
  while (at < words.size()) {
    const auto word = file_name(words[at]);
    if (std::find(in_its_place.begin(), in_its_place.end(), word) == in_its_place.end()) break;
    const auto is_its_own = [](std::string_view one) {
      return one.starts_with('-') || one.find('=') != one.npos || one.find_first_not_of("0123456789,-") == one.npos;
    };
    for (++at; at < words.size() && is_its_own(words[at]); ++at) {
    }
  }
  return at;
}

// A process group's head, as our command is, it makes fork: its own command would run on without the lock, and nobody
// would hear of its end.
bool is_setsid_that_forks(const std::vector<std::string_view>& words) {
  std::size_t at = first_that_stays(words);
  if (at == words.size() || file_name(words[at]) != "setsid") return false;
  for (++at; at < words.size() && words[at].starts_with('-'); ++at) {
    if (words[at] == "--") break;
    const bool is_long = words[at].starts_with("--");
    // To fork is what -f asks for; --help and --version do not come to it.
    if (is_long ? words[at] != "--ctty" : words[at].find_first_of("fwhV") != words[at].npos) return false;
  }
  return true;
}

// A shell runs a lone command in its own place.
std::vector<std::string_view> words_that_are_run(const settings& s) {
  if (!s.shell_command) return {s.words.begin(), s.words.end()};
  const std::string_view text{*s.shell_command};
  if (text.find_first_of(";&|<>()`\n") != text.npos) return {};
  std::vector<std::string_view> words;
  for (std::size_t from = 0; (from = text.find_first_not_of(" \t", from)) != text.npos;) {
    const auto to = std::min(text.find_first_of(" \t", from), text.size());
    words.push_back(text.substr(from, to - from));
    from = to;
  }
  return words;
}

void check_run(const settings& s) {
  check_at_least(s);
  if (s.shell_command && !s.words.empty())
    throw usage_error{"both -c and a command were given", "put all of it into the string of -c, or leave -c out"};
  if (!s.shell_command && s.words.empty())
    throw usage_error{
        "run needs a command",
        fmt::format("holdfast run {0} -- CMD; to hold the lock without one: holdfast hold {0}", taking_argument(s))};
  if (s.foreground && s.wait_group)
    throw usage_error{"--foreground and --wait-group exclude each other: the command would have no group of its own",
                      "leave one of them out"};
  if (!s.foreground && is_setsid_that_forks(words_that_are_run(s)))
    throw usage_error{"setsid would fork here: its command would run without the lock, and its exit status be lost",
                      "setsid -w CMD waits for it; or --foreground; setsid -f CMD if it is to run without"};
  if (s.kill_after && *s.kill_after >= s.ttl / 2)
    throw usage_error{
        fmt::format("--kill-after {} is half of --ttl {} or more, so the command would have to be stopped while its "
                    "lease is good",
                    to_text(*s.kill_after), to_text(s.ttl)),
        "a longer --ttl, or a shorter --kill-after"};
}

bool is_uri(std::string_view word) { return word.find("://") != word.npos; }

void check_words(command which, const settings& s) {
  if (s.max_hold && *s.max_hold < s.ttl)
    throw usage_error{fmt::format("--max-hold {} is shorter than --ttl {}", to_text(*s.max_hold), to_text(s.ttl)),
                      "a longer --max-hold, or a shorter --ttl"};
  if (s.replicas_timeout && s.replicas == 0)
    throw usage_error{"--replicas-timeout says nothing without --replicas", "--replicas 1, say; or leave it out"};
  if (takes_name(which) && which != command::ls && s.name.empty())
    throw usage_error{fmt::format("{} needs a lock's name", word_of(which)),
                      fmt::format("holdfast help {}", word_of(which))};
  if (which == command::run) return check_run(s);
  const std::size_t most = which == command::resize ? 1 : 0;
  if (s.words.size() < most)
    throw usage_error{"resize needs the number of permits", fmt::format("holdfast resize {} N", lock_argument(s))};
  if (which != command::local && which != command::lab && which != command::quorum && s.words.size() > most)
    throw usage_error{fmt::format("'{}' is one word too many for {}", visible_word(s.words[most]), word_of(which)),
                      is_uri(s.words[most])    ? "a server is named by --uri"
                      : which == command::hold ? "hold runs nothing; to run a command: holdfast run"
                                               : fmt::format("holdfast help {}", word_of(which))};
  if (which == command::break_lock && !s.token)
    throw usage_error{"break needs --token, so that it ends the hold that you saw and no newer one",
                      fmt::format("holdfast show {}", lock_argument(s))};
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
    if (word == later)
      throw usage_error{fmt::format("'{}' is not there yet; a later release brings it", word), "holdfast help"};
  const auto near = nearest(word, words);
  throw usage_error{near.empty() ? fmt::format("unknown command '{}'", visible_word(word))
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
