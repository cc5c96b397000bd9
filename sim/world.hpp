// SPDX-License-Identifier: Apache-2.0
// One schedule: a server, perhaps with replicas, processes that want its locks, what befalls them, and those who watch.
// Everything follows from the plan, which follows from the seed.
#pragma once

#include "canary.hpp"
#include "checkers/checker.hpp"
#include "event_queue.hpp"
#include "guarded_store.hpp"
#include "plan.hpp"
#include "process.hpp"
#include "replicas/server_set.hpp"
#include "statistics.hpp"
#include "worker.hpp"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

struct violation {
  std::string invariant;
  std::string what;
  instant at;
};

class world final : public surroundings {
public:
  // `scripts`: kept from one world to the next. `planted`: null for none.
  world(plan what, const std::shared_ptr<lua_host>& scripts, const canary* planted, statistics& into);
  ~world();

  // Plays it to its end, or to the first violation.
  void run();
  const std::vector<violation>& violations() const { return violations_; }
  std::uint64_t events() const { return events_.count(); }
  // Of all that happened, in order: two runs of one seed have the same.
  std::uint64_t fingerprint() const { return fingerprint_; }
  // From now on what happens is written down in words.
  void keep_trace() { keeps_trace_ = true; }
  const std::vector<std::string>& trace() const { return trace_; }

  // ---- for what befalls it (faults.cpp) ----
  event_queue& queue() { return events_; }
  server_set& servers() { return servers_; }
  // The primary; of a cluster, that of a shard.
  model_server& server(int shard = 0) { return servers_.of(static_cast<std::size_t>(servers_.primary(shard))); }
  // That serves this lock.
  model_server& server_of(const lock& what) {
    return servers_.of(static_cast<std::size_t>(servers_.primary_of(what.keys)));
  }
  // Once, when the server has granted a lock to somebody who stood in line for it, and has not heard of that.
  void at_next_grant(std::function<void(const lock&, const holder&)> what) { at_grant_ = std::move(what); }
  network& net() { return servers_.net(0); }  // Where there is one server.
  network& net_with(int connection) { return servers_.net_with(connection); }
  const plan& what() const { return plan_; }
  std::vector<process*> living();
  void replace(process& dead, duration after);
  // Something befalls one process, or all of them, for so long.
  void befall(int process, duration lasts);
  void befall_all(duration lasts);
  // Keys, or what they mean; the server answers all the time.
  void befall_keys(duration lasts);
  void disturb(cause what, duration lasts, int lock = any_lock);
  void say(std::string text);
  bool is_tracing() const { return keeps_trace_; }

  // ---- surroundings ----
  instant now() const override { return events_.now(); }
  server_time server_now(int lock) const override {
    return servers_.of(static_cast<std::size_t>(seen(lock))).clock_now();
  }
  const model_redis& redis(int lock) override {
    auto& at = servers_.of(static_cast<std::size_t>(seen(lock)));
    at.now();
    return at.redis();
  }
  std::vector<const model_redis*> all_servers() override;
  int missing_copies(const hold& of) override;
  bool is_at_primary(int lock) const override { return seen_ == nobody || seen_ == primary_of(lock); }
  const lock& lock_of(int number) const override { return plan_.locks[static_cast<std::size_t>(number)]; }
  int largest_size(int lock, instant since) const override;
  bool is_running(int process) const override;
  instant resumed_at(int process) const override;
  instant healthy_since(int process) const override;
  instant answered_since(int process) const override;
  duration slowest_round_trip(int process) const override;
  core::hand_over_limits hand_overs() const override { return plan_.hand_overs; }
  bool is_one_server() const override { return servers_.size() == 1; }
  instant quarantined_until(int lock) const override {
    const auto found = quarantined_until_.find(seen(lock));
    return found == quarantined_until_.end() ? instant{} : found->second;
  }
  const disturbance* excuse(std::initializer_list<cause> which, instant since, int lock) const override;
  void complain(std::string_view invariant, std::string what) override;
  void attribute(cause why) override { statistics_->attributed[static_cast<std::size_t>(why)]++; }
  void at(instant when, std::function<void()> what) override { events_.at(when, std::move(what)); }

private:
  int primary_of(int lock) const { return servers_.primary_of(lock_of(lock).keys); }
  // Of whom there is talk: where a script has run just now, or the primary.
  int seen(int lock) const { return seen_ == nobody ? primary_of(lock) : seen_; }
  model_server::hooks server_hooks(int server);
  process::hooks process_hooks();
  void start_process(const process_plan& what);
  void see(const script_run& run, int server);
  void note_size(const script_run& run);
  void note_grant(const script_run& run);
  void note_quarantine(int server, const resp::value& reply);
  void note_lost_place(const script_run& run, std::size_t code);
  void mix(std::uint64_t number);
  void mix(std::string_view text);
  bool is_everybody_done() const;

  plan plan_;
  const canary* planted_;
  statistics* statistics_;
  event_queue events_;
  server_set servers_;
  guarded_store store_;
  worker::surroundings_of_workers for_workers_;
  std::map<int, instant> quarantined_until_;        // By server, as it said last.
  std::deque<std::unique_ptr<process>> processes_;  // Also the dead.
  std::vector<process_plan> process_plans_;
  std::deque<std::unique_ptr<worker>> workers_;
  std::vector<process*> worker_homes_;
  std::vector<instant> well_since_;
  instant all_are_well_since_{};  // Who comes while something befalls all is befallen, too.
  instant all_keys_are_well_since_{};
  std::vector<std::unique_ptr<checker>> checkers_;
  struct lasting {
    disturbance what;
    instant until;
  };
  std::vector<lasting> disturbances_;
  struct past_size {
    int lock;
    int size;
    instant until;
  };
  std::vector<past_size> past_sizes_;
  std::vector<violation> violations_;
  std::uint64_t fingerprint_ = 14695981039346656037u;
  bool keeps_trace_ = false;
  std::vector<std::string> trace_;
  std::function<void(const lock&, const holder&)> at_grant_{};
  int last_number_ = 0;
  int seen_ = nobody;
  int to_come_ = 0;  // Processes that will be started again.
};

// Plans everything that the plan's faults do. (faults.cpp)
class trouble {
public:
  trouble(world& in, statistics& into);
  void start();
  // Everything works again.
  void end();

private:
  void next();
  void strike(fault what);
  void strike_network(fault what);
  // The primary of one shard.
  model_server& some_server();
  // ---- of replicas (replicas/replica_faults.cpp) ----
  void strike_replicas(fault what);
  void fail_over();
  void promote(int chosen, int old);
  // ---- of a cluster (cluster/cluster_faults.cpp) ----
  void strike_cluster(fault what);
  bool clocks_agree(int shard, int other);
  void move_a_slot();
  void finish_move(instant began_at);
  void strike_process(fault what);
  void stop(process& who, fault how, duration time);
  void strike_server(fault what);
  void strike_rights(fault what);
  void forge_something();
  void break_something();
  void break_holder(const lock& about, const holder& whose, bool at_once);
  void resize_something();
  void strike_clock(fault what);
  int some_connection();
  process* somebody();
  void lasting(duration time, std::function<void()> ends);

  world* in_;
  statistics* statistics_;
  seeded_random rng_;
  std::vector<fault> kinds_;
  std::map<const model_server*, model_redis::keyspace> snapshots_{};
  bool is_over_ = false;
  bool is_failing_over_ = false;
};

}  // namespace holdfast::sim
