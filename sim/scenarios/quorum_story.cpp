// SPDX-License-Identifier: Apache-2.0
#include "scenarios/quorum_story.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

plan written_down(const quorum_story::setting& where) {
  plan made;
  made.seed = 1;
  made.locks = {make_lock(0, lock_kind::exclusive, 1), make_lock(1, lock_kind::exclusive, 1)};
  made.ttl = 10s;
  made.max_ttl = where.max_ttl;
  made.nodes_agree = true;
  return made;
}

quorum_client& add(quorum_world& to, std::int64_t clock_ppm, const std::string& list) {
  auto goes_to = to.list();
  if (!list.empty()) goes_to.record.servers = list;
  return to.start_client(
      {.clock_ppm = clock_ppm, .timeout = 5s, .least_delay = 1ms, .jitter = {}, .workers = 0, .max_ttl = {}}, goes_to);
}

}  // namespace

// ---- who takes part ----

void quorum_actor::asks(const wanted& what, std::optional<duration> patience) {
  lease_ = nullptr;
  is_over_ = false;
  quorum_client::wish made{.lock = what.lock, .ttl = what.ttl, .only_once = !patience, .wait = patience};
  made.min_fence = what.min_fence;
  made.max_hold = what.max_hold;
  of_->acquire(made, [this](const quorum_client::lease_ptr& lease) {
    is_over_ = true;
    lease_ = lease;
    if (lease) token_ = lease->token.value();
  });
}

void quorum_actor::releases() {
  if (lease_) of_->release(std::exchange(lease_, nullptr));
}

void quorum_actor::is_cut_off_from(nodes which, duration time) {
  for (const auto node : which) in_->net(node).of(of_->number()).blocked_until = in_->now() + time;
}

void quorum_actor::is_far_from(nodes which, duration each_way) {
  for (const auto node : which) in_->net(node).of(of_->number()).least = each_way;
}

void quorum_actor::hold_back(std::size_t node, network::way direction, duration time) {
  for (const int id : of_->connections_to(node)) in_->net(node).block(id, direction, in_->now() + time);
}

// ---- the story ----

quorum_story::quorum_story(const setting& where, const canary* without)
    : each_is_another_{without && without->what == canary_switch::each_address_is_another_server},
      world_{written_down(where), static_cast<int>(nodes), scripts_without(without), without, ignored_},
      store_{without && without->what == canary_switch::store_takes_any_token ? guarded_store::fence::takes_any_token
                                                                              : guarded_store::fence::compares},
      a{world_, add(world_, where.clock_of_a_ppm, {})},
      b{world_, add(world_, 0, where.list_of_b)},
      c{world_, add(world_, 0, {})} {
  for (quorum_actor* who : {&a, &b, &c}) {
    if (who == &b && !where.list_of_b.empty()) continue;
    who->tries({.lock = 1});
    begins_within(1s, "everybody reaches the servers", [who] { return who->holds(); });
    who->releases();
    passes(20ms);
  }
  world_.keep_trace();
}

void quorum_story::passes(duration time) {
  const instant until = world_.now() + time;
  while (world_.queue().step(until)) {
  }
}

bool quorum_story::comes_to(duration time, const std::function<bool()>& is_so) {
  const instant until = world_.now() + time;
  while (!is_so()) {
    if (!world_.queue().step(until)) return is_so();
  }
  return true;
}

void quorum_story::within(duration time, std::string_view what, const std::function<bool()>& is_so) {
  expect(comes_to(time, is_so), what);
}

void quorum_story::begins_within(duration time, std::string_view what, const std::function<bool()>& is_so) {
  if (!comes_to(time, is_so)) world_.complain("beginning", std::string{what});
}

void quorum_story::expect(bool is_so, std::string_view what) {
  if (!is_so) world_.complain("expected", std::string{what});
}

void quorum_story::clock_steps(std::size_t node, std::chrono::microseconds by) {
  world_.say(fmt::format("the clock of node {} steps by {} us", node, by.count()));
  server(node).clock().step(world_.now(), by);
  world_.disturb(cause::clock_stepped);
}

void quorum_story::restarts_empty(std::size_t node) {
  world_.say(fmt::format("node {} restarts without its data", node));
  server(node).restart(world_.now(), {});
}

void quorum_story::fails_over_empty(std::size_t node) {
  world_.say(fmt::format("another takes the place of node {}", node));
  server(node).operate({"DEL", world_.lock_of(0).keys.holder});
  server(node).redis().set_replication(std::string(40, 'c'), std::string(40, 'b'));
}

void quorum_story::is_broken_now(std::size_t node) {
  const auto& of = world_.lock_of(0);
  const auto held = holders_of(server(node).redis(), of);
  if (held.empty()) return;
  world_.say(fmt::format("node {}: broken, token {}", node, held.front().token));
  server(node).break_lock(of, held.front(), true);
}

void quorum_story::loses_the_vote(std::size_t node) {
  world_.say(fmt::format("node {} loses the vote", node));
  server(node).operate({"DEL", world_.lock_of(0).keys.holder});
}

// INFO says so. It is no start: nobody waits for a quarantine.
void quorum_story::are_one_server(std::initializer_list<std::size_t> which) {
  for (const auto node : which) {
    world_.say(fmt::format("node {} is another address of node {}", node, *which.begin()));
    auto& redis = server(node).redis();
    const auto since = redis.started_at();
    redis.start_run(std::string(40, static_cast<char>('d' + (each_is_another_ ? node : 0) % 3)));
    redis.set_started_at(since);
    server(node).kill_clients(model_server::kill::all);
  }
}

void quorum_story::is_closed(std::size_t node) {
  world_.say(fmt::format("node {} is closed", node));
  auto next = world_.list().record;
  ++next.generation;
  next.is_open = false;
  server(node).operate({"SET", script::quorum_key("hf:"), script::text_of(next)});
}

int quorum_story::votes() {
  int count = 0;
  for (std::size_t node = 0; node < nodes; ++node) {
    server(node).now();
    if (server(node).redis().peek(world_.lock_of(0).keys.holder)) ++count;
  }
  return count;
}

bool quorum_story::writes(const quorum_actor& who) {
  const auto read = store_.read(0);
  const bool is_raised = store_.raise(0, who.token());
  return is_raised && store_.write(0, who.token(), read) == guarded_store::written::yes;
}

// ---- played twice ----

void play(const rule& about, const quorum_story::setting& where, const std::function<void(quorum_story&)>& course) {
  play_twice<quorum_story>(about, where, course);
}

}  // namespace holdfast::sim
