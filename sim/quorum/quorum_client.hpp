// SPDX-License-Identifier: Apache-2.0
// A client of a quorum: the engine that we ship, assembled as src/client/quorum.cpp assembles it, but on one thread
// under virtual time.
#pragma once

#include "canary.hpp"
#include "event_queue.hpp"
#include "facts.hpp"
#include "guarded_store.hpp"
#include "missed_news.hpp"
#include "network.hpp"
#include "plan.hpp"
#include "quorum/quorum_lines.hpp"
#include "quorum/server_list.hpp"
#include "seeded_random.hpp"

#include "core/quorum_search.hpp"
#include "engine/quorum_acquire.hpp"
#include "engine/quorum_keeper.hpp"
#include "engine/quorum_release.hpp"

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::sim {

// How long one node is waited for, as src/client/quorum_lease.cpp.
duration patience_of(std::chrono::milliseconds ttl, duration timeout);

// All of it, so that nobody else has any.
script::part all_of(const lock& of);

class quorum_client final : engine::keeper_listener {
public:
  struct settings {
    int number;
    const plan* of;
    process_plan how;
    server_list list;
    guarded_store* store;  // What the exclusive locks protect.
    canary_switch planted = canary_switch::none;
  };
  struct held final : engine::held_lease {
    held(const script::lock_keys& k, const owner_id& o, fencing_token t, std::chrono::milliseconds lasts,
         time_point ends, int number, int of, const script::part& takes)
        : held_lease{k, o, t, lasts, ends}, id{number}, lock{of}, part{takes}, may_last_until{ends} {}
    const int id;
    const int lock;
    const script::part part;
    renewal mode = renewal::automatic;
    int open_wishes = 0;        // For a renewal by hand.
    time_point may_last_until;  // If none is open: by the grant, or the last of them.
  };
  struct hooks {
    std::function<void(const held&, instant valid_until)> on_hold{};
    // Its deadline is what it is now.
    std::function<void(const held&, instant valid_until)> on_deadline{};
    std::function<void(const held&, hold_end)> on_end{};
    // As process::hooks.
    std::function<void()> on_late_answer{};
    std::function<void(engine::quorum_acquire::result)> on_round{};
    std::function<void(call_end)> on_turn{};
    // An acquire has ended because for so long, it says, too few servers voted that could have.
    std::function<void(const script::part&, duration silence)> on_no_quorum{};
    // And because it is known that nothing has come of it, whatever it tried under these owner ids.
    std::function<void(int lock, const script::part&, const std::vector<owner_id>&)> on_without_effect{};
    std::function<void(const held&, release_outcome)> on_released{};
    // To the store, under the token of a lease.
    std::function<void(int lock, std::uint64_t token, guarded_store::written)> on_write{};
    std::function<void(std::string invariant, std::string what)> complain{};
    std::function<int()> next_number{};
  };
  // So long whoever has its turn in a line keeps the others out, when it dies: as src/client/quorum_lease.cpp has it.
  static constexpr std::chrono::milliseconds turn_ttl{1000};
  // `nets`: to all servers of the world.
  quorum_client(event_queue& events, std::deque<network>& nets, settings what, hooks tell);

  int number() const { return what_.number; }
  const server_list& list() const { return what_.list; }
  time_point now() const { return clock_.read(events_->now() - stood_still_); }
  // Its programs begin: each gets a lock, works, gives it back, and thinks, until nobody is to begin anything new.
  void start(int workers);
  // Nothing new is begun; who waits for as long as it takes goes on waiting.
  void wind_down() { is_stopping_ = true; }
  bool is_waiting() const;
  bool is_waiting_for(int lock) const;
  // Nor is anything waited for any more; or only not for this lock.
  void stop();
  void stop_waiting_for(int lock);
  bool is_done() const {
    return is_dead_ || (is_stopping_ && jobs_ == 0 && keeper_.wake_at() == never && lines_.is_idle());
  }

  using lease_ptr = std::shared_ptr<held>;
  struct wish {
    int lock;
    std::chrono::milliseconds ttl;
    bool only_once = false;
    std::optional<duration> wait{};  // None: until nobody is to begin anything new.
    fencing_token min_fence{};
    std::optional<duration> gives_up_after{};  // By itself.
    script::part part{};                       // Of a counted kind.
    std::optional<duration> max_hold{};
    renewal mode = renewal::automatic;
  };
  // Null: not got.
  void acquire(const wish& what, std::function<void(const lease_ptr&)> then);
  void release(const lease_ptr& lease);
  bool is_valid(held& lease) const { return !is_dead_ && lease.deadline.left(now()) > duration{0}; }
  // What the last try came to.
  std::optional<engine::quorum_acquire::result> last_round() const { return last_round_; }
  // One lock, once, soon: is it to be had?
  void probe(int lock, duration within, std::function<void(bool)> tell);

  void pause();
  void resume();
  // Once, when it has sent the next renewal and nobody has answered it.
  void at_next_renewal(std::function<void()> what) { at_renewal_ = std::move(what); }
  // With its host: then nobody hears of it.
  void die(process::death how = process::death::process);
  bool is_running() const { return !is_dead_ && !is_paused_; }
  bool is_dead() const { return is_dead_; }
  instant resumed_at() const { return resumed_at_; }
  // Of the connections to one node of the world.
  std::vector<int> connections_to(std::size_t node) const;

private:
  struct wire final : client_end {
    wire(quorum_client& o, engine::channel& c, network& n) : of{&o}, channel{&c}, net{&n} {}
    void on_connected(int id) override;
    void on_refused(int id) override;
    void on_bytes(int id, std::string_view bytes) override;
    void on_closed(int id) override;
    quorum_client* of;
    engine::channel* channel;
    network* net;
    int id = 0;  // Zero: closed.
    bool is_open = false;
    bool has_open_renewal = false;  // Since when nothing was read from it.
  };
  // One acquire, and who waits for it in the line of one server. It stays, for what may still be said to it.
  struct search final : customer {
    search(quorum_client& by, wish asked, std::function<void(const lease_ptr&)> tell);
    void on_acquired(const sim::lease_ptr& lease) override;
    void on_not_acquired(call_end how) override;
    void on_lost(const sim::lease_ptr&) override {}
    void on_released(release_outcome) override {}
    bool is_patient() const { return then && !is_cancelled && !what.wait && !what.only_once; }

    quorum_client* of;
    wish what;
    std::function<void(const lease_ptr&)> then;  // Empty: it is over.
    const time_point began_at;
    core::quorum_search flow;
    std::vector<owner_id> tried_as{};
    sim::lease_ptr turn{};
    std::size_t server = 0;  // Of its turn, or of the line that it stands in.
    int turn_call = 0;
    int rests = 0;
    bool is_in_line = false;
    bool is_resting = false;
    bool is_cancelled = false;
  };
  struct renewal_by_hand final : engine::renewal_wish {
    renewal_by_hand(const quorum_client& by, lease_ptr what) : of{&by}, lease{std::move(what)} { ++lease->open_wishes; }
    void on_end(errc how) noexcept override;
    const quorum_client* of;
    lease_ptr lease;
  };
  struct open_call {
    std::unique_ptr<engine::quorum_acquire> acquire{};
    std::unique_ptr<engine::quorum_release> release{};
    search* whose = nullptr;
    lease_ptr lease{};
    engine::quorum_call& flow() const {
      return acquire ? static_cast<engine::quorum_call&>(*acquire) : static_cast<engine::quorum_call&>(*release);
    }
  };

  instant when(time_point at) const;
  void when_running(missed_news::source from, std::function<void()> what);
  missed_news::source source_of(const wire& of) const;
  void read(wire& from, std::string_view bytes, time_point came_at);
  bool is_late_answer(wire& of) const;
  void after(duration wait, std::function<void()> what);
  void drive();
  void prepare(wire& of);
  void flush(wire& of);
  void close(wire& of);
  bool conclude_ended();
  void conclude_acquire(open_call& call);
  void conclude_release(open_call& call);
  void watch_deadlines();
  void plan_wake();
  time_point wake_at() const;

  void try_once(search& whose);
  lease_ptr keep(const wish& what, const engine::quorum_acquire& won);
  void go_on(search& whose, const core::quorum_search::step& next);
  void finish(search& whose, const lease_ptr& got);
  void cancel(search& whose);
  void rest(search& whose, time_point until);
  void wake(search& whose);
  void tell_released(int lock);
  bool has_turn(const search& whose) const;
  void drop_turn(search& whose);
  void stand_in_line(search& whose, time_point until);
  void leave_line(const search& whose);
  void on_line_down(std::size_t server);

  script::part some_part_of(const lock& of);
  wish some_wish();
  void work_on(int job);
  void update(const lease_ptr& lease);
  void renew_by_hand(const lease_ptr& lease);
  void drop(const lease_ptr& lease);
  void go_on_with(held& lease, const std::vector<engine::quorum_vote>& votes);
  void end(const lease_ptr& lease, hold_end how);
  void let_go_in_background(const engine::held_lease& lease, const std::vector<engine::quorum_vote>& votes,
                            const std::vector<bool>& is_settled);

  void on_at_risk(const std::shared_ptr<engine::held_lease>&) override {}
  void on_lost(const std::shared_ptr<engine::held_lease>& lease, errc reason) override;
  void on_renewed(const std::shared_ptr<engine::held_lease>&, duration) override {}
  void on_renew_failed(const std::shared_ptr<engine::held_lease>&, errc) override {}
  void on_up() override {}
  void on_down(const engine::connection_failure&) override {}
  void on_clock_step(duration) override {}

  event_queue* events_;
  settings what_;
  hooks tell_;
  seeded_random rng_;
  local_clock clock_;
  instant paused_at_{};
  instant resumed_at_{};
  duration stood_still_{};  // Only with a bug: a clock counts a pause.
  engine::voters voters_{};
  std::vector<engine::keeper_listener*> node_listeners_{};
  engine::quorum_keeper keeper_;
  quorum_lines lines_;
  std::deque<wire> wires_{};
  std::vector<std::unique_ptr<search>> searches_{};
  std::list<open_call> calls_{};
  std::list<lease_ptr> leases_{};
  missed_news missed_{};
  std::function<void()> at_renewal_{};
  int jobs_ = 0;
  instant wake_planned_at_ = end_of_time;
  std::uint64_t wake_number_ = 0;
  std::optional<engine::quorum_acquire::result> last_round_{};
  bool is_stopping_ = false;
  bool is_paused_ = false;
  bool is_dead_ = false;
  bool is_driving_ = false;
};

}  // namespace holdfast::sim
