// SPDX-License-Identifier: Apache-2.0
#include "integration/torment.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace holdfast::test {

std::string with_relays::relayed_uri() const {
  std::string uri;
  for (const auto& relay : relays_) {
    uri += (uri.empty() ? "redis+quorum://127.0.0.1:" : ",127.0.0.1:") + std::to_string(relay.port());
  }
  return uri;
}

void with_relays::put_one_with_a_clock_of_its_own(int node, std::chrono::milliseconds ahead) {
  auto& it = turned_[node];
  it.clock.set(ahead);
  lab_.kill(this->node(node));
  auto& known = nodes_[static_cast<std::size_t>(node)];
  known.address = "127.0.0.1:" + std::to_string(it.server.port());
  known.pid = it.server.pid();
}

redis_server* with_relays::one_of_ours(int node) {
  const auto found = turned_.find(node);
  return found != turned_.end() ? &found->second.server : nullptr;
}

void with_relays::restart(int node) {
  auto* ours = one_of_ours(node);
  if (!ours) return lab_.restart(this->node(node), lab_data::dropped);
  ours->restart();
  nodes_[static_cast<std::size_t>(node)].pid = ours->pid();
}

std::chrono::microseconds with_relays::time_of(int node) const {
  const auto said = ask_list(this->node(node), {"TIME"});
  if (said.size() != 2) return {};
  return std::chrono::seconds{std::stoll(said[0])} + std::chrono::microseconds{std::stoll(said[1])};
}

void with_relays::begin(int node, harm what, std::minstd_rand& random) {
  auto& relay = relays_[static_cast<std::size_t>(node)];
  auto* ours = one_of_ours(node);
  switch (what) {
    case harm::stopped: return ours ? ours->pause() : lab_.pause(this->node(node));
    case harm::killed: return ours ? ours->kill() : lab_.kill(this->node(node));
    case harm::silent:
      relay.set(direction::to_server, {.pass_only = 0});
      return relay.set(direction::to_client, {.pass_only = 0});
    case harm::slow:
      for (const auto way : {direction::to_server, direction::to_client}) {
        relay.set(way, {.delay = std::chrono::milliseconds{10 + random() % 200}});
      }
  }
}

void with_relays::end(int node, harm what, std::minstd_rand& random) {
  auto& relay = relays_[static_cast<std::size_t>(node)];
  auto* ours = one_of_ours(node);
  switch (what) {
    case harm::stopped: return ours ? ours->resume() : lab_.resume(this->node(node));
    case harm::killed: restart(node); return await_end_of_quarantine(node);
    case harm::silent:
      if (random() % 2 == 0) relay.cut_all();
      return relay.heal();
    case harm::slow: return relay.heal();
  }
}

void with_relays::await_end_of_quarantine(int node) {
  std::chrono::milliseconds ends_at{0};
  EXPECT_TRUE(eventually(
      [&] {
        unsigned long long since_us = 0;
        unsigned long long hold_ms = 0;
        const auto epoch = value(node, "hf:epoch");
        if (std::sscanf(epoch.c_str(), "v1|%*[^|]|%*[^|]|%llu|%llu", &since_us, &hold_ms) != 2) return false;
        ends_at = std::chrono::milliseconds{since_us / 1000 + hold_ms};
        return true;
      },
      long_enough))
      << "nobody has asked " << this->node(node).address << " for its epoch";
  EXPECT_TRUE(eventually([&] { return time_of(node) > ends_at; }, long_enough));
}

int with_relays::pick(std::minstd_rand& random) {
  const std::lock_guard hold{mutex_};
  for (;;) {
    const int node = static_cast<int>(random() % nodes_.size());
    if (std::count(harmed_.begin(), harmed_.end(), node) > 0) continue;
    harmed_.push_back(node);
    return node;
  }
}

void with_relays::torment(const std::stop_token& stop, unsigned seed) {
  std::minstd_rand random{seed};
  while (!stop.stop_requested()) {
    const int node = pick(random);
    const auto what = harms[random() % harms.size()];
    begin(node, what, random);
    const std::chrono::milliseconds lasts{100 + random() % (what == harm::killed ? 1000 : 4000)};
    (void)eventually([&] { return stop.stop_requested(); }, lasts);
    end(node, what, random);
    // Its clients connect again before another one is harmed.
    (void)eventually([&] { return stop.stop_requested(); }, std::chrono::milliseconds{500});
    const std::lock_guard hold{mutex_};
    ++counts_[static_cast<std::size_t>(what)];
    std::erase(harmed_, node);
  }
}

std::array<int, harms.size()> with_relays::counts() const {
  const std::lock_guard hold{mutex_};
  return counts_;
}

}  // namespace holdfast::test
