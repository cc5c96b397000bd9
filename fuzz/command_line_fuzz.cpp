// SPDX-License-Identifier: Apache-2.0
// What people, scripts and their variables put on the command line. The first letter says what is read:
//
//   o  options: one word a line, the command's word first
//   d  a duration
//   e  the environment of the command: lock, endpoint and three variables, one a line
//   t  a topic of help, and any other text
//
// Beside "no crash": there is one way to complain, and its text is safe to show; the same words mean the same again; a
// password does not stay in the arguments; what we print can be read back.
#include "input.hpp"

#include "duration.hpp"
#include "environment.hpp"
#include "escape.hpp"
#include "message.hpp"
#include "options.hpp"
#include "subcommands.hpp"
#include "suggest.hpp"
#include "uri.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace holdfast;
using fuzz::require;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> all{""};
  for (const char c : text) {
    if (c == '\n')
      all.emplace_back();
    else if (c != '\0')
      all.back() += c;
  }
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (auto& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

// A terminal obeys some bytes.
bool is_safe_to_show(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }) &&
         cli::visible(text) == text;
}

struct reading {
  std::optional<cli::settings> got{};
  std::string complaint{};
  std::vector<std::string> words;  // As they are left behind.
};

reading read(cli::command which, const std::vector<std::string>& words) {
  reading out{.words = words};
  auto arguments = pointers_to(out.words);
  try {
    out.got = cli::parse_options(which, static_cast<int>(words.size()), arguments.data());
  } catch (const cli::usage_error& e) {
    out.complaint = e.what();
    require(!out.complaint.empty() && is_safe_to_show(out.complaint) && is_safe_to_show(e.fix));
  }
  return out;
}

bool is_same(const cli::settings& a, const cli::settings& b) {
  return a.name == b.name && a.words == b.words && a.shell_command == b.shell_command && a.mode == b.mode &&
         a.limit == b.limit && a.try_once == b.try_once && a.wait == b.wait && a.conflict_exit == b.conflict_exit &&
         a.ttl == b.ttl && a.kill_after == b.kill_after && a.stop_signal == b.stop_signal && a.token == b.token &&
         a.uri == b.uri && a.wants_help == b.wants_help && a.json == b.json && a.when_lost == b.when_lost;
}

void check_options(std::string_view text) {
  const auto words = lines_of(text);
  cli::command which{};
  try {
    which = cli::parse_command(words.front());
  } catch (const cli::usage_error& e) {
    require(is_safe_to_show(e.what()) && is_safe_to_show(e.fix));
    return;
  }
  const auto first = read(which, words);
  const auto again = read(which, words);
  require(first.got.has_value() == again.got.has_value() && first.complaint == again.complaint);
  if (!first.got) return;
  const auto& s = *first.got;
  require(is_same(s, *again.got));
  if (which == cli::command::run && !s.wants_help) {
    // What is run is the end of the command line, untouched.
    require(s.words.size() < words.size() && std::equal(s.words.rbegin(), s.words.rend(), words.rbegin()));
    require(s.words.empty() == s.shell_command.has_value());
  }
  require(s.limit >= 0 && (s.mode == cli::taking_mode::permit) == (s.limit > 0));
  require(!s.conflict_exit || (*s.conflict_exit >= 0 && *s.conflict_exit <= 255));
  const auto password = s.uri ? cli::find_password(*s.uri) : std::nullopt;
  // Also of a URI that a later one takes the place of; and nothing but a password is blotted out.
  require(!s.password_in_arguments.empty() || (!password && first.words == words));
  if (password &&
      s.uri->substr(password->begin, password->end - password->begin).find_first_not_of('*') != s.uri->npos) {
    const auto has_uri = [&](const std::string& word) { return word.find(*s.uri) != word.npos; };
    require(std::count_if(first.words.begin(), first.words.end(), has_uri) <
            std::count_if(words.begin(), words.end(), has_uri));
  }
}

void check_duration(std::string_view text) {
  std::string why;
  const auto span = cli::parse_duration(text, why);
  require(span.has_value() == why.empty());
  if (!span) return require(is_safe_to_show(why));
  require(span->count() >= 0);
  require(cli::parse_duration(std::to_string(span->count()) + "ms", why) == span);
  // What we show of it leaves out what does not matter; what is shown can be typed, and is then shown again.
  const auto shown = cli::to_text(*span);
  const auto typed = cli::parse_duration(shown, why);
  require(typed && *typed <= *span && cli::to_text(*typed) == shown);
}

void check_environment(std::string_view text) {
  auto lines = lines_of(text);
  lines.resize(5);
  std::vector<std::string> outside{"HOLDFAST_HOLDS=" + lines[2], "HOLDFAST_URI=" + lines[3], lines[4],
                                   "REDISCLI_AUTH=secret", "HOLDFAST_TOKEN=1"};
  auto pointers = pointers_to(outside);
  char** const before = std::exchange(environ, pointers.data());
  const auto entry = cli::hold_entry(lines[1], "hf:", naming::holdfast, lines[0]);
  require(std::count(entry.begin(), entry.end(), ',') == 3 && entry.find(' ') == entry.npos);
  const cli::held_lock lock{lines[0], fencing_token{7}, "ann", std::chrono::seconds{10}, entry};
  auto inside = cli::environment_under(lock, false);
  const auto with_name = [&](std::string_view name) {
    return std::count_if(inside.begin(), inside.end(), [&](const auto& v) { return v.starts_with(name); });
  };
  require(with_name("HOLDFAST_TOKEN=") == 1 && with_name("HOLDFAST_HOLDS=") == 1 && with_name("HOLDFAST_NAME=") == 1);
  require(with_name("REDISCLI_AUTH=") == 0);
  for (const auto& variable : inside) {
    if (variable.starts_with("HOLDFAST_URI=")) require(!cli::find_password(variable));
  }
  // A command below us knows that the lock is held above it.
  auto below = pointers_to(inside);
  environ = below.data();
  const auto tokens = cli::tokens_above(entry);
  require(!tokens.empty() && tokens.back() == lock.token);
  environ = before;
}

// Takes off what shell_quoted put on, as a shell does.
std::string unquoted(std::string_view text) {
  std::string out;
  bool is_quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\'') {
      is_quoted = !is_quoted;
    } else if (text[i] == '\\' && !is_quoted) {
      require(i + 1 < text.size());
      out += text[++i];
    } else {
      out += text[i];
    }
  }
  require(!is_quoted);
  return out;
}

void check_text(std::string_view text) {
  const auto shown = cli::visible(text);
  require(is_safe_to_show(shown));
  require(unquoted(cli::shell_quoted(text)) == text);
  try {
    (void)cli::help_command(text);
  } catch (const cli::usage_error& e) {
    require(is_safe_to_show(e.what()) && is_safe_to_show(e.fix));
  }
  const auto without = cli::without_credentials(text);
  require(without.size() <= text.size());
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  // help prints.
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  require(nowhere >= 0 && ::dup2(nowhere, STDOUT_FILENO) >= 0);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text{reinterpret_cast<const char*>(data) + 1, size - 1};
  switch (data[0]) {
    case 'o': check_options(text); break;
    case 'd': check_duration(text); break;
    case 'e': check_environment(text); break;
    case 't': check_text(text); break;
    default: return -1;  // Nothing to learn from it.
  }
  return 0;
}
