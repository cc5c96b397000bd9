// SPDX-License-Identifier: Apache-2.0
// A primary that sentinels name, and what happens to locks when they name another (P22, H25, H26). The largest ttl is
// small, so that no quarantine is long.
#include "integration/fixture.hpp"
#include "support/fault_proxy.hpp"
#include "support/lab.hpp"
#include "support/reserved_port.hpp"
#include "support/tls_material.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using testing::HasSubstr;

const acquire_options brief{.ttl = 2s};

// What a call ends with that would have waited much longer.
std::optional<error> refused_at_once(const std::string& uri, const client_options& how = {}) {
  client locks{uri, how};
  const auto began = boottime();
  auto e = error_of([&] { (void)locks.acquire("x", {.ttl = 2s, .wait = 60s}); });
  EXPECT_LT(boottime() - began, 20s);
  return e;
}

class with_sentinels : public testing::Test {
protected:
  static constexpr auto max_ttl = 6s;
  static constexpr auto long_enough = 60s;  // For a failover, a quarantine and a busy machine.

  // The primary's first start, which nobody has seen.
  with_sentinels() {
    call_it_dead_after("60000");
    make().declare_nothing_forgotten();
  }

  client make(std::chrono::milliseconds timeout = 20s) { return client{lab_.uri(), options(timeout)}; }
  static client_options options(std::chrono::milliseconds timeout = 20s) {
    client_options how;
    how.timeout = timeout;
    how.max_ttl = max_ttl;
    return how;
  }
  // What says nothing for so long. Long, so that a busy machine is no failover that nobody has asked for.
  void call_it_dead_after(const char* ms) {
    for (const auto& one : lab_.nodes("sentinel")) {
      // It writes its configuration down first, which takes long when the disk is busy.
      const auto is_done = [&] {
        return ask(one, {"SENTINEL", "SET", "mymaster", "down-after-milliseconds", ms}) == "OK";
      };
      EXPECT_TRUE(eventually(is_done, long_enough)) << one.address;
    }
  }
  lab_node primary() { return lab_.nodes("primary")[0]; }
  static bool is_primary(const lab_node& node) {
    return ask(node, {"INFO", "replication"}).find("role:master") != std::string::npos;
  }
  // Who was promoted after the primary's death. Empty: nobody in time.
  std::optional<lab_node> promoted() {
    call_it_dead_after("1000");
    std::optional<lab_node> found;
    (void)eventually(
        [&] {
          for (const auto& node : lab_.nodes("replica"))
            if (is_primary(node)) found = node;
          return found.has_value();
        },
        long_enough);
    return found;
  }
  bool sentinels_name(const lab_node& node) {
    const auto port = node.address.substr(node.address.find(':') + 1);
    return eventually(
        [&] {
          const auto all = lab_.nodes("sentinel");
          return std::all_of(all.begin(), all.end(), [&](const lab_node& one) {
            return ask(one, {"INFO", "sentinel"}).find("address=" + node.address + ",") != std::string::npos;
          });
        },
        long_enough);
  }
  bool has_key(const lab_node& node) { return ask(node, {"GET", "hf:{x}"}).starts_with("v1|"); }

  lab_topology lab_{lab_kind::sentinel, {.ready_within = 120s}};
};

TEST_F(with_sentinels, a_lock_is_kept_on_the_primary_that_they_name) {
  auto locks = make();
  const auto held = locks.acquire("x", brief);
  EXPECT_TRUE(has_key(primary()));
  EXPECT_FALSE(make().try_acquire("x", brief));
  EXPECT_TRUE(held.valid());
}

TEST_F(with_sentinels, a_majority_is_enough) {
  lab_.kill(lab_.nodes("sentinel")[0]);
  EXPECT_TRUE(make().try_acquire("x", brief));
}

