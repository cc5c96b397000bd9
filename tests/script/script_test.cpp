// SPDX-License-Identifier: Apache-2.0
// Plays the one table of cases in both worlds. What the model answers differently from a real server is a fault of the
// model; what both answer wrongly is a fault of a script.
#include "cases.hpp"
#include "world.hpp"

#include "script/field.hpp"
#include "script/server_error.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

namespace holdfast::tests {

namespace {

std::string shown(const resp::value& v) {
  if (v.is_nil()) return "nil";
  if (const auto* n = v.as_integer()) return std::to_string(*n);
  if (const auto* t = v.as_bulk()) return "'" + *t + "'";
  if (const auto* s = v.as_status()) return "+" + s->text;
  if (const auto* e = v.as_error()) return "-" + e->text;
  std::string out = "{";
  for (const auto& part : *v.as_array()) out += (out.size() > 1 ? ", " : "") + shown(part);
  return out + "}";
}

// In the words of this version of the server, which are what the library knows it by.
bool is_denied(const resp::value& reply) {
  return reply.as_error() && script::classify(reply.as_error()->text).code == errc::no_permission;
}

// One case being played.
class play {
public:
  play(world& w) : world_{w} {
    saved_["A"] = std::string(32, 'a');
    saved_["B"] = std::string(31, 'b') + "0";
    saved_["C"] = std::string(32, 'c');
    saved_["D"] = std::string(32, 'd');
    saved_["E"] = std::string(32, 'e');
    saved_["F"] = std::string(32, 'f');
  }

  void perform(const step& s) {
    began_ = world_.now();
    switch (s.what) {
      case step::kind::command: return check(s.expected, world_.execute(filled(s.words)));
      case step::kind::script: return check(s.expected, world_.execute_as_user(script_call(s)));
      case step::kind::listen: return world_.listen(filled(s.words[0]));
      case step::kind::listen_to_all: return world_.listen_to_all();
      case step::kind::hears: return check(s.expected, world_.next_message());
      case step::kind::until_gone:
        ASSERT_TRUE(world_.wait_until_gone(s.words[0])) << s.words[0] << " does not expire";
        return;
      case step::kind::memory_full: return world_.set_memory_full(true);
      case step::kind::memory_free: return world_.set_memory_full(false);
      case step::kind::deny: return world_.deny(s.words[0]);
      case step::kind::allow_all: return world_.allow_all();
    }
  }

private:
  std::vector<std::string> script_call(const step& s) const {
    std::vector<std::string> words{"EVAL", std::string{script::find(s.which).text}, std::to_string(s.keys)};
    for (auto& word : filled(s.words)) words.push_back(std::move(word));
    return words;
  }

  std::vector<std::string> filled(std::vector<std::string> words) const {
    for (auto& word : words) word = filled(word);
    return words;
  }

  std::string filled(std::string text) const {
    for (auto open = text.find('<'); open != std::string::npos; open = text.find('<')) {
      const auto close = text.find('>', open);
      const std::string inside = text.substr(open + 1, close - open - 1);
      const auto sign = inside.find_first_of("+-");
      const std::string name = inside.substr(0, sign);
      std::string value = name == "now" ? digits(began_) : saved(name);
      if (sign != std::string::npos) {
        value = script::digits16(static_cast<std::uint64_t>(std::stoll(value) + std::stoll(inside.substr(sign))));
      }
      text.replace(open, close - open + 1, value);
    }
    return text;
  }

  std::string saved(const std::string& name) const {
    const auto found = saved_.find(name);
    if (found != saved_.end()) return found->second;
    ADD_FAILURE() << "no earlier step has saved <" << name << ">";
    return std::string(16, '0');
  }

  void check(const shape& expected, const resp::value& reply) {
    const auto ended = world_.now();
    EXPECT_TRUE(fits(expected, reply, ended))
        << "got " << shown(reply) << (complaint_.empty() ? "" : "; ") << complaint_;
  }

