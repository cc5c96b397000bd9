// SPDX-License-Identifier: Apache-2.0
// The other end of a channel in a test: a made-up server that reads the bytes we wrote as requests, and says what the
// test tells it to say. No model of Redis: that is the simulator's.
#pragma once

#include "engine/channel.hpp"
#include "resp/reader.hpp"
#include "script/source.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::engine {

// ---- what a server writes ----

inline std::string bulk(std::string_view text) { return fmt::format("${}\r\n{}\r\n", text.size(), text); }
inline std::string integer(std::int64_t n) { return fmt::format(":{}\r\n", n); }
inline std::string simple(std::string_view text) { return fmt::format("+{}\r\n", text); }
inline std::string refusal(std::string_view text) { return fmt::format("-{}\r\n", text); }
inline std::string list(std::initializer_list<std::string> elements) {
  std::string all = fmt::format("*{}\r\n", elements.size());
  for (const auto& e : elements) all += e;
  return all;
}

inline std::string stamp(server_time at) { return bulk(fmt::format("{:016}", at.time_since_epoch().count())); }

inline std::string hello(std::string_view role, std::string_view mode, std::string_view version) {
  return list({bulk("server"), bulk("redis"), bulk("version"), bulk(version), bulk("proto"), integer(2), bulk("mode"),
               bulk(mode), bulk("role"), bulk(role), bulk("modules"), list({})});
}
inline std::string time_of_day(server_time at) {
  const auto us = at.time_since_epoch().count();
  return list({bulk(std::to_string(us / 1'000'000)), bulk(std::to_string(us % 1'000'000))});
}

inline std::string info(std::string_view run_id) {
  return bulk(fmt::format("# Server\r\nredis_version:7.0.15\r\nrun_id:{}\r\ntcp_port:6379\r\n", run_id));
}

// The answer to SCRIPT EXISTS of a server that has the first of the usual ones, and `others`.
inline std::string scripts_there(std::size_t usual, const std::vector<script::id>& others = {}) {
  std::string all = fmt::format("*{}\r\n", script::count);
  for (const auto& source : script::all()) {
    const auto is_it = [&](const auto& s) { return s.which == source.which; };
    const auto first = script::usual().first(usual);
    const bool is_there = std::any_of(first.begin(), first.end(), is_it) ||
                          std::find(others.begin(), others.end(), source.which) != others.end();
    all += integer(is_there ? 1 : 0);
  }
  return all;
}

// One reply for each request of the greeting, by a server that has the usual scripts.
inline std::vector<std::string> greeting_replies(server_time at, bool with_select = false,
                                                 std::string_view run_id = "a run") {
  std::vector<std::string> all{hello("master", "standalone", "7.0.15")};
  if (with_select) all.push_back(simple("OK"));
  all.push_back(time_of_day(at));
  all.push_back(info(run_id));
  all.push_back(scripts_there(script::usual().size()));
  return all;
}

inline resp::value parsed(std::string_view bytes) {
  resp::reader reader;
  reader.feed(bytes);
  auto value = reader.next();
  EXPECT_TRUE(value) << bytes;
  return value.value_or(resp::value{});
}

// ---- what we write ----

// One request, word by word: {"EVALSHA", digest, "2", key, key, arg, ...}.
using request = std::vector<std::string>;

inline std::vector<request> requests_in(std::string_view bytes) {
  std::vector<request> all;
  resp::reader reader;
  reader.feed(bytes);
  while (const auto value = reader.next()) {
    request words;
    if (const auto* elements = value->as_array()) {
      for (const auto& e : *elements) words.push_back(e.as_bulk() ? *e.as_bulk() : "?");
    }
    all.push_back(std::move(words));
  }
  EXPECT_EQ(reader.failure(), "");
  return all;
}

// "renew", when it calls that script by digest; "renew by text"; else its first word.
inline std::string named(const request& r) {
  if (r.size() < 2) return "?";
  for (const auto& source : script::all()) {
    if (r[0] == "EVALSHA" && r[1] == source.sha1) return std::string{source.name};
    if (r[0] == "EVAL" && r[1] == source.text) return std::string{source.name} + " by text";
  }
  return r[0];
}

// ---- the peer ----

class peer {
public:
  explicit peer(channel& to) : wire_{&to} {}

  time_point now{std::chrono::hours{1}};
  server_time clock{std::chrono::hours{500'000}};

  void pass(duration time) {
    now += time;
    clock += std::chrono::duration_cast<server_time::duration>(time);
  }

  std::string run_id = "a run";
  std::string scripts{};                // Which it has, where that is not the usual ones.
  std::string epoch{};                  // What it says of its own, in the greeting of a channel that asks.
  bool is_asked_for_wait = false;       // In the greeting of a durable channel; it has it.
  named_primary::term_number term = 0;  // Of the primary that we are, where primaries are named.

  void connect() {
    greet();
    ASSERT_TRUE(wire_->is_ready());
  }
  void greet() {
    ASSERT_TRUE(wire_->wants_connection(now));
    wire_->on_connecting(now);
    wire_->on_connected(now, term);
    wire_->output().clear();
    auto replies = greeting_replies(clock, false, run_id);
    if (!scripts.empty()) replies.back() = scripts;
    if (is_asked_for_wait) replies.insert(replies.begin() + 3, integer(0));
    if (!epoch.empty()) replies.insert(replies.begin() + 3, epoch);
    for (const auto& reply : replies) say(reply);
  }
  void refuse(connection_failure why = {errc::cannot_connect, "Connection refused", false, true}) {
    ASSERT_TRUE(wire_->wants_connection(now));
    wire_->on_connecting(now);
    wire_->on_closed(now, why);
  }
  void cut() { wire_->on_closed(now, {errc::connection_lost, "reset", false, false}); }

  void say(std::string_view bytes) { wire_->on_bytes(now, bytes); }

  std::vector<request> take() {
    auto all = requests_in(wire_->output());
    wire_->output().clear();
    return all;
  }
  std::vector<std::string> take_names() {
    std::vector<std::string> names;
    for (const auto& r : take()) names.push_back(named(r));
    return names;
  }

private:
  channel* wire_;
};

}  // namespace holdfast::engine