// A minority may be cut off together with a primary that was replaced long ago.
TEST_F(with_sentinels, a_minority_is_not_P22) {
  lab_.kill(lab_.nodes("sentinel")[0]);
  lab_.kill(lab_.nodes("sentinel")[1]);
  auto locks = make(1s);
  const auto e = error_of([&] { (void)locks.try_acquire("x", brief); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::no_primary);
  EXPECT_EQ(e->code(), outcome::unreachable);
  EXPECT_THAT(e->detail().server_text, HasSubstr(lab_.nodes("sentinel")[0].address));
}

// No two texts of the URI are equal here, and two of the three lines lead to one sentinel.
TEST_F(with_sentinels, one_under_two_names_is_no_majority_P22) {
  const auto sentinels = lab_.nodes("sentinel");
  const auto first = sentinels[0].address;
  const auto again = "localhost" + first.substr(first.find(':'));
  const auto uri = "redis+sentinel://" + again + "," + first + "," + sentinels[1].address + "/mymaster";
  EXPECT_TRUE((client{uri, options()}.try_acquire("x", brief))) << "two voices of three";
  lab_.kill(sentinels[1]);
  lab_.kill(sentinels[2]);
  client locks{uri, options(1s)};
  const auto e = error_of([&] { (void)locks.try_acquire("x", brief); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::no_primary);
  EXPECT_THAT(e->detail().server_text, HasSubstr(first + ": it is the same sentinel as " + again));
}

// Somebody has demoted it, and those who name it do not know yet (hazards 8.12). Who waits keeps its place.
TEST_F(with_sentinels, who_waits_goes_on_waiting_when_the_primary_writes_nothing) {
  auto locks = make();
  auto held = std::optional{locks.acquire("x", brief)};
  auto waiting =
      std::async(std::launch::async, [&] { return make().acquire("x", {.ttl = 2s, .wait = long_enough}).release(); });
  EXPECT_TRUE(eventually([&] { return ask_number(primary(), {"ZCARD", "hf:{x}:line"}) == "1"; }, long_enough));
  ask(primary(), {"CONFIG", "RESETSTAT"});
  ASSERT_EQ(ask(primary(), {"REPLICAOF", "127.0.0.1", "1"}), "OK");
  const auto has_refused = [&] {
    return ask(primary(), {"INFO", "errorstats"}).find("errorstat_READONLY") != std::string::npos;
  };
  held.reset();
  EXPECT_TRUE(eventually(has_refused, long_enough));
  EXPECT_EQ(waiting.wait_for(1s), std::future_status::timeout);
  ASSERT_EQ(ask(primary(), {"REPLICAOF", "NO", "ONE"}), "OK");
  EXPECT_EQ(waiting.get(), release_outcome::released);
}

TEST_F(with_sentinels, a_silent_one_is_not_waited_for) {
  lab_.pause(lab_.nodes("sentinel")[1]);
  auto locks = make();
  EXPECT_TRUE(locks.try_acquire("x", brief));
  lab_.resume(lab_.nodes("sentinel")[1]);
}

TEST_F(with_sentinels, a_name_that_they_do_not_know_is_an_error_at_once) {
  const std::string uri = lab_.uri();
  client locks{uri.substr(0, uri.rfind('/')) + "/another"};
  const auto e = error_of([&] { (void)locks.acquire("x"); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::no_primary);
  EXPECT_THAT(e->detail().server_text, HasSubstr("'another'"));
}

TEST_F(with_sentinels, they_have_a_password_of_their_own) {
  for (const auto& one : lab_.nodes("sentinel")) {
    ASSERT_EQ(ask(one, {"ACL", "SETUSER", "watcher", "on", ">secret", "+@all", "allkeys", "allchannels"}), "OK");
  }
  auto how = options();
  how.sentinel_user = "watcher";
  how.sentinel_password = "secret";
  EXPECT_TRUE(client(lab_.uri(), how).try_acquire("x", brief));
  how.sentinel_password = "another";
  const auto e = refused_at_once(lab_.uri(), how);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::wrong_password);
  EXPECT_EQ(e->detail().subject, "user 'watcher'") << "theirs, and not the primary's";
  EXPECT_THAT(e->detail().server_text, HasSubstr("WRONGPASS"));

  for (const auto& one : lab_.nodes("sentinel")) ASSERT_EQ(ask(one, {"ACL", "SETUSER", "default", "off"}), "OK");
  const auto nobody = refused_at_once(lab_.uri());
  ASSERT_TRUE(nobody);
  EXPECT_EQ(nobody->code(), errc::no_password);
}

TEST_F(with_sentinels, a_lease_that_was_replicated_survives_a_failover_H25) {
  auto how = options();
  how.max_ttl = long_enough;  // Longer than the failover takes.
  client locks{lab_.uri(), how};
  auto held = locks.acquire("x", {.ttl = long_enough, .renew = renewal::none});
  ASSERT_TRUE(eventually([&] { return has_key(lab_.nodes("replica")[0]) && has_key(lab_.nodes("replica")[1]); }));
  lab_.kill(primary());
  const auto next = promoted();
  ASSERT_TRUE(next);
  EXPECT_EQ(code_of([&] { held.renew(); }), std::error_code{});
  EXPECT_TRUE(held.valid());
  EXPECT_TRUE(has_key(*next));
}

TEST_F(with_sentinels, a_lease_that_was_not_replicated_is_lost_and_its_holder_hears_of_it_H25) {
  auto locks = make();
  locks.acquire("warm", brief).release();
  for (const auto& node : lab_.nodes("replica")) lab_.pause(node);
  // The bytes wait for them in the socket: a primary without these connections has nobody to send them to.
  ask(primary(), {"CONFIG", "SET", "client-output-buffer-limit", "replica 1 1 1"});
  ask(primary(), {"CLIENT", "KILL", "TYPE", "replica"});
  const auto held = locks.acquire("x", {.ttl = max_ttl});
  std::promise<void> lost;
  const std::stop_callback on_loss{held.lost(), [&] { lost.set_value(); }};
  lab_.kill(primary());
  for (const auto& node : lab_.nodes("replica")) lab_.resume(node);
  const auto next = promoted();
  ASSERT_TRUE(next);
  EXPECT_EQ(lost.get_future().wait_for(long_enough), std::future_status::ready);
  EXPECT_FALSE(held.valid());
  // And nobody else before.
  auto other = make().acquire("x", {.ttl = 5s, .wait = long_enough});
  EXPECT_TRUE(other.valid());
}

TEST_F(with_sentinels, those_who_wait_in_line_are_served_by_the_next_primary) {
  auto holder = make();
  auto held = std::optional{holder.acquire("x", {.ttl = max_ttl})};
  std::vector<std::thread> waiting;
  std::atomic<int> served{0};
  for (int i = 0; i < 3; ++i) {
    waiting.emplace_back([&] {
      auto locks = make();
      auto mine = locks.acquire("x", {.ttl = 2s, .wait = 2 * long_enough});
      ++served;
      mine.release();
    });
  }
  ASSERT_TRUE(eventually([&] { return ask(primary(), {"OBJECT", "ENCODING", "hf:{x}:line"}) != ""; }));
  lab_.kill(primary());
  EXPECT_TRUE(promoted());
  held.reset();
  for (auto& one : waiting) one.join();
  EXPECT_EQ(served, 3);
}

// The old primary was stopped, replaced, and goes on: for some seconds it believes to be one, and answers.
TEST_F(with_sentinels, an_old_primary_that_comes_back_grants_nothing_P22) {
  auto ours = make();
  ours.acquire("x", brief).release();  // A connection that lives through all of it.
  const auto old = primary();
  lab_.pause(old);
  const auto next = promoted();
  ASSERT_TRUE(next);
  ASSERT_TRUE(sentinels_name(*next));
  auto theirs = make();
  const auto held = theirs.acquire("x", {.ttl = max_ttl, .wait = long_enough});
  lab_.resume(old);
  ASSERT_TRUE(eventually([&] { return ask(old, {"PING"}) == "PONG"; }));
  EXPECT_FALSE(ours.try_acquire("x", brief));
  EXPECT_TRUE(held.valid());
  EXPECT_TRUE(has_key(*next));
}

// Nobody tells the old one that it is replaced, nor one of its clients. There the lease expires that its holder renews
// at the next one, and whoever is first in line is granted the lock. It must not count (docs/decisions/0024).
TEST_F(with_sentinels, an_old_primary_grants_nothing_that_is_renewed_at_the_next_P22) {
  std::vector<std::unique_ptr<fault_proxy>> between;
  std::string uri = "redis+sentinel://";
  for (const auto& one : lab_.nodes("sentinel")) {
    between.push_back(std::make_unique<fault_proxy>(std::stoi(one.address.substr(one.address.find(':') + 1))));
    uri += (between.size() > 1 ? "," : "") + ("127.0.0.1:" + std::to_string(between.back()->port()));
  }
  auto how = options();
  how.max_ttl = 30s;  // Half of it is longer than the failover and a ttl.
  client ours{lab_.uri(), how};
  client theirs{uri + "/mymaster", how};
  // Of 5 s, one in some hundred did not outlive the failover by what decision 24 takes.
  const auto held = ours.acquire("x", {.ttl = 8s});
  ASSERT_TRUE(eventually([&] { return has_key(lab_.nodes("replica")[0]) && has_key(lab_.nodes("replica")[1]); }));
  const auto old = primary();
  ASSERT_EQ(ask(old, {"ACL", "SETUSER", "default", "-multi", "-slaveof", "-replicaof", "-client|kill"}), "OK");
  bool are_two = false;
  auto next_in_line = std::async(std::launch::async, [&] {
    const auto e = error_of([&] {
      const auto got = theirs.acquire("x", {.ttl = 5s, .wait = 13s});
      are_two = held.valid() && got.valid();
    });
    return e ? e->code() : std::error_code{};
  });
  ASSERT_TRUE(eventually([&] { return ask_number(old, {"EXISTS", "hf:{x}:line"}) == "1"; }));
  for (const auto& one : between) {
    one->set(direction::to_server, {.pass_only = 0});
    one->set(direction::to_client, {.pass_only = 0});
  }
  ASSERT_EQ(ask(lab_.nodes("sentinel")[0], {"SENTINEL", "FAILOVER", "mymaster"}), "OK");
  EXPECT_EQ(next_in_line.get(), outcome::unknown) << "it could not leave the line";
  EXPECT_FALSE(are_two);
  EXPECT_TRUE(held.valid()) << "it is renewed; " << held.lost_reason().message();
  EXPECT_TRUE(is_primary(old)) << "nobody could tell it";
  EXPECT_EQ(ask(old, {"GET", "hf:{x}"}).find(held.token().to_string()), std::string::npos) << "there it has expired";
}

// An isolated primary renews for ever; whoever cannot be told that it is not the primary any more must stop (P22).
TEST_F(with_sentinels, a_holder_that_hears_of_no_majority_is_lost_in_time_P22) {
  auto locks = make();
  const auto held = locks.acquire("x", {.ttl = 1s});
  for (const auto& one : lab_.nodes("sentinel")) lab_.pause(one);
  const auto began = boottime();
  EXPECT_TRUE(eventually([&] { return !held.valid(); }, long_enough));
  EXPECT_LT(boottime() - began, max_ttl) << "somebody may be granted it by then";
  EXPECT_TRUE(is_primary(primary()));
  for (const auto& one : lab_.nodes("sentinel")) lab_.resume(one);
  EXPECT_TRUE(locks.acquire("x", {.ttl = 1s, .wait = long_enough}).valid());
}

class with_silent_sentinels : public with_sentinels {
protected:
  void fall_silent() {
    const auto all = lab_.nodes("sentinel");
    for (std::size_t i = 0; i < 2; ++i) lab_.pause(all[i]);
    std::this_thread::sleep_for(3s);  // Until no grant counts any more, which nothing shows but that.
  }
  ~with_silent_sentinels() override {
    const auto all = lab_.nodes("sentinel");
    for (std::size_t i = 0; i < 2; ++i) lab_.resume(all[i]);
  }
  client_options how = [] {
    auto h = options(5s);
    h.max_ttl = long_enough;  // What is held is renewed for half of that.
    return h;
  }();
};

// It asks for no grant, and the primary is well.
TEST_F(with_silent_sentinels, a_lock_is_released_P22) {
  client locks{lab_.uri(), how};
  auto held = locks.acquire("x", {.ttl = 20s});
  fall_silent();
  const auto began = boottime();
  EXPECT_EQ(held.release(), release_outcome::released);
  EXPECT_LT(boottime() - began, 500ms);
  EXPECT_FALSE(has_key(primary()));
}

TEST_F(with_silent_sentinels, a_lock_is_released_behind_a_try_that_found_nobody_P22) {
  client locks{lab_.uri(), how};
  auto held = locks.acquire("x", {.ttl = 60s});
  fall_silent();
  EXPECT_EQ(code_of([&] { (void)locks.try_acquire("y", brief); }), errc::no_primary);
  const auto began = boottime();
  EXPECT_EQ(held.release(), release_outcome::released);
  EXPECT_LT(boottime() - began, 3s) << "as long as the sentinels are asked for";
  EXPECT_FALSE(has_key(primary()));
}

// Its request would be cut off behind the write, and leave a lock that nobody has.
TEST_F(with_silent_sentinels, a_try_over_an_idle_connection_says_that_there_is_no_primary_P22_C5) {
  how.timeout = 2s;
  client locks{lab_.uri(), how};
  locks.acquire("warm", brief).release();
  fall_silent();
  const auto e = error_of([&] { (void)locks.try_acquire("x", {.ttl = 20s}); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::no_primary);
  EXPECT_EQ(e->code(), outcome::not_applied);
  EXPECT_FALSE(has_key(primary()));
}

// ---- who is no sentinel, or is none for us: nothing of that will pass (H22) ----

// Where nobody listens, and nobody will.
class unused_address {
public:
  std::string text() const { return "127.0.0.1:" + std::to_string(port_); }

private:
  const int port_ = free_port();
  const reserved_port kept_{port_};
};

TEST(whom_the_uri_takes_for_a_sentinel, is_a_plain_redis_H22) {
  redis_server server{{.tcp = true}};
  const auto e = refused_at_once("redis+sentinel://127.0.0.1:" + std::to_string(server.port()) + "/mymaster");
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::wrong_server);
  EXPECT_THAT(e->detail().server_text, HasSubstr("it is no sentinel"));
}

TEST(whom_the_uri_takes_for_a_sentinel, has_a_certificate_of_an_unknown_authority_H22) {
  redis_server server{{.tls_directory = tls_material(certificate::good)}};
  const auto e = refused_at_once("rediss+sentinel://localhost:" + std::to_string(server.tls_port()) + "/mymaster");
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::tls_failed);
}

// Two of three, for different reasons, leave no majority; one of them does.
TEST(whom_the_uri_takes_for_a_sentinel, is_waited_for_while_there_may_be_a_majority_H22) {
  redis_server plain{{.tcp = true}};
  redis_server closed{{.tcp = true, .password = "opensesame"}};
  const auto at = [](int port) { return "127.0.0.1:" + std::to_string(port); };
  const unused_address nobody;
  const unused_address nobody_either;
  client_options how;
  how.sentinel_password = "opensesame";
  const auto e = refused_at_once(
      "redis+sentinel://" + at(plain.port()) + "," + at(closed.port()) + "," + nobody.text() + "/m", how);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::no_primary) << "one wants no password, and one is no sentinel";
  client waiting{"redis+sentinel://" + at(plain.port()) + "," + nobody.text() + "," + nobody_either.text() + "/m"};
  const auto began = boottime();
  EXPECT_EQ(code_of([&] { (void)waiting.acquire("x", {.ttl = 2s, .wait = 1500ms}); }), errc::no_primary);
  EXPECT_GE(boottime() - began, 1500ms);
}