  bool fits(const shape& expected, const resp::value& reply, server_time ended) {
    switch (expected.what) {
      case shape::kind::nil: return reply.is_nil();
      case shape::kind::integer:
        return reply.as_integer() && *reply.as_integer() >= expected.low && *reply.as_integer() <= expected.high;
      case shape::kind::text:
        if (reply.as_bulk() && *reply.as_bulk() == filled(expected.text)) return true;
        complaint_ = "wanted '" + filled(expected.text) + "'";
        return false;
      case shape::kind::saved_now: {
        const auto* text = reply.as_bulk();
        if (!text || text->size() != 16 || *text < digits(began_) || *text > digits(ended)) return false;
        if (!expected.text.empty()) saved_[expected.text] = *text;
        return true;
      }
      case shape::kind::token:
        return reply.as_bulk() && reply.as_bulk()->size() == 16 &&
               reply.as_bulk()->find_first_not_of("0123456789") == std::string::npos;
      case shape::kind::anything:
        if (!expected.text.empty() && reply.as_bulk()) saved_[expected.text] = *reply.as_bulk();
        return !reply.is_nil();
      case shape::kind::status: return reply.as_status() && reply.as_status()->text == expected.text;
      case shape::kind::error: return reply.as_error() && reply.as_error()->text.starts_with(expected.text);
      case shape::kind::denied: return is_denied(reply);
      case shape::kind::list: {
        const auto* all = reply.as_array();
        if (!all || all->size() != expected.parts.size()) return false;
        for (std::size_t i = 0; i < all->size(); ++i) {
          if (!fits(expected.parts[i], (*all)[i], ended)) return false;
        }
        return true;
      }
    }
    return false;
  }

  static std::string digits(server_time t) {
    return script::digits16(static_cast<std::uint64_t>(t.time_since_epoch().count()));
  }

