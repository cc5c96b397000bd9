// SPDX-License-Identifier: Apache-2.0
#include "model_redis.hpp"

#include "model_words.hpp"

#include "script/source.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace holdfast::sim {

// Arity as Redis counts it: with the command's own name, negative for "at least".
struct model_redis::row {
  std::string_view name;
  int arity;
  bool grows;  // Redis's denyoom.
  bool writes;
  resp::value (model_redis::*run)(words_t);
};

resp::value model_redis::execute(words_t words) {
  const auto answer = run(words, false);
  script_wrote_ = false;
  return answer;
}

resp::value model_redis::run(words_t words, bool in_script) {
  static constexpr std::array rows{
      row{"SET", -3, true, true, &model_redis::set},
      row{"GET", 2, false, false, &model_redis::get},
      row{"MGET", -2, false, false, &model_redis::mget},
      row{"DEL", -2, false, true, &model_redis::del},
      row{"EXISTS", -2, false, false, &model_redis::exists},
      row{"TYPE", 2, false, false, &model_redis::type},
      row{"PTTL", 2, false, false, &model_redis::pttl},
      row{"PEXPIRE", 3, false, true, &model_redis::pexpire},
      row{"PERSIST", 2, false, true, &model_redis::persist},
      row{"TIME", 1, false, false, &model_redis::time},
      row{"RPUSH", -3, true, true, &model_redis::rpush},
      row{"KEYS", 2, false, false, &model_redis::keys},
      row{"FLUSHALL", 1, false, true, &model_redis::flushall},
      row{"PING", 1, false, false, &model_redis::ping},
      row{"SCRIPT", -2, false, false, &model_redis::script},
      row{"HELLO", -1, false, false, &model_redis::hello},
      row{"INFO", -1, false, false, &model_redis::info},
      row{"CLUSTER", -2, false, false, &model_redis::cluster},
      row{"SELECT", 2, false, false, &model_redis::select},
      row{"REPLICAOF", 3, false, false, &model_redis::replicaof},
      row{"CONFIG", -2, false, false, &model_redis::config},
      row{"ZADD", -4, true, true, &model_redis::zadd},
      row{"ZREM", -3, false, true, &model_redis::zrem},
      row{"ZSCORE", 3, false, false, &model_redis::zscore},
      row{"ZRANK", 3, false, false, &model_redis::zrank},
      row{"ZCARD", 2, false, false, &model_redis::zcard},
      row{"ZRANGE", -4, false, false, &model_redis::zrange},
      row{"ZRANGEBYSCORE", -4, false, false, &model_redis::zrangebyscore},
      row{"HSET", -4, true, true, &model_redis::hset},
      row{"HGET", 3, false, false, &model_redis::hget},
      row{"HEXISTS", 3, false, false, &model_redis::hexists},
      row{"HLEN", 2, false, false, &model_redis::hlen},
      row{"HGETALL", 2, false, false, &model_redis::hgetall},
      row{"HDEL", -3, false, true, &model_redis::hdel},
      row{"PUBLISH", 3, false, false, &model_redis::publish},
      row{"SPUBLISH", 3, false, false, &model_redis::spublish},
      row{"PUBSUB", -2, false, false, &model_redis::pubsub},
  };
  const std::string name = upper(words[0]);
  if (name == "EVAL" || name == "EVALSHA") return eval(words, in_script);
  if (renamed_away_.contains(name)) {
    return resp::server_error{in_script ? "ERR Unknown Redis command called from script"
                                        : "ERR unknown command '" + words[0] + "'"};
  }
  const auto* found = std::find_if(rows.begin(), rows.end(), [&](const row& r) { return r.name == name; });
  if (found == rows.end()) {
    return resp::server_error{"ERR the model does not know the command '" + words[0] +
                              "': add it to sim/model_redis.cpp"};
  }
  const auto count = static_cast<int>(words.size());
  if (found->arity > 0 ? count != found->arity : count < -found->arity) {
    return resp::server_error{"ERR wrong number of arguments for '" + words[0] + "' command"};
  }
  if (denied_.contains(name)) {
    return resp::server_error{in_script ? "ERR The user executing the script can't run this command or subcommand"
                                        : "NOPERM this user has no permissions to run the '" + words[0] + "' command"};
  }
  if (found->writes && is_replica_) {
    return resp::server_error{"READONLY You can't write against a read only replica."};
  }
  if (found->writes && lacks_replicas_) {
    return resp::server_error{"NOREPLICAS Not enough good replicas to write."};
  }
  if (found->grows && memory_full_ && !script_wrote_) {
    return resp::server_error{"OOM command not allowed when used memory > 'maxmemory'."};
  }
  if (found->writes) ++writes_;
  if (found->writes && in_script) script_wrote_ = true;
  return (this->*found->run)(words);
}

