// SPDX-License-Identifier: Apache-2.0
// holdfast lab: a whole topology of real servers on this machine, for those who want to try. Only the URI goes to
// stdout, so that `export HOLDFAST_URI=$(holdfast lab single)` works.
#include "escape.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "message.hpp"
#include "signals.hpp"
#include "subcommands.hpp"

#include <holdfast/error.hpp>
#include <holdfast/lab.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <stop_token>
#include <utility>

namespace holdfast::cli {
namespace {

constexpr std::array kinds{std::pair{std::string_view{"single"}, lab_kind::single},
                           std::pair{std::string_view{"replicas"}, lab_kind::replicas},
                           std::pair{std::string_view{"sentinel"}, lab_kind::sentinel},
                           std::pair{std::string_view{"cluster"}, lab_kind::cluster},
                           std::pair{std::string_view{"quorum"}, lab_kind::quorum}};

std::string number_of_servers(std::size_t count) { return fmt::format("{} server{}", count, count == 1 ? "" : "s"); }

constexpr const char* examples_of_lab = "holdfast lab single, replicas 2, sentinel, cluster, quorum 5, or stop DIR";

lab_kind kind_of(const std::string& word) {
  const auto* row = std::find_if(kinds.begin(), kinds.end(), [&](const auto& one) { return one.first == word; });
  if (row == kinds.end()) throw usage_error{fmt::format("lab has no '{}'", visible_word(word)), examples_of_lab};
  return row->second;
}

int count_of(const settings& s) {
  if (s.words.size() < 2) return 0;
  const auto& word = s.words[1];
  int count = 0;
  const auto [end, ec] = std::from_chars(word.data(), word.data() + word.size(), count);
  if (ec != std::errc{} || end != word.data() + word.size() || count < 1)
    throw usage_error{fmt::format("lab {}: '{}' is no number of servers", s.words[0], visible_word(word)),
                      examples_of_lab};
  return count;
}

void end_untold(const lab& started) {
  try {
    stop_lab(started.directory);
  } catch (const error& e) {
    try_say(fmt::format("{}: {}", visible(started.directory), visible(e.what())));
  }
}

// Nobody could end a lab that nobody was told of; a signal that comes while nobody reads ends it, too.
void print_or_end(const lab& started, const settings& s, const wait_canceller& canceller, const signal_inbox& inbox) {
  const std::stop_callback leave{canceller.token(), [&] {
                                   end_untold(started);
                                   std::_Exit(inbox.end(128 + canceller.came()));
                                 }};
  try {
    print(s.json ? json_of(started, true) : started.uri + "\n");
  } catch (...) {
    end_untold(started);
    throw;
  }
}

void start_and_say(lab_kind kind, const settings& s, const lab_options& options, const wait_canceller& canceller,
                   const signal_inbox& inbox) {
  try {
    const auto started = start_lab(kind, options);
    print_or_end(started, s, canceller, inbox);
    inbox.let_end();
    if (s.quiet) return;
    say(fmt::format("lab {}: {} on 127.0.0.1; end it with: holdfast lab stop {}", s.words[0],
                    number_of_servers(started.nodes.size()), shell_quoted(visible(started.directory))));
  } catch (const error& e) {
    if (e.code() == errc::invalid_option && e.detail().subject.starts_with("count"))
      throw usage_error{visible(e.detail().why), examples_of_lab};
    throw;
  }
}

// A signal ends the start, and with it all that was started.
int start_command(const settings& s) {
  const auto kind = kind_of(s.words[0]);
  lab_options options{.count = count_of(s), .directory = s.directory, .persistent = s.persistent};
  if (s.ready_within) options.ready_within = *s.ready_within;
  return with_signals([&](signal_inbox& inbox) {
    wait_canceller canceller{inbox, std::chrono::hours{1}, [] {}};
    options.cancel = canceller.token();
    try {
      start_and_say(kind, s, options, canceller, inbox);
      return number(exit_code::ok);
    } catch (const error& e) {
      if (e.code() != errc::cancelled) throw;
      return 128 + canceller.finish();
    }
  });
}

// The one that was named, as a word or by the option.
const std::string& directory_to_stop(const settings& s) {
  for (const auto& [option, is_given] :
       {std::pair{"--persistent", s.persistent}, std::pair{"--ready-within", s.ready_within.has_value()}})
    if (is_given) throw usage_error{fmt::format("lab stop takes no {}: it is for a start", option), "leave it out"};
  const bool is_word = s.words.size() == 2;
  if (is_word && !s.directory.empty())
    throw usage_error{"lab stop: the directory is named twice", "holdfast lab stop DIR, without --directory"};
  if (!is_word && s.directory.empty()) throw usage_error{"lab stop needs the lab's directory", "holdfast lab stop DIR"};
  if (is_word && s.words[1].empty())
    throw usage_error{"lab stop: the directory is empty; was a variable not set?", "holdfast lab stop DIR"};
  return is_word ? s.words[1] : s.directory;
}

int stop_command(const settings& s) {
  const auto ended = stop_lab(directory_to_stop(s));
  // A script goes on with the document.
  if (s.json) return number(print_done(json_of(ended, false)) ? exit_code::ok : exit_code::defect);
  if (!s.quiet)
    print_done(ended.uri.empty()
                   ? fmt::format("no lab in {}: it is empty\n", visible(ended.directory))
                   : fmt::format("ended {} of {}\n", number_of_servers(ended.nodes.size()), visible(ended.directory)));
  return number(exit_code::ok);
}

}  // namespace

int lab_command(const settings& s) {
  if (s.words.empty()) throw usage_error{"lab needs to know which", examples_of_lab};
  if (s.words.size() > 2)
    throw usage_error{fmt::format("'{}' is one word too many for lab", visible_word(s.words[2])), examples_of_lab};
  return s.words[0] == "stop" ? stop_command(s) : start_command(s);
}

}  // namespace holdfast::cli
