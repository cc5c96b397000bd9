// SPDX-License-Identifier: Apache-2.0
// What diagnose() and `holdfast doctor` find: what a lock needs is tried, and of a quorum it is said whether the others
// are enough.
#include "integration/cluster_fixture.hpp"
#include "integration/quorum_fixture.hpp"
#include "support/fault_proxy.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using severity = finding::severity;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// How long round trips take is the test machine's affair. Where nothing else was found, that all is well was not said
// because of it: asked again.
std::vector<finding> found_by(client locks) {
  const auto is_slow = [](const finding& f) { return f.what.find("round trips take") != std::string::npos; };
  for (int left = 20;; --left) {
    auto all = locks.diagnose().findings;
    const bool was_slow = std::erase_if(all, is_slow) > 0;
    if (!was_slow || !all.empty() || left == 0) return all;
  }
}

auto is(severity level, const std::string& code, const std::string& what, const std::string& fix) {
  return AllOf(Field("level", &finding::level, level), Field("code", &finding::code, code),
               Field("what", &finding::what, HasSubstr(what)), Field("fix", &finding::fix, HasSubstr(fix)));
}

// ---- one server ----

class diagnosis_of_server : public on_redis {
protected:
  // By a user who may do all but that.
  std::vector<finding> found_without(const std::string& rule) {
    server_("ACL", "SETUSER", "app", "reset", "on", ">secret", "~*", "&*", "+@all", rule);
    client_options how;
    how.user = "app";
    how.password = "secret";
    return found_by(client{server_.unix_uri(), how});
  }
};

TEST_F(diagnosis_of_server, that_lacks_nothing_is_good) {
  EXPECT_THAT(found_without("+@all"), ElementsAre(is(severity::ok, "", "taken, renewed, waited for and released", "")));
}

// A plain key must not begin with our prefix, and the name that is tried is one.
TEST_F(diagnosis_of_server, tries_a_name_that_is_none_of_our_own_keys) {
  client_options how;
  how.names = naming::plain;
  how.prefix = "holdfast-";
  make_client(how).declare_nothing_forgotten();
  EXPECT_THAT(found_by(make_client(how)), ElementsAre(Field("level", &finding::level, severity::ok)));
}

TEST_F(diagnosis_of_server, that_cannot_renew_a_lock_is_an_error) {
  EXPECT_THAT(found_without("-pexpire"),
              Contains(is(severity::error, "E04", "renewing a lock fails", "`holdfast help acl`")));
}

TEST_F(diagnosis_of_server, where_nobody_can_wait_is_an_error) {
  for (const auto* rule : {"-zadd", "-hset", "-zscore"})
    EXPECT_THAT(found_without(rule), ElementsAre(is(severity::error, "E04", "waiting in line", "`holdfast help acl`")))
        << rule;
}

TEST_F(diagnosis_of_server, that_does_not_say_whose_turn_it_is_is_a_warning) {
  for (const auto* rule : {"-publish", "-subscribe", "resetchannels"})
    EXPECT_THAT(found_without(rule), ElementsAre(is(severity::warning, "E04", "not told of his turn", "+publish")))
        << rule;
}

TEST_F(diagnosis_of_server, that_cannot_release_a_lock_is_an_error) {
  EXPECT_THAT(found_without("-del"),
              ElementsAre(is(severity::error, "E04", "could not be released", "`holdfast help acl`")));
}

// Who died a moment ago has it for a while, and that all is well would be a guess.
TEST_F(diagnosis_of_server, tries_also_when_another_one_has_just_tried) {
  const auto before = make_client().acquire("holdfast-doctor", {.ttl = 500ms, .renew = renewal::none});
  EXPECT_THAT(found_without("-publish"), ElementsAre(is(severity::warning, "E04", "not told of his turn", "+publish")));
}

TEST_F(diagnosis_of_server, that_refuses_writes_says_the_way_out) {
  server_("CONFIG", "SET", "min-replicas-to-write", "1");
  EXPECT_THAT(found_by(make_client()),
              ElementsAre(is(severity::error, "E15", "NOREPLICAS", "min-replicas-to-write 0")));
  server_("CONFIG", "SET", "min-replicas-to-write", "0");
  server_("CONFIG", "SET", "maxmemory", "1");
  EXPECT_THAT(found_by(make_client()), ElementsAre(is(severity::error, "E15", "OOM", "raise maxmemory")));
}

