// SPDX-License-Identifier: Apache-2.0
// TLS: who is trusted, and what a wrong certificate or a wrong port says (H22, H75).
#include "integration/fixture.hpp"
#include "support/child_process.hpp"
#include "support/fault_proxy.hpp"
#include "support/scratch_directory.hpp"
#include "support/scripted_server.hpp"
#include "support/tls_material.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <holdfast/asio.hpp>

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

class tls : public testing::Test {
protected:
  static std::string uri(const redis_server& server, const std::string& host, const std::string& query) {
    return "rediss://" + host + ":" + std::to_string(server.tls_port()) + query;
  }
  static std::string trusting(certificate kind) { return "?cacert=" + tls_material(kind) + "/ca.pem"; }

  static std::error_code try_at(const std::string& where, std::chrono::milliseconds timeout = 10s) {
    client_options how;
    how.timeout = timeout;
    client locks{where, how};
    std::error_code ec;
    (void)locks.try_acquire("x", {}, ec);
    return ec;
  }
};

TEST_F(tls, with_a_good_certificate_works_by_name_and_by_address) {
  redis_server server{{.tls_directory = tls_material(certificate::good)}};
  EXPECT_EQ(try_at(uri(server, "localhost", trusting(certificate::good))), std::error_code{});
  EXPECT_EQ(try_at(uri(server, "127.0.0.1", trusting(certificate::good))), std::error_code{});
}

TEST_F(tls, keeps_a_lease_renewed) {
  redis_server server{{.tls_directory = tls_material(certificate::good)}};
  client locks{uri(server, "localhost", trusting(certificate::good))};
  auto held = locks.acquire("x", {.ttl = 1500ms});
  let_pass(3s);
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(held.release(), release_outcome::released);
}

// What the socket did not take of an encrypted burst is written when there is room, without another request behind it.
// OpenSSL registers its end with exit() when it is first used, so after what is static was made; and what ends last
// would use it first. The keeper's connection is made then, to give the lease back.
TEST_F(tls, client_and_lease_that_are_static_end_behind_the_program) {
  redis_server server{{.tls_directory = tls_material(certificate::good)}};
  child_process program{{HOLDFAST_WORKER, uri(server, "localhost", trusting(certificate::good)), "static", "x"}};
  EXPECT_TRUE(program.read_line().value_or("(nothing)").starts_with("acquired "));
  EXPECT_EQ(program.wait(), 0) << "a signal is 11";
  EXPECT_TRUE(eventually([&] { return server("EXISTS", "hf:{x}") == 0; })) << "it was not given back";
}

TEST_F(tls, a_burst_larger_than_the_socket_takes_is_written_to_its_end) {
#ifdef HOLDFAST_SANITIZED
  GTEST_SKIP() << "to begin so many takes longer than a server may be silent";
#endif
  redis_server server{{.tls_directory = tls_material(certificate::good)}};
  client locks{uri(server, "localhost", trusting(certificate::good))};
  const acquire_options not_renewed{.renew = renewal::none};  // That would be another connection.
  const auto first = locks.acquire("first", not_renewed);
  // On a slow machine it takes longer to begin so many than a server may be silent whose last answer was quick (P30).
  server.pause();
  std::optional<lease> slow;
  std::thread asks{[&] { slow = locks.acquire("slow", not_renewed); }};
  let_pass(400ms);
  server.resume();
  asks.join();
  const auto connections = server.info("total_connections_received");
  boost::asio::thread_pool pool{1};
  std::vector<lease> got;
  constexpr std::size_t many = 5'000;  // Some 8 MB.
  server.pause();
  for (std::size_t i = 0; i < many; ++i) {
    async_acquire(locks, std::string(500, 'n') + std::to_string(i), {.wait = 5s, .renew = renewal::none},
                  boost::asio::bind_executor(pool, [&got](auto ec, lease one) {
                    EXPECT_FALSE(ec) << ec.message();
                    got.push_back(std::move(one));
                  }));
  }
  server.resume();
  pool.join();
  EXPECT_EQ(got.size(), many);
  EXPECT_EQ(server.info("total_connections_received"), connections) << "it was silent, and connected again";
}

TEST_F(tls, with_an_unknown_authority_is_refused) {
  redis_server server{{.tls_directory = tls_material(certificate::good)}};
  EXPECT_EQ(try_at(uri(server, "localhost", "")), errc::tls_failed);
  EXPECT_EQ(try_at(uri(server, "localhost", trusting(certificate::expired))), errc::tls_failed);
}

TEST_F(tls, with_an_expired_certificate_is_refused) {
  redis_server server{{.tls_directory = tls_material(certificate::expired)}};
  EXPECT_EQ(try_at(uri(server, "localhost", trusting(certificate::expired))), errc::tls_failed);
}

TEST_F(tls, with_another_hosts_certificate_is_refused) {
  redis_server server{{.tls_directory = tls_material(certificate::wrong_host)}};
  const auto code = try_at(uri(server, "localhost", trusting(certificate::wrong_host)));
  EXPECT_EQ(code, errc::tls_failed);
  EXPECT_EQ(code, outcome::unreachable);
}

