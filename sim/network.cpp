// SPDX-License-Identifier: Apache-2.0
#include "network.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

namespace {

// As src/net/link.cpp has it: idle for 15 s, and three probes.
constexpr duration keepalive = std::chrono::seconds{30};

}  // namespace

int network::connect(client_end& who, int host) {
  const int id = ++last_;
  link& made = links_.emplace(id, link{&who, host}).first->second;
  push(id, made, way::to_server, {{}, events_->now(), parcel::what::open});
  return id;
}

void network::send(int id, std::string_view bytes) {
  link& of = links_.at(id);
  auto& where = routes_[of.host];
  if (bytes.size() > 1 && rng_.chance(where.split_percent)) {
    const auto half = 1 + rng_.below(bytes.size() - 1);
    push(id, of, way::to_server, {std::string{bytes.substr(0, half)}, events_->now()});
    bytes.remove_prefix(half);
  }
  push(id, of, way::to_server, {std::string{bytes}, events_->now()});
}

void network::close(int id) {
  link& of = links_.at(id);
  of.client = nullptr;
  push(id, of, way::to_server, {{}, events_->now(), parcel::what::end});
}

void network::server_sends(int id, std::string_view bytes) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  push(id, found->second, way::to_client, {std::string{bytes}, events_->now()});
}

void network::server_closes(int id) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  found->second.server_knows = false;
  push(id, found->second, way::to_client, {{}, events_->now(), parcel::what::end});
}

void network::cut(int id) {
  link& of = links_.at(id);
  if (rng_.chance(50)) of.to_server.under_way.clear();
  of.to_client.under_way.clear();
  push(id, of, way::to_server, {{}, events_->now(), parcel::what::end});
  push(id, of, way::to_client, {{}, events_->now(), parcel::what::end});
}

void network::silence(int id, way where) {
  link& of = links_.at(id);
  (where == way::to_server ? of.to_server : of.to_client).is_silent = true;
  if (!of.client) return;
  events_->after(keepalive, [this, id] {
    const auto found = links_.find(id);
    if (found == links_.end() || !found->second.client) return;
    std::exchange(found->second.client, nullptr)->on_closed(id);
    forget_if_over(id);
  });
}

void network::block(int id, way where, instant until) {
  link& of = links_.at(id);
  auto& one = where == way::to_server ? of.to_server : of.to_client;
  one.blocked_until = std::max(one.blocked_until, until);
}

std::vector<int> network::open_connections() const {
  std::vector<int> all;
  for (const auto& [id, of] : links_) {
    if (of.client && of.server_knows) all.push_back(id);
  }
  return all;
}

std::vector<int> network::connections_of(int host) const {
  std::vector<int> all;
  for (const auto& [id, of] : links_) {
    if (of.host == host && of.client && of.server_knows) all.push_back(id);
  }
  return all;
}

void network::push(int id, link& of, way where, parcel what) {
  const route& path = routes_[of.host];
  auto& one = where == way::to_server ? of.to_server : of.to_client;
  duration takes = path.least + rng_.span(duration{0}, path.jitter);
  if (rng_.chance(path.spike_percent)) takes += rng_.span(duration{0}, path.spike);
  one.last_at = std::max(one.last_at, events_->now() + takes);
  one.under_way.push_back(std::move(what));
  events_->at(one.last_at, [this, id, where] { deliver(id, where); });
}

// Each event delivers the first of what is under way, so nothing overtakes anything, whatever the pauses are.
void network::deliver(int id, way where) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  link& of = found->second;
  auto& one = where == way::to_server ? of.to_server : of.to_client;
  if (one.under_way.empty()) return;  // It was lost in a cut.
  instant until = std::max(one.blocked_until, routes_[of.host].blocked_until);
  if (where == way::to_server) until = std::max(until, server_->stuck_until());
  if (until > events_->now()) return events_->at(until, [this, id, where] { deliver(id, where); });
  const parcel first = std::move(one.under_way.front());
  one.under_way.pop_front();
  if (one.is_silent) return;
  where == way::to_server ? deliver_to_server(id, of, first) : deliver_to_client(id, of, first);
  forget_if_over(id);
}

void network::deliver_to_server(int id, link& of, const parcel& what) {
  switch (what.is) {
    case parcel::what::open:
      if (!server_->accepts()) return push(id, of, way::to_client, {{}, events_->now(), parcel::what::refuse});
      of.server_knows = true;
      server_->on_accepted(id, of.host);
      return push(id, of, way::to_client, {{}, events_->now(), parcel::what::open});
    case parcel::what::bytes:
      if (of.server_knows) server_->on_bytes(id, what.bytes, what.sent_at);
      return;
    case parcel::what::end:
      if (std::exchange(of.server_knows, false)) server_->on_closed(id);
      return;
    case parcel::what::refuse: return;
  }
}

void network::deliver_to_client(int id, link& of, const parcel& what) {
  if (!of.client) return;
  switch (what.is) {
    case parcel::what::open: return of.client->on_connected(id);
    case parcel::what::bytes: return of.client->on_bytes(id, what.bytes);
    case parcel::what::refuse: return std::exchange(of.client, nullptr)->on_refused(id);
    case parcel::what::end: return std::exchange(of.client, nullptr)->on_closed(id);
  }
}

void network::forget_if_over(int id) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  const link& of = found->second;
  if (!of.client && !of.server_knows && of.to_server.under_way.empty()) links_.erase(found);
}

}  // namespace holdfast::sim