// Nothing is granted then, so that no lock tells.
TEST_F(diagnosis_of_server, that_refuses_writes_says_so_in_quarantine_too) {
  server_.kill();
  server_.restart();
  const auto in_quarantine = is(severity::warning, "E23", "started", "holdfast init");
  EXPECT_THAT(found_by(make_client()), ElementsAre(in_quarantine));
  server_("CONFIG", "SET", "maxmemory", "1");
  EXPECT_THAT(found_by(make_client()),
              ElementsAre(in_quarantine, is(severity::error, "E15", "no memory left for a lock", "raise maxmemory")));
  server_("CONFIG", "SET", "maxmemory", "0");
  server_("CONFIG", "SET", "min-replicas-to-write", "1");
  EXPECT_THAT(found_by(make_client()),
              ElementsAre(in_quarantine, is(severity::error, "E15", "takes no writes", "min-replicas-to-write 0")));
}

// INFO has no such thing as the reason: with a policy that may throw away what lives for a time, all memory can still
// be somebody's who lives for ever.
TEST_F(diagnosis_of_server, that_refuses_writes_for_another_reason_says_so_in_quarantine_too) {
  server_.kill();
  server_.restart();
  server_("DEL", "hf:epoch");
  server_("SET", "of another program", "x");
  server_("CONFIG", "SET", "maxmemory-policy", "volatile-lru");
  server_("CONFIG", "SET", "maxmemory", "1");
  EXPECT_THAT(found_by(make_client()),
              Contains(is(severity::error, "E15", "it has not kept key 'hf:epoch'", "maxmemory")));
}

// It says so to PING, too.
TEST_F(diagnosis_of_server, that_cannot_write_its_disk_says_the_way_out) {
  struct saves {
    redis_server& at;
    explicit saves(redis_server& server) : at{server} { at("CONFIG", "SET", "save", "900 1"); }
    saves(const saves&) = delete;
    saves& operator=(const saves&) = delete;
    ~saves() { at("CONFIG", "SET", "save", ""); }  // Else it does not end.
  } const while_it_saves{server_};
  std::filesystem::create_directory(server_.directory() + "/dump.rdb");
  const auto refuses = [&] {
    server_("BGSAVE");
    return server_("PING").text.starts_with("MISCONF");
  };
  ASSERT_TRUE(eventually(refuses, 20s)) << "or this tests nothing";
  EXPECT_THAT(found_by(make_client()), Contains(is(severity::error, "E15", "MISCONF", "")));
}

TEST_F(diagnosis_of_server, that_is_trusted_to_sync_every_write_must_do_so) {
  client_options how;
  how.quarantine = quarantine_mode::trust_every_write_is_synced;
  const auto found = [&] { return found_by(client{server_.unix_uri(), how}); };
  server_("CONFIG", "SET", "appendonly", "yes");
  server_("CONFIG", "SET", "appendfsync", "everysec");
  EXPECT_THAT(found(), ElementsAre(is(severity::warning, "", "appendfsync is 'everysec'", "appendfsync always")));
  server_("CONFIG", "SET", "appendfsync", "always");
  EXPECT_THAT(found(), ElementsAre(Field("level", &finding::level, severity::ok)));
}

// ---- a primary with replicas ----

// For so long it goes on when it is cut off from them, and until that is over its clients renew.
TEST(diagnosis_of_primary, that_writes_for_itself_for_longer_than_a_third_of_a_ttl_is_a_warning_H26) {
  const lab_topology lab{lab_kind::replicas, {.count = 1, .ready_within = 120s}};
  const auto& primary = lab.nodes().front();
  const auto found = [&] { return found_by(client{lab.uri()}); };
  ask(primary, {"CONFIG", "SET", "min-replicas-to-write", "1"});
  EXPECT_THAT(found(),
              Contains(is(severity::warning, "", "for 10 s (min-replicas-max-lag)", "min-replicas-max-lag 3")));
  ask(primary, {"CONFIG", "SET", "min-replicas-max-lag", "3"});
  EXPECT_THAT(found(), Not(Contains(Field("what", &finding::what, HasSubstr("max-lag")))));
}

