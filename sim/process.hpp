// SPDX-License-Identifier: Apache-2.0
// A client process: the engine that we ship, byte for byte, assembled as src/client assembles it, but on one thread
// under virtual time.
//
// What is here and not in engine is what src/client does around it: which wire is connected when, what is let go in the
// background when a call is over (client_state::settle, conclude, let_go), and who hears of it.
#pragma once

#include "canary.hpp"
#include "cluster/map_watch.hpp"
#include "cluster/slot_views.hpp"
#include "facts.hpp"
#include "missed_news.hpp"
#include "network.hpp"
#include "node.hpp"
#include "replicas/primary_watch.hpp"
#include "seeded_random.hpp"

#include "core/hand_over_queue.hpp"
#include "engine/acquire.hpp"
#include "engine/keeper.hpp"
#include "engine/question.hpp"
#include "engine/release.hpp"

#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::sim {

class server_set;

// A lease as its program has it.
struct kept_lease final : engine::held_lease {
  kept_lease(const script::lock_keys& k, const owner_id& o, fencing_token t, std::chrono::milliseconds lasts,
             time_point ends)
      : held_lease{k, o, t, lasts, ends} {}
  // What `giver` had, under its next token.
  kept_lease(const kept_lease& giver, fencing_token t, time_point ends)
      : held_lease{giver.keys, giver.owner, giver.grant, t, giver.ttl, ends}, seen{giver.seen}, kept_at{giver.kept_at} {
    was_in_line = giver.was_in_line;
  }
  // `one` as a part of several.
  kept_lease(const kept_lease& one, time_point ends)
      : held_lease{one.keys, one.owner, one.grant, one.token, one.ttl, ends},
        seen{one.seen},
        kept_at{one.kept_at},
        copies_until{one.copies_until},
        copies_until_local{one.copies_until_local} {
    last = one.last;
    was_in_line = one.was_in_line;
  }
  hold seen{};
  int open_wishes = 0;  // For a renewal by hand.
  node* kept_at = nullptr;
  server_time copies_until{};  // Until when a copy of its acquire may take effect; the epoch: there is none.
  time_point copies_until_local{};
  std::vector<std::weak_ptr<kept_lease>> all{};  // That are held with it, and it; none: it is held alone.
};
using lease_ptr = std::shared_ptr<kept_lease>;
using lease_ptrs = std::vector<lease_ptr>;

struct wish {
  int lock = 0;
  std::chrono::milliseconds ttl{};
  bool is_try = false;
  std::optional<duration> wait{};  // None: until cancelled.
  script::part part{};
  fencing_token min_fence{};
  std::optional<duration> max_hold{};
  renewal mode = renewal::automatic;
};

// Who asked for it.
class customer {
public:
  customer() = default;
  customer(const customer&) = delete;
  customer& operator=(const customer&) = delete;
  virtual ~customer() = default;

  virtual void on_acquired(const lease_ptr& lease) = 0;
  virtual void on_not_acquired(call_end how) = 0;
  virtual void on_lost(const lease_ptr& lease) = 0;
  virtual void on_released(release_outcome outcome) = 0;
  virtual void on_downgraded(const lease_ptr&, downgrade_end) {}
};

struct process_settings {
  int number = 0;
  std::int64_t clock_ppm = 0;
  duration timeout{};
  seeded_random rng{0};
  std::chrono::milliseconds max_ttl{};
  std::string prefix = "hf:";
  bool is_quarantined = true;
  bool has_alternative = false;  // core::acquire_settings
  // Of a server with replicas: how it finds the primary, and how many of them must have what it is granted.
  server_set* servers = nullptr;
  bool is_in_cluster = false;
  duration least_delay{};  // To the sentinels.
  duration jitter{};
  durability durable{};
  core::hand_over_limits hand_overs{};
};

class process final : public client_end, engine::keeper_listener {
public:
  struct hooks {
    std::function<void(const call_record&)> on_call_started{};
    std::function<void(const call_record&)> on_call_ended{};
    std::function<void(const hold&)> on_hold{};
    std::function<void(const hold&)> on_extended{};
    std::function<void(const hold&)> on_at_risk{};
    // A renewal was answered behind the deadline of a lease at which nobody had looked since.
    std::function<void()> on_late_answer{};
    // It is held with others from now on, and for as long as they.
    std::function<void(const hold&)> on_joined{};
    std::function<void(const hold&, hold_end)> on_hold_ended{};
    std::function<void(const hold&, bool)> on_validity{};
    std::function<void(const hold&, release_outcome)> on_released{};
    std::function<void(const hold&)> on_narrowed{};
    std::function<void(const hold&, downgrade_end)> on_downgraded{};
    std::function<void(int)> on_step{};
    // A connection has ended. Not to be called back from.
    std::function<void()> on_down{};
    std::function<void(const std::string&)> on_spin{};
    std::function<bool(canary_switch)> is_planted{};
    std::function<int()> next_number{};
  };
  // `net`: of the one server; with what.servers, of none.
  process(event_queue& events, network& net, const std::vector<lock>& locks, process_settings what, hooks tell);