// The other half is none.
TEST(whom_the_uri_takes_for_a_sentinel, is_not_waited_for_where_it_is_a_half_of_them_H22) {
  redis_server one{{.tcp = true}};
  redis_server other{{.tcp = true}};
  const unused_address nobody;
  const unused_address nobody_either;
  const auto at = [](int port) { return "127.0.0.1:" + std::to_string(port); };
  const auto e = refused_at_once("redis+sentinel://" + at(one.port()) + "," + at(other.port()) + "," + nobody.text() +
                                 "," + nobody_either.text() + "/m");
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::wrong_server);
}

// It will not become two.
TEST_F(with_sentinels, one_under_two_names_is_not_waited_for_where_the_rest_is_no_majority_P22_H22) {
  redis_server plain{{.tcp = true}};
  const auto first = lab_.nodes("sentinel")[0].address;
  const auto again = "localhost" + first.substr(first.find(':'));
  const auto e = refused_at_once("redis+sentinel://" + again + "," + first +
                                 ",127.0.0.1:" + std::to_string(plain.port()) + "/mymaster");
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::wrong_server) << "of the one who could say something else";
}

// ---- doctor ----

TEST_F(with_sentinels, the_doctor_judges_each_of_them) {
  const auto said_to = [&](const std::string& uri) {
    std::vector<std::string> all;
    for (const auto& one : client{uri, options()}.diagnose().findings)
      if (one.what.find("sentinel") != std::string::npos) all.push_back(one.what);
    return all;
  };
  EXPECT_THAT(said_to(lab_.uri()), testing::IsEmpty());
  const auto sentinels = lab_.nodes("sentinel");
  EXPECT_THAT(said_to("redis+sentinel://" + sentinels[0].address + "/mymaster"),
              testing::ElementsAre(HasSubstr("there are 3 sentinels, and the URI names 1")));

  lab_.kill(sentinels[2]);
  EXPECT_THAT(said_to(lab_.uri()),
              testing::ElementsAre(HasSubstr("sentinel " + sentinels[2].address + ": Connection refused")));
}