TEST(diagnosis_of_primary, that_has_fewer_replicas_than_it_writes_with_says_that_it_writes_nothing) {
  const lab_topology lab{lab_kind::replicas, {.count = 1, .ready_within = 120s}};
  ask(lab.nodes().front(), {"CONFIG", "SET", "min-replicas-to-write", "3"});
  const auto found = found_by(client{lab.uri()});
  EXPECT_THAT(found, Contains(is(severity::error, "E15", "takes no writes: 1 of the 3 replicas ",
                                 "min-replicas-to-write 1 at most")));
  EXPECT_THAT(found, Not(Contains(Field("what", &finding::what, HasSubstr("goes on taking writes")))));
}

// ---- a quorum ----

// Redis copies neither settings nor users to them, and each may be the next one.
class diagnosis_of_replicas : public testing::Test {
protected:
  static auto of(const lab_node& node, const std::string& code, const std::string& what, const std::string& fix) {
    return is(severity::warning, code, "replica " + node.address + ", which may become the primary: " + what,
              "on " + node.address + ": " + fix);
  }
  static auto names_what_may_become() { return Field("what", &finding::what, HasSubstr("which may become")); }
  std::vector<finding> found(const client_options& how = {}) const { return found_by(client{lab_.uri(), how}); }

  lab_topology lab_{lab_kind::replicas, {.count = 2, .ready_within = 120s}};
  const lab_node first_ = lab_.nodes("replica")[0];
  const lab_node second_ = lab_.nodes("replica")[1];
};

TEST_F(diagnosis_of_replicas, names_what_their_settings_would_cost) {
  EXPECT_THAT(found(), Not(Contains(names_what_may_become())));
  ask(first_, {"CONFIG", "SET", "maxmemory-policy", "volatile-ttl"});
  ask(second_, {"CONFIG", "SET", "repl-backlog-ttl", "1"});
  const auto said = found();
  EXPECT_THAT(said,
              Contains(of(first_, "E05", "it may throw locks away: maxmemory-policy is 'volatile-ttl'", "CONFIG")));
  EXPECT_THAT(said, Contains(of(second_, "E23", "1 s after its last replica left", "CONFIG SET repl-backlog-ttl")));
  EXPECT_THAT(said, Contains(names_what_may_become()).Times(2));
}

TEST_F(diagnosis_of_replicas, names_what_our_login_may_not_do_there) {
  client_options how;
  how.user = "app";
  how.password = "secret";
  const auto let = [&](const lab_node& node, const char* but) {
    ASSERT_EQ(ask(node, {"ACL", "SETUSER", "app", "reset", "on", ">secret", "~hf:*", "&*", "+@all", but}), "OK");
  };
  let(lab_.nodes("primary")[0], "+@all");
  let(first_, "-evalsha");
  EXPECT_THAT(found(how), AllOf(Contains(of(first_, "E04", "NOPERM", "give its user the rights")),
                                Contains(of(second_, "E02", "it does not take our login: WRONGPASS", "user and"))));
  let(first_, "-zadd");
  ASSERT_EQ(ask(second_, {"ACL", "SETUSER", "app", "reset", "on", ">secret", "~other:*", "&*", "+@all"}), "OK");
  EXPECT_THAT(found(how), AllOf(Contains(of(first_, "E04", "scripts may not run there what they may here: ZADD", "")),
                                Contains(of(second_, "E04", "scripts may not run there", ""))));
  let(first_, "+@all");
  let(second_, "+@all");
  EXPECT_THAT(found(how), Not(Contains(names_what_may_become())));
}

// Nothing of it is written there, nor asked of what it does not serve.
TEST_F(diagnosis_of_replicas, leaves_nothing_there) {
  (void)found();
  EXPECT_EQ(ask(first_, {"CONFIG", "RESETSTAT"}), "OK");
  (void)found();
  EXPECT_THAT(ask(first_, {"INFO", "errorstats"}), Not(HasSubstr("READONLY")));
}

