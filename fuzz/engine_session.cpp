// SPDX-License-Identifier: Apache-2.0
#include "engine_session.hpp"

#include "engine/question.hpp"
#include "script/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast::fuzz {

namespace {

using namespace std::chrono_literals;

constexpr duration timeout = 500ms;
constexpr duration after_ttl = 1s;
constexpr std::chrono::milliseconds max_ttl = 60s;

}  // namespace

session::session(bool needs_scripts)
    : needs_scripts_{needs_scripts},
      caller_{{.needs_scripts = needs_scripts},
              rng_,
              {[this](time_point at) { ear_.compare(at); },
               {},
               {},
               [this](std::string_view owner, server_time said_at) { keeper_.on_stray_hint(now_, owner, said_at); }}},
      ear_{{},
           "hf:wake:me",
           caller_.wire(),
           rng_,
           {[this](time_point at, std::string_view owner, server_time said_at, duration look_in) {
              caller_.on_hint(at, owner, said_at, look_in);
            },
            [this](time_point at) { caller_.on_hearing_changed(at); }}},
      keeper_{{.needs_scripts = needs_scripts}, rho, rng_, *this},
      unattended_{caller_},
      wires_{end_of_line{&caller_.wire()}, end_of_line{&keeper_.wire()}, end_of_line{&ear_.wire()}} {}

session::~session() = default;

