// SPDX-License-Identifier: Apache-2.0
// A course of events written by hand, in the world of the simulator: four processes A to D, one server, nothing left
// to chance. What is not said does not happen: the network takes a millisecond each way, clocks agree, and nobody
// begins anything by himself.
//
// Every story is played twice. With the rule that it is about nothing may be wrong, neither for what it expects itself
// nor for the invariants of sim/checkers, which watch as they do in schedules. Without it (a canary) something must be:
// the very thing that the rule is there for. A story that holds both times proves nothing, and fails.
#pragma once

#include "world.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

// ---- who takes part ----

struct wanted {
  std::chrono::milliseconds ttl = std::chrono::seconds{10};
  int permits = 0;  // Of a semaphore; else tokens to reserve behind the granted one.
  fencing_token min_fence{};
};

// One process, and one thread of its program.
class actor final : public customer {
public:
  actor(world& in, process& of, const lock& about) : in_{&in}, of_{&of}, lock_{&about} {}

  // ---- what it does ----
  void tries(const wanted& what = {}) { asks(what, true, std::nullopt); }
  void waits(const wanted& what = {}) { asks(what, false, std::nullopt); }
  void waits_for(duration patience, const wanted& what = {}) { asks(what, false, patience); }
  void gives_up() { of_->cancel(call_); }
  void releases();
  void wants_from_now_on(const lock& other) { lock_ = &other; }

  // ---- what befalls it; the checkers hear of it, because C7 is for those whom nothing befell ----
  void stops();  // As with SIGSTOP; its connections stay open.
  // When its next renewal is on its way.
  void stops_while_it_renews() {
    of_->at_next_renewal([this] { stops(); });
  }
  void goes_on() { of_->resume(); }
  void is_killed();
  void loses_its_host();  // Nobody hears of it.
  // What goes over one of its connections from now on arrives so much later; nothing is lost.
  void requests_are_held_back(duration time) { hold_back(of_->commands_id(), network::way::to_server, time); }
  void replies_are_held_back(duration time) { hold_back(of_->commands_id(), network::way::to_client, time); }
  void messages_are_held_back(duration time) { hold_back(of_->hints_id(), network::way::to_client, time); }
  void loses_its_subscription();
  void is_cut_off(duration time);
  // From now on its way to the server takes so long, and as long back.
  void moves_away(duration each_way);
  void hears_no_sentinel(duration time);

  // ---- what it knows ----
  bool holds() const { return lease_ && of_->is_valid(lease_); }
  bool is_over() const { return end_.has_value() || lease_; }
  bool was_told(call_end what) const { return end_ == what; }
  bool was_released() const { return released_ == release_outcome::released; }
  bool has_lost() const { return has_lost_; }
  // Of the lease that it has, or had last.
  std::uint64_t token() const { return token_; }
  process& of() const { return *of_; }
  int connection() const { return of_->commands_id(); }

  void on_acquired(const lease_ptr& lease) override {
    lease_ = lease;
    token_ = lease->token.value();
  }
  void on_not_acquired(call_end how) override { end_ = how; }
  void on_lost(const lease_ptr&) override { has_lost_ = true; }
  void on_released(release_outcome outcome) override { released_ = outcome; }

private:
  void asks(const wanted& what, bool is_try, std::optional<duration> patience);
  void hold_back(int connection, network::way direction, duration time);

  world* in_;
  process* of_;
  const lock* lock_;
  int call_ = 0;
  lease_ptr lease_{};
  std::optional<call_end> end_{};
  std::optional<release_outcome> released_{};
  bool has_lost_ = false;
  std::uint64_t token_ = 0;
};

// ---- the story ----

class story {
public:
  // `kind` of the lock that it is about; `timeout` of every client. Everybody has talked to the server before.
  struct setting {
    lock_kind kind = lock_kind::exclusive;
    int size = 1;
    duration timeout = std::chrono::seconds{5};
    std::chrono::milliseconds max_ttl_of_d = std::chrono::seconds{60};  // As all others.
    int replicas = 0;                                                   // Of the server, with three sentinels
    int copies = 0;  // of which so many must have what anybody is granted.
  };
  story(const setting& where, const canary* without);

  // ---- time ----
  void passes(duration time);
  // At the latest so much later; complains if it has not come to that.
  void within(duration time, std::string_view what, const std::function<bool()>& is_so);
  void expect(bool is_so, std::string_view what);
  // Before the story begins. That this fails without a rule shows nothing.
  void begins_within(duration time, std::string_view what, const std::function<bool()>& is_so);

  // ---- the server ----
  model_server& server() { return world_.server(); }
  void server_clock_steps(std::chrono::microseconds by);
  // For a time, of another one.
  void server_was_a_replica();
  // An operator's redis-cli: which invariants do not watch.
  resp::value operate(std::initializer_list<std::string> words) { return server().operate(words); }
  void loses(const std::string& key);
  // It is back so much later, with this data.
  void server_restarts(model_redis::keyspace data, duration down = {});
  model_redis::keyspace all_data() { return server().redis().all(); }
  // The lock that is held: at its expiry.
  void operator_breaks();

  // ---- its replicas ----
  // None of them has what is written from now on before that.
  void replication_stalls(duration time);
  // The primary is cut off from its replicas and the sentinels, which promote one and name it; it goes on all the same.
  void fails_over();

  // ---- what the server says of the lock ----
  const lock& subject() const { return world_.lock_of(0); }
  const lock& another() const { return world_.lock_of(1); }
  bool is_held() { return !holders_of(world_.redis(subject().number), subject()).empty(); }
  // Who stands in line, first to last: "BC".
  std::string line();

  const std::vector<violation>& violations() const { return world_.violations(); }
  const std::vector<std::string>& trace() const { return world_.trace(); }

private:
  bool comes_to(duration time, const std::function<bool()>& is_so);

  statistics ignored_{};
  world world_;
  std::vector<process*> processes_;

public:
  actor a, b, c, d;
  actor other_thread_of_a;
};

// How most of them begin.
void a_holds(story& s, const wanted& what = {});
void waits(story& s, actor& who, const wanted& what = {});

// ---- played twice ----

// The rule's opposite: in the text of scripts, or a switch of the assembly (sim/canary.hpp). `broken`: the invariant
// that then fails; "expected" is what the story expects itself.
struct rule {
  std::string_view opposite;
  std::string_view broken;
  std::vector<planted_text> texts{};
  canary_switch what = canary_switch::none;
};

// Fails the test unless nothing is wrong in the first course, and what the rule is there for in the second.
struct course_seen {
  std::vector<violation> violations;
  std::vector<std::string> trace;
};
void judge(const rule& about, const course_seen& with, const course_seen& without);
canary opposite_of(const rule& about);

template <class Story>
void play_twice(const rule& about, const typename Story::setting& where, const std::function<void(Story&)>& course) {
  const canary opposite = opposite_of(about);
  const auto seen = [&](const canary* planted) {
    Story told{where, planted};
    course(told);
    return course_seen{told.violations(), told.trace()};
  };
  judge(about, seen(nullptr), seen(&opposite));
}

void play(const rule& about, const story::setting& where, const std::function<void(story&)>& course);
inline void play(const rule& about, const std::function<void(story&)>& course) { play(about, {}, course); }

// ---- what stories of all worlds are made of ----

lock make_lock(int number, lock_kind kind, int size);
// As the server learns them: with the canary's bug, if there is one.
std::shared_ptr<lua_host> scripts_without(const canary* what);

}  // namespace holdfast::sim