class diagnosis_of_quorum : public with_quorum {
protected:
  explicit diagnosis_of_quorum(std::chrono::milliseconds largest = max_ttl) : with_quorum{3, largest} {}

  std::vector<finding> found() const { return found_by(make(2s)); }
  // The last one says nothing for a while.
  std::vector<finding> found_with_late(client by) {
    lab_.pause(node(2));
    std::jthread later{[this] {
      let_pass(1200ms);
      lab_.resume(node(2));
    }};
    return by.diagnose().findings;
  }
};

TEST_F(diagnosis_of_quorum, of_which_one_refuses_writes_is_a_warning) {
  ask(0, {"CONFIG", "SET", "min-replicas-to-write", "1"});
  EXPECT_THAT(found(), ElementsAre(is(severity::warning, "E15", "NOREPLICAS",
                                      "min-replicas-to-write 0: when one more is down, no lock is granted")));
  ask(1, {"CONFIG", "SET", "min-replicas-to-write", "1"});
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(found(), Contains(is(severity::error, "E15", node(i).address + ": taking a lock fails", "to-write 0")));
}

TEST_F(diagnosis_of_quorum, does_not_say_to_start_who_is_there) {
  ask(0, {"REPLICAOF", "127.0.0.1", "1"});
  EXPECT_THAT(found(), ElementsAre(is(severity::warning, "E10", "role replica", "REPLICAOF NO ONE")));
  ask(0, {"REPLICAOF", "NO", "ONE"});
  ask(1, {"ACL", "SETUSER", "default", ">secret", "resetpass", ">secret"});
  EXPECT_THAT(found(), Contains(is(severity::warning, "E10", "NOAUTH", "password")));
}

// That it goes on taking writes without its replica is as it must be: its vote would be the replica's.
TEST_F(diagnosis_of_quorum, of_which_one_copies_another_says_so_of_that_one_alone) {
  const auto& copied = node(1).address;
  const auto port = copied.substr(copied.rfind(':') + 1);
  ask(0, {"REPLICAOF", "127.0.0.1", port.c_str()});
  const auto copies = [&] { return ask(1, {"INFO", "replication"}).find("state=online") != std::string::npos; };
  ASSERT_TRUE(eventually(copies, long_enough));
  EXPECT_THAT(found(), ElementsAre(is(severity::warning, "E10", node(0).address + ": HELLO says role replica",
                                      "REPLICAOF NO ONE")));
}

// Votes need no PING, and doctor does: it goes on with the others.
TEST_F(diagnosis_of_quorum, of_which_one_denies_a_command_is_a_warning) {
  for (const auto* denied : {"-ping", "-info"}) {
    ask(0, {"ACL", "SETUSER", "default", "+@all", denied});
    EXPECT_THAT(found(), ElementsAre(is(severity::warning, "E04", node(0).address + ": ", "`holdfast help acl`")))
        << denied;
  }
}

// Between continents. The answers are those of a majority, and a try waits for them for a part of the ttl.
TEST_F(diagnosis_of_quorum, of_which_a_majority_is_far_away_is_fit_and_says_which_ttl_that_needs) {
  fault_proxy first{port_of(node(0))}, second{port_of(node(1))};
  for (auto* const far : {&first, &second}) far->set(direction::to_client, {.delay = 100ms});
  const auto uri = "redis+quorum://127.0.0.1:" + std::to_string(first.port()) +
                   ",127.0.0.1:" + std::to_string(second.port()) + "," + node(2).address;
  const auto all = client{uri, options(10s)}.diagnose().findings;
  EXPECT_THAT(all, Not(Contains(Field("level", &finding::level, severity::error))));
  EXPECT_THAT(all, Contains(is(severity::warning, "E08", "ms to a majority", "use a ttl of")).Times(1));
  EXPECT_THAT(all, Contains(Field("code", &finding::code, "E08")).Times(1)) << "no server has one of its own";
}

