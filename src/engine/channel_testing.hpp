// SPDX-License-Identifier: Apache-2.0
// A channel, its peer, and two who write down what they hear of it.
#pragma once

#include "core/random_testing.hpp"
#include "engine/channel.hpp"
#include "engine/peer_testing.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::engine::channel_testing {

using words = std::vector<std::string>;

// Writes down what it hears, and then does what the test wants.
struct recorder final : reply_sink {
  explicit recorder(std::string calls_itself = "", words* to = nullptr)
      : name{std::move(calls_itself)}, heard{to ? to : &own} {}

  void on_reply(time_point, time_point at, const resp::value& reply) override {
    sent_at = at;
    if (const auto* e = reply.as_error()) {
      heard->push_back(name + "error " + e->text);
    } else if (const auto* n = reply.as_integer()) {
      heard->push_back(name + std::to_string(*n));
    } else {
      heard->push_back(name + (reply.as_bulk() ? *reply.as_bulk() : "?"));
    }
    if (then) then();
  }
  void on_cut(time_point) override {
    heard->push_back(name + "cut");
    if (then) then();
  }

  std::string name;
  words own;
  words* heard;
  time_point sent_at{};
  std::function<void()> then{};
};

struct channel_news final : channel_listener {
  void on_ready(time_point) override { news.push_back("ready"); }
  void on_down(time_point, const connection_failure& f, bool was_ready) override {
    news.push_back(std::string{was_ready ? "down " : "failed "} + to_string(f.code));
  }
  void on_clock_step(time_point /*now*/, duration step) override {
    news.push_back("step " + std::to_string(std::chrono::duration_cast<std::chrono::seconds>(step).count()));
  }
  words news;
};

inline const owner_id somebody{std::array<unsigned char, 16>{}};
inline const script::lock_keys keys{"hf:{x}"};
inline script::command a_release() { return script::release(keys, somebody, fencing_token{7}); }

class channel_test : public testing::Test {
protected:
  explicit channel_test(channel::settings how = {}) : wire{std::move(how), rng, listens} {}

  core::seeded_random rng;
  channel_news listens;
  channel wire;
  peer server{wire};

  void connect() {
    wire.set_demand(true);
    server.connect();
    listens.news.clear();
  }
  void ask(reply_sink& who) { wire.send_raw(server.now, "*1\r\n$4\r\nPING\r\n", who); }
};

}  // namespace holdfast::engine::channel_testing