  int number() const { return what_.number; }

  // ---- for its customers; only while it runs ----
  int acquire(customer& who, const wish& what);
  void cancel(int call);
  bool is_valid(const lease_ptr& lease);
  void release(customer& who, const lease_ptr& lease);
  void drop(const lease_ptr& lease);
  // Of a lease that its program renews by hand. What comes of it is seen by the lease.
  void renew_by_hand(const lease_ptr& lease);
  // Several that are held each, as one from now on. None: one of them was lost meanwhile, and the others are let go.
  lease_ptrs join(const lease_ptrs& several);
  void release_all(customer& who, const lease_ptrs& joined);
  void drop_all(const lease_ptrs& joined);
  // Of a writer: from now on it counts as a reader, whatever comes of it.
  void downgrade(customer& who, const lease_ptr& lease);
  // Of a semaphore. Whoever is told that it has another size than it says, says so as its operator would.
  void resize(int lock, int size);
  // When it is running at that time, or when it runs again.
  void after(duration wait, std::function<void()> what);
  // Those of its customers who have nothing left to do.
  bool is_idle() const {
    return calls_.empty() &&
           std::all_of(nodes_.begin(), nodes_.end(), [](const auto& one) { return one->keeper.is_idle(); });
  }
  // Nothing is wanted of it any more.
  void close() {
    if (watch_) watch_->close();
    if (map_watch_) map_watch_->close();
  }

  // ---- what befalls it ----
  void pause();
  void resume();
  // Once, when it has sent the next renewal and nobody has answered it.
  void at_next_renewal(std::function<void()> what) { at_renewal_ = std::move(what); }
  enum class death { process, host };
  void die(death how);
  bool is_running() const { return !is_dead_ && !is_paused_; }
  bool is_dead() const { return is_dead_; }
  bool is_paused() const { return is_paused_; }
  instant resumed_at() const { return resumed_at_; }
  // Two of its connections, for who holds back what goes over one of them; zero: closed.
  int commands_id() const { return home().commands.id; }
  int hints_id() const { return home().listening.id; }

  void on_connected(int id) override;
  void on_refused(int id) override;
  void on_bytes(int id, std::string_view bytes) override;
  void on_closed(int id) override;

private:
  // As in src/client/client_state.hpp.
  static constexpr duration after_ttl = std::chrono::seconds{1};

  struct open_call {
    call_record record{};
    node* at = nullptr;
    script::lock_keys keys{};  // What it is about.
    customer* who = nullptr;
    std::optional<duration> max_hold{};
    renewal mode = renewal::automatic;
    std::optional<core::hand_over_wish> turn{};  // It asks for those behind it, too.
    lease_ptr lease{};                           // That is released, or downgraded.
    std::unique_ptr<engine::acquire> acquire{};
    std::unique_ptr<engine::release> release{};
    std::unique_ptr<engine::question> asked{};  // To downgrade the lease, or without one to resize.
    engine::call& flow() const {
      if (acquire) return *acquire;
      return release ? static_cast<engine::call&>(*release) : static_cast<engine::call&>(*asked);
    }
  };

