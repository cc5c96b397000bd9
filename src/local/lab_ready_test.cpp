// SPDX-License-Identifier: Apache-2.0
// What ends a start in its last steps, when all servers answer already.
#include "local/lab_ready.hpp"
#include "local/lab.hpp"
#include "local/local_server_testing.hpp"
#include "local/other_server.hpp"
#include "local/scratch_directory.hpp"

#include <gtest/gtest.h>
#include <holdfast/error.hpp>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::local {
namespace {

using namespace std::chrono_literals;

// A start of a lab whose only server answers what it is asked, and lets every write wait, from before it has its port.
class start_that_waits_for_a_write : public testing::Test {
protected:
  struct ending {
    errc code{};              // 0 if it starts.
    bool has_waited = false;  // Did a write wait, or was it over before that?
  };

  // `then` is called as soon as a write waits.
  ending end_of(const lab_options& options, const std::function<void()>& then) {
    ending its_end;
    std::atomic<bool> is_over{false};
    const auto comes_true = [&](const auto& condition) {
      while (!is_over && !condition()) std::this_thread::yield();
      return !is_over;
    };
    std::thread beside{[&] {
      its_end.has_waited = comes_true([&] { return ask(socket_, {"PING"}) == "PONG"; }) &&
                           ask(socket_, {"CLIENT", "PAUSE", "60000", "WRITE"}) == "OK" &&
                           ask(socket_, {"CONFIG", "SET", "port", std::to_string(port_).c_str()}) == "OK" &&
                           comes_true([&] {
                             return ask(socket_, {"INFO", "clients"}).find("blocked_clients:1") != std::string::npos;
                           });
      if (its_end.has_waited) then();
    }};
    try {
      start(lab_kind::single, options, [&](std::size_t) { return std::vector{port_}; });
    } catch (const error& e) {
      its_end.code = static_cast<errc>(e.code().value());
    }
    is_over = true;
    beside.join();
    return its_end;
  }
  lab_options options() const { return {.directory = scratch_.path() + "/lab"}; }
  void unpause() { EXPECT_EQ(ask(socket_, {"CLIENT", "UNPAUSE"}), "OK"); }
  bool is_nothing_left() const { return !std::filesystem::exists(options().directory); }

private:
  scratch_directory scratch_;
  const int port_ = free_ports(1).front();
  const std::string socket_ = scratch_.path() + "/socket";
  const other_server server_{scratch_, "#!/bin/sh\nsed -i 's/^port .*/port 0/' \"$1\"\necho 'unixsocket " + socket_ +
                                           "' >>\"$1\"\nexec redis-server \"$@\"\n"};
};

// Who has cancelled believes that nothing runs.
TEST_F(start_that_waits_for_a_write, and_is_cancelled_meanwhile_leaves_nothing) {
  std::stop_source cancel;
  auto cancellable = options();
  cancellable.cancel = cancel.get_token();
  const auto then = [&] {
    cancel.request_stop();
    unpause();
  };
  EXPECT_EQ(end_of(cancellable, then).code, errc::cancelled);
  EXPECT_TRUE(is_nothing_left());
}

TEST_F(start_that_waits_for_a_write, lasts_no_longer_than_it_may) {
  for (const auto span : {2s, 6s, 18s}) {
    auto short_one = options();
    short_one.ready_within = span;
    const auto began_at = std::chrono::steady_clock::now();
    const auto end = end_of(short_one, [] {});
    const auto took = std::chrono::steady_clock::now() - began_at;
    EXPECT_NE(end.code, errc{});
    EXPECT_TRUE(is_nothing_left());
    if (!end.has_waited) continue;  // A busy machine had not come so far in that time.
    EXPECT_LT(took, span + 3s);     // The client's own patience comes on top of the start.
    return;
  }
  FAIL() << "no write has waited";
}

TEST(lab_patience, is_at_its_end_when_cancelled_though_nothing_is_missing) {
  const lab_place place;
  const lab_record record;
  std::stop_source cancel;
  const lab_patience patience{place, record, time_point::max(), cancel.get_token()};
  patience.until([] { return ""; });
  cancel.request_stop();
  EXPECT_THROW(patience.until([] { return ""; }), error);
  EXPECT_THROW(patience.check(""), error);
}

}  // namespace
}  // namespace holdfast::local
