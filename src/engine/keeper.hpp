// SPDX-License-Identifier: Apache-2.0
// Keeps what is held: renews every lease of a client over one connection, calls the lost ones lost, and releases in
// the background what was dropped or left unsettled. Driven by one thread that does nothing else (P32), so that no
// caller's trouble can cost a lease.
#pragma once

#include "base/jitter.hpp"
#include "base/random.hpp"
#include "core/clean_up.hpp"
#include "core/lease_deadline.hpp"
#include "core/lease_keeper.hpp"
#include "engine/agenda.hpp"
#include "engine/channel.hpp"
#include "script/command.hpp"
#include "script/keys.hpp"

#include <holdfast/error.hpp>
#include <holdfast/names.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace holdfast::engine {

// What a lease's handle and its keeper share. `deadline`, and then `lost_reason`, may be read by any thread; the rest
// never changes.
struct held_lease {
  // `g`: the token of the server's grant; `t`: this lease's own, a larger one if it was handed on in the process (P14).
  held_lease(script::lock_keys k, owner_id o, fencing_token g, fencing_token t, std::chrono::milliseconds lasts,
             time_point ends)
      : keys{std::move(k)}, owner{o}, grant{g}, token{t}, ttl{lasts}, deadline{ends} {}
  held_lease(script::lock_keys k, owner_id o, fencing_token t, std::chrono::milliseconds lasts, time_point ends)
      : held_lease{std::move(k), o, t, t, lasts, ends} {}
  virtual ~held_lease() = default;
  held_lease(const held_lease&) = delete;
  held_lease& operator=(const held_lease&) = delete;

  // What renews it on its server.
  virtual script::command renewal_command() const { return script::renew(keys, owner, grant, ttl); }

  const script::lock_keys keys;
  const owner_id owner;
  const fencing_token grant;  // What the server compares.
  const fencing_token token;
  const std::chrono::milliseconds ttl;
  core::lease_deadline deadline;
  // Set before the deadline is ended for it, so that whoever finds the one finds the other (C4). None: nobody has said
  // more than that its time is over.
  std::atomic<errc> lost_reason{errc{}};
  bool was_in_line = false;  // Before it was granted. Set before anybody else has it,
  time_point last = never;   // and this: no renewal moves the deadline beyond it (R14).
  // As those. Of several that are held as one while each is kept by itself: why the first of them was lost. From then
  // on the others are renewed no more. Null: it is held alone, or kept as one with the others.
  std::shared_ptr<std::atomic<errc>> falls_with{};
  errc fallen() const { return falls_with ? falls_with->load() : errc{}; }
  void fall(errc why) const {
    errc nobody{};
    if (falls_with) falls_with->compare_exchange_strong(nobody, why);
  }
};

// News of leases. Called under the driver's mutex; must not call back.
class keeper_listener {
public:
  keeper_listener() = default;
  keeper_listener(const keeper_listener&) = delete;
  keeper_listener& operator=(const keeper_listener&) = delete;

  virtual void on_at_risk(const std::shared_ptr<held_lease>&) = 0;
  // Of several that are kept as one: the one that the server refused, or all of them when the deadline came.
  virtual void on_lost(const std::shared_ptr<held_lease>&, errc reason) = 0;
  // `margin`: what was left of the old deadline when the answer was read.
  virtual void on_renewed(const std::shared_ptr<held_lease>&, duration margin) = 0;
  virtual void on_renew_failed(const std::shared_ptr<held_lease>&, errc reason) = 0;
  virtual void on_up() = 0;
  virtual void on_down(const connection_failure&) = 0;
  virtual void on_clock_step(duration step) = 0;
  virtual ~keeper_listener() = default;
};

// Somebody who wants a lease renewed now, and waits to hear how that ended.
class renewal_wish {
public:
  renewal_wish() = default;
  virtual ~renewal_wish() = default;
  renewal_wish(const renewal_wish&) = delete;
  renewal_wish& operator=(const renewal_wish&) = delete;

  // The server's words to the last try, empty when another is sent: on_end says what they mean.
  virtual void on_refusal(const std::string& /*text*/) noexcept {}
  // Once. None: renewed, by a request that was sent after the wish. As keeper_listener: must not call back.
  virtual void on_end(errc how) noexcept = 0;
};

class keeper final : public channel_listener {
public:
  keeper(channel::settings, core::clock_drift, base::random_source& rng, keeper_listener& listener);
  ~keeper();

  channel& wire() { return channel_; }

  // Renews it from now on, until let_go or its loss. Granted by a request sent at `granted_at`, holds until `deadline`.
  void keep(std::shared_ptr<held_lease> lease, time_point granted_at, time_point deadline, renewal mode);

  // Several of one ttl as one: renewed together, in one write; their deadline is the earliest of theirs, and no renewal
  // moves it before the last of them was renewed; a loss of one is a loss of all. Let go by the first of them.
  using leases = std::vector<std::shared_ptr<held_lease>>;
  void keep_as_one(leases several, time_point granted_at, time_point deadline, renewal mode);

  // Ends the keeping: nothing is renewed and nothing is reported any more (C6). False if it was lost before.
  bool let_go(const held_lease& lease);
  bool is_kept(const held_lease& lease) const { return leases_.contains(&lease); }

