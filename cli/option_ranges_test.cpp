// SPDX-License-Identifier: Apache-2.0
// What the command refuses before there is a client is what the library refuses, at the same bounds and in its words.
#include "option_ranges.hpp"

#include <holdfast/client.hpp>
#include <holdfast/error.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <gtest/gtest.h>

#include <string>
#include <system_error>
#include <vector>

namespace {

using namespace holdfast::cli;
using namespace std::chrono_literals;

// "" if it is not refused, whatever else goes wrong.
template <class Work>
std::string refusal(Work work) {
  try {
    work();
  } catch (const holdfast::error& e) {
    if (e.code() == holdfast::errc::invalid_option || e.code() == holdfast::errc::invalid_name)
      return e.code().message() + ": " + e.detail().subject + ": " + e.detail().why;
  }
  return "";
}

std::string of_command(const settings& s) {
  return refusal([&] { check_ranges(command::run, s); });
}

// Nobody listens there.
std::string of_library(const settings& s) {
  return refusal([&] {
    holdfast::client_options how;
    how.timeout = 10ms;
    if (s.server_timeout) how.timeout = *s.server_timeout;
    if (s.max_ttl) how.max_ttl = *s.max_ttl;
    if (s.plain) how.names = holdfast::naming::plain;
    how.durability.replicas = s.replicas;
    if (s.replicas_timeout) how.durability.timeout = *s.replicas_timeout;
    holdfast::client locks{"redis://127.0.0.1:1", how};
    (void)locks.acquire(s.name, {.ttl = s.ttl, .wait = s.wait, .min_fence = s.min_fence, .max_hold = s.max_hold});
  });
}

struct range_case {
  settings s;
  bool is_refused;
};

TEST(check_ranges, refuses_what_the_library_refuses_and_in_its_words) {
  constexpr auto year = std::chrono::milliseconds{24h * 366};
  const auto last_fence = holdfast::fencing_token::max_value;
  std::vector<range_case> cases;
  const auto add = [&](bool is_refused, auto change) {
    settings s;
    s.name = "x";
    s.wait = 0ms;
    change(s);
    cases.push_back({s, is_refused});
  };
  for (const bool bad : {false, true}) {
    add(bad, [&](settings& s) { s.ttl = bad ? 99ms : 100ms; });
    add(bad, [&](settings& s) { s.ttl = bad ? 60001ms : 60000ms; });
    add(bad, [&](settings& s) { s.ttl = 99ms, s.max_ttl = 100ms, s.ttl += bad ? 0ms : 1ms; });
    add(bad, [&](settings& s) { s.max_ttl = bad ? 24h + 1ms : 24h; });
    add(bad, [&](settings& s) { s.max_hold = bad ? s.ttl - 1ms : s.ttl; });
    add(bad, [&](settings& s) { s.max_hold = bad ? year + 1ms : year; });
    add(bad, [&](settings& s) { s.min_fence = holdfast::fencing_token{last_fence - (bad ? 0 : 1)}; });
    add(bad, [&](settings& s) { s.name = bad ? "a\nb" : "a b"; });
    add(bad, [&](settings& s) {
      s.replicas = 1;
      s.server_timeout = 200ms;
      s.ttl = bad ? 399ms : 400ms;
    });
  }
  add(true, [&](settings& s) { s.wait = year + 1ms; });  // As long as that it would take.
  for (const auto& [s, is_refused] : cases) {
    const auto said = of_command(s);
    EXPECT_EQ(said, of_library(s));
    EXPECT_EQ(said != "", is_refused) << said;
  }
}

// Which says more about it: that is its own range.
TEST(check_ranges, leaves_what_is_checked_before_a_server_is_started_to_the_library) {
  settings s;
  s.name = "x";
  s.replicas = 1;
  s.replicas_timeout = 1h;
  EXPECT_EQ(of_command(s), "");
  EXPECT_NE(of_library(s).find("durability.timeout"), std::string::npos);
}

// The library says so only when it is asked for one, and by then a local: server runs.
TEST(check_ranges, refuses_plain_names_of_what_only_holdfast_knows) {
  const auto code_of = [](auto work) -> std::error_code {
    try {
      work();
    } catch (const holdfast::error& e) {
      return e.code();
    }
    return {};
  };
  for (const auto mode : {taking_mode::writing, taking_mode::reading, taking_mode::permit}) {
    settings s;
    s.name = "x";
    s.plain = true;
    s.mode = mode;
    EXPECT_EQ(code_of([&] { check_ranges(command::run, s); }), holdfast::errc::invalid_option);
    EXPECT_EQ(code_of([&] {
                holdfast::client locks{"redis://127.0.0.1:1", {.names = holdfast::naming::plain}};
                if (mode == taking_mode::permit)
                  (void)holdfast::semaphore{locks, "x", 2}.try_acquire();
                else
                  (void)holdfast::shared_mutex{locks, "x"}.try_acquire();
              }),
              holdfast::errc::invalid_option);
  }
}

// Their ttl is the default one, and nobody asked for it.
TEST(check_ranges, minds_no_ttl_where_nothing_is_taken) {
  settings s;
  s.name = "x";
  s.max_ttl = 1s;
  for (const auto which : {command::show, command::ls, command::doctor, command::wait})
    EXPECT_EQ(refusal([&] { check_ranges(which, s); }), "");
}

}  // namespace