  world& world_;
  server_time began_{};
  std::map<std::string, std::string> saved_{};
  std::string complaint_{};
};

// C8: no key of ours without an expiry, whatever the case did.
void expect_every_key_expires(world& w, const std::vector<std::string>& foreign) {
  const auto reply = w.execute({"KEYS", "*"});
  for (const auto& element : *reply.as_array()) {
    const std::string& key = *element.as_bulk();
    if (std::find(foreign.begin(), foreign.end(), key) != foreign.end()) continue;
    EXPECT_GE(*w.execute({"PTTL", key}).as_integer(), 0) << key << " has no expiry";
  }
}

void play_case(world& w, const script_case& c) {
  w.allow_all();
  w.end_listening();
  w.execute({"FLUSHALL"});
  play p{w};
  for (std::size_t i = 0; i < c.steps.size(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i + 1));
    p.perform(c.steps[i]);
    if (testing::Test::HasFatalFailure()) break;
  }
  w.allow_all();
  w.set_memory_full(false);
  expect_every_key_expires(w, c.foreign);
}

class script_on : public testing::TestWithParam<script_case> {};

class real_server : public script_on {
protected:
  static void SetUpTestSuite() { server_ = make_real_world(); }
  static void TearDownTestSuite() { server_.reset(); }
  static inline std::unique_ptr<world> server_{};
};

// The same server, but the scripts come from a user with the rule of docs/acl.md and nothing more (B98 to B100).
std::string minimal_rule() {
  std::string rule;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe{popen(HOLDFAST_ACL_TOOL " --rule", "r"), pclose};
  char part[512];
  while (pipe && std::fgets(part, sizeof part, pipe.get())) rule += part;
  return rule;
}

class minimal_user : public script_on {
protected:
  static void SetUpTestSuite() {
    if (const auto rule = minimal_rule(); !rule.empty()) server_ = make_real_world(rule);
  }
  static void TearDownTestSuite() { server_.reset(); }
  static inline std::unique_ptr<world> server_{};
};

class model : public script_on {};

TEST_P(real_server, agrees) {
  ASSERT_TRUE(server_) << "these cases need redis-server";
  play_case(*server_, GetParam());
}

TEST_P(minimal_user, agrees) {
  ASSERT_TRUE(server_) << "these cases need redis-server and tools/acl";
  play_case(*server_, GetParam());
}

TEST_P(model, agrees) {
  const auto w = make_model_world();
  play_case(*w, GetParam());
}

const auto name_of = [](const auto& param) { return std::string{param.param.name}; };
INSTANTIATE_TEST_SUITE_P(script, real_server, testing::ValuesIn(script_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(script, minimal_user, testing::ValuesIn(script_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(script, model, testing::ValuesIn(script_cases()), name_of);

// What sim/replicas builds on. On servers of their own, which are others afterwards (P20).
TEST(a_replica, refuses_writes_and_says_what_it_is_in_both_worlds) {
  const std::string role = "return string.match(redis.call('INFO', 'replication'), 'role:(%a+)')";
  const shape anything{shape::kind::anything};
  const shape hello = list({text("server"), anything, text("version"), anything, text("proto"), number(2), text("id"),
                            number(1, 1'000'000), text("mode"), text("standalone"), text("role"), text("replica"),
                            text("modules"), anything});
  const script_case one{
      "a_replica",
      {send({"SET", "s", "x", "PX", "600000"}), send({"EVAL", role, "0"}, text("master")),
       send({"REPLICAOF", "127.0.0.1", "1"}, status("OK")), send({"EVAL", role, "0"}, text("slave")),
       send({"HELLO", "2"}, hello), send({"SET", "s", "y"}, error("READONLY You can't write")),
       send({"DEL", "s"}, error("READONLY You can't write")), send({"GET", "s"}, text("x")),
       send({"EVAL", "return redis.call('SET', KEYS[1], 'y', 'PX', 60000)", "1", "s"},
            error("READONLY You can't write")),
       send({"EVAL", "redis.pcall('DEL', KEYS[1]) return redis.call('GET', KEYS[1])", "1", "s"}, text("x")),
       send({"REPLICAOF", "NO", "ONE"}, status("OK")), send({"EVAL", role, "0"}, text("master")),
       send({"DEL", "s"}, number(1))}};
  for (const auto& w : {make_real_world(), make_model_world()}) {
    ASSERT_TRUE(w) << "this needs redis-server";
    play_case(*w, one);
  }
}

// Whatever is granted behind that answer is by the primary that it has become since.
TEST(a_replica, has_no_epoch_in_both_worlds) {
  const step ask = run(id::epoch, {"hf:epoch"}, {"60000"}, error("READONLY You can't"));
  const step declare = run(id::epoch, {"hf:epoch"}, {"60000", "first"}, error("READONLY You can't"));
  const script_case one{"a_replica",
                        {send({"REPLICAOF", "127.0.0.1", "1"}), ask, declare, send({"REPLICAOF", "NO", "ONE"}),
                         run(id::epoch, {"hf:epoch"}, {"60000", "first"}, now())}};
  for (const auto& w : {make_real_world(), make_model_world()}) {
    ASSERT_TRUE(w) << "this needs redis-server";
    play_case(*w, one);
  }
}

// rename-command PUBLISH "": there acl_check_cmd raises an error, where it says no to whom it is denied.
TEST(a_server_without_PUBLISH, keeps_the_lock_free_for_the_first_who_looks_twice_a_second) {
  const std::vector<std::string> keys{holder, fence, line, waiters};
  const shape anything{shape::kind::anything};
  const shape queued = list({number(7), now(), anything, number(0), number(500), anything, number(1, 10000)});
  const script_case one{
      "without_PUBLISH",
      {acquire("<A>", now("t")), listen("hf:wake:p"),
       run(id::wait, keys, {"<B>", "10000", "0", "60000", "ann", "0", "hf:wake:p", "s", "1000", "0", "0", "x"}, queued),
       run(id::look, keys, {"<B>", "0", "60000", "hf:wake:p", "s"}, queued), release("<A>", "<t>", now()),
       is_absent(holder),
       run(id::look, keys, {"<B>", "0", "60000", "hf:wake:p", "s"}, list({number(0), now(), anything}))}};
  for (const auto& w : {make_real_world({}, "PUBLISH"), make_model_world("PUBLISH")}) {
    ASSERT_TRUE(w) << "this needs redis-server";
    play_case(*w, one);
  }
}

class acl_rule : public testing::Test {
protected:
  void SetUp() override { ASSERT_TRUE(server_ = make_real_world(minimal_rule())); }
  resp::value as_user(const std::vector<std::string>& words) { return server_->execute_as_user(words); }
  std::unique_ptr<world> server_{};
};

TEST_F(acl_rule, lets_a_connection_come_up_also_on_database_15) {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"PING"}, {"TIME"}, {"INFO", "server"}, {"HELLO", "2"}, {"AUTH", "app-lock", "secret"}, {"SELECT", "15"}}) {
    EXPECT_FALSE(as_user(words).as_error()) << words[0] << ": " << shown(as_user(words));
  }
}

TEST_F(acl_rule, denies_foreign_keys_and_other_commands_also_inside_a_script) {
  EXPECT_TRUE(is_denied(as_user({"SET", "theirs", "1"})));
  EXPECT_TRUE(is_denied(as_user({"EVAL", "return redis.call('GET', 'theirs')", "0"})));
  EXPECT_TRUE(is_denied(as_user({"EVAL", std::string{script::find(script::id::inspect).text}, "6", "theirs",
                                 "hf:{x}:break", "hf:{x}:line", "hf:{x}:waiters", "hf:{x}:holders", "hf:{x}:fence"})));
  EXPECT_TRUE(is_denied(as_user({"FLUSHALL"})));
  EXPECT_TRUE(is_denied(as_user({"EVAL", "return redis.call('FLUSHALL')", "0"})));
  EXPECT_TRUE(is_denied(as_user({"SCAN", "0"})));
  EXPECT_TRUE(is_denied(as_user({"CONFIG", "GET", "*"})));
}

// B63: WAIT speaks of the last write of its connection, and the grant that is found again was made over another.
TEST(acquire_script, writes_again_what_it_finds_to_be_ours_so_that_wait_speaks_of_it_B63) {
  const auto server = make_real_world();
  ASSERT_TRUE(server);
  const auto acquire = [&] {
    return server->execute({"EVAL", std::string{script::find(script::id::acquire).text}, "2", "hf:{x}", "hf:{x}:fence",
                            std::string(32, 'a'), "10000", "0", "60000", "ann"});
  };
  const auto writes = [&] {
    const auto info = server->execute({"INFO", "persistence"});
    const std::string field = "rdb_changes_since_last_save:";
    return std::stoi(info.as_bulk()->substr(info.as_bulk()->find(field) + field.size()));
  };
  ASSERT_TRUE(acquire().as_bulk());
  const int before = writes();
  ASSERT_TRUE(acquire().as_array());
  EXPECT_GT(writes(), before);
}

// B58: were the server's digest another, every call would be NOSCRIPT.
TEST_F(acl_rule, lets_scripts_be_loaded_with_the_digest_we_know_B58) {
  for (const auto& s : script::all()) {
    EXPECT_EQ(as_user({"SCRIPT", "LOAD", std::string{s.text}}), resp::value{std::string{s.sha1}}) << s.name;
  }
}

// A canary for the language itself: a shape that does not fit must be noticed, or every case above proves nothing.
TEST(script_case_language, notices_a_wrong_reply) {
  const auto w = make_model_world();
  testing::TestPartResultArray failures;
  {
    testing::ScopedFakeTestPartResultReporter reporter{
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures};
    play_case(*w, {"canary", {send({"SET", "k", "v", "PX", "1000"}), send({"GET", "k"}, text("w"))}});
  }
  EXPECT_EQ(failures.size(), 1);
}

TEST(script_case_language, notices_a_key_without_an_expiry) {
  const auto w = make_model_world();
  testing::TestPartResultArray failures;
  {
    testing::ScopedFakeTestPartResultReporter reporter{
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures};
    play_case(*w, {"canary", {send({"SET", "k", "v"})}});
  }
  EXPECT_EQ(failures.size(), 1);
}

// A command that the model lacks must be an error, or a script could go wrong unseen.
TEST(model_redis, refuses_what_it_does_not_know) {
  const auto w = make_model_world();
  const auto reply = w->execute({"LPUSH", "list", "a"});
  ASSERT_TRUE(reply.as_error());
  EXPECT_NE(reply.as_error()->text.find("does not know"), std::string::npos);
}

}  // namespace

}  // namespace holdfast::tests
