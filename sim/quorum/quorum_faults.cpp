// SPDX-License-Identifier: Apache-2.0
// What befalls a quorum: each kind of fault in a few lines, on one node or one client, drawn until the horizon.
#include "quorum/quorum_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;
using way = network::way;

namespace {

// Until who was cut off is connected again, and what was late has been overtaken.
constexpr duration recovery = 4s;

}  // namespace

void quorum_world::plan_trouble() {
  const auto most = std::max<duration>(2ms, 2 * plan_.fault_pause / static_cast<int>(servers_.size()));
  events_.after(trouble_.any_size(1ms, most), [this] {
    if (trouble_is_over_) return;
    strike(kinds_[trouble_.below(kinds_.size())]);
    plan_trouble();
  });
}

quorum_client* quorum_world::somebody() {
  std::vector<quorum_client*> all;
  for (auto& one : clients_) {
    if (one->is_running()) all.push_back(one.get());
  }
  return all.empty() ? nullptr : all[trouble_.below(all.size())];
}

void quorum_world::strike(fault what) {
  const std::size_t node = trouble_.below(servers_.size());
  if (keeps_trace_) say(fmt::format("fault: {} (node {})", to_string(what), node));
  ++statistics_->faults[static_cast<std::size_t>(what)];
  if (what <= fault::silence) return strike_network(what, node);
  if (what <= fault::host_deaths) return strike_client(what);
  if (what == fault::breaks) return break_something();
  strike_server(what, node);
}

route& quorum_world::some_route(std::size_t node) {
  return nets_[node].of(static_cast<int>(trouble_.below(clients_.size())));
}

void quorum_world::strike_network(fault what, std::size_t node) {
  auto& net = nets_[node];
  const duration time = trouble_.any_size(5ms, 2 * duration{plan_.ttl});
  const auto all = net.open_connections();
  if (all.empty()) return;
  const int id = all[trouble_.below(all.size())];
  const way direction = trouble_.chance(50) ? way::to_server : way::to_client;
  const bool is_for_long = what == fault::delays || what == fault::silence;
  if (what != fault::split_writes) trouble_node(node, is_for_long ? end_of_time : events_.now() + 2 * time);
  switch (what) {
    case fault::delays: {
      auto& path = some_route(node);
      path.spike_percent = trouble_.number(1, 50);
      path.spike = trouble_.any_size(5ms, 2 * duration{plan_.ttl});
      return;
    }
    case fault::split_writes: some_route(node).split_percent = trouble_.number(1, 100); return;
    case fault::blocked_routes: some_route(node).blocked_until = events_.now() + time; return;
    case fault::stalls: return net.block(id, direction, events_.now() + time);
    case fault::cuts: return net.cut(id);
    case fault::lost_replies:
      net.block(id, way::to_client, events_.now() + 2 * time);
      events_.after(time, [this, node, id] {
        if (nets_[node].is_open(id)) nets_[node].cut(id);
      });
      return;
    case fault::silence:
      net.silence(id, direction);
      if (trouble_.chance(50)) net.silence(id, direction == way::to_server ? way::to_client : way::to_server);
      return;
    default: return;
  }
}

void quorum_world::strike_client(fault what) {
  auto* who = somebody();
  if (!who) return;
  if (what == fault::kills || what == fault::host_deaths) {
    who->die(what == fault::kills ? process::death::process : process::death::host);
    dead_have_turns_until_ = events_.now() + quorum_client::turn_ttl;
    if (what == fault::host_deaths) host_died_at_ = events_.now();
    ++to_come_;
    events_.after(trouble_.any_size(1ms, 2s), [this, how = client_plans_[static_cast<std::size_t>(who->number())]] {
      --to_come_;
      start_client(how, some_list());
      if (trouble_is_over_) clients_.back()->stop();
    });
    return;
  }
  const duration ttl = plan_.ttl;
  const duration time = trouble_.any_size(std::max<duration>(1ms, ttl / 4), 3 * ttl);
  if (trouble_.chance(30)) return stop(*who, what, time);
  // As in faults.cpp. Mostly: there must be enough of them for one to be the answer that makes the majority.
  who->at_next_renewal([this, who, what, until_late = trouble_.span(ttl / 4, ttl)] {
    if (!trouble_is_over_ && who->is_running()) stop(*who, what, until_late);
  });
}

void quorum_world::stop(quorum_client& who, fault how, duration time) {
  if (keeps_trace_) say(fmt::format("c{} stands still for {} ms", who.number(), time / 1ms));
  who.pause();
  if (how == fault::suspends) {
    for (std::size_t node = 0; node < nets_.size(); ++node) {
      for (const int id : who.connections_to(node)) {
        if (trouble_.chance(70) && nets_[node].is_open(id)) nets_[node].cut(id);
      }
    }
  }
  auto& until = client_trouble_until_[who.number()];
  until = std::max(until, events_.now() + time + recovery);
  events_.after(time, [&who] { who.resume(); });
}

