// SPDX-License-Identifier: Apache-2.0
// One client of the engine, put together as src/client does it, on a network and a server that do what the fuzzer
// wants, under made-up time. After everything that happens it drives the engine until nothing is due, and looks whether
// what is promised holds (ledger.hpp has the claims about requests and answers; here are those about time).
#pragma once

#include "ledger.hpp"

#include "core/random_testing.hpp"
#include "engine/acquire.hpp"
#include "engine/caller.hpp"
#include "engine/hints.hpp"
#include "engine/keeper.hpp"
#include "engine/release.hpp"
#include "engine/unattended.hpp"
#include "resp/reader.hpp"

#include <array>
#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::fuzz {

// What becomes of a new connection.
enum class network { works, refuses, hangs, is_mute };

struct wish {
  script::lock_keys keys;
  script::part part;
  std::chrono::milliseconds ttl;
  bool is_try;
  std::optional<duration> wait;
};

class session final : engine::keeper_listener {
public:
  // `needs_scripts`: with each connection, as a client does; without, a session is several times faster.
  explicit session(bool needs_scripts);
  ~session() override;

  // ---- what its callers do ----
  void acquire(const wish& what);
  void ask();  // A question, which reads its answer itself.
  void cancel(std::size_t call);
  void release(std::size_t lease);
  void drop(std::size_t lease);
  // Up to three held leases of one ttl, from this one on, are kept as one.
  void join(std::size_t lease);
  std::size_t calls() const { return calls_.size(); }
  std::size_t leases() const { return leases_.size(); }

  // ---- what the world does ----
  void pass(duration time);
  void pass_to_next_wake();
  void step_server_clock(std::chrono::microseconds by) { server_step_ += by; }
  void set_network(std::size_t which, network what) { wires_[which % 3].mode = what; }
  void set_run(const char* run) { run_ = run; }
  void cut(std::size_t which);
  // Everything that the server says on a connection, value by value, in pieces of the given size.
  void say(std::size_t which, std::string_view bytes, std::size_t piece);
  // Well-formed replies, no errors, at most as many as are open: in one piece.
  void say_at_once(wire on, std::string_view replies);
  const std::deque<sent_request>& open(wire on) const { return ledger_.open(on); }
  server_time server_now() const;
  // The owner id of something that was asked; empty: nothing was.
  std::string_view last_owner() const { return last_owner_; }

  // From now on nobody answers, in this way: whatever is under way must end by itself.
  void end(network how);

private:
  struct end_of_line {
    engine::channel* channel;
    network mode = network::works;
    bool is_connected = false;
    resp::reader replies{};  // Reads what the engine reads, to know how many replies it was.
    bool is_amid_reply = false;
  };
  struct open_call {
    std::size_t number = 0;
    std::unique_ptr<engine::acquire> acquire{};
    std::unique_ptr<engine::call> other{};
    const engine::release* release = nullptr;  // When `other` is one.
    std::shared_ptr<engine::held_lease> lease{};
    time_point over_at = never;
    engine::call& flow() const { return acquire ? *acquire : *other; }
  };
  using lease_ptr = std::shared_ptr<engine::held_lease>;

  static bool carries_requests(std::size_t which) { return which < 2; }
  static wire wire_of(std::size_t which) { return static_cast<wire>(which); }
  // Does what is due, until nothing is.
  void drive();
  void connect(std::size_t which);
  void write(std::size_t which);
  void notice_cuts();
  void tell(end_of_line& of, std::size_t which, std::string_view bytes);
  void conclude(open_call call);
  void settle(const engine::acquire& call);
  void hold(const engine::acquire& call);
  void release_in_background(const lease_ptr& lease, duration ttl);
  void check_time() const;
  time_point wake_at() const;

  void on_at_risk(const lease_ptr& lease) override { require(ledger_.is_kept(lease->owner)); }
  void on_lost(const lease_ptr& lease, errc reason) override;
  void on_renewed(const lease_ptr& lease, duration) override { require(ledger_.is_kept(lease->owner)); }
  void on_renew_failed(const lease_ptr& lease, errc) override { require(ledger_.is_kept(lease->owner)); }
  void on_up() override {}
  void on_down(const engine::connection_failure&) override {}
  void on_clock_step(duration) override {}

  core::seeded_random rng_{};
  ledger ledger_{};
  time_point now_{std::chrono::hours{1}};
  std::chrono::microseconds server_step_{0};
  const bool needs_scripts_;
  const char* run_ = "a run";
  std::string last_owner_{};
  engine::caller caller_;
  engine::hints ear_;
  engine::keeper keeper_;
  engine::unattended unattended_;
  std::array<end_of_line, 3> wires_;
  std::list<open_call> calls_{};
  std::vector<std::vector<lease_ptr>> leases_{};  // Those that are kept as one, together.
  std::vector<lease_ptr> lost_{};                 // Just now.
};

}  // namespace holdfast::fuzz
