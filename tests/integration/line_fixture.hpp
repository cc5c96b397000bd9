// SPDX-License-Identifier: Apache-2.0
// Processes that wait for one lock, "x", and what a test says to them and learns of them.
#pragma once

#include "integration/fixture.hpp"

#include <signal.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

// A bound of the contract's that a machine busy with other tests may miss now and then: of so many attempts all but one
// keep it, or of so many once more. They end when that is known.
template <class Attempt>
bool all_but_one_of(int attempts, Attempt attempt) {
  const auto once = [&] {
    int kept = 0;
    int missed = 0;
    while (kept < attempts - 1 && missed < 2) ++(attempt() ? kept : missed);
    return missed < 2;
  };
  return once() || once();
}

class waiting_process {
public:
  waiting_process(const std::string& uri, std::vector<std::string> environment, const std::string& ttl_ms = "5000")
      : process_{{HOLDFAST_WORKER, uri, "queue", "x", ttl_ms}, {.environment = std::move(environment)}} {}

  void go() { process_.write_line("go"); }

  struct news {
    std::uint64_t number = 0;  // The token, or the outcome.
    std::chrono::nanoseconds at{0};
  };
  // Its next line, which must begin with `word`; zeros when it does not come.
  news hears(const std::string& word, std::chrono::milliseconds patience = 20s) {
    const auto line = process_.read_line(patience).value_or("(nothing)");
    std::istringstream parts{line};
    std::string first;
    news n;
    std::int64_t at = 0;
    parts >> first >> n.number >> at;
    n.at = std::chrono::nanoseconds{at};
    EXPECT_EQ(first, word) << line;
    return first == word ? n : news{};
  }
  news acquired(std::chrono::milliseconds patience = 20s) { return hears("acquired", patience); }
  // The instant just before the release was asked for.
  std::chrono::nanoseconds release() {
    process_.write_line("release");
    return hears("released").at;
  }
  child_process& process() { return process_; }

private:
  child_process process_;
};

class on_line : public on_redis {
protected:
  explicit on_line(redis_options options = {}) : on_redis{std::move(options)} {}

  // Returns when the server has seen the end of its subscription, which may be behind a release that comes at once.
  void kill_seen(waiting_process& one) {
    const auto ears = [&] { return server_("PUBSUB", "CHANNELS", "hf:wake:*").items.size(); };
    const auto before = ears();
    one.process().signal(SIGKILL);
    one.process().wait();
    EXPECT_TRUE(eventually([&] { return ears() < before; }));
  }

  waiting_process start(const std::string& ttl_ms = "5000") { return {uri(), worker_environment(), ttl_ms}; }

  std::int64_t waiting() { return server_("ZCARD", "hf:{x}:line").number; }
  bool waits_for(std::int64_t count, std::chrono::nanoseconds deadline = 10s) {
    return eventually([&] { return waiting() == count; }, deadline);
  }
  // They join one by one, each when the one before stands in line.
  void line_up(std::vector<waiting_process>& all) {
    for (auto& one : all) {
      const auto before = waiting();
      one.go();
      ASSERT_TRUE(waits_for(before + 1)) << waiting() << " wait";
      // Who waited for its subscription in vain looks only now and then, until that comes after all.
      (void)eventually([&] { return hearing() > before; }, 2s);
    }
  }
  // So many in line hear of their turn.
  std::int64_t hearing() {
    const auto entries = server_("HVALS", "hf:{x}:waiters").items;
    return std::count_if(entries.begin(), entries.end(), [](const auto& one) {
      const auto& text = one.text;
      return text.starts_with("v1|") && text.find("|s|") != std::string::npos;
    });
  }
  // Denies the default user a command; the operator's own connection is logged in as somebody else before.
  void deny(const std::vector<std::string>& rules) {
    server_("ACL", "SETUSER", "operator", "on", "nopass", "allcommands", "allkeys", "allchannels");
    server_("AUTH", "operator", "x");
    std::vector<std::string> words{"ACL", "SETUSER", "default"};
    words.insert(words.end(), rules.begin(), rules.end());
    server_.ask(words);
  }

  std::vector<waiting_process> start_many(int count) {
    std::vector<waiting_process> all;
    for (int i = 0; i < count; ++i) all.push_back(start());
    return all;
  }
};

}  // namespace holdfast::test
