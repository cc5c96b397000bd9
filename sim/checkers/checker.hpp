// SPDX-License-Identifier: Apache-2.0
// An invariant, one in a file. It hears of everything that happens and complains of what must not.
#pragma once

#include "facts.hpp"
#include "model_redis.hpp"

#include "core/hand_over.hpp"

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

// What a checker may ask of the world: the truth, which nobody in the world knows.
class surroundings {
public:
  surroundings() = default;
  surroundings(const surroundings&) = delete;
  surroundings& operator=(const surroundings&) = delete;

  virtual instant now() const = 0;
  // Of the server that serves this lock; or where what is told of just now happens.
  virtual server_time server_now(int lock) const = 0;
  // As of now.
  virtual const model_redis& redis(int lock) = 0;
  virtual const lock& lock_of(int number) const = 0;
  // Of a semaphore: the most permits that there have been since then; ever, when the server has lost data, which may
  // be a size that it was told.
  virtual int largest_size(int lock, instant since) const = 0;
  // How many of the replicas that its client asks for do not have it for as long as it is valid. 0: none is asked for.
  virtual int missing_copies(const hold& of) = 0;
  // Does what is told of just now happen at the primary? One that was it before may still take itself for it.
  virtual bool is_at_primary(int lock) const = 0;
  // Of all servers, as of now.
  virtual std::vector<const model_redis*> all_servers() = 0;
  virtual bool is_running(int process) const = 0;
  virtual instant resumed_at(int process) const = 0;
  // Since when nothing has befallen this process, its connections or the server; the end of time while something does.
  virtual instant healthy_since(int process) const = 0;
  // Likewise, but for what happens to keys: since when its server answers it.
  virtual instant answered_since(int process) const = 0;
  // Of this process, when nothing befalls it.
  virtual duration slowest_round_trip(int process) const = 0;
  // How often, and for how long, the threads of a process may hand on what the server granted to one of them.
  virtual core::hand_over_limits hand_overs() const = 0;
  // Or a grant may be worth less than its ttl, because of who is named the primary (engine/named_primary.hpp).
  virtual bool is_one_server() const = 0;
  // As this lock's server said last: until then nothing is granted there.
  virtual instant quarantined_until(int lock) const = 0;
  // Why the contract does not hold for what counts from `since`; null if nothing of `which` happened to this lock from
  // then on.
  virtual const disturbance* excuse(std::initializer_list<cause> which, instant since, int lock) const = 0;

  virtual void complain(std::string_view invariant, std::string what) = 0;
  // An overlap that `why` explains.
  virtual void attribute(cause why) = 0;
  virtual void at(instant when, std::function<void()> what) = 0;

protected:
  ~surroundings() = default;
};

// Who has less than that left to wait does not come for its turn any more. The end of time: it waits for as long as it
// takes.
instant comes_until(const surroundings& in, const call_record& call);

class checker {
public:
  explicit checker(surroundings& in) : in_{&in} {}
  virtual ~checker() = default;
  checker(const checker&) = delete;
  checker& operator=(const checker&) = delete;

  virtual void on_script(const script_run&) {}
  virtual void on_call_started(const call_record&) {}
  virtual void on_call_ended(const call_record&) {}
  virtual void on_hold(const hold&) {}
  virtual void on_extended(const hold&) {}  // Or bound to others, which may shorten it.
  virtual void on_at_risk(const hold&) {}
  virtual void on_hold_ended(const hold&, hold_end) {}
  // The program asks; so says valid().
  virtual void on_validity(const hold&, bool /*is_valid*/) {}
  virtual void on_released(const hold&, int /*outcome*/) {}
  // A writer that acts as a reader only from now on, and has asked the server to make it one; and what came of that.
  virtual void on_narrowed(const hold&) {}
  virtual void on_downgraded(const hold&, downgrade_end) {}
  // An update was lost by a write that the store took.
  virtual void on_stale_write(int /*lock*/, std::uint64_t /*token*/) {}
  virtual void on_process_step(int /*process*/) {}
  // What the contract rests on does not hold. Its keys are gone already, if that is what it is.
  virtual void on_disturbed(cause) {}
  // Everybody is done, and so much time has passed that nothing may be left.
  virtual void at_rest() {}

protected:
  surroundings& in() const { return *in_; }

private:
  surroundings* in_;
};

std::unique_ptr<checker> make_exclusion(surroundings&);
std::unique_ptr<checker> make_token_order(surroundings&);
std::unique_ptr<checker> make_stale_write(surroundings&);
std::unique_ptr<checker> make_loss_told(surroundings&);
std::unique_ptr<checker> make_lost_for_nothing(surroundings&);
std::unique_ptr<checker> make_outcomes(surroundings&);
std::unique_ptr<checker> make_reasons(surroundings&);
std::unique_ptr<checker> make_no_late_renewal(surroundings&);
std::unique_ptr<checker> make_line_order(surroundings&);
std::unique_ptr<checker> make_idle_lock(surroundings&);
std::unique_ptr<checker> make_expiry(surroundings&);
std::unique_ptr<checker> make_by_hand(surroundings&);
std::unique_ptr<checker> make_copies(surroundings&);
std::unique_ptr<checker> make_only_the_owner(surroundings&);
std::unique_ptr<checker> make_full_memory(surroundings&);
std::unique_ptr<checker> make_broken(surroundings&);
std::unique_ptr<checker> make_hand_overs(surroundings&);
std::unique_ptr<checker> make_line_price(surroundings&);
std::unique_ptr<checker> make_gone_told(surroundings&);

std::vector<std::unique_ptr<checker>> all_checkers(surroundings&);

}  // namespace holdfast::sim
