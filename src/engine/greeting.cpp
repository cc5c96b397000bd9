// SPDX-License-Identifier: Apache-2.0
#include "engine/greeting.hpp"

#include "base/assert.hpp"
#include "engine/durable.hpp"
#include "resp/info.hpp"
#include "resp/writer.hpp"
#include "script/server_error.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <vector>

namespace holdfast::engine {

namespace {

// What our scripts have room for: 16 digits of microseconds, from the year 2001 until 2286.
constexpr server_time first_time{std::chrono::microseconds{1'000'000'000'000'000}};
constexpr server_time last_time{std::chrono::microseconds{9'999'999'999'999'999}};

connection_failure refused(const std::string& text) {
  const auto what = script::classify(text);
  return {what.code, text, script::ends_a_call(what.what), false};
}

connection_failure not_ours(std::string text) { return {errc::wrong_server, std::move(text), true, false}; }

connection_failure nonsense(const char* step) {
  return not_ours(std::string{"the answer to "} + step + " is none that Redis gives");
}

// 6.2 is the oldest version we serve: GET and friends inside scripts, SET NX PX, and TIME before a write need it.
bool is_old(const std::string& version) {
  int major = 0;
  int minor = 0;
  const char* end = version.data() + version.size();
  const auto first = std::from_chars(version.data(), end, major);
  if (first.ec == std::errc{} && first.ptr != end) std::from_chars(first.ptr + 1, end, minor);
  return major < 6 || (major == 6 && minor < 2);
}

}  // namespace

connection_failure no_epoch(const resp::value& reply, std::string_view run_id, bool is_in_cluster) {
  const auto* error = reply.as_error();
  if (!error) return nonsense("epoch.lua");
  auto failure = refused(error->text);
  const auto says = [&](std::string_view what) { return failure.text.find(what) != std::string::npos; };
  // Redis 7.0 does not say which command of a script was denied; but INFO was asked for by itself, too.
  const bool is_info = says("'info") || (says("The user executing the script") && run_id.empty());
  if (failure.code == errc::no_permission && is_info) {
    failure.text +=
        " (whether the server has forgotten locks is seen in INFO: allow +info, or say quarantine = "
        "trust_every_write_is_synced)";
  }
  if (failure.code == errc::wrong_server && is_in_cluster) {
    failure.code = errc::no_primary;
    failure.text +=
        " (the key that tells whether this node has forgotten locks is in a slot that is on its way; one that is "
        "stuck: "
        "redis-cli --cluster fix)";
  }
  // Whoever takes a node for a server alone will not be sent elsewhere by asking it again.
  if (failure.code == errc::wrong_server) failure.is_final = true;
  return failure;
}

void greeting::begin(std::string& out, const settings& how, epoch_watch* epoch, time_point now) {
  *this = greeting{};
  begun_at_ = now;
  if (epoch && epoch->is_on()) epoch_ = epoch;
  database_ = how.database;
  needs_scripts_ = how.needs_scripts;
  needs_wait_ = how.needs_wait;
  node_id_ = how.node_id;
  says_who_ = how.who.is_somebody();

  std::vector<std::string_view> hello{"HELLO", "2"};
  const std::string_view user = how.who.user.empty() ? std::string_view{"default"} : how.who.user;
  // A user without a password is one too, and whoever is not named is `default`.
  if (how.who.is_somebody()) hello.insert(hello.end(), {"AUTH", user, how.who.password});
  resp::append_request(out, hello);
  const std::string number = std::to_string(database_);
  if (database_ != 0) resp::append_request(out, std::array<std::string_view, 2>{"SELECT", number});
  resp::append_request(out, std::array<std::string_view, 1>{"TIME"});
  resp::append_request(out, std::array<std::string_view, 2>{"INFO", "server"});
  if (!node_id_.empty()) resp::append_request(out, std::array<std::string_view, 2>{"CLUSTER", "MYID"});
  if (epoch_) epoch_->ask(out, now);
  if (needs_wait_) append_wait(out, 0, std::chrono::milliseconds{1});  // For none: it answers at once.
  if (!needs_scripts_) return;
  std::vector<std::string_view> exists{"SCRIPT", "EXISTS"};
  for (const auto& source : script::all()) exists.push_back(source.sha1);
  resp::append_request(out, exists);
}

std::optional<connection_failure> greeting::on_reply(time_point now, const resp::value& reply, std::string& out) {
  HOLDFAST_ASSERT(!is_done());
  if (step_ != step::loads) heard_at_ = now;
  auto failure = judge(now, reply, out);
  if (!failure) advance();
  return failure;
}

std::optional<connection_failure> greeting::judge(time_point now, const resp::value& reply, std::string& out) {
  if (step_ == step::epoch) return on_epoch(now, reply);
  if (step_ == step::node) return on_node(reply);
  if (step_ == step::scripts) return on_scripts(reply, out);
  if (const auto* error = reply.as_error()) {
    auto failure = step_ == step::wait ? no_wait(*error) : refused(error->text);
    // Valkey 9.1 says that of any command that it does not know, to who has not said who he is.
    if (step_ == step::hello && says_who_ && failure.code == errc::no_password)
      return not_ours(error->text + " (to HELLO with a password: HELLO may be renamed there)");
    // Nothing here depends on INFO but the comparison of run ids.
    if (step_ == step::info && failure.code == errc::no_permission) return std::nullopt;
    return failure;
  }
  switch (step_) {
    case step::hello: return on_hello(reply);
    case step::select: return reply.as_status() ? std::nullopt : std::optional{nonsense("SELECT")};
    case step::time: return on_time(reply);
    case step::info: return on_info(reply);
    case step::wait: return reply.as_integer() ? std::nullopt : std::optional{nonsense("WAIT")};
    case step::loads: return on_load(reply);
    case step::scripts:
    case step::node:
    case step::epoch:
    case step::done: break;
  }
  return std::nullopt;
}

std::span<const script::source>::iterator greeting::missing() const {
  const auto usual = script::usual();
  return std::find_if(usual.begin(), usual.end(), [this](const auto& source) { return !has_script(source.which); });
}

void greeting::advance() {
  switch (step_) {
    case step::hello: step_ = database_ != 0 ? step::select : step::time; break;
    case step::select: step_ = step::time; break;
    case step::time: step_ = step::info; break;
    case step::info: step_ = after_info(); break;
    case step::node: step_ = after_node(); break;
    case step::epoch: step_ = after_epoch(); break;
    case step::wait: step_ = after_wait(); break;
    case step::scripts:
    case step::loads: step_ = missing() == script::usual().end() ? step::done : step::loads; break;
    case step::done: break;
  }
}

// HELLO's own fields name a replica, a sentinel or an old server before anything else can fail.
std::optional<connection_failure> greeting::on_hello(const resp::value& reply) {
  const auto* fields = reply.as_array();
  if (!fields) return nonsense("HELLO");
  std::string role;
  std::string mode;
  for (std::size_t i = 0; i + 1 < fields->size(); i += 2) {
    const auto* name = (*fields)[i].as_bulk();
    const auto* text = (*fields)[i + 1].as_bulk();
    if (!name || !text) continue;
    if (*name == "version") version_ = *text;
    if (*name == "role") role = *text;
    if (*name == "mode") mode = *text;
  }
  if (mode == "sentinel") return not_ours("this is a Sentinel, not a server that keeps locks");
  if (role == "slave" || role == "replica") {
    return connection_failure{errc::not_a_primary, "HELLO says role " + role, true, false};
  }
  if (is_old(version_)) return not_ours("this is version " + version_ + "; 6.2 is the oldest that works");
  return std::nullopt;
}

std::optional<connection_failure> greeting::on_time(const resp::value& reply) {
  const auto* parts = reply.as_array();
  if (!parts || parts->size() != 2) return nonsense("TIME");
  std::array<std::int64_t, 2> numbers{};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto* text = (*parts)[i].as_bulk();
    if (!text) return nonsense("TIME");
    const auto read = std::from_chars(text->data(), text->data() + text->size(), numbers[i]);
    if (read.ec != std::errc{} || numbers[i] < 0 || numbers[i] > 1'000'000'000'000) return nonsense("TIME");
  }
  now_ = server_time{std::chrono::seconds{numbers[0]} + std::chrono::microseconds{numbers[1]}};
  if (now_ < first_time || now_ > last_time)
    return not_ours("its clock shows " + std::to_string(numbers[0]) +
                    " s since 1970, and locks need one between 2001 and 2286: set it");
  return std::nullopt;
}

std::optional<connection_failure> greeting::on_info(const resp::value& reply) {
  const auto* text = reply.as_bulk();
  if (!text) return nonsense("INFO");
  run_id_ = resp::info_field(*text, "run_id");
  return std::nullopt;
}

// Whoever names it may not have heard yet of what became of its address, so this is not final. Where the question is
// denied, or is not known (a proxy), nothing can be said against it.
std::optional<connection_failure> greeting::on_node(const resp::value& reply) const {
  const auto another = [&](const std::string& what) {
    return connection_failure{errc::wrong_server, what + ", and the cluster has its node " + node_id_ + " here", false,
                              false};
  };
  if (const auto* error = reply.as_error()) {
    if (script::is_of_no_cluster(error->text)) return another("this server is of no cluster");
    auto failure = refused(error->text);
    return failure.is_final ? std::nullopt : std::optional{std::move(failure)};
  }
  const auto* id = reply.as_bulk();
  if (!id) return nonsense("CLUSTER MYID");
  if (*id == node_id_) return std::nullopt;
  return another("this is node " + *id);
}

// Without an answer nothing that is granted here would count: better no connection, and the reason.
std::optional<connection_failure> greeting::on_epoch(time_point now, const resp::value& reply) {
  if (epoch_->on_answer(now, begun_at_, reply) || epoch_->may_be_unknown()) return std::nullopt;
  return no_epoch(reply, run_id_, !node_id_.empty());
}

// Where it may not be asked, as by an older ACL rule, none is known to be there.
std::optional<connection_failure> greeting::on_scripts(const resp::value& reply, std::string& out) {
  if (const auto* error = reply.as_error()) {
    auto failure = refused(error->text);
    if (failure.code != errc::no_permission) return failure;
  } else {
    const auto* answers = reply.as_array();
    if (!answers || answers->size() != has_.size()) return nonsense("SCRIPT EXISTS");
    for (std::size_t i = 0; i < has_.size(); ++i) {
      const auto is_there = (*answers)[i].as_integer();
      if (!is_there) return nonsense("SCRIPT EXISTS");
      has_[i] = *is_there != 0;
    }
  }
  for (const auto& source : script::usual()) {
    if (has_script(source.which)) continue;
    resp::append_request(out, std::array<std::string_view, 3>{"SCRIPT", "LOAD", source.text});
  }
  return std::nullopt;
}

// B58: a digest that differs means that every call would be NOSCRIPT, or worse, another script.
std::optional<connection_failure> greeting::on_load(const resp::value& reply) {
  const auto* digest = reply.as_bulk();
  if (!digest) return nonsense("SCRIPT LOAD");
  const auto& source = *missing();
  if (*digest == source.sha1) {
    has_[static_cast<std::size_t>(source.which)] = true;
    return std::nullopt;
  }
  return connection_failure{
      errc::script_mismatch,
      std::string{source.name} + ".lua is " + std::string{source.sha1} + " here and " + *digest + " there", true,
      false};
}

}  // namespace holdfast::engine