TEST_F(with_sentinels, the_doctor_finds_one_under_two_names_P22) {
  const auto sentinels = lab_.nodes("sentinel");
  const auto first = sentinels[0].address;
  const auto again = "localhost" + first.substr(first.find(':'));
  const auto said =
      client{"redis+sentinel://" + again + "," + first + "," + sentinels[1].address + "/mymaster", options()}
          .diagnose();
  EXPECT_EQ(said.worst(), finding::severity::error);
  EXPECT_THAT(said.findings, testing::Contains(testing::Field(
                                 &finding::what, HasSubstr(again + " and " + first + " are one sentinel"))));
}

// It is believed then, as one of before Redis 6.2 is.
TEST_F(with_sentinels, they_need_not_say_which_they_are) {
  for (const auto& one : lab_.nodes("sentinel")) {
    ASSERT_EQ(ask(one, {"ACL", "SETUSER", "watcher", "on", ">secret", "+@all", "-sentinel|myid"}), "OK");
  }
  auto how = options();
  how.sentinel_user = "watcher";
  how.sentinel_password = "secret";
  client locks{lab_.uri(), how};
  EXPECT_TRUE(locks.try_acquire("x", brief));
  const auto said = locks.diagnose();
  EXPECT_EQ(said.worst(), finding::severity::warning);
  EXPECT_THAT(said.findings,
              testing::Contains(testing::Field(&finding::what, HasSubstr("do not say which sentinel they are"))));
}

}  // namespace
}  // namespace holdfast::test
