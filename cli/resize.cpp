// SPDX-License-Identifier: Apache-2.0
// holdfast resize: says how many permits a semaphore has, for everybody. Whoever names the old size gets E22 from then
// on.
#include "escape.hpp"
#include "exit_code.hpp"
#include "message.hpp"
#include "server.hpp"
#include "subcommands.hpp"

#include <holdfast/semaphore.hpp>

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace holdfast::cli {
namespace {

int size_of(std::string_view word, const settings& s) {
  constexpr int largest = 1'000'000;
  int size = 0;
  const auto [end, ec] = std::from_chars(word.data(), word.data() + word.size(), size);
  if (ec != std::errc{} || end != word.data() + word.size() || size < 1 || size > largest)
    throw usage_error{fmt::format("resize: '{}' is not a whole number from 1 to {}", visible_word(word), largest),
                      fmt::format("holdfast resize {} N", lock_argument(s))};
  return size;
}

}  // namespace

int resize_command(const settings& s) {
  const int size = size_of(s.words.front(), s);
  server at = open_server(s);
  semaphore{at.locks, s.name, size}.resize(size);
  if (!s.quiet)
    print_done(fmt::format("'{}' has {} permit{} now; whoever names another size (-l) is refused\n",
                           visible_word(s.name), size, size == 1 ? "" : "s"));
  return number(exit_code::ok);
}

}  // namespace holdfast::cli
