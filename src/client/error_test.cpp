// SPDX-License-Identifier: Apache-2.0
// The rule of docs/errors.md: lost, unknown and not_applied share out the causes, and the rest refines not_applied.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <holdfast/error.hpp>

#include <array>
#include <set>
#include <string>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<errc> every_cause() {
  std::vector<errc> all;
  for (int value = 1; value <= static_cast<int>(errc::lease_held_too_long); ++value)
    all.push_back(static_cast<errc>(value));
  return all;
}

bool is(errc cause, outcome what) { return make_error_code(cause) == what; }

std::set<errc> all_with(outcome what) {
  std::set<errc> found;
  for (const errc cause : every_cause()) {
    if (is(cause, what)) found.insert(cause);
  }
  return found;
}

TEST(every_errc, has_a_name_of_its_own) {
  std::set<std::string> names;
  for (const errc cause : every_cause()) {
    EXPECT_STRNE(to_string(cause), "unknown") << static_cast<int>(cause);
    EXPECT_TRUE(names.insert(to_string(cause)).second) << to_string(cause);
  }
}

TEST(every_errc, has_a_message_of_its_own) {
  std::set<std::string> messages;
  for (const errc cause : every_cause()) {
    const auto message = make_error_code(cause).message();
    EXPECT_THAT(message, Not(HasSubstr("unknown holdfast error"))) << to_string(cause);
    EXPECT_TRUE(messages.insert(message).second) << message;
  }
}