// Who is in quarantine is no vote yet.
TEST_F(diagnosis_of_quorum, of_which_one_is_down_and_one_in_quarantine_grants_nothing_for_now) {
  lab_.kill(node(0));
  EXPECT_THAT(found(), ElementsAre(is(severity::warning, "E10", "refused", "when one more is down")));
  lab_.kill(node(1));
  lab_.restart(node(1), lab_data::dropped);
  EXPECT_THAT(found(), AllOf(Contains(is(severity::warning, "E10", "refused", "until a majority is out of quarantine")),
                             Contains(Field("code", &finding::code, "E23"))));
}

TEST_F(diagnosis_of_quorum, of_which_one_is_named_twice_says_so) {
  const auto again = "localhost:" + std::to_string(port_of(node(0)));
  const auto uri = "redis+quorum://" + node(0).address + "," + again + "," + node(1).address;
  EXPECT_THAT(found_by(client{uri, options(2s)}),
              Contains(is(severity::error, "E17", again + "; they are one server", "name each server once")));
}

// For so long nothing is granted, and a minority keeps nobody waiting.
TEST_F(diagnosis_of_quorum, is_in_quarantine_until_a_majority_is_out_of_it) {
  const auto left = [&] { return make(2s).diagnose().quarantine; };
  lab_.kill(node(0));
  lab_.restart(node(0), lab_data::dropped);
  EXPECT_EQ(left(), 0s);
  lab_.kill(node(1));
  lab_.restart(node(1), lab_data::dropped);
  EXPECT_GT(left(), 0s);
}

// It may well run, somewhere else.
TEST_F(diagnosis_of_quorum, of_which_one_has_a_name_without_an_address_says_what_to_name) {
  const auto uri = "redis+quorum://" + node(0).address + "," + node(1).address + ",no-such-host.invalid:6379";
  EXPECT_THAT(found_by(client{uri, options(2s)}),
              ElementsAre(is(severity::warning, "E10", "no-such-host.invalid:6379: ",
                             "name it as it resolves here; if it has another address now: holdfast quorum replace")));
}

// Its first connection takes as long as several answers, and more than one would be waited for otherwise.
TEST_F(diagnosis_of_quorum, of_which_one_is_far_away_does_not_call_it_down) {
  EXPECT_THAT(found_with_late(make(10s)), Not(Contains(Field("code", &finding::code, "E10"))));
}

class diagnosis_of_small_ttls : public diagnosis_of_quorum {
protected:
  diagnosis_of_small_ttls() : diagnosis_of_quorum{1s} {}
};

// Who answers later says a later time.
TEST_F(diagnosis_of_small_ttls, of_which_one_is_far_away_does_not_call_its_clock_off_P24) {
  EXPECT_THAT(found_with_late(make(10s)), Not(Contains(Field("what", &finding::what, HasSubstr("clock")))));
}

// ---- a cluster ----

class diagnosis_of_cluster : public on_a_cluster {
protected:
  static auto of(const lab_node& node, severity level, const std::string& code, const std::string& what,
                 const std::string& fix) {
    return AllOf(is(level, code, what, fix), says_first(node.address));
  }
  static testing::Matcher<const finding&> says_first(const std::string& address) {
    return Field("what", &finding::what, StartsWith(address + ": "));
  }
  static auto error_of_node(const lab_node& node) {
    return AllOf(Field("level", &finding::level, severity::error), says_first(node.address));
  }
};

// `holdfast init` ends that of each of them: whoever is asked about one, and not about the other, says yes.
TEST_F(diagnosis_of_cluster, names_each_primary_in_quarantine_and_asks_about_all_nodes_C1) {
  const auto old = primaries();
  const auto next = replica_of(old[1]);
  ask(old[0], {"FLUSHALL"});  // As if it had restarted.
  ASSERT_EQ(ask(next, {"CLUSTER", "FAILOVER"}), "OK");
  ASSERT_TRUE(eventually([&] { return is_primary(next); }, long_enough));
  auto how = options();
  how.max_ttl = 600s;  // The first one started some time ago.
  client locks{lab_.uri(), how};
  diagnosis found;
  const auto names_the_next = [&] {
    found = locks.diagnose();
    return testing::Value(found.findings, Contains(says_first(next.address)));
  };
  ASSERT_TRUE(eventually(names_the_next, long_enough)) << "or it is not known yet";
  const auto about_all = "wait; or, if none of its nodes has forgotten a lock: holdfast init";
  EXPECT_THAT(found.findings, Contains(of(old[0], severity::warning, "E23", "the server started ", about_all)));
  EXPECT_THAT(found.findings,
              Contains(of(next, severity::warning, "E23", "the server restarted or was promoted ", about_all)));
  EXPECT_THAT(found.findings, Contains(Field("code", &finding::code, "E23")).Times(2));
  EXPECT_GT(found.quarantine, 50s) << "the longest";
}