server_time session::server_now() const {
  constexpr server_time began{std::chrono::microseconds{1'795'212'800'000'000}};
  return began + std::chrono::duration_cast<std::chrono::microseconds>(now_.time_since_epoch()) + server_step_;
}

// ---- what its callers do ----

void session::acquire(const wish& what) {
  auto& made = calls_.emplace_back();
  made.number = ledger_.calls();
  ledger_.call_began();
  const core::acquire_settings rules{what.ttl, rho, what.is_try, what.wait, timeout, caller_.wire().was_ever_ready()};
  if (what.is_try || what.wait) made.over_at = now_ + (what.is_try ? timeout : *what.wait);
  made.acquire = std::make_unique<engine::acquire>(
      caller_.wire(), ear_,
      engine::acquire::request{
          what.keys, std::make_shared<const std::string>(ledger::label_of(made.number)), max_ttl, {}, what.part},
      rules, now_, rng_);
  unattended_.start(*made.acquire, now_);
  drive();
}

void session::ask() {
  auto& made = calls_.emplace_back();
  made.number = ledger_.calls();
  ledger_.call_began();
  made.over_at = now_ + timeout;
  made.other = std::make_unique<engine::question>(caller_.wire(), script::inspect({"hf:{x}"}),
                                                  engine::question::repeat::allowed, made.over_at);
  unattended_.start(*made.other, now_);
  drive();
}

void session::cancel(std::size_t call) {
  const auto chosen = std::next(calls_.begin(), static_cast<std::ptrdiff_t>(call));
  if (!chosen->acquire) return;
  chosen->acquire->cancel(now_);
  unattended_.look_at(*chosen->acquire);
  drive();
}

void session::release(std::size_t which) {
  const auto chosen = leases_[which];
  leases_.erase(leases_.begin() + static_cast<std::ptrdiff_t>(which));
  require(keeper_.let_go(*chosen.front()));
  for (const auto& lease : chosen) {
    const time_point deadline = now_ + lease->deadline.left(now_);
    lease->deadline.end();
    ledger_.lease_ended(lease->owner);
    auto& made = calls_.emplace_back();
    made.number = ledger_.calls();
    ledger_.call_began();
    made.lease = lease;
    made.over_at = std::min(now_ + timeout, deadline);
    auto flow = std::make_unique<engine::release>(caller_.wire(), lease->keys, lease->owner, lease->grant, deadline,
                                                  made.over_at);
    made.release = flow.get();
    made.other = std::move(flow);
    unattended_.start(*made.other, now_);
  }
  drive();
}

void session::drop(std::size_t which) {
  const auto chosen = leases_[which];
  leases_.erase(leases_.begin() + static_cast<std::ptrdiff_t>(which));
  require(keeper_.let_go(*chosen.front()));
  for (const auto& lease : chosen) {
    lease->deadline.end();
    ledger_.lease_ended(lease->owner);
    release_in_background(lease, lease->ttl);
  }
  drive();
}

void session::join(std::size_t which) {
  engine::keeper::leases as_one;
  time_point deadline = never;
  const auto ttl = leases_[which].front()->ttl;
  const auto is_alike = [&](const auto& group) { return group.size() == 1 && group.front()->ttl == ttl; };
  for (auto at = which; at < leases_.size() && as_one.size() < 3; ++at) {
    if (is_alike(leases_[at])) as_one.push_back(leases_[at].front());
  }
  if (as_one.size() < 2) return;
  for (const auto& lease : as_one) deadline = std::min(deadline, now_ + lease->deadline.left(now_));
  for (auto& lease : as_one) {
    require(keeper_.let_go(*lease));
    std::erase_if(leases_, [&](const auto& group) { return group.front() == lease; });
    ledger_.lease_kept(lease->owner, ledger_.bound_of(lease->owner), ttl);
    lease = std::make_shared<engine::held_lease>(lease->keys, lease->owner, lease->token, ttl, deadline);
  }
  leases_.push_back(as_one);
  keeper_.keep_as_one(std::move(as_one), never, deadline, renewal::automatic);
  drive();
}

// ---- what the world does ----

void session::pass(duration time) {
  now_ += time;
  drive();
}

void session::pass_to_next_wake() {
  if (const auto next = wake_at(); next != never) pass(std::max(duration{0}, next - now_));
}

void session::end(network how) {
  for (auto& of : wires_) of.mode = how;
  drive();
  // The longest silence that a waiter puts up with, the longest ttl, and what follows it.
  const time_point last = now_ + 15s + max_ttl + max_ttl + 10s;
  for (int wakes = 0; now_ <= last && wake_at() != never; ++wakes) {
    require(wakes < 5000);
    pass_to_next_wake();
    if (calls_.empty() && keeper_.is_idle()) break;
  }
  require(calls_.empty() && leases_.empty() && keeper_.is_idle());
}

// ---- what became of it ----

void session::conclude(open_call call) {
  if (call.acquire) {
    ledger_.acquire_ended(call.number, *call.acquire);
    settle(*call.acquire);
    if (std::holds_alternative<core::got_lease>(call.acquire->end())) hold(*call.acquire);
  } else if (call.release) {
    const auto how = call.release->end();
    ledger_.release_ended(call.lease->owner, how);
    if (how == release_outcome::unknown) release_in_background(call.lease, call.lease->ttl);
  }
}

void session::settle(const engine::acquire& call) {
  const auto& keys = call.wanted().keys;
  for (const auto& unsettled : ledger_.take_unsettled()) {
    if (caller_.wire().is_ready()) caller_.wire().send_and_forget(now_, script::leave(keys, unsettled.owner));
    const time_point by = unsettled.not_after == server_time{} ? time_point{} : now_ + timeout;
    const time_point give_up_at = std::max(now_, by) + call.ttl() + after_ttl;
    keeper_.release_later(now_, {keys, unsettled.owner, {}, unsettled.not_after, by, give_up_at});
  }
}

void session::hold(const engine::acquire& call) {
  const auto& got = std::get<core::got_lease>(call.end());
  const auto ttl = call.ttl();
  require(got.deadline > now_ && got.token);
  auto lease = std::make_shared<engine::held_lease>(call.wanted().keys, call.owner(), got.token, ttl, got.deadline);
  lease->was_in_line = call.was_in_line();
  leases_.push_back({lease});
  ledger_.lease_kept(call.owner(), got.deadline, ttl);
  keeper_.wire().learn_clock(caller_.wire().clock());
  keeper_.keep(std::move(lease), now_, got.deadline, renewal::automatic);
}

void session::release_in_background(const lease_ptr& lease, duration ttl) {
  keeper_.release_later(now_, {lease->keys, lease->owner, lease->grant, {}, {}, now_ + ttl + after_ttl});
}

// Of several that are kept as one all are gone with the first; the others are told in the same breath, or not at all.
void session::on_lost(const lease_ptr& lease, errc reason) {
  ledger_.lease_lost(lease->owner, reason);
  require(lease->deadline.left(now_) == duration{0});
  const auto found = std::find_if(leases_.begin(), leases_.end(), [&](const auto& group) {
    return std::find(group.begin(), group.end(), lease) != group.end();
  });
  if (found != leases_.end()) {
    lost_.insert(lost_.end(), found->begin(), found->end());
    leases_.erase(found);
  }
  require(std::find(lost_.begin(), lost_.end(), lease) != lost_.end());
}

// Nothing is late: who has a deadline is over at it, a lease is told lost before its own, and none holds longer than
// its last answered request allows.
void session::check_time() const {
  for (const auto& call : calls_) require(now_ < call.over_at);
  for (const auto& group : leases_) {
    for (const auto& lease : group) {
      const auto left = lease->deadline.left(now_);
      require(left > duration{0});
      require(now_ + left <= ledger_.bound_of(lease->owner));
    }
  }
}

}  // namespace holdfast::fuzz
