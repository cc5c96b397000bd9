// SPDX-License-Identifier: Apache-2.0
// What a client of a quorum does with a lease, and with calls that are over.
#include "guarded_update.hpp"
#include "quorum/quorum_client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;

bool quorum_client::conclude_ended() {
  bool is_news = false;
  for (auto at = calls_.begin(); at != calls_.end();) {
    if (!at->flow().is_over()) {
      ++at;
      continue;
    }
    is_news = true;
    open_call call = std::move(*at);
    at = calls_.erase(at);
    call.acquire ? conclude_acquire(call) : conclude_release(call);
  }
  return is_news;
}

void quorum_client::conclude_release(open_call& call) {
  std::vector<bool> is_settled;
  for (std::size_t i = 0; i < voters_.size(); ++i) is_settled.push_back(call.release->is_settled(i));
  let_go_in_background(*call.lease, std::vector<engine::quorum_vote>(voters_.size()), is_settled);
  tell_.on_released(*call.lease, call.release->end());
  tell_released(call.lease->lock);
}

void quorum_client::end(const lease_ptr& lease, hold_end how) {
  lease->deadline.end();
  if (std::erase(leases_, lease) > 0) tell_.on_end(*lease, how);
}

void quorum_client::release(const lease_ptr& lease) {
  const duration left = lease->deadline.left(now());
  auto votes = keeper_.let_go(*lease);
  if (what_.planted == canary_switch::renews_after_release && !votes.of_each.empty()) go_on_with(*lease, votes.of_each);
  end(lease, hold_end::released);
  if (votes.of_each.empty() || left <= duration{0}) return drop(lease);
  open_call call;
  call.lease = lease;
  call.release = std::make_unique<engine::quorum_release>(voters_, lease->keys, lease->owner, std::move(votes),
                                                          now() + std::min(left, what_.how.timeout));
  calls_.push_back(std::move(call));
  drive();
}

// The canary's.
void quorum_client::go_on_with(held& lease, const std::vector<engine::quorum_vote>& votes) {
  auto again = std::make_shared<held>(lease.keys, lease.owner, lease.token, lease.ttl, lease.deadline.at(), lease.id,
                                      lease.lock, lease.part);
  keeper_.keep(std::move(again), "", votes, now(), renewal::automatic, lease.part);
}

void quorum_client::drop(const lease_ptr& lease) {
  auto votes = keeper_.let_go(*lease).of_each;
  end(lease, hold_end::released);
  std::vector<bool> is_settled(voters_.size(), false);
  for (std::size_t i = 0; i < votes.size(); ++i) {
    is_settled[i] = !votes[i].token && votes[i].not_after == server_time{};
  }
  votes.resize(voters_.size());
  let_go_in_background(*lease, votes, is_settled);
  tell_released(lease->lock);
}

void quorum_client::let_go_in_background(const engine::held_lease& lease, const std::vector<engine::quorum_vote>& votes,
                                         const std::vector<bool>& is_settled) {
  const time_point at = now();
  for (std::size_t i = 0; i < voters_.size(); ++i) {
    if (is_settled[i]) continue;
    const auto& vote = votes[i];
    const bool may_come = vote.not_after != server_time{} && at < vote.not_after_local;
    keeper_.release_later(at, i,
                          {lease.keys,
                           lease.owner,
                           {},
                           may_come ? vote.not_after : server_time{},
                           may_come ? vote.not_after_local : time_point{},
                           std::max(at, vote.not_after_local) + lease.ttl + 1s});
  }
}

// What the lock protects is written to while the lease lasts, and, late as it may come, behind it.
void quorum_client::update(const lease_ptr& lease) {
  const int lock = lease->lock;
  const auto token = lease->token.value();
  guarded_update::begin({events_, what_.store, lock, token,
                         [this] { return rng_.any_size(50us, what_.of->work + 1ms); },
                         [this](duration wait, std::function<void()> what) { after(wait, std::move(what)); },
                         [this, lock, token](guarded_store::written done) { tell_.on_write(lock, token, done); }});
}

// ---- renewed by hand ----

// After each step of its work, until that is over or hangs.
void quorum_client::renew_by_hand(const lease_ptr& lease) {
  after(rng_.any_size(1ms, duration{lease->ttl} / 2), [this, lease] {
    const bool hangs = rng_.chance(15);
    const auto by_then = now() + duration{lease->ttl} / 2;
    if (hangs || !keeper_.renew_now(now(), *lease, by_then, std::make_shared<renewal_by_hand>(*this, lease))) return;
    drive();
    renew_by_hand(lease);
  });
}

// All that it may have sent was sent by now.
void quorum_client::renewal_by_hand::on_end(errc) noexcept {
  --lease->open_wishes;
  lease->may_last_until = std::max(lease->may_last_until, core::deadline_of(of->now(), lease->ttl, rho));
}

// ---- lost ----

void quorum_client::on_lost(const std::shared_ptr<engine::held_lease>& lease, errc reason) {
  const auto ours = std::static_pointer_cast<held>(lease);
  if (std::find(leases_.begin(), leases_.end(), ours) == leases_.end()) {
    tell_.complain("C4", fmt::format("client {} was told that it lost token {}, which it had no more", what_.number,
                                     ours->token.value()));
  }
  end(ours, reason == errc::lease_held_too_long ? hold_end::held_too_long : hold_end::lost);
}

}  // namespace holdfast::sim
