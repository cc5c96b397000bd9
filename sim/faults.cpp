// SPDX-License-Identifier: Apache-2.0
// What befalls a world: each kind of fault in a few lines, drawn one after the other until the horizon.
#include "world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;
using way = network::way;

namespace {

bool is_key_of(const lock& what, const std::string& key) {
  const auto& of = what.keys;
  return key == of.holder || key == of.fence() || key == of.line() || key == of.waiters() || key == of.holders() ||
         key == of.broken();
}

}  // namespace

trouble::trouble(world& in, statistics& into)
    : in_{&in}, statistics_{&into}, rng_{seeded_random::of(in.what().seed, 'f')} {
  for (std::size_t i = 0; i < fault_count; ++i) {
    if (in.what().faults[i]) kinds_.push_back(static_cast<fault>(i));
  }
}

void trouble::start() {
  if (!kinds_.empty()) next();
}

void trouble::next() {
  in_->queue().after(rng_.any_size(1ms, 2 * in_->what().fault_pause), [this] {
    if (is_over_) return;
    const fault what = kinds_[rng_.below(kinds_.size())];
    ++statistics_->faults[static_cast<std::size_t>(what)];
    strike(what);
    next();
  });
}

void trouble::strike(fault what) {
  if (in_->is_tracing()) in_->say(fmt::format("fault: {}", to_string(what)));
  if (what <= fault::silence) return strike_network(what);
  if (what <= fault::host_deaths) return strike_process(what);
  if (what <= fault::script_flushes) return strike_server(what);
  if (what >= fault::clock_steps && what <= fault::clock_rates) return strike_clock(what);
  if (what == fault::breaks) return break_something();
  if (what == fault::resizes) return resize_something();
  if (what >= fault::slot_moves) return strike_cluster(what);
  if (what >= fault::failovers) return strike_replicas(what);
  strike_rights(what);
}

model_server& trouble::some_server() {
  const auto shards = in_->servers().shards();
  return in_->server(shards == 1 ? 0 : static_cast<int>(rng_.below(shards)));
}

int trouble::some_connection() {
  const auto all = in_->servers().open_connections();
  return all.empty() ? 0 : all[rng_.below(all.size())];
}

process* trouble::somebody() {
  const auto all = in_->living();
  return all.empty() ? nullptr : all[rng_.below(all.size())];
}

// At the end of the world's trouble it has ended, too.
void trouble::lasting(duration time, std::function<void()> ends) {
  in_->queue().after(time, [this, ends = std::move(ends)] {
    if (!is_over_) ends();
  });
}

void trouble::strike_network(fault what) {
  const duration ttl = in_->what().ttl;
  const duration time = rng_.any_size(5ms, 2 * ttl);
  const int id = some_connection();
  if (id == 0) return;
  auto& net = in_->net_with(id);
  const int host = net.host_of(id);
  route& path = net.of(host);
  const way direction = rng_.chance(50) ? way::to_server : way::to_client;
  switch (what) {
    case fault::delays:
      path.spike_percent = rng_.number(1, 50);
      path.spike = rng_.any_size(5ms, 2 * ttl);
      return in_->befall(host, in_->what().horizon + 30s);
    case fault::split_writes: path.split_percent = rng_.number(1, 100); return;
    case fault::blocked_routes: path.blocked_until = in_->now() + time; return in_->befall(host, time + 1s);
    case fault::stalls: net.block(id, direction, in_->now() + time); return in_->befall(host, time + 1s);
    case fault::cuts: net.cut(id); return in_->befall(host, 1s);
    case fault::lost_replies:
      net.block(id, way::to_client, in_->now() + 2 * time);
      in_->queue().after(time, [this, id] {
        if (in_->net_with(id).is_open(id)) in_->net_with(id).cut(id);
      });
      // The client hears of its end only then.
      return in_->befall(host, 2 * time + 1s);
    case fault::silence:
      net.silence(id, direction);
      if (rng_.chance(50)) net.silence(id, direction == way::to_server ? way::to_client : way::to_server);
      return in_->befall(host, 60s);
    default: return;
  }
}

