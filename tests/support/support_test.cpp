// SPDX-License-Identifier: Apache-2.0
// The harness is a judge, so it is tried first: a proxy that lets everything pass and a witness that sees nothing
// would make every other test green.
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/fenced_store.hpp"
#include "support/key_events.hpp"
#include "support/redis_server.hpp"
#include "support/reserved_port.hpp"
#include "support/scripted_server.hpp"
#include "support/skewed_clock.hpp"
#include "support/stream_address.hpp"
#include "support/tls_material.hpp"
#include "support/witness.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <fstream>

namespace holdfast::test {
namespace {

sighting seen(sighting::kind what, int who, std::uint64_t token) { return {what, who, token, 0}; }
constexpr auto enter = sighting::kind::enter;
constexpr auto leave = sighting::kind::exit;

TEST(witness, sees_an_overlap) {
  const auto result = judge({seen(enter, 1, 10), seen(enter, 2, 11), seen(leave, 1, 10), seen(leave, 2, 11)});
  EXPECT_EQ(result.overlaps, 1);
  EXPECT_NE(result.first_offence.find("worker 2"), std::string::npos);
}

TEST(witness, sees_a_token_that_went_back) {
  const auto result = judge({seen(enter, 1, 10), seen(leave, 1, 10), seen(enter, 2, 10), seen(leave, 2, 10)});
  EXPECT_EQ(result.overlaps, 0);
  EXPECT_EQ(result.token_regressions, 1);
}

TEST(witness, finds_nothing_in_an_honest_history) {
  const auto result = judge({seen(enter, 1, 10), seen(leave, 1, 10), seen(enter, 2, 11), seen(leave, 2, 11)});
  EXPECT_EQ(result.holds, 2);
  EXPECT_EQ(result.overlaps + result.token_regressions, 0);
}

// Workers that record instants may write late: two who were inside at once may stand in the file one after the other.
TEST(witness, sees_an_overlap_by_instants) {
  const auto at = [](sighting::kind what, int who, std::uint64_t token, std::int64_t ns) {
    return sighting{what, who, token, ns};
  };
  const auto all =
      holds_of({at(enter, 1, 10, 100), at(leave, 1, 10, 200), at(enter, 2, 11, 199), at(leave, 2, 11, 300)});
  const auto result = judge_by_instants(all);
  EXPECT_EQ(result.holds, 2);
  EXPECT_EQ(result.overlaps, 1);
  EXPECT_EQ(result.token_regressions, 0);
}

TEST(witness, sees_a_token_that_went_back_by_instants) {
  const auto result = judge_by_instants({{1, 11, 100ns, 200ns}, {2, 10, 201ns, 300ns}});
  EXPECT_EQ(result.overlaps, 0);
  EXPECT_EQ(result.token_regressions, 1);
}

TEST(fenced_store, refuses_what_is_below_the_largest_raised) {
  scratch_directory scratch;
  fenced_store store{scratch / "store"};
  EXPECT_TRUE(store.write(10, 1));
  EXPECT_TRUE(store.raise(11));
  EXPECT_FALSE(store.write(10, 2));
  EXPECT_EQ(store.read(10), std::nullopt);
  EXPECT_EQ(store.read(11), 1);
}

TEST(redis_server, finds_a_key_without_expiry_at_its_end) {
  EXPECT_NONFATAL_FAILURE(
      {
        redis_server server;
        server("SET", "hf:{x}", "v1|forgotten");
      },
      "key without an expiry: hf:{x}");
}

TEST(redis_server, comes_back_on_the_same_socket) {
  redis_server server;
  server.kill();
  server.restart();
  EXPECT_EQ(server("PING"), std::string{"PONG"});
}

TEST(redis_server, stands_still_while_paused) {
  redis_server server;
  auto connection = server.connect();
  server.pause();
  connection.set_patience(50ms);
  EXPECT_EQ(connection("PING").what, answer::kind::none);
  server.resume();
  EXPECT_EQ(server("PING"), std::string{"PONG"});
}

TEST(reserved_port, is_nobodys_while_its_server_is_away) {
  redis_server server{{.tcp = true}};
  redis_connection connection{server.port()};
  ASSERT_EQ(connection("PING"), std::string{"PONG"});
  server.kill();
  {
    const reserved_port kept{server.port()};
    EXPECT_EQ(listen_at(server.port()), -1);
    EXPECT_EQ(connect_to(server.port()), -1);
  }
  const int listener = listen_at(server.port());
  EXPECT_GE(listener, 0);
  ::close(listener);
}

TEST(fault_proxy, passes_what_it_is_not_told_to_harm) {
  redis_server server;
  fault_proxy proxy{server.socket()};
  redis_connection connection{proxy.socket()};
  const std::string big(1'000'000, 'x');
  EXPECT_EQ(connection("SET", "k", big), std::string{"OK"});
  EXPECT_EQ(connection("GET", "k"), big);
  EXPECT_EQ(proxy.connections(), 1);
}

TEST(fault_proxy, forwards_to_a_port_too) {
  redis_server server{{.tcp = true}};
  fault_proxy proxy{server.port()};
  redis_connection connection{proxy.port()};
  EXPECT_EQ(connection("SET", "k", "v"), std::string{"OK"});
  EXPECT_EQ(proxy.connections(), 1);
  proxy.refuse_connections(true);
  proxy.cut_all();
  proxy.refuse_connections(false);
  redis_connection again{proxy.port()};
  EXPECT_EQ(again("GET", "k"), std::string{"v"});
}

TEST(fault_proxy, cuts_after_exactly_so_many_bytes) {
  redis_server server;
  fault_proxy proxy{server.socket()};
  redis_connection connection{proxy.socket()};
  connection("PING");
  const auto before = proxy.bytes(direction::to_client);
  proxy.set(direction::to_client, {.pass_only = 3, .at_the_end = fault::then::fin});
  EXPECT_EQ(connection("PING").what, answer::kind::none);
  EXPECT_EQ(proxy.bytes(direction::to_client) - before, 3u);
}

TEST(fault_proxy, holds_the_request_so_that_the_server_never_sees_it) {
  redis_server server;
  fault_proxy proxy{server.socket()};
  redis_connection connection{proxy.socket()};
  connection("PING");
  connection.set_patience(50ms);
  proxy.set(direction::to_server, {.pass_only = 0});
  EXPECT_EQ(connection("SET", "k", "v").what, answer::kind::none);
  EXPECT_TRUE(server("GET", "k").is_nil());
}

// A late request is one whose sender has given up and which arrives all the same (H12).
TEST(fault_proxy, lets_held_bytes_flow_after_healing) {
  redis_server server;
  fault_proxy proxy{server.socket()};
  redis_connection connection{proxy.socket()};
  connection("PING");
  connection.set_patience(50ms);
  proxy.set(direction::to_server, {.pass_only = 0});
  connection("SET", "k", "v");
  proxy.heal();
  EXPECT_TRUE(eventually([&] { return server("GET", "k") == std::string{"v"}; }));
}

TEST(fault_proxy, delays) {
  redis_server server;
  fault_proxy proxy{server.socket()};
  redis_connection connection{proxy.socket()};
  connection("PING");
  proxy.set(direction::to_client, {.delay = 100ms});
  const auto began = boottime();
  EXPECT_EQ(connection("PING"), std::string{"PONG"});
  EXPECT_GE(boottime() - began, 100ms);
}

TEST(fault_proxy, refuses_and_serves_again) {
  redis_server server;
  fault_proxy proxy{server.socket()};
  proxy.refuse_connections(true);
  EXPECT_TRUE(eventually([&] { return !redis_connection{proxy.socket()}.connected(); }));
  proxy.refuse_connections(false);
  EXPECT_EQ(redis_connection{proxy.socket()}("PING"), std::string{"PONG"});
}

TEST(fault_proxy, single_bytes_still_make_a_whole_answer) {
  redis_server server;
  fault_proxy proxy{server.socket()};
  proxy.set(direction::to_client, {.single_bytes = true});
  redis_connection connection{proxy.socket()};
  EXPECT_EQ(connection("PING"), std::string{"PONG"});
}

TEST(skewed_clock, turns_the_servers_clock_while_it_runs) {
  skewed_clock clock;
  redis_server server{{.environment = clock.environment()}};
  server("SET", "k", "v", "PX", "60000");
  clock.set(120s);
  EXPECT_TRUE(eventually([&] { return server("GET", "k").is_nil(); }));
}

TEST(key_events, tells_every_write_in_its_order) {
  redis_server server;
  key_events events{server};
  server("SET", "k", "v", "PX", "60000");
  server("PEXPIRE", "k", "50000");
  server("DEL", "k");
  std::string order;
  for (const auto& event : events.take()) order += event.what + ' ';
  EXPECT_EQ(order, "set expire expire del ");
}

TEST(scripted_server, answers_in_step) {
  scripted_server fake{scripted_server::greets_and_answers_scripts_with("-BUSY Redis is busy\r\n")};
  redis_connection connection{fake.uri().substr(std::string{"redis+unix://"}.size())};
  EXPECT_TRUE(connection("EVALSHA", "0", "0").is_error());
  EXPECT_EQ(connection("PING"), std::string{"OK"});
}

TEST(tls_material, is_made_for_each_kind) {
  for (const auto kind : {certificate::good, certificate::expired, certificate::wrong_host}) {
    EXPECT_TRUE(std::filesystem::exists(tls_material(kind) + "/tls.pem"));
  }
}

}  // namespace
}  // namespace holdfast::test