void quorum_world::strike_server(fault what, std::size_t node) {
  auto& server = servers_[node];
  if (retired_.contains(node)) return;
  const duration down = trouble_.any_size(10ms, 2s);
  const instant up_at = events_.now() + down;
  trouble_node(node, what == fault::clock_steps ? end_of_time : events_.now() + 2 * down);
  const auto later = [this](duration time, std::function<void()> ends) {
    events_.after(time, [this, ends = std::move(ends)] {
      if (!trouble_is_over_) ends();
    });
  };
  switch (what) {
    case fault::server_restarts: return server.restart(up_at, server.redis().all());
    case fault::data_losses:
      server.restart(up_at, {});
      has_forgotten_.insert(node);
      return note_record(node);
    case fault::server_stalls: return server.be_stuck_until(up_at);
    case fault::full_memory:
      server.redis().set_memory_full(true);
      return later(2 * down, [&server] { server.redis().set_memory_full(false); });
    case fault::refused_writes:
      server.redis().refuse_writes(true);
      return later(2 * down, [&server] { server.redis().refuse_writes(false); });
    case fault::flushes: return delete_keys(node, {"FLUSHALL"});
    case fault::evictions: {
      const auto& all = server.redis().all();
      if (all.empty()) return;
      const auto key = std::next(all.begin(), static_cast<std::ptrdiff_t>(trouble_.below(all.size())))->first;
      return delete_keys(node, {"DEL", key});
    }
    case fault::script_flushes: server.operate({"SCRIPT", "FLUSH"}); return;
    case fault::info_denied:
    case fault::publish_denied:
      server.redis().deny(what == fault::info_denied ? "INFO" : "PUBLISH");
      return later(2 * down, [&server] { server.redis().allow_all(); });
    case fault::subscribe_denied:
      server.deny_subscribe(true);
      return later(2 * down, [&server] { server.deny_subscribe(false); });
    case fault::subscriber_kills: return server.kill_clients(model_server::kill::subscribers);
    case fault::client_kills: return server.kill_clients(model_server::kill::all);
    case fault::clock_steps: {
      const auto step = std::chrono::duration_cast<server_time::duration>(trouble_.any_size(1ms, 1h));
      server.clock().step(events_.now(), trouble_.chance(50) ? step : -step);
      note_clock(node);
      return disturb(cause::clock_stepped);
    }
    default: return;
  }
}

void quorum_world::delete_keys(std::size_t node, std::initializer_list<std::string> words) {
  if (servers_[node].redis().refuses_writes()) return;
  const auto knew = generation_at(node);
  servers_[node].operate(words);
  note_record(node);
  if (knew > 1 && generation_at(node) == 0) history_.note_records_deleted();
  deleted_at_[node] = events_.now();
  has_forgotten_.insert(node);
  disturb(cause::keys_deleted);
}

void quorum_world::trouble_node(std::size_t node, instant until) {
  const instant at = until == end_of_time ? until : until + recovery;
  node_trouble_until_[node] = std::max(node_trouble_until_[node], at);
}

// Whose host has died still listens, for all that the servers know: in their lines it lets nobody pass for the six
// seconds in which a look may be missed, and each such costs a claim window (src/script/advance.lua).
duration quorum_world::patience_with_the_dead() const {
  const bool is_over = !host_died_at_ || events_.now() > *host_died_at_ + 20s;
  return is_over ? duration{0} : duration{10s};
}

// How far ahead of what it would show if nobody had set it?
void quorum_world::note_clock(std::size_t node) {
  const instant now = events_.now();
  most_ahead_ = std::max<duration>(most_ahead_, servers_[node].clock_now() - clocks_[node].read(now));
}

// As far apart as they were drawn, and none of them behind anything that it ever showed: what is on a server whose
// clock goes back stays there for as long, until somebody knocks.
std::vector<wall_clock> quorum_world::agree_on_the_latest() {
  const instant now = events_.now();
  auto agreed = clocks_;
  for (std::size_t node = 0; node < agreed.size(); ++node) {
    agreed[node].step(now, std::chrono::ceil<server_time::duration>(most_ahead_));
    if (agreed[node].read(now) != servers_[node].clock().read(now)) disturb(cause::clock_stepped);
  }
  return agreed;
}

void quorum_world::end_trouble() {
  trouble_is_over_ = true;
  const auto latest = agree_on_the_latest();
  for (std::size_t node = 0; node < servers_.size(); ++node) {
    servers_[node].redis().set_memory_full(false);
    servers_[node].redis().refuse_writes(false);
    servers_[node].redis().allow_all();
    servers_[node].deny_subscribe(false);
    servers_[node].clock() = latest[node];
    node_trouble_until_[node] = std::min(node_trouble_until_[node], events_.now() + 60s);
    if (most_ahead_ > duration{0}) trouble_node(node, events_.now());  // All clocks are set.
    for (std::size_t host = 0; host < clients_.size(); ++host) {
      auto& path = nets_[node].of(static_cast<int>(host));
      path.spike_percent = 0;
      path.blocked_until = events_.now();
    }
  }
  // The only one of a list is all that it had.
  if (list().nodes.size() > 1 && trouble_.chance(30)) lose_one_for_good();
  for (auto& one : clients_) one->resume();
}

// It refuses all connections, or says nothing any more. What comes is longer than what clocks that drift on are near
// enough for, so somebody sets them right from now on.
void quorum_world::lose_one_for_good() {
  gone_ = trouble_.below(servers_.size());
  auto& server = servers_[*gone_];
  trouble_node(*gone_, end_of_time);
  for (auto& one : servers_) one.clock().run_at(events_.now(), 0);
  const bool is_silent = trouble_.chance(50);
  if (keeps_trace_) say(fmt::format("node {} {} for good", *gone_, is_silent ? "is silent" : "is away"));
  const instant never_in_time = events_.now() + 24h;
  is_silent ? server.be_stuck_until(never_in_time) : server.restart(never_in_time, server.redis().all());
}

}  // namespace holdfast::sim