void trouble::strike_process(fault what) {
  process* who = somebody();
  if (!who || !who->is_running()) return;
  const duration ttl = in_->what().ttl;
  const duration time = rng_.any_size(std::max<duration>(1ms, ttl / 4), 3 * ttl);
  if (what == fault::kills || what == fault::host_deaths) {
    who->die(what == fault::kills ? process::death::process : process::death::host);
    return in_->replace(*who, rng_.any_size(1ms, 2s));
  }
  if (rng_.chance(50)) return stop(*who, what, time);
  // While a renewal is on its way: its answer is read when the process runs again, behind the deadline perhaps, and
  // before the one that it would move it to (P13c).
  who->at_next_renewal([this, who, what, until_late = rng_.span(ttl / 4, 3 * ttl / 2)] {
    if (!is_over_ && who->is_running()) stop(*who, what, until_late);
  });
}

void trouble::stop(process& who, fault how, duration time) {
  const int number = who.number();
  if (in_->is_tracing()) in_->say(fmt::format("p{} stands still for {} ms", number, time / 1ms));
  who.pause();
  in_->befall(number, time + 1s);
  if (how == fault::suspends) {
    for (std::size_t i = 0; i < in_->servers().size(); ++i) {
      for (const int id : in_->servers().net(i).connections_of(number)) {
        if (rng_.chance(70)) in_->servers().net(i).cut(id);
      }
    }
  }
  in_->queue().after(time, [&who] { who.resume(); });
}

void trouble::strike_server(fault what) {
  auto& server = some_server();
  const duration down = rng_.any_size(10ms, 2s);
  const instant up_at = in_->now() + down;
  switch (what) {
    case fault::server_restarts: server.restart(up_at, server.redis().all()); break;
    case fault::data_losses:
      server.restart(up_at, {});
      in_->disturb(cause::data_lost, duration{0});
      break;
    case fault::old_snapshots:
      // It comes back with what it had itself at its last fault of this kind.
      server.restart(up_at, std::exchange(snapshots_[&server], server.redis().all()));
      in_->disturb(cause::data_lost, duration{0});
      break;
    case fault::server_stalls: server.be_stuck_until(up_at); break;
    case fault::full_memory:
      server.redis().set_memory_full(true);
      lasting(2 * down, [&server] { server.redis().set_memory_full(false); });
      in_->befall_all(2 * down);
      break;
    case fault::refused_writes:
      server.redis().refuse_writes(true);
      lasting(2 * down, [&server] { server.redis().refuse_writes(false); });
      in_->befall_all(2 * down);
      break;
    case fault::flushes:
      if (server.redis().refuses_writes()) return;
      server.operate({"FLUSHALL"});
      in_->disturb(cause::data_lost, duration{0});
      in_->disturb(cause::keys_deleted, duration{0});
      break;
    case fault::evictions: {
      const auto& all = server.redis().all();
      if (all.empty()) return;
      const auto key = std::next(all.begin(), static_cast<std::ptrdiff_t>(rng_.below(all.size())))->first;
      if (server.redis().refuses_writes()) return;
      // Of a lock that was broken at its expiry the value has less than its ttl from then on, and so has each renewal
      // that nothing refuses any more (seed 52332).
      const auto& locks = in_->what().locks;
      const auto of = std::find_if(locks.begin(), locks.end(), [&](const lock& l) { return is_key_of(l, key); });
      const int number = of == locks.end() ? any_lock : of->number;
      const bool is_break = of != locks.end() && of->keys.broken() == key;
      server.operate({"DEL", key});
      in_->disturb(cause::data_lost, duration{0}, number);
      in_->disturb(cause::keys_deleted, is_break ? in_->what().horizon + 30s : duration{0}, number);
      break;
    }
    case fault::script_flushes: server.operate({"SCRIPT", "FLUSH"}); break;
    default: return;
  }
  const bool is_restart = what == fault::server_restarts || what == fault::data_losses || what == fault::old_snapshots;
  if (what == fault::flushes || what == fault::evictions) return in_->befall_keys(down + 2s);
  in_->befall_all(down + 2s + (is_restart ? 2 * duration{in_->what().max_ttl} : duration{0}));
}

void trouble::strike_rights(fault what) {
  auto& server = some_server();
  const duration time = rng_.any_size(10ms, 8s);
  switch (what) {
    case fault::publish_denied:
    case fault::info_denied: {
      server.redis().deny(what == fault::publish_denied ? "PUBLISH" : "INFO");
      if (what == fault::publish_denied) server.redis().deny("SPUBLISH");
      lasting(time, [&server] { server.redis().allow_all(); });
      break;
    }
    case fault::subscribe_denied:
      server.deny_subscribe(true);
      lasting(time, [&server] { server.deny_subscribe(false); });
      break;
    case fault::subscriber_kills: server.kill_clients(model_server::kill::subscribers); break;
    case fault::client_kills: server.kill_clients(model_server::kill::all); break;
    case fault::forged_messages: return forge_something();
    default: return;
  }
  in_->befall_all(time + 2s);
}

