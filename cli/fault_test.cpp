// SPDX-License-Identifier: Apache-2.0
// interface.md 5.3: each fault has a sentence with its value, and docs/errors.md and the help know all of them.
#include "exit_code.hpp"
#include "help_topics.hpp"
#include "message.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

namespace {

using namespace holdfast::cli;
using holdfast::errc;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string shown(errc cause, holdfast::error_detail detail = {}, std::string_view lock = "nightly") {
  return to_text(describe(holdfast::error{cause, std::move(detail)}, {.lock = lock, .prefix = "hf:"}));
}

constexpr int last_cause = static_cast<int>(errc::lease_held_too_long);

TEST(fault_table, has_every_errc_once) {
  for (int value = 1; value <= last_cause; ++value) {
    const auto matches = std::count_if(fault_table().begin(), fault_table().end(),
                                       [&](const auto& row) { return row.cause == static_cast<errc>(value); });
    EXPECT_EQ(matches, 1) << holdfast::to_string(static_cast<errc>(value));
  }
  EXPECT_EQ(fault_table().size(), static_cast<std::size_t>(last_cause));
}

TEST(fault_table, exits_as_the_outcome_asks) {
  for (const auto& row : fault_table()) {
    const auto code = make_error_code(row.cause);
    const std::string name = holdfast::to_string(row.cause);
    if (code == holdfast::outcome::lost) {
      EXPECT_EQ(row.exit, exit_code::lost) << name;
    }
    if (code == holdfast::outcome::denied) {
      EXPECT_EQ(row.exit, exit_code::denied) << name;
    }
    if (code == holdfast::outcome::unreachable || code == holdfast::outcome::unknown) {
      EXPECT_EQ(row.exit, exit_code::unavailable) << name;
    }
    // Nothing but "somebody else has it" may look like it: a cron job skips its turn on 75 (H22).
    if (row.exit == exit_code::busy) {
      const std::set about_holders{errc::timed_out, errc::cancelled, errc::not_held, errc::changed_hands};
      EXPECT_EQ(about_holders.count(row.cause), 1U) << name;
    }
  }
}

TEST(no_primary, is_told_in_the_words_of_what_there_is) {
  const auto of = [](std::string server) { return shown(errc::no_primary, {.endpoint = std::move(server)}); };
  EXPECT_THAT(of("redis+sentinel://10.0.0.1:26379/main"), HasSubstr("SENTINEL CKQUORUM"));
  EXPECT_THAT(of("rediss+cluster://10.0.0.1:6379"), HasSubstr("redis-cli --cluster check"));
  EXPECT_THAT(of("rediss+cluster://10.0.0.1:6379"), Not(HasSubstr("sentinel")));
}

// They run, and all of them are named.
TEST(no_primary, of_a_name_that_the_sentinels_do_not_know_speaks_of_the_name) {
  const auto of = [](const char* words) {
    return describe(holdfast::error{errc::no_primary, {.endpoint = "redis+sentinel://s1,s2/x", .server_text = words}});
  };
  EXPECT_THAT(of("s1:26379: it knows no primary 'x'; s2:26379: it knows no primary 'x'").fix,
              AllOf(HasSubstr("SENTINEL MASTERS"), Not(HasSubstr("CKQUORUM"))));
  EXPECT_THAT(of("s1:26379: Connection refused; s2:26379: Connection refused").fix, HasSubstr("SENTINEL CKQUORUM"));
}

// A web server's port, say.
TEST(no_primary, of_what_is_no_sentinel_speaks_of_the_port) {
  const auto what = describe(holdfast::error{
      errc::no_primary,
      {.endpoint = "redis+sentinel://s1:80/x",
       .server_text = "s1:80: not a reply we understand: Protocol error, got \"<\" as reply type byte"}});
  EXPECT_THAT(what.fix, AllOf(HasSubstr("26379 unless"), Not(HasSubstr("CKQUORUM"))));
}

// They have a password and a port of their own.
TEST(sentinels_who_refuse, are_told_from_the_primary) {
  const auto of = [](errc cause, std::string words) {
    return shown(cause, {.endpoint = "redis+sentinel://s1:26379,s2:26379/main/2", .server_text = std::move(words)});
  };
  for (const auto cause : {errc::no_password, errc::wrong_password}) {
    EXPECT_THAT(of(cause, "s1:26379: WRONGPASS; s2:26379: WRONGPASS"), HasSubstr("HOLDFAST_SENTINEL_PASSWORD"));
    EXPECT_THAT(of(cause, "WRONGPASS"), Not(HasSubstr("SENTINEL")));
  }
  const auto denied =
      std::string{"NOPERM this user has no permissions to run the 'sentinel|get-master-addr-by-name' command"};
  EXPECT_THAT(of(errc::no_permission, "s1:26379: " + denied + "; s2:26379: " + denied),
              AllOf(HasSubstr("on each sentinel: ACL SETUSER USER +sentinel|get-master-addr-by-name +sentinel|myid"),
                    Not(HasSubstr("holdfast help acl` has"))));
  EXPECT_THAT(of(errc::no_permission, "NOPERM"), HasSubstr("holdfast help acl` has"));
  EXPECT_THAT(of(errc::wrong_server, "s1:26379: it is no sentinel; s2:26379: it is no sentinel"),
              HasSubstr("26379 unless"));
  EXPECT_THAT(of(errc::wrong_server, "it is of no cluster"), Not(HasSubstr("26379 unless")));
}

// Who sets REDISCLI_AUTH once more in a command of ours would find it removed once more.
TEST(E02, under_another_holdfast_says_who_takes_the_password) {
  const auto of = [](bool is_under_another) {
    return to_text(describe(holdfast::error{errc::no_password, {}}, {.is_under_another = is_under_another}));
  };
  EXPECT_THAT(of(true), AllOf(HasSubstr("--keep-password"), Not(HasSubstr("REDISCLI_AUTH"))));
  EXPECT_THAT(of(false), AllOf(HasSubstr("REDISCLI_AUTH"), Not(HasSubstr("--keep-password"))));
}

// The server takes none for a wrong one.
TEST(E02, of_a_user_without_a_password_asks_for_one) {
  const auto of = [](bool has_password, std::string endpoint, std::string words) {
    return to_text(describe(
        holdfast::error{errc::wrong_password,
                        {.endpoint = std::move(endpoint), .server_text = std::move(words), .subject = "user 'me'"}},
        {.has_password = has_password}));
  };
  EXPECT_THAT(of(false, "redis://h", "WRONGPASS"), AllOf(HasSubstr("wants a password for user 'me' and none was given"),
                                                         HasSubstr("REDISCLI_AUTH or a file")));
  EXPECT_THAT(of(true, "redis://h", "WRONGPASS"), HasSubstr("does not accept this password for user 'me'"));
  // Theirs is in a variable of its own.
  EXPECT_THAT(of(false, "redis+sentinel://s1/main", "s1: WRONGPASS"), HasSubstr("does not accept this password"));
}

TEST(every_fault, has_a_sentence_a_code_and_a_help_page) {
  for (const auto& row : fault_table()) {
    const auto text =
        shown(row.cause, {.endpoint = "redis://db1:6379", .server_text = "Its Own Words", .subject = "S"});
    EXPECT_THAT(text, testing::StartsWith(std::string{"holdfast: error["} + row.code + "]: "));
    EXPECT_THAT(text, HasSubstr(std::string{"  see: holdfast help "} + row.code));
    EXPECT_THAT(text, Not(HasSubstr(": \n")));
    const bool has_page = std::any_of(error_codes().begin(), error_codes().end(),
                                      [&](const auto& page) { return std::string_view{page.name} == row.code; });
    EXPECT_TRUE(has_page) << row.code;
  }
}

// The page is for people; this keeps it complete and its numbers true.
TEST(errors_page, has_a_row_with_code_and_exit_status_for_every_errc) {
  std::ifstream file{HOLDFAST_ERRORS_PAGE};
  ASSERT_TRUE(file) << HOLDFAST_ERRORS_PAGE;
  std::ostringstream page;
  page << file.rdbuf();
  for (const auto& row : fault_table()) {
    std::istringstream lines{page.str()};
    std::string line;
    const auto start = std::string{"| `"} + holdfast::to_string(row.cause) + "` |";
    bool found = false;
    while (std::getline(lines, line)) {
      if (!line.starts_with(start)) continue;
      found = true;
      EXPECT_THAT(line, HasSubstr(std::string{"| "} + row.code + " |")) << line;
      EXPECT_THAT(line, testing::EndsWith("| " + std::to_string(number(row.exit)) + " |")) << line;
    }
    EXPECT_TRUE(found) << start;
  }
  for (const auto& code : error_codes()) EXPECT_THAT(page.str(), HasSubstr(std::string{"### "} + code.name));
}

TEST(every_fault, is_quoted_once) {
  for (const auto cause : {errc::wrong_kind, errc::wrong_password, errc::invalid_name}) {
    for (const auto* subject : {"key 'S'", "user 'S'", "'S'", "S"}) {
      const auto text = shown(cause, {.subject = subject});
      EXPECT_THAT(text, HasSubstr("'S'")) << text;
      EXPECT_THAT(text, Not(HasSubstr("''"))) << text;
    }
  }
}

// H70: a hostile server or name must not move the cursor.
TEST(every_fault, shows_no_control_characters) {
  for (const auto& row : fault_table()) {
    const auto text =
        shown(row.cause,
              {.endpoint = "redis://\x1b[2J", .server_text = "\x1b[2J\r\nx", .subject = "\x1b[2J", .why = "\x1b[2J"},
              "\x1b[2J");
    EXPECT_THAT(text, Not(HasSubstr("\x1b"))) << text;
    EXPECT_THAT(text, Not(HasSubstr("\r"))) << text;
  }
}

TEST(what_is_no_fault_of_the_library, is_a_defect_of_ours) {
  const auto what = describe(std::bad_alloc{});
  EXPECT_EQ(what.code, "E21");
  EXPECT_EQ(what.exit, exit_code::defect);
}

// A thread of the library's is refused with the one type, one of the command's own with the other.
TEST(what_is_no_fault_of_the_library, names_the_limit_when_there_are_no_more_threads) {
  const auto code = std::make_error_code(std::errc::resource_unavailable_try_again);
  for (const auto& what : {describe(std::system_error{code}), describe(holdfast::error{code, {}})}) {
    EXPECT_EQ(what.code, "E21");
    EXPECT_EQ(what.exit, exit_code::defect);
    EXPECT_THAT(what.text, HasSubstr("no more threads"));
    EXPECT_THAT(what.why, Not(HasSubstr("defect")));
    EXPECT_THAT(what.fix, HasSubstr("ulimit -u"));
  }
}

}  // namespace
