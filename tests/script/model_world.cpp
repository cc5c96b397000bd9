// SPDX-License-Identifier: Apache-2.0
#include "model_redis.hpp"
#include "world.hpp"

namespace holdfast::tests {

namespace {

using namespace std::chrono_literals;

class model_world final : public world {
public:
  explicit model_world(const std::string& lacks) {
    if (!lacks.empty()) redis_.rename_away(lacks);
  }

  resp::value execute(const std::vector<std::string>& words) override {
    redis_.pass(70us);  // Time passes between two commands, as on a real server.
    return redis_.execute(words);
  }

  server_time now() override { return redis_.now(); }

  bool wait_until_gone(const std::string& key) override {
    const auto reply = redis_.execute({"PTTL", key});
    const auto* left = reply.as_integer();
    if (!left || *left == -1) return false;
    if (*left >= 0) redis_.pass(std::chrono::milliseconds{*left + 1});
    return true;
  }

  void listen(const std::string& channel) override {
    channels_.push_back(channel);
    redis_.subscribe(channel, reach_of(channel));
  }
  void listen_to_all() override {
    ++monitors_;
    redis_.subscribe_to_all();
  }
  void end_listening() override {
    for (; monitors_ > 0; --monitors_) redis_.unsubscribe_from_all();
    for (const auto& channel : channels_) redis_.unsubscribe(channel, reach_of(channel));
    channels_.clear();
    messages_.clear();
    redis_.take_messages();
  }
  resp::value next_message() override {
    for (auto& said : redis_.take_messages()) messages_.push_back(std::move(said.text));
    if (messages_.empty()) return {};
    resp::value first{messages_.front()};
    messages_.erase(messages_.begin());
    return first;
  }
  void set_memory_full(bool full) override { redis_.set_memory_full(full); }
  void deny(const std::string& command) override { redis_.deny(command); }
  void allow_all() override { redis_.allow_all(); }

private:
  static sim::model_redis::reach reach_of(const std::string& channel) {
    return channel.ends_with('}') ? sim::model_redis::reach::shard : sim::model_redis::reach::everywhere;
  }

  // 2026-11-20 22:13:20 UTC; any date whose seconds have ten digits would do.
  int monitors_ = 0;
  std::vector<std::string> channels_{};
  std::vector<std::string> messages_{};
  sim::model_redis redis_{server_time{1'795'212'800'000'042us}};
};

}  // namespace

std::unique_ptr<world> make_model_world(const std::string& lacks) { return std::make_unique<model_world>(lacks); }

}  // namespace holdfast::tests
