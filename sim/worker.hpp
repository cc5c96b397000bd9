// SPDX-License-Identifier: Apache-2.0
// A thread of a program that uses the library: it wants a lock, works under it, writes what the lock protects, gives it
// back, and begins again; until the world's day is over.
#pragma once

#include "guarded_store.hpp"
#include "plan.hpp"
#include "process.hpp"

#include <functional>

namespace holdfast::sim {

class worker final : public customer {
public:
  struct surroundings_of_workers {
    const plan* what;
    event_queue* events;
    guarded_store* store;
    std::function<bool()> is_over;  // Nothing new is begun.
    std::function<void(int lock, std::uint64_t token)> on_stale_write;
    std::function<void(guarded_store::written)> on_write;
  };
  worker(process& of, const surroundings_of_workers& in, seeded_random rng) : of_{&of}, in_{&in}, rng_{rng} {}

  void start() { rest(); }
  bool is_done() const { return state_ == state::done; }

  void on_acquired(const lease_ptr& lease) override;
  void on_not_acquired(call_end how) override;
  void on_lost(const lease_ptr& lease) override;
  void on_released(release_outcome outcome) override;
  void on_downgraded(const lease_ptr& lease, downgrade_end how) override;

private:
  enum class state { resting, waiting, working, downgrading, releasing, done };

  void rest();
  void want();
  void work(const lease_ptr& lease);
  void renew(const lease_ptr& lease, int turn);
  void finish(const lease_ptr& lease);
  // All locks as one, taken one after the other, in order.
  void want_all();
  void want_next();
  void have_next(const lease_ptr& lease);
  void give_up_all();
  void finish_all();
  void update(const lease_ptr& lease);
  duration way() {
    return rng_.any_size(std::chrono::microseconds{50}, in_->what->work + std::chrono::milliseconds{1});
  }

  process* of_;
  const surroundings_of_workers* in_;
  seeded_random rng_;
  state state_ = state::resting;
  int turn_ = 0;  // Of which a timer is.
  int failures_in_a_row_ = 0;
  int call_ = 0;
  bool is_to_read_on_ = false;  // After its work as a writer.
  lease_ptr downgraded_{};
  bool wants_all_ = false;
  wish wish_for_all_{};
  instant all_by_ = end_of_time;
  lease_ptrs all_{};  // What it has of them; and all of them, joined.
};

}  // namespace holdfast::sim
