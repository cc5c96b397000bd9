// SPDX-License-Identifier: Apache-2.0
#include "early_option.hpp"

#include "escape.hpp"
#include "options.hpp"
#include "uri.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace holdfast::cli {
namespace {

using words = std::span<char* const>;

// Whichever command's it is: no letter and no name means different things to two of them.
template <class Match>
const option_row* find(Match is_it) {
  const auto table = option_table();
  const auto found = std::find_if(table.begin(), table.end(), is_it);
  return found == table.end() ? nullptr : &*found;
}

const command_row* find_command(std::string_view word) {
  for (const auto& row : command_table())
    if (word == row.name) return &row;
  return nullptr;
}

// A word that is an option, or several letters. `value` is where its own begins, if that is in the same word.
struct option_word {
  const option_row* last = nullptr;  // The one that may take a value.
  std::optional<std::size_t> value{};
};

option_word read_option(std::string_view word) {
  if (word.starts_with("--")) {
    const auto equals = word.find('=');
    const auto name = word.substr(2, equals == word.npos ? equals : equals - 2);
    option_word read{find([&](const option_row& row) { return row.name && name == row.name; })};
    if (equals != word.npos) read.value = equals + 1;
    return read;
  }
  option_word read;
  for (std::size_t i = 1; i < word.size(); ++i) {
    read.last = find([&](const option_row& row) { return row.letter == word[i]; });
    if (!read.last || !read.last->value) continue;
    if (i + 1 < word.size()) read.value = i + 1;
    break;
  }
  return read;
}

bool is_option(std::string_view word) { return word.size() > 1 && word[0] == '-'; }
bool awaits_value(const option_word& read) { return read.last && read.last->value && !read.value; }
bool is_uri(const option_row* row) { return row && (row->id == option::uri || row->id == option::with); }

// A URI may also stand where none belongs: behind an option that is mistyped, or as a word.
bool may_hide(std::string_view text, bool is_uri) {
  return (is_uri || text.find("://") != text.npos) && may_hide_password(text);
}

// Dashes need no quotes.
std::string as_word(std::string_view word) {
  const auto dashes = std::min(word.find_first_not_of('-'), word.size());
  if (dashes == word.size() && dashes > 0) return std::string{word};
  return std::string{word.substr(0, dashes)} + shell_quoted(visible(word.substr(dashes)));
}

std::string typed(std::string_view word, bool is_uri) { return may_hide(word, is_uri) ? "URI" : as_word(word); }

std::string typed_option(std::string_view word, const option_word& read) {
  const auto begin = read.value.value_or(word.size());
  if (may_hide(word.substr(begin), is_uri(read.last)))
    return as_word(word.substr(0, begin)) + (word.starts_with("--") ? "URI" : " URI");
  return typed(word, false);
}

// Words as they were typed, up to the first that is neither an option nor the value of one.
std::size_t copy_options(words all, std::string& out) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string_view word = all[i];
    if (!is_option(word) || word == "--") return i;
    const auto read = read_option(word);
    out += ' ' + typed_option(word, read);
    if (awaits_value(read) && i + 1 < all.size()) out += ' ' + typed(all[++i], is_uri(read.last));
  }
  return all.size();
}

}  // namespace

std::string shown_option(std::string_view word) { return typed_option(word, read_option(word)); }

std::string in_order(int argc, char* const* argv) {
  const words all{argv + 1, static_cast<std::size_t>(argc - 1)};
  std::string early;
  auto rest = all.subspan(copy_options(all, early));
  const auto* which = rest.empty() ? nullptr : find_command(rest.front());
  if (!which) {
    const auto first = all.empty() ? option_word{} : read_option(all.front());
    const bool may_be_run = first.last && (first.last->commands & static_cast<unsigned>(command::run)) != 0;
    return may_be_run ? "holdfast run [options] NAME -- CMD" : "holdfast help";
  }
  auto out = std::string{"holdfast "} + which->name + early;
  if (which->id == command::run) return out + " NAME -- CMD";
  for (rest = rest.subspan(1); !rest.empty();) {
    rest = rest.subspan(copy_options(rest, out));
    if (rest.empty()) break;
    out += ' ' + typed(rest.front(), false);
    rest = rest.subspan(1);
  }
  return out;
}

}  // namespace holdfast::cli