// To somebody who listens on the server of a lock, or who stands in line for it; about one who stands there, or about
// nobody. It befalls none of them: a message is a hint, and costs a look.
void trouble::forge_something() {
  process* who = somebody();
  if (!who) return;
  const lock& of = in_->what().locks[rng_.below(in_->what().locks.size())];
  auto& server = in_->server_of(of);
  auto channel = server.channel_of(who->number());
  std::string about(32, 'f');
  if (const auto line = line_of(server.redis(), of); !line.empty()) {
    const auto& place = line[rng_.below(line.size())];
    if (rng_.chance(50)) channel = place.channel;
    if (rng_.chance(75)) about = place.owner;
  }
  if (channel.empty()) return;  // It listens to another server, or to none.
  const auto at = server.now().time_since_epoch().count();
  server.forge(channel,
               fmt::format("v1|{}|{}|{:016}|{}", rng_.chance(50) ? "grant" : "look", about, at, at / 1000 + 500));
}

// As C1 has it: whoever breaks a lock at once may let two in; at its expiry nobody may.
void trouble::break_something() {
  const bool is_at_once = rng_.chance(30);
  // What a waiter is granted next, mostly before it has heard of that.
  if (rng_.chance(30)) {
    return in_->at_next_grant(
        [this, is_at_once, wait = rng_.span(duration{0}, 1ms)](const lock& of, const holder& who) {
          in_->queue().after(wait, [this, &of, who, is_at_once] { break_holder(of, who, is_at_once); });
        });
  }
  const lock& about = in_->what().locks[rng_.below(in_->what().locks.size())];
  const auto all = holders_of(in_->server_of(about).redis(), about);
  if (!all.empty()) break_holder(about, all[rng_.below(all.size())], is_at_once);
}

void trouble::break_holder(const lock& about, const holder& whose, bool at_once) {
  auto& server = in_->server_of(about);
  if (is_over_ || !server.is_up() || server.redis().refuses_writes()) return;
  if (at_once) in_->disturb(cause::broken_at_once, duration{0}, about.number);
  server.break_lock(about, whose, at_once);
}

void trouble::resize_something() {
  process* who = somebody();
  const lock& about = in_->what().locks[rng_.below(in_->what().locks.size())];
  if (who && who->is_running() && about.kind == lock_kind::semaphore) who->resize(about.number, rng_.number(1, 4));
}

void trouble::strike_clock(fault what) {
  auto& server = some_server();
  const duration time = rng_.any_size(10ms, 5s);
  const auto us = [](duration d) { return std::chrono::duration_cast<server_time::duration>(d); };
  if (what == fault::clock_steps) {
    const auto step = us(rng_.any_size(1ms, 1h));
    server.clock().step(in_->now(), rng_.chance(50) ? step : -step);
    in_->disturb(cause::clock_stepped, duration{0});
    return in_->befall_keys(time + 2s);
  }
  server.clock().run_at(in_->now(), what == fault::clock_stops ? -1'000'000 : rng_.number(-900'000, 2'000'000));
  lasting(time, [this, &server] { server.clock().run_at(in_->now(), in_->what().server_ppm); });
  in_->disturb(what == fault::clock_stops ? cause::clock_stepped : cause::clock_rate, time);
  in_->befall_all(time + 2s);
}

void trouble::end() {
  is_over_ = true;
  if (in_->servers().size() > 1) in_->servers().settle();
  for (std::size_t i = 0; i < in_->servers().size(); ++i) {
    auto& server = in_->servers().of(i);
    server.redis().set_memory_full(false);
    server.redis().refuse_writes(false);
    server.redis().allow_all();
    server.deny_subscribe(false);
    if (server.clock().ppm() != in_->what().server_ppm) server.clock().run_at(in_->now(), in_->what().server_ppm);
    for (process* p : in_->living()) {
      route& path = in_->servers().net(i).of(p->number());
      path.spike_percent = 0;
      path.blocked_until = in_->now();
    }
  }
  for (process* p : in_->living()) p->resume();
}

}  // namespace holdfast::sim
