// SPDX-License-Identifier: Apache-2.0
#include "scenarios/story.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <system_error>

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

constexpr int cast = 4;
constexpr duration for_good = std::chrono::hours{10'000};

plan written_down(const story::setting& where) {
  plan made;
  made.seed = 1;
  made.locks = {make_lock(0, where.kind, where.size), make_lock(1, lock_kind::exclusive, 1)};
  made.ttl = 10s;
  made.max_ttl = 60s;
  made.processes.assign(
      cast, {.clock_ppm = 0, .timeout = where.timeout, .least_delay = 1ms, .jitter = {}, .workers = 0, .max_ttl = {}});
  made.processes.back().max_ttl = where.max_ttl_of_d;
  made.replicas = where.replicas;
  made.copies = where.copies;
  made.copy_timeout = 100ms;
  return made;
}

}  // namespace

lock make_lock(int number, lock_kind kind, int size) {
  std::error_code ignored;
  const auto name = lock_name::parse(std::string(1, static_cast<char>('a' + number)), naming::holdfast, ignored);
  return {number, kind, size, script::keys_of(*name, "hf:", kind != lock_kind::exclusive)};
}

std::shared_ptr<lua_host> scripts_without(const canary* what) {
  return std::make_shared<lua_host>(
      [what](std::string_view text) { return what ? planted(*what, text) : std::string{text}; });
}

// ---- who takes part ----

void actor::asks(const wanted& what, bool is_try, std::optional<duration> patience) {
  lease_ = nullptr;
  end_ = std::nullopt;
  released_ = std::nullopt;
  has_lost_ = false;
  wish made{.lock = lock_->number, .ttl = what.ttl, .is_try = is_try, .wait = patience};
  made.min_fence = what.min_fence;
  made.part.permits = what.permits;
  if (lock_->kind == lock_kind::semaphore) made.part = {'p', std::max(1, what.permits), lock_->size};
  call_ = of_->acquire(*this, made);
}

void actor::releases() {
  if (lease_) of_->release(*this, std::exchange(lease_, nullptr));
}

void actor::stops() {
  in_->befall(of_->number(), for_good);
  of_->pause();
}

void actor::is_killed() {
  in_->befall(of_->number(), for_good);
  of_->die(process::death::process);
}

void actor::loses_its_host() {
  in_->befall(of_->number(), for_good);
  of_->die(process::death::host);
}

void actor::hold_back(int connection, network::way direction, duration time) {
  in_->befall(of_->number(), time + 1s);
  if (connection != 0) in_->net().block(connection, direction, in_->now() + time);
}

void actor::loses_its_subscription() {
  in_->befall(of_->number(), 1s);
  in_->net().cut(of_->hints_id());
}

void actor::is_cut_off(duration time) {
  in_->befall(of_->number(), time + 1s);
  in_->net().of(of_->number()).blocked_until = in_->now() + time;
}

void actor::moves_away(duration each_way) {
  in_->befall(of_->number(), for_good);
  in_->net().of(of_->number()).least = each_way;
}

void actor::hears_no_sentinel(duration time) {
  in_->befall(of_->number(), time + 1s);
  for (std::size_t i = 0; i < sentinels::count; ++i)
    in_->servers().named().be_silent(of_->number(), i, in_->now() + time);
}

// ---- the story ----

story::story(const setting& where, const canary* without)
    : world_{written_down(where), scripts_without(without), without, ignored_},
      processes_{world_.living()},
      a{world_, *processes_[0], subject()},
      b{world_, *processes_[1], subject()},
      c{world_, *processes_[2], subject()},
      d{world_, *processes_[3], subject()},
      other_thread_of_a{world_, *processes_[0], subject()} {
  for (actor* who : {&a, &b, &c, &d}) {
    who->wants_from_now_on(another());
    who->tries();
    begins_within(1s, "everybody reaches the server", [who] { return who->holds(); });
    who->releases();
    passes(20ms);
    who->wants_from_now_on(subject());
  }
  world_.keep_trace();
}

void story::passes(duration time) {
  const instant until = world_.now() + time;
  while (world_.queue().step(until)) {
  }
}

