// SPDX-License-Identifier: Apache-2.0
// A program that ends while it holds a lease, or waits for one: by return from main or by exit(3), with what it has of
// ours on the stack or static. It gives the lease back as far as it can, and its end waits for no server (H48).
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
  static void expect_end(child_process& one, int status) {
    const auto how = one.wait(20s);
    ASSERT_TRUE(how) << "it does not end";
    EXPECT_TRUE(WIFEXITED(*how)) << "signal " << WTERMSIG(*how);
    EXPECT_EQ(WEXITSTATUS(*how), status);
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
  expect_end(one, end.status);
  EXPECT_LT(boottime() - began, farewell + slack);
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

// A handler that hides its executor is told by way of Asio's system context, which ends before a static client: there
// is nowhere to post the end of its wait.
TEST_F(program, that_exits_ends_the_wait_of_a_handler_that_hides_its_executor_H48) {
  auto other = make_client();
  const auto held = other.acquire("x");
  child_process one{{HOLDFAST_WORKER, uri(), "wait", "x", "y"}, {.environment = worker_environment()}};
  ASSERT_EQ(one.read_line(), "waits");
  ASSERT_TRUE(eventually([&] { return server_("ZCARD", "hf:{x}:line") == 1; }));
  one.write_line("end");
  expect_end(one, 3);
}

}  // namespace
}  // namespace holdfast::test