void model_redis::migrate(const std::vector<std::string>& which, model_redis& to) {
  for (const auto& key : which) {
    auto* found = find(key);
    if (!found) continue;
    if (found->expires_at) *found->expires_at += to.now_ms() - now_ms();
    to.keyspace_.insert_or_assign(key, std::move(*found));
    keyspace_.erase(key);
    ++writes_;
    ++to.writes_;
  }
}

std::chrono::milliseconds model_redis::now_ms() const {
  return std::chrono::floor<std::chrono::milliseconds>(clock_.time_since_epoch());
}

const model_redis::entry* model_redis::peek(const std::string& key) const {
  const auto at = keyspace_.find(key);
  const bool is_there = at != keyspace_.end() && !(at->second.expires_at && now_ms() > *at->second.expires_at);
  return is_there ? &at->second : nullptr;
}

model_redis::entry* model_redis::find(const std::string& key) {
  const auto at = keyspace_.find(key);
  if (at == keyspace_.end()) return nullptr;
  if (at->second.expires_at && now_ms() > *at->second.expires_at) {
    keyspace_.erase(at);
    return nullptr;
  }
  return &at->second;
}

resp::value model_redis::set(words_t words) {
  bool only_new = false;
  std::optional<std::chrono::milliseconds> expires_at;
  bool keeps_expiry = false;
  for (std::size_t i = 3; i < words.size(); ++i) {
    const std::string option = upper(words[i]);
    if (option == "NX") {
      only_new = true;
    } else if (option == "PX" && i + 1 < words.size()) {
      const auto ms = number_of(words[++i]);
      if (!ms) return not_a_number;
      if (*ms <= 0) return resp::server_error{"ERR invalid expire time in 'set' command"};
      expires_at = now_ms() + std::chrono::milliseconds{*ms};
    } else if (option == "PXAT" && i + 1 < words.size()) {
      const auto ms = number_of(words[++i]);
      if (!ms) return not_a_number;
      if (*ms <= 0) return resp::server_error{"ERR invalid expire time in 'set' command"};
      expires_at = std::chrono::milliseconds{*ms};
    } else if (option == "KEEPTTL") {
      keeps_expiry = true;
    } else {
      return syntax_error;
    }
  }
  const auto* before = find(words[1]);
  if (only_new && before) return {};
  if (keeps_expiry && before) expires_at = before->expires_at;
  keyspace_.insert_or_assign(words[1], entry{words[2], expires_at});
  return resp::status{"OK"};
}

resp::value model_redis::get(words_t words) {
  const auto* found = find(words[1]);
  if (!found) return {};
  const auto* text = std::get_if<std::string>(&found->data);
  return text ? resp::value{*text} : resp::value{wrong_type};
}

resp::value model_redis::mget(words_t words) {
  resp::value::array all;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto* found = find(words[i]);
    const auto* text = found ? std::get_if<std::string>(&found->data) : nullptr;
    all.push_back(text ? resp::value{*text} : resp::value{});
  }
  return all;
}

resp::value model_redis::del(words_t words) {
  std::int64_t deleted = 0;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (find(words[i])) deleted += static_cast<std::int64_t>(keyspace_.erase(words[i]));
  }
  return deleted;
}

