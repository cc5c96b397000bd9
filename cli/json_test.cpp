// SPDX-License-Identifier: Apache-2.0
// What other programs read: names, types and nulls of the documents, pinned.
#include "json.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <clocale>

namespace {

using namespace holdfast::cli;
using nlohmann::json;
using namespace std::chrono_literals;

holdfast::lock_info held_lock() {
  holdfast::lock_info info;
  info.name = "nightly";
  info.held = true;
  info.owner = "deploy@web3:4711 backup";
  info.token = holdfast::fencing_token{1'700'000'000'000'000};
  info.ttl = 10s;
  info.remaining = 7'200ms;
  info.held_for = 192'000ms;
  info.waiters.push_back({.owner = "me", .waiting = 1'500ms});
  info.waiting = 150;
  return info;
}

TEST(json_of_a_lock, has_the_fields_of_issue_2_as_integers_of_milliseconds) {
  const auto found = json::parse(json_of(held_lock()));
  EXPECT_EQ(found["version"], 1);
  EXPECT_EQ(found["name"], "nightly");
  EXPECT_EQ(found["held"], true);
  EXPECT_EQ(found["owner"], "deploy@web3:4711 backup");
  EXPECT_EQ(found["token"], 1'700'000'000'000'000);
  EXPECT_EQ(found["ttl_ms"], 10'000);
  EXPECT_EQ(found["remaining_ms"], 7'200);
  EXPECT_EQ(found["held_ms"], 192'000);
  EXPECT_EQ(found["waiting"], 150);
  EXPECT_EQ(found["waiters"], json::parse(R"([{"owner":"me","waiting_ms":1500,"mode":"exclusive","permits":1}])"));
}

TEST(json_of_a_free_lock, has_nulls_and_no_invented_values) {
  holdfast::lock_info info;
  info.name = "x";
  const auto found = json::parse(json_of(info));
  EXPECT_EQ(found["held"], false);
  for (const char* field : {"owner", "token", "ttl_ms", "remaining_ms", "held_ms", "last_break"})
    EXPECT_TRUE(found[field].is_null()) << field;
}

TEST(json_of_a_foreign_lock, knows_only_what_remains) {
  auto info = held_lock();
  info.foreign = true;
  const auto found = json::parse(json_of(info));
  EXPECT_TRUE(found["token"].is_null());
  EXPECT_EQ(found["remaining_ms"], 7'200);
  EXPECT_TRUE(found["waiting"].is_null() && found["waiters"].is_null());
}

TEST(json_of_a_lock_of_a_quorum, knows_nothing_of_who_waits) {
  auto info = held_lock();
  info.nodes.emplace_back();
  const auto found = json::parse(json_of(info));
  EXPECT_TRUE(found["waiting"].is_null() && found["waiters"].is_null());
}

TEST(json_of_locks, of_one_server_knows_nothing_of_its_quarantine) {
  EXPECT_EQ(json::parse(json_of(held_lock()))["quarantine_ms"], 0);
  const auto found = json::parse(json_of(std::vector{held_lock()}));
  EXPECT_TRUE(found["locks"][0]["quarantine_ms"].is_null());
}

TEST(json, is_valid_whatever_bytes_a_label_has) {
  auto info = held_lock();
  info.owner = "\xff\x1b\n\"";
  EXPECT_EQ(json::parse(json_of(info))["owner"], "\ufffd\x1b\n\"");
}

// A terminal obeys them, and JSON has another spelling for them.
TEST(json, has_nothing_that_a_terminal_obeys) {
  auto info = held_lock();
  info.owner = "é\u009b31m\u202e\u2028\x7f";
  const auto text = json_of(info);
  EXPECT_NE(text.find("\"é\\u009b31m\\u202e\\u2028\\u007f\""), text.npos) << text;
  EXPECT_EQ(json::parse(text)["owner"], info.owner);
}

TEST(json, is_one_line) { EXPECT_EQ(json_of(held_lock()).find('\n'), json_of(held_lock()).size() - 1); }

TEST(json, does_not_depend_on_the_locale) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  const auto plain = json_of(holdfast::diagnosis{.endpoint = "e", .round_trip_median = 1234567us});
  for (const char* other : {"de_DE.UTF-8", "fr_FR.UTF-8", ""}) std::setlocale(LC_ALL, other);
  auto elsewhere = json::parse(json_of(holdfast::diagnosis{.endpoint = "e", .round_trip_median = 1234567us}));
  std::setlocale(LC_ALL, before.c_str());
  EXPECT_EQ(elsewhere["round_trip_median_us"], 1'234'567);
  EXPECT_EQ(json::parse(plain)["round_trip_median_us"], elsewhere["round_trip_median_us"]);
}

TEST(json_of_a_fault, has_code_message_hint_node_and_server_text) {
  const auto found = json::parse(json_of(
      fault{.code = "E01", .cause = "cannot_connect", .text = "m", .fix = "f", .endpoint = "n", .server_text = "s"}));
  EXPECT_EQ(found["error"]["code"], "E01");
  EXPECT_EQ(found["error"]["message"], "m");
  EXPECT_EQ(found["error"]["hint"], "f");
  EXPECT_EQ(found["error"]["node"], "n");
  EXPECT_EQ(found["error"]["server_text"], "s");
}

TEST(rfc3339, is_utc_with_milliseconds) {
  EXPECT_EQ(rfc3339(std::chrono::system_clock::time_point{1'700'000'000'123ms}), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(rfc3339(std::chrono::system_clock::time_point{-1ms}), "1969-12-31T23:59:59.999Z");
}

}  // namespace