  // Renews it now, whatever its mode; what is kept as one, by the first of them. It ends with the confirmation, the
  // reason of the loss, empty_handle when it is let go, a refusal of the server that trying again will not change,
  // not_replicated when there is no time for another try, or at `give_up_at` with reply_lost, if something was sent, or
  // what the connection fails of. A failure changes nothing about the lease. False, and nobody is told, if it is not
  // kept.
  bool renew_now(time_point now, const held_lease& lease, time_point give_up_at, std::shared_ptr<renewal_wish> whose);
  // Ends it with cancelled, or cancelled_in_flight; nothing, if it has ended.
  void cancel(const held_lease& lease, const renewal_wish& whose);

  // Releases in the background: at once, and again until the first answer after `not_after` (core/clean_up.hpp).
  struct background_release {
    script::lock_keys keys;
    owner_id owner;
    fencing_token token;         // Zero: unknown, or none yet: it leaves, wherever it stands.
    server_time not_after;       // The epoch: no copy of the acquire is outstanding.
    time_point not_after_local;  // Our estimate of the same instant.
    time_point give_up_at;       // When it has expired by itself.
    core::route went_by = core::route::stands;
    time_point place_until{};  // A place in line may be there until then, which nothing else ends.
  };
  void release_later(time_point now, background_release what);
  // Asks for more tokens to hand a lease on with (script::reserve), once, and over a connection that is there.
  struct reservation {
    script::lock_keys keys;
    owner_id owner;
    fencing_token grant;
    fencing_token last;  // That is reserved.
    int block;           // So many more.
    std::shared_ptr<std::atomic<bool>> is_granted;
  };
  void reserve(time_point now, reservation what);
  // The line called `owner`, 32 hex digits, whom nobody waits as: if it is one that is released in the background, it
  // was queued after all, and leaves now (P5). So does one of ours that has had its turn and ended, for the server has
  // forgotten that: it is the promoted replica of one that died (H25), and would wait for its claim. What is held never
  // leaves, whoever says so (H20). `said_at`: by the server's clock. What was said no later than the grant that has
  // ended comes from that grant's own server and is only late: a leave could overtake the release under way.
  void on_stray_hint(time_point now, std::string_view owner, server_time said_at);

  // Another connection to the same server has found that its clock went so far against ours, and has told of it.
  // `seen`: what it knows of that clock now, so that no renewal finds the same again.
  void on_step_seen(time_point now, duration step, const core::server_clock& seen);

  // Whose place in a line may come back.
  struct ghost {
    script::lock_keys keys;
    owner_id owner;
    fencing_token grant;  // Zero: none that we know of.
  };

  // ---- where several servers share the keys (engine/keeper_moves.cpp) ----
  // A lease, a background release or a ghost on its way to another keeper.
  struct departing {
    struct wish {
      std::shared_ptr<renewal_wish> whose;
      time_point asked_at;
      time_point give_up_at;
      bool was_sent;
    };
    leases several{};  // None: it is one of the others.
    time_point renewed_from = never;
    std::optional<core::lease_keeper> plan{};
    std::vector<wish> wishes{};
    std::optional<background_release> release{};
    std::optional<core::clean_up> release_plan{};
    std::optional<keeper::ghost> ghost{};

    const script::lock_keys& keys() const {
      return !several.empty() ? several.front()->keys : release ? release->keys : ghost->keys;
    }
  };
  // What is about such keys, with deadlines and wishes as they are; nothing of it is kept here any more.
  // Without memory it ends the program, and so does adopt(): between two keepers nobody would renew it, nor say so.
  std::vector<departing> take_away(time_point now, const std::function<bool(const script::lock_keys&)>& which) noexcept;
  // Goes on with it, and renews as soon as there is a connection. No deadline moves before moving_takes() is over.
  void adopt(time_point now, departing what) noexcept;

  // Does what is due.
  void on_wake(time_point now);
  time_point wake_at() const;

  bool is_idle() const { return leases_.empty() && releases_.empty(); }
  bool has_background_releases() const { return !releases_.empty() || channel_.is_going_on(); }

  void on_ready(time_point now) override;
  void on_down(time_point now, const connection_failure& failure, bool was_ready) override;
  void on_clock_step(time_point now, duration step) override;

private:
  void verify_all(time_point now, duration step);
  void remember(const script::lock_keys& keys, const owner_id& owner, fencing_token grant) noexcept;
  bool is_held(std::string_view owner) const;

  static constexpr duration longest_silence = std::chrono::milliseconds{500};  // Of channel::settings, too.

  class task;
  class renewing;
  class releasing;
  class reserving;

  std::vector<task*> all_tasks() const;  // In the order in which they came.
  // No renewal of it that was sent before moves a deadline (engine/named_primary.hpp).
  time_point renewals_from(const held_lease& lease, time_point now) const;
  void schedule(task& what, time_point at);
  void mind_silence();
  void update_demand();

  core::clock_drift drift_;
  base::jitter_source jitter_;
  keeper_listener* listener_;
  bool is_waiting_for_connection_ = false;
  const duration connect_timeout_;  // At most.
  duration least_silence_ = longest_silence;
  std::map<std::chrono::milliseconds, std::size_t> ttls_;  // Of what is kept: how many have each.
  agenda<task> agenda_;
  std::unordered_map<const held_lease*, std::unique_ptr<renewing>> leases_;
  std::unordered_map<const releasing*, std::unique_ptr<releasing>> releases_;
  std::unordered_map<const reserving*, std::unique_ptr<reserving>> reservations_;
  std::deque<ghost> ghosts_;                           // The latest of them.
  std::unordered_map<std::string, time_point> moved_;  // Owner ids that came from another server: when.
  time_point forget_moved_at_{};
  std::uint64_t last_number_ = 0;
  channel channel_;
};

}  // namespace holdfast::engine