resp::value model_redis::exists(words_t words) {
  return std::int64_t{std::count_if(words.begin() + 1, words.end(), [&](const auto& key) { return find(key); })};
}

resp::value model_redis::type(words_t words) {
  const auto* found = find(words[1]);
  if (!found) return resp::status{"none"};
  static constexpr std::array names{"string", "list", "zset", "hash"};
  return resp::status{names[found->data.index()]};
}

resp::value model_redis::pttl(words_t words) {
  const auto* found = find(words[1]);
  if (!found) return std::int64_t{-2};
  if (!found->expires_at) return std::int64_t{-1};
  return std::int64_t{(*found->expires_at - now_ms()).count()};
}

resp::value model_redis::pexpire(words_t words) {
  const auto ms = number_of(words[2]);
  if (!ms) return not_a_number;
  auto* found = find(words[1]);
  if (!found) return std::int64_t{0};
  // As Redis: zero or less deletes, and says 1 (B39).
  if (*ms <= 0) {
    keyspace_.erase(words[1]);
  } else {
    found->expires_at = now_ms() + std::chrono::milliseconds{*ms};
  }
  return std::int64_t{1};
}

resp::value model_redis::persist(words_t words) {
  auto* found = find(words[1]);
  if (!found || !found->expires_at) return std::int64_t{0};
  found->expires_at.reset();
  return std::int64_t{1};
}

resp::value model_redis::time(words_t) {
  const auto us = clock_.time_since_epoch().count();
  return resp::value::array{std::to_string(us / 1'000'000), std::to_string(us % 1'000'000)};
}

resp::value model_redis::rpush(words_t words) {
  auto* found = find(words[1]);
  if (!found) found = &keyspace_.emplace(words[1], entry{list{}}).first->second;
  auto* elements = std::get_if<list>(&found->data);
  if (!elements) return wrong_type;
  elements->insert(elements->end(), words.begin() + 2, words.end());
  return static_cast<std::int64_t>(elements->size());
}

resp::value model_redis::keys(words_t words) {
  if (words[1] != "*") return resp::server_error{"ERR the model knows no pattern but '*'"};
  resp::value::array all;
  for (auto at = keyspace_.begin(); at != keyspace_.end();) {
    const std::string key = (at++)->first;
    if (find(key)) all.emplace_back(key);
  }
  return all;
}

resp::value model_redis::flushall(words_t) {
  keyspace_.clear();
  return resp::status{"OK"};
}

resp::value model_redis::ping(words_t) { return resp::status{"PONG"}; }

void model_redis::learn_scripts() {
  for (const auto& source : script::all()) {
    const auto& known = lua_->learn(source.text);
    scripts_[known.sha1] = &known;
  }
}

resp::value model_redis::script(words_t words) {
  const std::string what = upper(words[1]);
  if (what == "LOAD" && words.size() == 3) {
    const auto& known = lua_->learn(words[2]);
    scripts_[known.sha1] = &known;
    return known.sha1;
  }
  if (what == "EXISTS" && words.size() > 2) {
    resp::value::array found;
    for (const auto& digest : words.subspan(2)) found.emplace_back(std::int64_t{scripts_.contains(digest)});
    return found;
  }
  if (what == "FLUSH") {
    forget_scripts();
    return resp::status{"OK"};
  }
  return resp::server_error{"ERR the model does not know SCRIPT " + words[1]};
}

// HELLO 2, perhaps with AUTH: this server has one user, who needs no password.
resp::value model_redis::hello(words_t words) {
  if (words.size() != 1 && words[1] != "2") return resp::server_error{"NOPROTO unsupported protocol version"};
  if (words.size() > 2) return resp::server_error{"ERR the model knows no option of HELLO"};
  const auto text = [](const char* t) { return resp::value{std::string{t}}; };
  return resp::value::array{text("server"),     text("redis"),       text("version"),
                            text("7.0.15"),     text("proto"),       std::int64_t{2},
                            text("id"),         std::int64_t{1},     text("mode"),
                            text("standalone"), text("role"),        text(is_replica_ ? "replica" : "master"),
                            text("modules"),    resp::value::array{}};
}

