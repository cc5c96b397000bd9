// SPDX-License-Identifier: Apache-2.0
#include "message.hpp"

#include "escape.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <limits.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <initializer_list>
#include <system_error>

namespace holdfast::cli {
namespace {

// Everything into one write(2), so that lines of several processes on one terminal do not mix.
void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {  // Somebody who has it too made it non-blocking.
      pollfd ready{fd, POLLOUT, 0};
      ::poll(&ready, 1, -1);
      continue;
    }
    if (n < 0) throw std::system_error{errno, std::generic_category(), "cannot write"};
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

// Who only reads what we say and goes away must not end us (SIGPIPE), nor a log that is as large as it may be (SIGXFSZ,
// ulimit -f): what it is about may be under way. Both are sent to the thread that writes. print() leaves SIGPIPE as it
// is, for `holdfast ls | head`.
class without_signals {
public:
  explicit without_signals(std::initializer_list<int> numbers) {
    sigemptyset(&taken_);
    for (const int number : numbers) sigaddset(&taken_, number);
    ::pthread_sigmask(SIG_BLOCK, &taken_, &before_);
    for (const int number : numbers)
      if (::sigismember(&before_, number) == 1) sigdelset(&taken_, number);
  }
  ~without_signals() {
    constexpr timespec at_once{};
    while (::sigtimedwait(&taken_, nullptr, &at_once) > 0 || errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  without_signals(const without_signals&) = delete;
  without_signals& operator=(const without_signals&) = delete;

private:
  sigset_t taken_{};
  sigset_t before_{};
};

// As much as is taken at once; -1: none, and errno says why.
ssize_t write_some(int fd, std::string_view text) {
  pollfd ready{fd, POLLOUT, 0};
  if (::poll(&ready, 1, 0) != 1) {
    errno = EAGAIN;
    return -1;
  }
  // A pipe that is ready takes so much at once.
  return ::write(fd, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
}

void write_to_stderr(std::string_view text) {
  const without_signals on_our_way{SIGPIPE, SIGXFSZ};
  try {
    write_all(STDERR_FILENO, text);
  } catch (const std::system_error&) {  // Nobody is left who could be told.
  }
}

// What is not taken is left out rather than waited for.
bool try_write_to_stderr(std::string_view text) {
  const without_signals on_our_way{SIGPIPE, SIGXFSZ};
  return write_some(STDERR_FILENO, text) > 0;
}

bool coloured() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return stderr_is_terminal() && (!no_color || !*no_color) && term && std::string_view{term} != "dumb";
}

std::string with_colour(const fault& what, std::string_view severity) {
  auto text = to_text(what, severity);
  if (!coloured()) return text;
  const auto begin = text.find(severity);
  const auto end = text.find(": ", begin);
  if (end == text.npos) return text;
  text.insert(end, "\x1b[0m");
  text.insert(begin, severity == "error" ? "\x1b[1;31m" : "\x1b[1;33m");
  return text;
}

}  // namespace

std::string to_text(const fault& what, std::string_view severity) {
  auto text = what.code.empty() ? fmt::format("holdfast: {}: {}\n", severity, what.text)
                                : fmt::format("holdfast: {}[{}]: {}\n", severity, what.code, what.text);
  if (!what.why.empty()) text += fmt::format("  why: {}\n", what.why);
  if (!what.fix.empty()) text += fmt::format("  fix: {}\n", what.fix);
  if (!what.code.empty()) text += fmt::format("  see: holdfast help {}\n", what.code);
  return text;
}

void say_error(const fault& what) { write_to_stderr(with_colour(what, "error")); }
void say_warning(const fault& what) { write_to_stderr(with_colour(what, "warning")); }
void say(std::string_view text) { write_to_stderr(fmt::format("holdfast: {}\n", text)); }

bool try_say_error(const fault& what) { return try_write_to_stderr(with_colour(what, "error")); }
bool try_say(std::string_view text) { return try_write_to_stderr(fmt::format("holdfast: {}\n", text)); }

void print(std::string_view text) {
  const without_signals on_our_way{SIGXFSZ};
  try {
    write_all(STDOUT_FILENO, text);
  } catch (const std::system_error& e) {
    throw cannot_print{e};
  }
}

void try_print(std::string_view& text) {
  const auto n = write_some(STDOUT_FILENO, text);
  if (n >= 0) return text.remove_prefix(static_cast<std::size_t>(n));
  if (errno == EAGAIN || errno == EINTR) return;
  throw cannot_print{std::system_error{errno, std::generic_category(), "cannot write"}};
}

bool print_done(std::string_view text) {
  const without_signals on_our_way{SIGPIPE};
  try {
    print(text);
    return true;
  } catch (const cannot_print& e) {
    text.remove_suffix(text.ends_with('\n') ? 1 : 0);
    say_warning({.text = fmt::format("{}; it was done all the same: {}", e.what(), text)});
    return false;
  }
}

bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) == 1; }

}  // namespace holdfast::cli
