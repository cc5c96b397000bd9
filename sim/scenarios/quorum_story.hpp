// SPDX-License-Identifier: Apache-2.0
// As story.hpp, with five servers that know nothing of each other: what was said against locks of a quorum, by hand.
// Three clients A to C; a millisecond each way; the clocks agree and nothing happens unless it is said.
#pragma once

#include "guarded_store.hpp"
#include "quorum/quorum_world.hpp"
#include "scenarios/story.hpp"

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

class quorum_actor {
public:
  quorum_actor(quorum_world& in, quorum_client& of) : in_{&in}, of_{&of} {}

  // ---- what it does ----
  struct wanted {
    std::chrono::milliseconds ttl = std::chrono::seconds{10};
    fencing_token min_fence{};
    int lock = 0;
    std::optional<duration> max_hold{};
  };
  void tries(const wanted& what) { asks(what, {}); }
  void tries() { tries({}); }
  void waits(const wanted& what) { asks(what, std::chrono::hours{1}); }
  void waits() { waits({}); }
  void releases();

  // ---- what befalls it ----
  void stops() { of_->pause(); }
  void goes_on() { of_->resume(); }
  void is_killed() { of_->die(); }
  using nodes = std::initializer_list<std::size_t>;
  void is_cut_off_from(nodes which, duration time);
  void is_far_from(nodes which, duration each_way);
  void requests_are_held_back(std::size_t node, duration time) { hold_back(node, network::way::to_server, time); }
  void replies_are_held_back(std::size_t node, duration time) { hold_back(node, network::way::to_client, time); }

  // ---- what it knows ----
  bool holds() const { return lease_ && of_->is_valid(*lease_); }
  // Its last call ended without a lease.
  bool was_refused() const { return is_over_ && !lease_; }
  bool was_told(engine::quorum_acquire::result what) const { return of_->last_round() == what; }
  // Of the lease that it has, or had last.
  std::uint64_t token() const { return token_; }

private:
  // Without patience: once.
  void asks(const wanted& what, std::optional<duration> patience);
  void hold_back(std::size_t node, network::way direction, duration time);

  quorum_world* in_;
  quorum_client* of_;
  quorum_client::lease_ptr lease_{};
  bool is_over_ = false;
  std::uint64_t token_ = 0;
};

class quorum_story {
public:
  struct setting {
    std::int64_t clock_of_a_ppm = 0;
    std::string list_of_b{};  // Of servers; empty: the same as all.
    std::chrono::milliseconds max_ttl = std::chrono::seconds{60};
  };
  static constexpr std::size_t nodes = 5;
  quorum_story(const setting& where, const canary* without);

  // ---- time ----
  void passes(duration time);
  void within(duration time, std::string_view what, const std::function<bool()>& is_so);
  void expect(bool is_so, std::string_view what);
  // Before the story begins. That this fails without a rule shows nothing.
  void begins_within(duration time, std::string_view what, const std::function<bool()>& is_so);

  // ---- the servers ----
  model_server& server(std::size_t node) { return world_.server(node); }
  void clock_steps(std::size_t node, std::chrono::microseconds by);
  void clock_runs(std::size_t node, std::int64_t ppm) { server(node).clock().run_at(world_.now(), ppm); }
  // At once, without its data.
  void restarts_empty(std::size_t node);
  // Another has taken this one's place, under the same address and with all connections, and knows nothing.
  void fails_over_empty(std::size_t node);
  void loses_the_vote(std::size_t node);
  void is_broken_now(std::size_t node);
  // To whom connects to them: all of them say that they are the first one.
  void are_one_server(std::initializer_list<std::size_t> which);
  // `holdfast quorum replace` has closed it for the list of servers that it belongs to.
  void is_closed(std::size_t node);
  // How many of them somebody has a vote of.
  int votes();

  // What the lock protects. False: the write was refused as stale.
  bool writes(const quorum_actor& who);

  const std::vector<violation>& violations() const { return world_.violations(); }
  const std::vector<std::string>& trace() const { return world_.trace(); }

private:
  bool comes_to(duration time, const std::function<bool()>& is_so);

  const bool each_is_another_;
  statistics ignored_{};
  quorum_world world_;
  guarded_store store_;

public:
  quorum_actor a, b, c;
};

void play(const rule& about, const quorum_story::setting& where, const std::function<void(quorum_story&)>& course);
inline void play(const rule& about, const std::function<void(quorum_story&)>& course) { play(about, {}, course); }

}  // namespace holdfast::sim