// localhost is not looked up, but the certificate is still for the name; and an address is not a name.
TEST_F(tls, with_a_certificate_for_the_name_works_by_name_only) {
  redis_server server{{.tls_directory = tls_material(certificate::name_only)}};
  EXPECT_EQ(try_at(uri(server, "localhost", trusting(certificate::name_only))), std::error_code{});
  EXPECT_EQ(try_at(uri(server, "127.0.0.1", trusting(certificate::name_only))), errc::tls_failed);
}

TEST_F(tls, server_that_wants_a_client_certificate_gets_it) {
  redis_server server{{.tls_directory = tls_material(certificate::good), .config = {"tls-auth-clients yes"}}};
  const auto& files = tls_material(certificate::good);
  EXPECT_EQ(try_at(uri(server, "localhost",
                       trusting(certificate::good) + "&cert=" + files + "/client.pem&key=" + files + "/client.key")),
            std::error_code{});
}

// Under TLS 1.3 the server looks at it when our handshake is through, and says so where an answer was to come. Nothing
// will be better the next time.
TEST_F(tls, server_that_wants_another_client_certificate_is_not_asked_again) {
  const auto with = [](certificate kind) {
    return "&cert=" + tls_material(kind) + "/client.pem&key=" + tls_material(kind) + "/client.key";
  };
  for (const char* const protocols : {"TLSv1.2", "TLSv1.3"}) {
    redis_server server{{.tls_directory = tls_material(certificate::good),
                         .config = {"tls-auth-clients yes", std::string{"tls-protocols "} + protocols}}};
    for (const auto& certificate : {std::string{}, with(certificate::wrong_host)}) {
      const auto began = boottime();
      const auto code = try_at(uri(server, "localhost", trusting(certificate::good) + certificate), 20s);
      EXPECT_EQ(code, errc::tls_failed) << protocols << certificate << ": " << code.message();
      EXPECT_LT(boottime() - began, 10s) << protocols << certificate;
    }
  }
}

// E13: a TLS client on a plain port would hang; it must say so in time.
TEST_F(tls, against_a_plain_port_fails_in_time) {
  redis_server server{{.tcp = true}};
  const auto began = boottime();
  const auto code = try_at("rediss://127.0.0.1:" + std::to_string(server.port()), 500ms);
  EXPECT_LT(boottime() - began, 500ms + slack);
  EXPECT_EQ(code, errc::tls_failed) << code.message();
}

TEST_F(tls, plain_against_a_tls_port_fails_in_time) {
  redis_server server{{.tls_directory = tls_material(certificate::good)}};
  const auto began = boottime();
  const auto code = try_at("redis://127.0.0.1:" + std::to_string(server.tls_port()), 500ms);
  EXPECT_LT(boottime() - began, 500ms + slack);
  EXPECT_EQ(code, outcome::unreachable) << code.message();
}

TEST_F(tls, missing_authority_file_is_named_before_connecting) {
  const auto failure = error_of([] {
    client locks{"rediss://localhost?cacert=/no/such/file.pem"};
    (void)locks.try_acquire("x");
  });
  ASSERT_TRUE(failure);
  EXPECT_NE(std::string{failure->what()}.find("/no/such/file.pem"), std::string::npos) << failure->what();
}

// A proxy that ends connections while the Redis behind it is started again: who may wait gets the lock then.
TEST_F(tls, handshake_that_is_cut_off_is_begun_again) {
  redis_server server{{.tls_directory = tls_material(certificate::good)}};
  fault_proxy proxy{server.tls_port()};
  proxy.set(direction::to_server, {.pass_only = 0, .at_the_end = fault::then::fin});
  client locks{"rediss://localhost:" + std::to_string(proxy.port()) + trusting(certificate::good)};
  std::jthread start_again{[&] {
    EXPECT_TRUE(eventually([&] { return proxy.connections() >= 4; }));
    proxy.heal();
  }};
  std::error_code ec;
  EXPECT_TRUE(locks.acquire("x", {.wait = 30s}, ec)) << ec.message();
}

// E13: one that closes at once, as a plain port may, is named for that and not for its silence.
TEST_F(tls, against_a_port_that_closes_fails_in_time) {
  redis_server server{{.tcp = true}};
  fault_proxy proxy{server.port()};
  proxy.set(direction::to_server, {.pass_only = 0, .at_the_end = fault::then::fin});
  const auto began = boottime();
  const auto code = try_at("rediss://127.0.0.1:" + std::to_string(proxy.port()), 500ms);
  EXPECT_LT(boottime() - began, 500ms + slack);
  EXPECT_EQ(code, errc::tls_failed) << code.message();
}

