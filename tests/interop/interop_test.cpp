// SPDX-License-Identifier: Apache-2.0
// The same key shared with other lock libraries: under plain naming each side excludes the other, whoever came first.
// HOLDFAST_INTEROP_SECONDS says how long they contend; 30 for the record, 3 in the usual run.
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"
#include "support/witness.hpp"

#include <gtest/gtest.h>
#include <holdfast/holdfast.hpp>

#include <cstdlib>
#include <iostream>

namespace holdfast::test {
namespace {

std::string contention_seconds() {
  const char* named = std::getenv("HOLDFAST_INTEROP_SECONDS");
  return named != nullptr ? named : "3";
}

// node_modules in the build directory, made from the lock file by npm ci. Empty: ready; else why not.
std::string install_npm_peers() {
  const std::string where = HOLDFAST_INTEROP_NPM;
  const std::string source = HOLDFAST_INTEROP_SOURCE "/npm/";
  const auto command = "mkdir -p '" + where + "' && cd '" + where + "' && cp '" + source + "peer.js' . && { cmp -s '" +
                       source + "package-lock.json' installed.json || { cp '" + source + "package.json' '" + source +
                       "package-lock.json' . && npm ci --no-audit --no-fund --ignore-scripts >npm.log 2>&1 && "
                       "cp package-lock.json installed.json; }; }";
  if (std::system(command.c_str()) == 0) return {};
  return "npm ci failed in " + where + " (see npm.log there); is this machine offline?";
}

struct peer {
  const char* name;
  std::vector<std::string> program;
  bool needs_npm;
};

void PrintTo(const peer& p, std::ostream* out) { *out << p.name; }

class interop : public testing::TestWithParam<peer> {
protected:
  void SetUp() override {
    if (!GetParam().needs_npm) return;
    static const std::string trouble = install_npm_peers();
    if (!trouble.empty()) {
      std::cerr << "\n*** NOT TESTED: " << GetParam().name << ": " << trouble << "\n\n";
      GTEST_SKIP() << trouble;
    }
  }

  client make_client() {
    client_options how;
    how.names = naming::plain;
    return client{server_.unix_uri(), how};
  }

  child_process start(const std::string& verb) {
    auto words = GetParam().program;
    words.insert(words.end(), {server_.socket(), key, scratch_ / "witness", verb, contention_seconds()});
    words.push_back(HOLDFAST_WITNESS_RECORD);
    return child_process{words};
  }

  static constexpr auto key = "mutex:shared";
  redis_server server_;
  scratch_directory scratch_;
};

TEST_P(interop, finds_our_lock_busy) {
  auto locks = make_client();
  const auto held = locks.acquire(key);
  auto other = start("try");
  EXPECT_EQ(other.read_line(), "busy");
  EXPECT_TRUE(held.valid());
}

TEST_P(interop, holds_a_lock_that_we_find_busy) {
  auto other = start("try");
  ASSERT_EQ(other.read_line(), "acquired");
  auto locks = make_client();
  EXPECT_FALSE(locks.try_acquire(key));
  EXPECT_TRUE(locks.inspect(key).foreign);
}

TEST_P(interop, gets_the_lock_that_we_release) {
  auto locks = make_client();
  auto held = locks.acquire(key);
  EXPECT_EQ(held.release(), release_outcome::released);
  auto other = start("try");
  EXPECT_EQ(other.read_line(), "acquired");
}

// The 6.
TEST_P(interop, contends_with_us_without_overlap) {
  std::vector<child_process> ours;
  const auto patience = std::chrono::seconds{std::stoi(contention_seconds()) + 30};
  for (int i = 0; i < 2; ++i) {
    ours.emplace_back(std::vector<std::string>{HOLDFAST_WORKER, server_.unix_uri(), "contend", key,
                                               contention_seconds() + "s", scratch_ / "witness", "500", "plain"});
  }
  std::vector<child_process> theirs;
  for (int i = 0; i < 2; ++i) theirs.push_back(start("contend"));
  int our_holds = 0;
  int their_holds = 0;
  for (auto* side : {&ours, &theirs}) {
    for (auto& one : *side) {
      const auto line = one.read_line(patience).value_or("(nothing)");
      ASSERT_TRUE(line.starts_with("done ")) << line;
      (side == &ours ? our_holds : their_holds) += std::stoi(line.substr(5));
    }
  }
  const auto result = judge(read_sightings(scratch_ / "witness"));
  EXPECT_EQ(result.overlaps, 0) << result.first_offence;
  EXPECT_EQ(result.token_regressions, 0) << result.first_offence;
  EXPECT_EQ(result.holds, our_holds + their_holds);
  EXPECT_GT(our_holds, 0);
  EXPECT_GT(their_holds, 0);
  std::cout << GetParam().name << ": " << our_holds << " holds of ours, " << their_holds << " of theirs\n";
}

INSTANTIATE_TEST_SUITE_P(
    peers, interop,
    testing::Values(peer{"redis_py", {"/usr/bin/python3", HOLDFAST_INTEROP_SOURCE "/redis_py_peer.py"}, false},
                    peer{"redis_cli", {HOLDFAST_INTEROP_SOURCE "/redis_cli_peer.sh"}, false},
                    peer{"redlock", {"node", HOLDFAST_INTEROP_NPM "/peer.js", "redlock"}, true},
                    peer{"redis_semaphore", {"node", HOLDFAST_INTEROP_NPM "/peer.js", "redis-semaphore"}, true}),
    [](const testing::TestParamInfo<peer>& one) { return std::string{one.param.name}; });

}  // namespace
}  // namespace holdfast::test