bool story::comes_to(duration time, const std::function<bool()>& is_so) {
  const instant until = world_.now() + time;
  while (!is_so()) {
    if (!world_.queue().step(until)) return is_so();
  }
  return true;
}

void story::within(duration time, std::string_view what, const std::function<bool()>& is_so) {
  expect(comes_to(time, is_so), what);
}

void story::begins_within(duration time, std::string_view what, const std::function<bool()>& is_so) {
  if (!comes_to(time, is_so)) world_.complain("beginning", std::string{what});
}

void story::expect(bool is_so, std::string_view what) {
  if (!is_so) world_.complain("expected", std::string{what});
}

void story::server_clock_steps(std::chrono::microseconds by) {
  world_.say(fmt::format("the server's clock steps by {} us", by.count()));
  server().clock().step(world_.now(), by);
  world_.disturb(cause::clock_stepped, duration{0});
  world_.befall_all(1min);
}

void story::server_was_a_replica() {
  server().redis().set_replication(std::string(40, 'c'), std::string(40, 'b'));
  world_.befall_all(1min);
}

void story::loses(const std::string& key) {
  world_.say(fmt::format("the server loses {}", key));
  operate({"DEL", key});
  world_.disturb(cause::data_lost, duration{0});
  world_.disturb(cause::keys_deleted, duration{0});
}

void story::server_restarts(model_redis::keyspace data, duration down) {
  world_.say("the server restarts");
  server().restart(world_.now() + down, std::move(data));
  world_.disturb(cause::data_lost, duration{0});
  world_.befall_all(5min);  // Places in line are kept by who comes back, and that takes its time.
}

void story::replication_stalls(duration time) {
  world_.say("the replicas stand still");
  auto& servers = world_.servers();
  for (std::size_t i = 1; i < servers.size(); ++i) servers.hold_back(static_cast<int>(i), world_.now() + time);
  world_.befall_all(time + 1s);
}

void story::fails_over() {
  auto& servers = world_.servers();
  const int next = servers.best_copy_of(servers.primary());
  world_.say(fmt::format("server {} is promoted", next));
  replication_stalls(for_good);
  servers.promote(next);
  for (std::size_t i = 0; i < sentinels::count; ++i) servers.named().name(i, next, world_.now());
  world_.disturb(cause::data_lost, duration{0});
  world_.disturb(cause::another_primary, 10min);
  world_.befall_all(10min);
}

void story::operator_breaks() {
  world_.say("an operator breaks the lock");
  const auto held = holders_of(world_.redis(subject().number), subject());
  if (held.empty()) return expect(false, "there is a holder to break");
  server().break_lock(subject(), held.front(), false);
}

std::string story::line() {
  std::string all;
  for (const auto& place : line_of(world_.redis(subject().number), subject()))
    all += static_cast<char>('A' + (place.label[1] - '0'));
  return all;
}

void a_holds(story& s, const wanted& what) {
  s.a.tries(what);
  s.begins_within(100ms, "A gets the free lock", [&] { return s.a.holds(); });
}

void waits(story& s, actor& who, const wanted& what) {
  who.waits(what);
  s.passes(50ms);
}

// ---- played twice ----

namespace {

std::string told(const course_seen& what) {
  std::string all;
  for (const auto& line : what.trace) all += line + '\n';
  return all;
}

}  // namespace

canary opposite_of(const rule& about) {
  return {"opposite", about.opposite, about.broken, 1, "", about.what, about.texts};
}

void judge(const rule& about, const course_seen& with, const course_seen& without) {
  for (const auto& v : with.violations) ADD_FAILURE() << v.invariant << ": " << v.what << "\n" << told(with);
  const auto& all = without.violations;
  const auto caught =
      std::find_if(all.begin(), all.end(), [&](const violation& v) { return v.invariant == about.broken; });
  if (caught != all.end()) testing::Test::RecordProperty("without_the_rule", caught->what);
  EXPECT_TRUE(caught != all.end()) << "nothing of " << about.broken << " fails although " << about.opposite << "\n"
                                   << told(without);
}

void play(const rule& about, const story::setting& where, const std::function<void(story&)>& course) {
  play_twice<story>(about, where, course);
}

}  // namespace holdfast::sim
