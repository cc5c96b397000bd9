// SPDX-License-Identifier: Apache-2.0
// What befalls a primary with replicas: another becomes it, copies come late, sentinels say nothing.
#include "world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace holdfast::sim {

using namespace std::chrono_literals;

void trouble::strike_replicas(fault what) {
  auto& servers = in_->servers();
  if (what == fault::failovers) return fail_over();
  const duration time = rng_.any_size(5ms, 2 * duration{in_->what().ttl});
  if (what == fault::replication_stalls) {
    const auto which = rng_.below(servers.size());
    servers.hold_back(static_cast<int>(which), in_->now() + time);
    return in_->befall_all(time + 1s);
  }
  process* who = somebody();
  if (!who) return;
  for (std::size_t i = 0; i < sentinels::count; ++i) {
    if (rng_.chance(70)) servers.named().be_silent(who->number(), i, in_->now() + time);
  }
  in_->befall(who->number(), time + 3s);
}

// The primary dies, or is cut off from its replicas and from the sentinels, or nothing is the matter with it but that
// an operator wants another one. The sentinels agree, promote the replica that has most, name it, one sooner than
// another, and tell the others to copy it. Whoever still reaches the old one is served by it until it is told, too.
void trouble::fail_over() {
  auto& servers = in_->servers();
  if (is_failing_over_ || servers.is_moving()) return;
  const int shard = servers.shards() == 1 ? 0 : static_cast<int>(rng_.below(servers.shards()));
  const int old = servers.primary(shard);
  const int ends = rng_.number(1, 3);
  duration noticed{1ms};
  if (ends != 3) noticed = rng_.any_size(50ms, 3s);
  const duration max_ttl = in_->what().max_ttl;
  if (ends == 1) {
    auto& server = servers.of(static_cast<std::size_t>(old));
    server.restart(in_->now() + noticed + rng_.any_size(10ms, 5s), server.redis().all());
  }
  if (ends == 2) {
    for (std::size_t i = 0; i < servers.size(); ++i) {
      if (servers.follows(static_cast<int>(i)) == old)
        servers.hold_back(static_cast<int>(i), in_->now() + noticed + 60s);
    }
  }
  is_failing_over_ = true;
  in_->disturb(cause::data_lost, noticed);
  in_->befall_all(noticed + 2s + 2 * max_ttl);
  in_->queue().after(noticed, [this, old] {
    is_failing_over_ = false;
    if (is_over_) return;
    const int chosen = in_->servers().best_copy_of(old);
    if (chosen != nobody && in_->servers().primary(in_->servers().shard_of(old)) == old) promote(chosen, old);
  });
}

void trouble::promote(int chosen, int old) {
  auto& servers = in_->servers();
  if (in_->is_tracing()) in_->say(fmt::format("server {} is promoted in the place of {}", chosen, old));
  servers.promote(chosen);
  servers.hold_back(chosen, in_->now());
  const duration longest = std::max<duration>(2s, in_->what().max_ttl);
  in_->disturb(cause::data_lost, 3 * longest);
  in_->disturb(cause::another_primary, 3 * longest);
  in_->befall_all(3 * longest + 2s + 2 * duration{in_->what().max_ttl});
  for (std::size_t i = 0; i < sentinels::count; ++i) {
    servers.named().name(i, chosen, in_->now() + rng_.any_size(1ms, 2s));
  }
  const int shard = servers.shard_of(chosen);
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const int number = static_cast<int>(i);
    if (number == chosen) continue;
    if (servers.shard_of(number) != shard) {
      in_->queue().after(rng_.any_size(1ms, 1s), [this, number, shard, chosen] {
        auto& all = in_->servers();
        if (!is_over_ && all.primary(shard) == chosen) all.slots().learn_primary(number, shard, chosen);
      });
      continue;
    }
    // The old one learns of it last, if it was cut off long after everybody else.
    const duration told = number == old ? rng_.any_size(1ms, 3 * longest) : rng_.any_size(1ms, 2s);
    in_->queue().after(told, [this, number, shard, chosen] {
      auto& all = in_->servers();
      if (is_over_ || all.primary(shard) != chosen) return;
      if (in_->is_tracing()) in_->say(fmt::format("server {} copies {} from now on", number, chosen));
      all.slots().learn_primary(number, shard, chosen);
      all.follow(number, chosen);
    });
  }
}

}  // namespace holdfast::sim
