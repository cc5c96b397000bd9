// SPDX-License-Identifier: Apache-2.0
// holdfast help: what a command takes, from the table of options; topics and error codes, from help_topics.cpp.
#include "escape.hpp"
#include "exit_code.hpp"
#include "help_topics.hpp"
#include "message.hpp"
#include "options.hpp"
#include "subcommands.hpp"
#include "suggest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace holdfast::cli {
namespace {

std::string option_line(std::span<const option_row> table, std::size_t i) {
  const auto& row = table[i];
  std::string spelling = row.letter ? fmt::format("-{}", row.letter) : "   ";
  if (row.name) spelling += fmt::format("{}--{}", row.letter ? ", " : " ", row.name);
  for (std::size_t alias = i + 1; alias < table.size() && !table[alias].text; ++alias)
    spelling +=
        table[alias].name ? fmt::format(", --{}", table[alias].name) : fmt::format(", -{}", table[alias].letter);
  if (row.value) spelling += fmt::format(" {}", row.value);
  if (spelling.size() > 30) return fmt::format("  {}\n  {:<30} {}\n", spelling, "", row.text);
  return fmt::format("  {:<30} {}\n", spelling, row.text);
}

std::string exit_lines() {
  std::string out = "Exit status:\n";
  for (const auto& row : exit_table) out += fmt::format("  {:<8} {}\n", row.status, row.meaning);
  return out;
}

std::string about_command(const command_row& which) {
  auto out = fmt::format("holdfast {}\n  {}\n", which.usage, which.text);
  const auto table = option_table();
  std::string options;
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i].text && (table[i].commands & static_cast<unsigned>(which.id)) != 0) options += option_line(table, i);
  if (!options.empty()) out += "\nOptions:\n" + options;
  if (which.id == command::run)
    out +=
        "\nOptions stand before NAME, or between NAME and the command; what follows the command is its own.\n"
        "flock's -u (unlock) is `holdfast break`.\n";
  if (which.id == command::wait)
    out +=
        "\nIt takes no place in line, so nobody calls it: it looks twice a second, and misses what is free for less.\n"
        "Whoever wants the lock then is called at once by `holdfast run`.\n";
  if (which.id == command::lab) out += fmt::format("\n{}", about_lab());
  if (!options.empty()) out += "\n" + exit_lines();
  return out;
}

std::string overview() {
  std::string out = "holdfast: flock for your whole fleet.\n\nCommands:\n";
  for (const auto& row : command_table()) out += fmt::format("  {:<38} {}\n", row.usage, row.text);
  out += "\nTopics:\n  exit, acl";
  for (const auto& topic : help_topics()) out += fmt::format(", {}", topic.name);
  out += ", and every error code: E01 to E25\n";
  return out;
}

}  // namespace

int help_command(std::string_view asked) {
  const auto done = [](const std::string& text) {
    print(text);
    return number(exit_code::ok);
  };
  if (asked.empty()) return done(overview());
  if (asked == "exit") return done(exit_lines());
  if (asked == "acl") return done(about_acl());
  std::vector<std::string_view> known{"exit", "acl"};
  for (const auto& row : command_table()) {
    if (asked == row.name) return done(about_command(row));
    known.push_back(row.name);
  }
  for (const auto& topic : help_topics()) {
    if (asked == topic.name) return done(topic.text);
    known.push_back(topic.name);
  }
  std::string upper{asked};
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  for (const auto& row : error_codes())
    if (upper == row.name) return done(fmt::format("{}: {}", row.name, row.text));
  const auto near = nearest(asked, known);
  throw usage_error{near.empty() ? fmt::format("no help for '{}'", visible_word(asked))
                                 : fmt::format("no help for '{}' \u2014 did you mean '{}'?", visible(asked), near),
                    "holdfast help"};
}

}  // namespace holdfast::cli