resp::value model_redis::info(words_t words) {
  const std::string what = words.size() == 2 ? upper(words[1]) : "";
  if (what == "SERVER") {
    // Whole seconds of the wall clock, of now and of the start.
    const auto uptime = std::chrono::floor<std::chrono::seconds>(clock_.time_since_epoch()) -
                        std::chrono::floor<std::chrono::seconds>(started_at_.time_since_epoch());
    return "# Server\r\nredis_version:7.0.15\r\nrun_id:" + run_id_ +
           "\r\ntcp_port:6379\r\nuptime_in_seconds:" + std::to_string(uptime.count()) + "\r\n";
  }
  if (what == "REPLICATION") {
    const std::string role = is_replica_ ? "slave\r\nmaster_link_status:down" : "master";
    return "# Replication\r\nrole:" + role + "\r\nconnected_slaves:0\r\nmaster_replid:" + replication_id_ +
           "\r\nmaster_replid2:" + second_id_ + "\r\n";
  }
  return resp::server_error{"ERR the model knows no INFO but INFO server and INFO replication"};
}

// Who serves which slot is asked of the world (cluster/slot_views.hpp).
resp::value model_redis::cluster(words_t words) {
  if (node_id_.empty()) return resp::server_error{"ERR This instance has cluster support disabled"};
  if (words.size() == 2 && upper(words[1]) == "MYID") return node_id_;
  return resp::server_error{"ERR the model knows no CLUSTER but CLUSTER MYID"};
}

resp::value model_redis::select(words_t words) {
  const auto which = number_of(words[1]);
  if (!which) return resp::server_error{"ERR invalid DB index"};
  if (*which != 0) return resp::server_error{"ERR DB index is out of range"};
  return resp::status{"OK"};
}

// Nothing is copied from there: the world does that (sim/replicas).
resp::value model_redis::replicaof(words_t words) {
  is_replica_ = upper(words[1]) != "NO" || upper(words[2]) != "ONE";
  return resp::status{"OK"};
}

// Nobody copies from it: one replica that it must have is one that it lacks.
resp::value model_redis::config(words_t words) {
  if (words.size() != 4 || upper(words[1]) != "SET" || words[2] != "min-replicas-to-write") {
    return resp::server_error{"ERR the model knows no CONFIG but CONFIG SET min-replicas-to-write"};
  }
  lacks_replicas_ = words[3] != "0";
  return resp::status{"OK"};
}

resp::value model_redis::eval(words_t words, bool in_script) {
  if (in_script) return resp::server_error{"ERR This Redis command is not allowed from script"};
  if (words.size() < 3) return resp::server_error{"ERR wrong number of arguments for '" + words[0] + "' command"};
  if (upper(words[0]) == "EVALSHA") {
    const auto found = scripts_.find(words[1]);
    if (found == scripts_.end()) return resp::server_error{"NOSCRIPT No matching script. Please use EVAL."};
    return eval_known(*found->second, words);
  }
  const auto& known = lua_->learn(words[1]);
  scripts_[known.sha1] = &known;
  return eval_known(known, words);
}

resp::value model_redis::eval_known(const lua_host::script& what, words_t words) {
  const auto keys = number_of(words[2]);
  if (!keys) return not_a_number;
  if (*keys < 0) return resp::server_error{"ERR Number of keys can't be negative"};
  if (static_cast<std::size_t>(*keys) > words.size() - 3) {
    return resp::server_error{"ERR Number of keys can't be greater than number of args"};
  }
  const auto count = static_cast<std::size_t>(*keys);
  return lua_->run(what, words.subspan(3, count), words.subspan(3 + count),
                   {[this](words_t command) { return run(command, true); },
                    [this](const std::string& command) {
                      const auto name = upper(command);
                      return renamed_away_.contains(name) ? std::nullopt : std::optional{!denied_.contains(name)};
                    }});
}

}  // namespace holdfast::sim