TEST_F(diagnosis_of_cluster, names_what_the_settings_and_users_of_replicas_would_cost) {
  const auto all = primaries();
  const auto evicting = replica_of(all[0]);
  const auto strict = replica_of(all[1]);
  ask(evicting, {"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  ask(strict, {"ACL", "SETUSER", "default", "-evalsha"});
  const auto said_of = [](const lab_node& primary, const lab_node& replica, const char* code, const char* what) {
    return of(primary, severity::warning, code,
              "replica " + replica.address + ", which may become the primary: " + what, "on " + replica.address);
  };
  std::vector<finding> found;
  const auto both_are_named = [&] {
    found = found_by(make());
    return testing::Value(found, AllOf(Contains(said_of(all[0], evicting, "E05", "it may throw locks away")),
                                       Contains(said_of(all[1], strict, "E04", "NOPERM"))));
  };
  EXPECT_TRUE(eventually(both_are_named, long_enough)) << "a replica is, once something was written";
  EXPECT_THAT(found, Contains(Field("what", &finding::what, HasSubstr("which may become"))).Times(2));
}

TEST_F(diagnosis_of_cluster, tries_a_lock_on_each_primary) {
  const auto all = primaries();
  ask(all[0], {"CONFIG", "SET", "maxmemory", "1"});
  ask(all[1], {"CONFIG", "SET", "min-replicas-to-write", "3"});
  const auto found = found_by(make());
  EXPECT_THAT(found, Contains(of(all[0], severity::error, "E15", "taking a lock fails: ", "raise maxmemory")));
  EXPECT_THAT(found, Contains(of(all[1], severity::error, "E15", "NOREPLICAS", "min-replicas-to-write 0")));
  EXPECT_THAT(found, Not(Contains(error_of_node(all[2]))));
}

// One that asks every minute would leave a fence for a week each time.
TEST_F(diagnosis_of_cluster, leaves_the_same_keys_each_time) {
  const auto keys = [&] {
    std::vector<std::string> sizes;
    for (const auto& one : primaries()) sizes.push_back(ask_number(one, {"DBSIZE"}));
    return sizes;
  };
  (void)make().diagnose();
  const auto before = keys();
  (void)make().diagnose();
  EXPECT_EQ(keys(), before);
}

TEST_F(diagnosis_of_cluster, measures_the_way_to_each_primary) {
  std::vector<std::unique_ptr<fault_proxy>> far;
  for (const auto& one : primaries()) {
    far.push_back(std::make_unique<fault_proxy>(port_of(one)));
    far.back()->set(direction::to_client, {.delay = 30ms});
    const auto port = std::to_string(far.back()->port());
    ASSERT_EQ(ask(one, {"CONFIG", "SET", "cluster-announce-port", port.c_str()}), "OK");
  }
  auto locks = make();
  diagnosis found;
  const auto is_named = [&](const auto& at) {
    return testing::Value(found.findings, Contains(AllOf(is(severity::warning, "E08", "round trips take", "ttl"),
                                                         says_first("127.0.0.1:" + std::to_string(at->port())))));
  };
  const auto is_said_of_all = [&] {
    found = locks.diagnose();
    return std::all_of(far.begin(), far.end(), is_named);
  };
  EXPECT_TRUE(eventually(is_said_of_all, 20s));
  EXPECT_GE(found.round_trip_median, 30ms);
}

// Of the others it is said what there is to say, and nobody is waited for again and again.
TEST_F(diagnosis_of_cluster, of_which_one_primary_does_not_answer_says_so_and_goes_on) {
  const auto all = primaries();
  ask(all[1], {"CONFIG", "SET", "maxmemory", "1"});
  lab_.pause(all[0]);
  auto began = boottime();
  EXPECT_THAT(found_by(make(2s)), AllOf(Contains(of(all[0], severity::error, "E01", "", "start it")),
                                        Contains(of(all[1], severity::error, "E15", "OOM", "raise maxmemory")),
                                        Not(Contains(error_of_node(all[2])))));
  EXPECT_LT(boottime() - began, 8s);
  lab_.resume(all[0]);
  lab_.kill(all[0]);
  began = boottime();
  EXPECT_THAT(found_by(make(2s)), AllOf(Contains(of(all[0], severity::error, "E01", "refused", "start it")),
                                        Contains(of(all[1], severity::error, "E15", "OOM", "raise maxmemory"))));
  EXPECT_LT(boottime() - began, 8s);
}

TEST_F(diagnosis_of_cluster, of_which_one_primary_wants_a_password_or_denies_a_command_says_so_and_goes_on) {
  const auto all = primaries();
  ask(all[1], {"CONFIG", "SET", "maxmemory", "1"});
  const auto the_other = of(all[1], severity::error, "E15", "OOM", "raise maxmemory");
  ask(all[0], {"ACL", "SETUSER", "default", "-ping"});
  EXPECT_THAT(found_by(make(2s)), AllOf(Contains(of(all[0], severity::error, "E04", "NOPERM", "`holdfast help acl`")),
                                        Contains(the_other)));
  ask(all[0], {"ACL", "SETUSER", "default", "+ping", ">secret", "resetpass", ">secret"});
  EXPECT_THAT(found_by(make(2s)),
              AllOf(Contains(of(all[0], severity::error, "E02", "NOAUTH", "password")), Contains(the_other)));
}

// Nothing is known of anybody.
TEST_F(diagnosis_of_cluster, of_which_no_primary_lets_us_in_is_an_error) {
  for (const auto& one : primaries()) ask(one, {"ACL", "SETUSER", "default", "-ping"});
  EXPECT_EQ(code_of([&] { (void)make(2s).diagnose(); }), errc::no_permission);
}

TEST_F(diagnosis_of_cluster, of_which_all_primaries_died_is_an_error) {
  auto locks = make(2s);
  (void)locks.diagnose();  // It knows them.
  for (const auto& one : primaries()) lab_.kill(one);
  EXPECT_TRUE(error_of([&] { (void)locks.diagnose(); }));
}

// Nobody takes its slots, and the others refuse to serve theirs. `CLUSTER SLOTS` goes on naming it, so that nothing
// seems to be missing, and each that answers says the same.
TEST_F(diagnosis_of_cluster, of_which_one_primary_died_with_its_replicas_names_it_and_a_way_out) {
  const auto all = primaries();
  lab_.kill(replica_of(all[0]));
  lab_.kill(all[0]);
  patience_of_nodes("2000");
  for (std::size_t i = 1; i < 3; ++i) {
    const auto is_down = [&] { return ask(all[i], {"TYPE", "x"}).starts_with("CLUSTERDOWN"); };
    ASSERT_TRUE(eventually(is_down, long_enough));
  }
  const auto the_dead = of(all[0], severity::error, "E01", "refused", "start it");
  const auto found = found_by(make(3s));
  EXPECT_THAT(found, Contains(the_dead));
  EXPECT_THAT(found, Contains(is(severity::error, "E25", "locks cannot be tried: ",
                                 "--cluster check ANY names who is missing: start it; CONFIG SET cluster-require-")));
  EXPECT_THAT(found, Contains(Field("level", &finding::level, severity::error)).Times(2));
  for (std::size_t i = 1; i < 3; ++i) ask(all[i], {"CONFIG", "SET", "cluster-require-full-coverage", "no"});
  const auto then = [&] { return found_by(make(3s)); };
  const auto are_served =
      AllOf(Contains(the_dead), Not(Contains(error_of_node(all[1]))), Not(Contains(error_of_node(all[2]))),
            Not(Contains(Field("code", &finding::code, "E25"))));
  EXPECT_TRUE(eventually([&] { return testing::Value(then(), are_served); }, long_enough));
}

// A node of a cluster refuses REPLICAOF, and ends where its configuration has it.
TEST_F(diagnosis_of_cluster, of_which_one_primary_lost_its_replica_advises_what_a_cluster_can_do) {
  const auto one = primaries()[0];
  const auto with_replica =
      "local n = 0 for _, range in ipairs(redis.call('CLUSTER', 'SLOTS')) do n = n + (#range > 3 and 1 or 0) end "
      "return n";
  const auto all_are_named = [&] { return ask_number(one, {"EVAL", with_replica, "0"}) == "3"; };
  ASSERT_TRUE(eventually(all_are_named, long_enough)) << "a replica is, once something was written";
  lab_.kill(replica_of(one));
  std::vector<finding> found;
  const auto is_found = [&](const std::string& what, const std::string& fix) {
    return eventually(
        [&] {
          found = found_by(make());
          return testing::Value(found,
                                Contains(is(severity::warning, "", one.address + " has no replica" + what, fix)));
        },
        long_enough);
  };
  const auto of_a_server = Contains(Field("fix", &finding::fix, HasSubstr("replicaof")));
  EXPECT_TRUE(is_found(" that is connected: ", "start its replicas"));
  EXPECT_THAT(found, Not(of_a_server));
  patience_of_nodes("2000");
  EXPECT_TRUE(is_found(": its ", "--cluster add-node"));
  EXPECT_THAT(found, Not(of_a_server));
}

// Of these, too, one may be the only one that is meant.
TEST_F(diagnosis_of_cluster, of_which_one_primary_does_not_answer_or_denies_a_command_the_list_names_it) {
  const auto one = primaries()[1];
  const auto said_to = [](auto call) {
    const auto e = error_of(call);
    return e ? std::string{e->what()} : "nothing";
  };
  ask(one, {"ACL", "SETUSER", "default", "-scan"});
  EXPECT_THAT(said_to([&] { (void)make(2s).list(); }), HasSubstr("SCAN of " + one.address + "; "));
  ask(one, {"ACL", "SETUSER", "default", "-eval", "-evalsha"});
  EXPECT_THAT(said_to([&] { make(2s).declare_nothing_forgotten(); }), HasSubstr(one.address + " said so; "));
  lab_.pause(one);
  EXPECT_THAT(said_to([&] { (void)make(2s).list(); }), HasSubstr(one.address + "; redis+cluster://"));
}

// Then its nodes serve no slot at all, unless they were told to.
TEST_F(diagnosis_of_cluster, of_which_a_slot_is_served_by_nobody_says_so) {
  for (const auto& one : lab_.nodes()) ask(one, {"CLUSTER", "DELSLOTS", "0"});
  for (const auto& one : primaries())
    EXPECT_TRUE(eventually([&] { return ask(one, {"TYPE", "x"}).starts_with("CLUSTERDOWN"); }, long_enough));
  const auto all = found_by(make(3s));
  EXPECT_THAT(all, Contains(is(severity::error, "E25", "1 of 16384 slots are served by nobody", "--cluster check")));
  EXPECT_THAT(all, Contains(is(severity::error, "E25", "locks cannot be tried: ", "cluster-require-full-coverage no")));
  // Where they were told otherwise, the other slots are served.
  for (const auto& one : lab_.nodes()) ask(one, {"CONFIG", "SET", "cluster-require-full-coverage", "no"});
  for (const auto& one : primaries())
    EXPECT_TRUE(eventually([&] { return !ask(one, {"TYPE", "x"}).starts_with("CLUSTERDOWN"); }, long_enough));
  const auto then = found_by(make(3s));
  EXPECT_THAT(then, Contains(is(severity::error, "E25", "1 of 16384 slots are served by nobody", "--cluster check")));
  EXPECT_THAT(then, Not(Contains(Field("what", &finding::what, HasSubstr("cannot be tried")))));
}

}  // namespace
}  // namespace holdfast::test