  struct renewal_by_hand;
  // Of what is held in that way: it lasts until then, unless its program asks for more.
  static void note_mode(hold& seen, renewal mode);
  std::unique_ptr<primary_watch> watch_primary();
  watch::settings watch_settings() const;
  watch::hooks watch_hooks();
  node::settings home_settings() const;
  node::hooks node_hooks();
  node& home() const { return *nodes_.front(); }
  // Who serves these.
  node& node_for(const script::lock_keys& keys) const;
  // What a thread is told that asks for those behind it, too.
  struct turn_told {
    bool others_wait;
    errc heard;       // By those before it.
    time_point from;  // Where its patience begins.
    time_point silent_since;
  };
  // Sends what a thread asks for. `turn`: none: it asks for itself only.
  void ask(customer& who, const wish& what, call_record record, const std::optional<turn_told>& turn);
  // ---- threads that want the same lock (process_turns.cpp) ----
  struct turn_waiter;
  using turn_waiter_ptr = std::shared_ptr<turn_waiter>;
  bool waits_its_turn(const wish& what) const;
  static core::hand_over_wish turn_wish_of(const wish& what);
  void wait_its_turn(customer& who, const wish& what, call_record record);
  void look_around(const turn_waiter_ptr& me);
  void take_turn(const turn_waiter_ptr& me);
  void give_up_turn(const turn_waiter_ptr& me, call_end how);
  bool cancel_turn(int call);
  void tell(const core::hand_over_queue::waiter_ptr& who);
  void tell_first(const core::hand_over_queue& of) { tell(of.first()); }
  void end_turn(const open_call& call, const lease_ptr& got, const core::got_lease& grant);
  void end_turn(const open_call& call, errc failure);
  void end_turn(const kept_lease& given_back);
  bool hand_on(const lease_ptr& lease);
  // ---- in a cluster (cluster/cluster_process.cpp) ----
  std::unique_ptr<map_watch> watch_map();
  node& node_at(const engine::cluster_primary& who);
  void take(const slot_views::map& map, time_point asked_at);
  void name(const engine::slot_map& map, time_point asked_at);
  void move_leases();
  void connect_in_cluster(wire& of, node& at);
  void go_on(open_call& call);
  // Where its slot decides.
  void know_slot(open_call& call);
  time_point now() const { return clock_.read(events_->now()); }
  // At once, or when it runs again.
  void when_running(missed_news::source from, std::function<void()> what);
  void when_running(std::function<void()> what) { when_running(missed_news::timers, std::move(what)); }
  void drive();
  void drive_one(node& what, time_point at);
  void prepare(wire& of, node& whose);
  void connect(wire& of, node& at);
  void flush(wire& of);
  void read(int id, std::string_view bytes, time_point came_at);
  bool is_late_answer(wire& of, time_point at) const;
  void close(wire& of);
  wire* wire_of(int id);
  bool conclude_ended();
  void conclude(open_call& call);
  void conclude_acquire(open_call& call);
  void conclude_downgrade(const open_call& call);
  // True: copies of its request may still be on their way.
  bool settle(engine::acquire& flow);
  lease_ptr hold_of(const open_call& call, const owner_id& owner, const core::got_lease& got);
  void finish_release(const lease_ptr& lease, release_outcome outcome);
  std::optional<time_point> let_go(const lease_ptr& lease);
  std::optional<time_point> let_go_all(const lease_ptrs& joined);
  void send_release(customer* who, const lease_ptr& lease, time_point deadline);
  void release_in_background(const lease_ptr& lease);
  void forget_copies(const lease_ptr& lease);
  time_point wake_at() const;
  void plan_wake();
  void end(const lease_ptr& lease, hold_end how);
  void believe_message(time_point now, std::string_view owner, server_time said_at);

  void on_at_risk(const std::shared_ptr<engine::held_lease>& lease) override;
  void on_lost(const std::shared_ptr<engine::held_lease>& lease, errc reason) override;
  void on_renewed(const std::shared_ptr<engine::held_lease>& lease, duration margin) override;
  void on_renew_failed(const std::shared_ptr<engine::held_lease>&, errc) override {}
  void on_up() override {}
  void on_down(const engine::connection_failure&) override { tell_.on_down(); }
  void on_clock_step(duration) override {}

  event_queue* events_;
  network* net_;
  const std::vector<lock>* locks_;
  process_settings what_;
  hooks tell_;
  local_clock clock_;
  std::unique_ptr<primary_watch> watch_;  // Null: there is one server.
  // It outlives those who have its calls on their lists.
  std::list<open_call> calls_;
  std::unique_ptr<map_watch> map_watch_;  // In a cluster.
  slot_views::map map_{};
  std::vector<node*> serving_{};  // By their numbers in it.
  std::vector<std::unique_ptr<node>> nodes_;
  struct owned {
    lease_ptr lease;
    customer* who;
  };
  std::list<owned> leases_;
  std::map<std::string, core::hand_over_queue> turns_;  // By holder key.
  std::list<turn_waiter_ptr> turn_waiters_;
  missed_news missed_;  // While it was paused.
  std::function<void()> at_renewal_{};
  std::vector<std::pair<customer*, std::function<void(customer&)>>> news_;
  instant wake_planned_at_ = end_of_time;
  std::uint64_t wake_number_ = 0;
  instant resumed_at_{};
  bool is_paused_ = false;
  bool is_dead_ = false;
  bool is_driving_ = false;
};

}  // namespace holdfast::sim