// A port that has spoken TLS with us is no plain one.
TEST_F(tls, handshake_with_a_server_that_hangs_now_is_its_silence) {
  redis_server server{{.tls_directory = tls_material(certificate::good)}};
  fault_proxy proxy{server.tls_port()};
  client_options how;
  how.timeout = 2s;
  client locks{"rediss://localhost:" + std::to_string(proxy.port()) + trusting(certificate::good), how};
  locks.acquire("x").release();
  server.pause();
  proxy.cut_all();
  std::error_code found_out;
  (void)locks.try_acquire("x", {}, found_out);
  const auto failure = error_of([&] { (void)locks.try_acquire("x"); });
  server.resume();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code(), errc::server_silent) << failure->what();
  EXPECT_EQ(failure->detail().server_text, "no answer to the TLS handshake");
}

// Certificate and key are two files, which nobody changes in one step; and a reconnect may come in between.
TEST_F(tls, files_that_are_being_changed_are_waited_for_by_whom_they_were_good_for) {
  redis_server server{{.tls_directory = tls_material(certificate::good), .config = {"tls-auth-clients yes"}}};
  const scratch_directory place;
  const auto copy = [&](certificate kind, const std::string& name) {
    std::filesystem::copy_file(tls_material(kind) + "/" + name, place / name,
                               std::filesystem::copy_options::overwrite_existing);
  };
  for (const auto* one : {"ca.pem", "client.pem", "client.key"}) copy(certificate::good, one);
  fault_proxy proxy{server.tls_port()};
  const auto uri = "rediss://localhost:" + std::to_string(proxy.port()) + "?cacert=" + place / "ca.pem" +
                   "&cert=" + place / "client.pem" + "&key=" + place / "client.key";
  client holder{server.unix_uri()};
  for (const auto* changed : {"client.key", "client.pem", "ca.pem"}) {
    auto held = holder.acquire("x");
    client locks{uri};
    std::error_code ec;
    std::optional<lease> got;
    std::jthread waiting{[&] { got = locks.acquire("x", {.wait = 60s}, ec); }};
    EXPECT_TRUE(eventually([&] { return server("ZCARD", "hf:{x}:line") == 1; })) << changed;
    copy(certificate::wrong_host, changed);
    const auto before = proxy.connections();
    proxy.cut_all();
    EXPECT_TRUE(eventually([&] { return proxy.connections() > before + 4; })) << changed << ": it has given up";
    copy(certificate::good, changed);
    held.release();
    waiting.join();
    ASSERT_TRUE(got) << changed << ": " << ec.message();
    got->release();
    // Who has never had a connection with them is told at once.
    copy(certificate::wrong_host, changed);
    const auto began = boottime();
    EXPECT_EQ(code_of([&] { (void)client{uri}.acquire("x", {.wait = 60s}); }), errc::tls_failed) << changed;
    EXPECT_LT(boottime() - began, 20s) << changed;
    copy(certificate::good, changed);
  }
}

// C4: the keeper, which tells it, makes a new connection meanwhile, with a file of a mount that is away. When that is
// back, so is the client.
TEST_F(tls, lost_is_told_in_time_while_a_file_does_not_answer) {
  redis_server server{{.tls_directory = tls_material(certificate::good)}};
  const scratch_directory place;
  const auto good = tls_material(certificate::good) + "/ca.pem";
  const auto file = place / "ca.pem";
  const auto hangs = place / "hangs";
  std::filesystem::copy_file(good, file);
  fault_proxy proxy{server.tls_port()};
  client locks{"rediss://localhost:" + std::to_string(proxy.port()) + "?cacert=" + file};
  auto held = locks.acquire("x", {.ttl = 2s});
  std::atomic<std::chrono::nanoseconds> lost_at{0ns};
  std::stop_callback lost{held.lost(), [&] { lost_at = boottime(); }};
  ASSERT_EQ(::mkfifo(hangs.c_str(), 0600), 0);
  std::filesystem::remove(file);
  std::filesystem::create_hard_link(hangs, file);
  proxy.cut_all();
  const auto deadline = boottime() + held.remaining();
  EXPECT_TRUE(eventually([&] { return lost_at.load() != 0ns; }));
  EXPECT_LE(lost_at.load(), deadline + 1ms + when_busy / 4);
  EXPECT_TRUE(eventually([&] { return !held.valid(); }));
  EXPECT_EQ(held.lost_reason(), errc::lease_expired);
  std::filesystem::remove(file);
  std::filesystem::copy_file(good, file);
  ::close(::open(hangs.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  std::error_code ec;
  EXPECT_TRUE(locks.acquire("x", {.wait = 30s}, ec)) << ec.message();
}

// The peer accepts and stays silent in the middle of the handshake (H22).
TEST_F(tls, handshake_that_never_ends_ends_with_the_deadline) {
  redis_server server{{.tls_directory = tls_material(certificate::good)}};
  server.pause();
  const auto began = boottime();
  const auto code = try_at(uri(server, "127.0.0.1", trusting(certificate::good)), 400ms);
  EXPECT_LT(boottime() - began, 400ms + slack);
  EXPECT_EQ(code, outcome::unreachable) << code.message();
  server.resume();
}

}  // namespace
}  // namespace holdfast::test
