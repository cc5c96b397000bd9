// SPDX-License-Identifier: Apache-2.0
// Which starts count, and that a first one is told from a restart.
#include "local/starts.hpp"

#include "local/scratch_directory.hpp"

#include <gtest/gtest.h>
#include <holdfast/error.hpp>
#include <holdfast/local.hpp>

#include <filesystem>
#include <fstream>
#include <string>

namespace holdfast::local {
namespace {

bool starts(const scratch_directory& scratch) {
  try {
    return start_local(scratch.server()).was_started;
  } catch (const error&) {
    return false;
  }
}

bool is_first_start(const scratch_directory& scratch) { return starts(scratch) && is_first_run(scratch.server()); }

// /var/tmp is cleaned of what was not touched for a month: the record may go while a server runs and grants.
TEST(local_starts, one_without_a_record_is_no_first_one_where_anything_of_a_server_is_left) {
  for (const auto* left : {"redis.sock", "redis.log", "appendonlydir"}) {
    const scratch_directory scratch;
    find_or_make(scratch.server());
    const auto path = scratch.server() + "/" + left;
    if (left == std::string{"appendonlydir"})
      std::filesystem::create_directory(path);
    else
      std::ofstream{path} << "";
    EXPECT_TRUE(starts(scratch)) << left;
    EXPECT_FALSE(is_first_run(scratch.server())) << left;
  }
}

// Its socket is all that is left, and goes with it.
TEST(local_starts, stop_leaves_a_record_where_all_was_deleted) {
  const scratch_directory scratch;
  EXPECT_TRUE(starts(scratch));
  for (const auto* deleted : {"starts", "redis.log", "appendonlydir"})
    std::filesystem::remove_all(scratch.server() + "/" + deleted);
  stop_local(scratch.server());
  EXPECT_TRUE(starts(scratch));
  EXPECT_FALSE(is_first_run(scratch.server()));
}

TEST(local_starts, stop_where_nothing_was_started_leaves_the_first_start_to_come) {
  const scratch_directory scratch;
  find_or_make(scratch.server());
  stop_local(scratch.server());
  EXPECT_TRUE(is_first_start(scratch));
}

}  // namespace
}  // namespace holdfast::local
