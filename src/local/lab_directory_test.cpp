// SPDX-License-Identifier: Apache-2.0
// Where a lab may lie.
#include "local/lab_directory.hpp"

#include "local/sandbox.hpp"
#include "local/scratch_directory.hpp"

#include <gtest/gtest.h>
#include <holdfast/error.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace holdfast::local {
namespace {

// Where a fresh one was made; it is removed.
std::string fresh_parent() {
  const auto made = make_lab_place("").directory;
  std::filesystem::remove(made);
  return std::filesystem::path{made}.parent_path().string();
}

bool nothing() { return true; }

// It goes with the last logout, and then nobody can end the servers.
TEST(lab_directory, is_not_made_in_the_runtime_directory) {
  const scratch_directory scratch;
  const auto is_elsewhere = [&] {
    ::setenv("XDG_RUNTIME_DIR", scratch.path().c_str(), 1);
    ::unsetenv("TMPDIR");
    return fresh_parent() == "/tmp";
  };
  EXPECT_EQ(in_sandbox(nothing, is_elsewhere), true);
}

// redis-server would find no configuration, and serve all networks with its own.
TEST(lab_directory, is_none_that_redis_reads_as_a_pattern) {
  const scratch_directory scratch;
  for (const std::string name : {"a[b]", "a*b", "a?b"}) {
    const auto parent = scratch.path() + "/" + name;
    std::filesystem::create_directory(parent);
    try {
      make_lab_place(parent + "/lab");
      FAIL() << "it is one: " << name;
    } catch (const error& e) {
      EXPECT_NE(e.detail().why.find("reads as a pattern"), std::string::npos) << e.detail().why;
    }
    EXPECT_TRUE(std::filesystem::is_empty(parent)) << name;
    const auto is_elsewhere = [&] {
      ::setenv("TMPDIR", parent.c_str(), 1);
      return fresh_parent() == "/tmp";
    };
    EXPECT_EQ(in_sandbox(nothing, is_elsewhere), true) << name;
  }
  EXPECT_EQ(make_lab_place(scratch.path() + "/a]").directory, scratch.path() + "/a]");
}

}  // namespace
}  // namespace holdfast::local
