// SPDX-License-Identifier: Apache-2.0
// E18: a server of ours, local: or one of a lab, that cannot be started, used or ended.
#include "message.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace holdfast::cli;
using holdfast::errc;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string shown(errc cause, holdfast::error_detail detail) {
  return to_text(describe(holdfast::error{cause, std::move(detail)}));
}

TEST(E18, says_what_to_install) {
  EXPECT_THAT(
      shown(errc::local_server, {.endpoint = "local:", .subject = "redis-server", .why = "It is not installed."}),
      HasSubstr("apt-get install redis-server"));
}

TEST(E18, of_a_lab_does_not_speak_of_local) {
  const auto not_installed =
      shown(errc::local_server, {.endpoint = "lab", .subject = "redis-server", .why = "It is not installed."});
  EXPECT_THAT(not_installed, HasSubstr("apt-get install redis-server"));
  const auto used = shown(errc::local_server, {.endpoint = "lab", .subject = "/d", .why = "It is not empty."});
  EXPECT_THAT(used, HasSubstr("the lab failed: /d"));
  EXPECT_THAT(used, HasSubstr("why: It is not empty."));
  EXPECT_THAT(not_installed + used, Not(HasSubstr("local:")));
}

TEST(E18, gives_the_reason_for_a_directory) {
  const auto text = shown(errc::local_server, {.endpoint = "local:", .subject = "/d", .why = "It is a symbolic link."});
  EXPECT_THAT(text, HasSubstr("cannot be used: /d"));
  EXPECT_THAT(text, HasSubstr("why: It is a symbolic link."));
}

TEST(E18, of_a_directory_that_is_none_proposes_another) {
  for (const auto* endpoint : {"local:", "lab"})
    EXPECT_THAT(shown(errc::local_server, {.endpoint = endpoint, .subject = "/d", .why = "It is not a directory."}),
                HasSubstr("fix: another directory: one that is not there yet is made"));
}

// There a server is looked for, and a new directory has none.
TEST(E18, of_a_server_that_is_looked_for_proposes_no_new_directory) {
  for (const auto* word : {"stop", "status"})
    for (const auto* why : {"It is not a directory.", "It cannot be opened.",
                            "It belongs to user 0 and not to you (user 7); name another directory.",
                            "It is shared with group 7, and you are not a member of that."}) {
      const auto fix =
          describe(holdfast::error{errc::local_server, {.endpoint = "local:", .subject = "/d", .why = why}},
                   {.local_word = word})
              .fix;
      EXPECT_THAT(fix, AllOf(Not(testing::IsEmpty()), Not(HasSubstr("is made")))) << why;
    }
}

// `holdfast local start` takes no --uri.
TEST(E18, proposes_no_other_server_where_none_can_be_named) {
  for (const auto* subject : {"/d", "redis-server"}) {
    const auto fix = [&](std::string_view word) {
      return describe(holdfast::error{errc::local_server, {.endpoint = "local:", .subject = subject, .why = "w"}},
                      {.local_word = word})
          .fix;
    };
    EXPECT_THAT(fix(""), HasSubstr("HOLDFAST_URI"));
    EXPECT_THAT(fix("start"), Not(HasSubstr("HOLDFAST_URI")));
  }
}

// `why` has it, or there is none but another server.
TEST(E18, gives_no_way_out_that_says_where_there_may_be_one) {
  const auto fix = [](std::string_view word) {
    return describe(holdfast::error{errc::local_server, {.endpoint = "local:", .subject = "/d/redis.sock", .why = "w"}},
                    {.local_word = word})
        .fix;
  };
  for (const auto* word : {"start", "stop", "status"}) EXPECT_EQ(fix(word), "");
  EXPECT_THAT(fix(""), testing::StartsWith("name a server: "));
}

// That variable is read where no directory was named.
TEST(E18, of_a_directory_that_was_named_proposes_no_variable) {
  const auto why = [](bool names_directory, const char* words) {
    return describe(holdfast::error{errc::local_server, {.endpoint = "local:", .subject = "/d", .why = words}},
                    {.names_directory = names_directory})
        .why;
  };
  EXPECT_EQ(why(true, "It cannot be made; name a directory that you may write with HOLDFAST_LOCAL_DIR."),
            "It cannot be made; name a directory that you may write.");
  EXPECT_EQ(why(true, "name a directory with a shorter path (HOLDFAST_LOCAL_DIR)."),
            "name a directory with a shorter path.");
  EXPECT_THAT(why(false, "name another directory with HOLDFAST_LOCAL_DIR."), HasSubstr("HOLDFAST_LOCAL_DIR"));
}

// What is to be ended is there already.
TEST(E18, of_a_lab_that_is_to_end_proposes_no_new_directory) {
  for (const auto* why : {"It is not a directory.", "It belongs to user 0 and not to you (user 7)."}) {
    const auto fix = describe(holdfast::error{errc::local_server, {.endpoint = "lab", .subject = "/d", .why = why}},
                              {.local_word = "stop"})
                         .fix;
    EXPECT_THAT(fix, AllOf(Not(testing::IsEmpty()), Not(HasSubstr("is made")))) << why;
  }
}

TEST(E18, of_a_lab_that_is_late_says_which_option_gives_it_time) {
  const auto text =
      shown(errc::local_server,
            {.endpoint = "lab",
             .subject = "/d",
             .why = "It was not ready in time; --ready-within (lab_options::ready_within) gives it more. It is left."});
  EXPECT_THAT(text, HasSubstr("why: It was not ready in time. It is left.\n  fix: --ready-within 1m, say\n"));
}

TEST(E18, of_a_lab_that_is_not_there_says_where_it_may_be) {
  for (const auto* why : {"Nothing is there: its lab has been ended, or it is another directory.",
                          "It is not the directory of a lab: it has no file `lab`. Nothing in it was touched."}) {
    const auto text = shown(errc::local_server, {.endpoint = "lab", .subject = "/d", .why = why});
    EXPECT_THAT(text, AllOf(HasSubstr("error[E18]: no lab in /d\n"), HasSubstr("fix: the directory that"))) << text;
  }
}

}  // namespace
