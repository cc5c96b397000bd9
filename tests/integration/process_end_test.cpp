// SPDX-License-Identifier: Apache-2.0
// A program that ends while it holds a lease: by return from main or by exit(3), with what it has of ours on the stack
// or static. It gives the lease back as far as it can, and its end waits for no server (H48).
#include "integration/fixture.hpp"

#include <sys/wait.h>

#include <optional>
#include <tuple>

namespace holdfast::test {
namespace {

// client_state::farewell: how long background releases are waited for.
constexpr std::chrono::milliseconds farewell{200};

class program : public on_redis {
protected:
  child_process start(const std::string& place, const std::string& how) {
    child_process one{{HOLDFAST_WORKER, uri(), "end", "x", place, how}, {.environment = worker_environment()}};
    EXPECT_TRUE(one.read_line().value_or("(nothing)").starts_with("acquired "));
    return one;
  }
};

struct the_end {
  const char* place;
  const char* how;
  int status;
};

void PrintTo(const the_end& one, std::ostream* out) { *out << one.place << '_' << one.how; }

using server_and_end = std::tuple<std::string, the_end>;
class program_with_a_lease : public program, public testing::WithParamInterface<server_and_end> {};

TEST_P(program_with_a_lease, ends_in_time_when_its_server_does_not_answer_H48) {
  const auto& [server, end] = GetParam();
  auto one = start(end.place, end.how);
  server == "dead" ? server_.kill() : server_.pause();
  const auto began = boottime();
  one.write_line("end");
  const auto status = one.wait(20s);
  EXPECT_LT(boottime() - began, farewell + slack);
  ASSERT_TRUE(status) << "it does not end";
  EXPECT_TRUE(WIFEXITED(*status)) << "signal " << WTERMSIG(*status);
  EXPECT_EQ(WEXITSTATUS(*status), end.status);
}

INSTANTIATE_TEST_SUITE_P(hazard_48, program_with_a_lease,
                         testing::Combine(testing::Values("stopped", "dead"),
                                          testing::Values(the_end{"static", "return", 0}, the_end{"static", "exit", 3},
                                                          the_end{"static", "quick_exit", 3},
                                                          the_end{"stack", "return", 0}, the_end{"stack", "exit", 3})),
                         [](const auto& what) {
                           const auto& end = std::get<the_end>(what.param);
                           return std::get<std::string>(what.param) + "_" + end.place + "_" + end.how;
                         });

// What is static ends behind main, and the lease with it: nobody waits for the rest of its minute.
TEST_F(program, that_exits_gives_its_static_lease_back_H48) {
  auto one = start("static", "exit");
  ASSERT_TRUE(exists("hf:{x}"));
  one.write_line("end");
  EXPECT_TRUE(eventually([&] { return !exists("hf:{x}"); }));
}

}  // namespace
}  // namespace holdfast::test
