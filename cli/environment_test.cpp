// SPDX-License-Identifier: Apache-2.0
#include "environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace {

using namespace holdfast::cli;
using holdfast::fencing_token;
using holdfast::naming;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// Sets a variable for the length of a test.
struct with_variable {
  with_variable(const char* name, const char* value) : name_{name} { ::setenv(name, value, 1); }
  ~with_variable() { ::unsetenv(name_); }
  with_variable(const with_variable&) = delete;
  with_variable& operator=(const with_variable&) = delete;
  const char* name_;
};

std::vector<std::string> under_lock(bool keep_password = false) {
  return environment_under({"nightly", fencing_token{42}, "me@here", std::chrono::seconds{10}, "entry"}, keep_password);
}

TEST(user_name, is_of_the_environment_or_of_the_file_of_users) {
  ::unsetenv("USER");
  const with_variable user{"USER", "bob"};
  {
    const with_variable login{"LOGNAME", "ann"};
    EXPECT_EQ(user_name(), "ann");
  }
  EXPECT_EQ(user_name(), "bob");
  ::unsetenv("USER");
  if (::getuid() == 0) {
    EXPECT_EQ(user_name(), "root") << "of a container or a unit, which has neither";
  }
}

TEST(environment, tells_the_command_its_lock) {
  EXPECT_THAT(under_lock(), testing::IsSupersetOf({"HOLDFAST_HELD=1", "HOLDFAST_NAME=nightly", "HOLDFAST_TOKEN=42",
                                                   "HOLDFAST_OWNER=me@here", "HOLDFAST_MODE=exclusive",
                                                   "HOLDFAST_TTL_MS=10000", "HOLDFAST_HOLDS=entry,42"}));
}

// The bug of etcdctl: an inherited token wins over the new one.
TEST(environment, overwrites_what_was_inherited) {
  const with_variable stale{"HOLDFAST_TOKEN", "1"};
  const auto found = under_lock();
  EXPECT_THAT(found, Contains("HOLDFAST_TOKEN=42").Times(1));
  EXPECT_THAT(found, Contains(StartsWith("HOLDFAST_TOKEN=")).Times(1));
}

TEST(environment, keeps_what_is_not_ours) {
  const with_variable other{"HOLDFAST_TOKENS", "mine"};
  EXPECT_THAT(under_lock(), Contains("HOLDFAST_TOKENS=mine"));
}

// H78
TEST(environment, has_no_passwords) {
  const with_variable auth{"REDISCLI_AUTH", "canary"};
  const with_variable sentinels{"HOLDFAST_SENTINEL_PASSWORD", "canary"};
  const with_variable uri{"HOLDFAST_URI", "redis://me:canary@db1/3"};
  const auto found = under_lock();
  EXPECT_THAT(found, Each(Not(testing::HasSubstr("canary"))));
  EXPECT_THAT(found, Contains("HOLDFAST_URI=redis://db1/3"));
}

TEST(environment, has_passwords_when_that_is_asked_for) {
  const with_variable auth{"REDISCLI_AUTH", "canary"};
  EXPECT_THAT(under_lock(true), Contains("REDISCLI_AUTH=canary"));
}

TEST(holds, grow_by_one_for_each_lock) {
  const with_variable above{"HOLDFAST_HOLDS", "outer"};
  EXPECT_THAT(under_lock(), Contains("HOLDFAST_HOLDS=outer entry,42"));
}

TEST(holds, are_found_wherever_they_stand) {
  const auto outer = hold_entry("redis://a", "hf:", naming::holdfast, "x y,%");
  const auto inner = hold_entry("redis://a", "hf:", naming::holdfast, "z");
  const with_variable above{"HOLDFAST_HOLDS", (outer + ",7 " + inner + ",9 " + outer + ",8").c_str()};
  EXPECT_THAT(tokens_above(outer), ElementsAre(fencing_token{7}, fencing_token{8}));
  EXPECT_THAT(tokens_above(inner), ElementsAre(fencing_token{9}));
}

TEST(holds, are_counted) {
  for (const auto& [value, count] : {std::pair{"", 0u}, {"a,7", 1u}, {"a,7 b", 2u}, {"a,7 b,8 a,9", 3u}}) {
    const with_variable above{"HOLDFAST_HOLDS", value};
    EXPECT_EQ(locks_above(), count) << value;
  }
}

// An older holdfast wrote none; what is no token says as little.
TEST(holds, may_be_without_a_token) {
  const auto entry = hold_entry("redis://a", "hf:", naming::holdfast, "x");
  const with_variable above{"HOLDFAST_HOLDS", (entry + " " + entry + ", " + entry + ",x").c_str()};
  EXPECT_THAT(tokens_above(entry), ElementsAre(std::nullopt, std::nullopt, std::nullopt));
}

TEST(holds, of_another_server_prefix_naming_or_name_are_others) {
  const auto entry = hold_entry("redis://a", "hf:", naming::holdfast, "x");
  const with_variable above{"HOLDFAST_HOLDS", (entry + ",7 " + entry).c_str()};
  EXPECT_THAT(tokens_above(hold_entry("redis://b", "hf:", naming::holdfast, "x")), IsEmpty());
  EXPECT_THAT(tokens_above(hold_entry("redis://a", "app:", naming::holdfast, "x")), IsEmpty());
  EXPECT_THAT(tokens_above(hold_entry("redis://a", "hf:", naming::plain, "x")), IsEmpty());
  EXPECT_THAT(tokens_above(hold_entry("redis://a", "hf:", naming::holdfast, "xx")), IsEmpty());
  EXPECT_THAT(tokens_above(hold_entry("redis://a", "hf:", naming::holdfast, "x,7")), IsEmpty());
}

TEST(holds, entries_cannot_be_forged_by_a_name) {
  const auto entry = hold_entry("redis://a", "hf:", naming::holdfast, "x redis://a,hf:,holdfast,y");
  EXPECT_EQ(entry.find(' '), entry.npos);
}

}  // namespace