TEST(errc_category, has_words_for_a_value_that_is_none) {
  EXPECT_STREQ(to_string(static_cast<errc>(9'999)), "unknown");
  EXPECT_THAT((std::error_code{9'999, error_category()}.message()), HasSubstr("9999"));
  EXPECT_FALSE((std::error_code{9'999, error_category()} == outcome::not_applied));
}

TEST(outcome, lost_is_every_way_to_lose_a_lease) {
  EXPECT_EQ(all_with(outcome::lost), (std::set{errc::lease_expired, errc::lease_gone, errc::lease_taken,
                                               errc::lease_broken, errc::lease_held_too_long}));
}

TEST(outcome, unknown_is_every_request_without_an_answer) {
  EXPECT_EQ(all_with(outcome::unknown),
            (std::set{errc::cancelled_in_flight, errc::reply_lost, errc::unexpected_reply}));
}

// Who tries again on not_applied must not do so on an answer that never came.
TEST(outcome, not_applied_is_everything_else) {
  for (const errc cause : every_cause()) {
    EXPECT_EQ(is(cause, outcome::not_applied), !is(cause, outcome::lost) && !is(cause, outcome::unknown))
        << to_string(cause);
  }
}

TEST(outcome, timed_out_is_its_namesake_alone) { EXPECT_EQ(all_with(outcome::timed_out), std::set{errc::timed_out}); }

TEST(outcome, denied_is_password_and_permission) {
  EXPECT_EQ(all_with(outcome::denied), (std::set{errc::no_password, errc::wrong_password, errc::no_permission}));
}

TEST(outcome, unreachable_is_every_server_that_does_not_answer) {
  EXPECT_EQ(all_with(outcome::unreachable),
            (std::set{errc::cannot_resolve, errc::cannot_connect, errc::server_silent, errc::connection_lost,
                      errc::tls_failed, errc::local_server, errc::no_primary, errc::no_quorum}));
}

TEST(outcome, misconfigured_is_what_trying_again_does_not_help) {
  EXPECT_EQ(
      all_with(outcome::misconfigured),
      (std::set{errc::invalid_name, errc::invalid_option, errc::invalid_uri, errc::no_server, errc::used_after_fork,
                errc::empty_handle, errc::wrong_database, errc::not_a_primary, errc::wrong_kind, errc::wrong_server,
                errc::script_mismatch, errc::fence_too_far, errc::other_size, errc::other_quorum}));
}

// They go into logs and, by a C interface or a file, into other programs.
TEST(errc, numbers_stay_what_they_are) {
  const std::array in_order{
      errc::invalid_name,        errc::invalid_option, errc::invalid_uri,      errc::no_server,
      errc::used_after_fork,     errc::empty_handle,   errc::timed_out,        errc::cancelled,
      errc::cancelled_in_flight, errc::reply_lost,     errc::unexpected_reply, errc::lease_expired,
      errc::lease_gone,          errc::lease_taken,    errc::lease_broken,     errc::cannot_resolve,
      errc::cannot_connect,      errc::server_silent,  errc::connection_lost,  errc::tls_failed,
      errc::no_password,         errc::wrong_password, errc::no_permission,    errc::wrong_database,
      errc::not_a_primary,       errc::wrong_kind,     errc::wrong_server,     errc::script_mismatch,
      errc::fence_too_far,       errc::local_server,   errc::server_loading,   errc::server_busy,
      errc::out_of_memory,       errc::server_refused, errc::clock_stepped,    errc::not_held,
      errc::changed_hands,       errc::other_size,     errc::quarantined,      errc::not_replicated,
      errc::no_primary,          errc::no_quorum,      errc::other_quorum,     errc::lease_held_too_long};
  int number = 0;
  for (const auto cause : in_order) EXPECT_EQ(static_cast<int>(cause), ++number) << make_error_code(cause).message();
}

TEST(outcome, busy_is_never_an_error) { EXPECT_THAT(all_with(outcome::busy), IsEmpty()); }

TEST(outcome, has_a_message_for_each) {
  std::set<std::string> messages;
  for (int value = 1; value <= static_cast<int>(outcome::misconfigured); ++value) {
    const auto message = make_error_condition(static_cast<outcome>(value)).message();
    EXPECT_THAT(message, Not(HasSubstr("unknown outcome"))) << value;
    EXPECT_TRUE(messages.insert(message).second) << message;
  }
}

TEST(error, says_message_value_and_words_of_the_server_in_one_line) {
  const error e{errc::no_permission, {.endpoint = "redis://db1:6379", .server_text = "NOPERM", .subject = "user app"}};
  const std::string what = e.what();
  for (const auto* part : {"redis://db1:6379", "NOPERM", "user app"}) EXPECT_THAT(what, HasSubstr(part));
  EXPECT_THAT(what, HasSubstr(make_error_code(errc::no_permission).message()));
  EXPECT_THAT(what, Not(HasSubstr("\n")));
}

// Under naming::plain a lock's name may have any bytes; so may a path, or the server's words.
TEST(error, says_it_in_one_line_to_its_end_whatever_is_in_the_value) {
  using namespace std::string_literals;
  const error e{errc::timed_out, {.server_text = "two\r\nlines", .subject = "'a\nb\0\x1b[31m\x7f\xc3\xa4'"s}};
  EXPECT_EQ(std::string{e.what()}, "'a\\x0Ab\\x00\\x1B[31m\\x7F\xc3\xa4'; two\\x0D\\x0Alines: " + e.code().message());
  EXPECT_EQ(e.detail().subject, "'a\nb\0\x1b[31m\x7f\xc3\xa4'"s) << "the value itself stays";
}

TEST(error, without_detail_is_its_message) {
  EXPECT_EQ(error{errc::empty_handle}.what(), make_error_code(errc::empty_handle).message());
}

TEST(error, keeps_its_detail_when_copied) {
  const error first{errc::reply_lost, {.subject = "nightly", .may_remain = std::chrono::seconds{10}}};
  const error copy = first;
  EXPECT_EQ(copy.detail().subject, "nightly");
  EXPECT_EQ(copy.detail().may_remain, std::chrono::seconds{10});
  EXPECT_EQ(copy.code(), errc::reply_lost);
}

}  // namespace
}  // namespace v0
}  // namespace holdfast
