// SPDX-License-Identifier: Apache-2.0
// client_state's release: to the server, to the next thread of this process, or in the background.
#include "engine/release.hpp"
#include "client/client_state.hpp"
#include "client/quorum.hpp"
#include "core/lease_time.hpp"
#include "net/clock.hpp"
#include "net/quiet_thread.hpp"
#include "net/uncancelled.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;
using std::chrono::duration_cast;

bool client_state::let_keeper_go(const lease_record& record) {
  const auto placed = moving();
  return keeper_of(record)->keeper().let_go(record);
}

std::optional<time_point> client_state::let_go(lease_record& record) {
  record.is_let_go = true;
  const time_point now = boottime_now();
  const time_point deadline = now + record.deadline.left(now);
  const bool was_kept = let_keeper_go(record);
  record.deadline.end();
  if (was_kept && deadline > now) return deadline;
  release_in_background(record);
  return std::nullopt;
}

time_point client_state::give_up_at(time_point deadline) const {
  return std::min(boottime_now() + options_.timeout, deadline);
}

void client_state::conclude(const lease_record& record, release_outcome outcome) {
  if (outcome == release_outcome::unknown) release_in_background(record);
  forget_copies(record);
  line_.ended(record);
  const auto held = duration_cast<std::chrono::microseconds>(boottime_now() - record.granted_at);
  reporter_->tell([=, name = record.name](observer& o) { o.on_released(name, outcome, held); });
}

// To the next thread of this process, without the server.
bool client_state::pass_on(const std::shared_ptr<lease_record>& record) {
  const time_point now = boottime_now();
  const duration left = record->deadline.left(now);
  if (left <= duration{0} || !line_.hand_on(record, now + left)) return false;
  const auto held = duration_cast<std::chrono::microseconds>(now - record->granted_at);
  reporter_->tell([=](observer& o) { o.on_released(record->name, release_outcome::released, held); });
  return true;
}

// Not what is left of our deadline: a renewal whose answer was lost may have taken effect a moment ago, and the server
// counts a whole ttl from there, by a clock of its own.
std::chrono::milliseconds client_state::may_remain(std::chrono::milliseconds ttl, time_point last_effect) const {
  const time_point now = boottime_now();
  const duration unused = ttl - core::usable(ttl, drift_);
  return std::chrono::ceil<std::chrono::milliseconds>(std::max(now, last_effect) - now + ttl + unused + after_ttl);
}

// What was to be released must not be renewed for ever when there was no memory to do it: then the ttl ends it.
void client_state::abandon(lease_record& record) noexcept {
  record.is_let_go = true;
  try {
    if (quorum_) {
      quorum_->let_go(record);
    } else {
      let_keeper_go(record);
    }
    record.deadline.end();
    line_.ended(record);
  } catch (...) {
    // No memory even for the votes of a quorum.
  }
}

release_outcome client_state::release(const std::shared_ptr<lease_record>& record, error_detail& why) {
  const net::uncancelled until_done;
  try {
    return do_release(record, why);
  } catch (...) {
    abandon(*record);
    throw;
  }
}

release_outcome client_state::do_release(const std::shared_ptr<lease_record>& record, error_detail& why) {
  why = {};
  why.endpoint = endpoint();
  record->is_let_go = true;
  if (quorum_) {
    const auto had = quorum_->let_go(*record);
    const auto outcome = release_of_quorum(*record, had, boottime_now() + options_.timeout);
    time_point last_effect{};
    for (const auto& vote : had.votes.of_each) last_effect = std::max(last_effect, vote.not_after_local);
    if (outcome == release_outcome::unknown) why.may_remain = may_remain(record->ttl, last_effect);
    return outcome;
  }
  if (pass_on(record)) return release_outcome::released;
  auto outcome = release_outcome::already_lost;
  if (const auto deadline = let_go(*record)) {
    const auto& at = node_for(record->keys)->commands();
    engine::release call{at->channel(), record->keys, record->owner, record->grant, *deadline, give_up_at(*deadline)};
    call.set_slot(slot_of(record->keys));
    run(call, record->keys, [&] { line_.ended(*record); });  // Who asks now comes right behind our release.
    outcome = call.end();
    why.server_text = call.server_text();
    if (outcome == release_outcome::unknown) {
      why.may_remain = may_remain(record->ttl, record->unsettled_until.not_after_local);
    }
  }
  conclude(*record, outcome);
  return outcome;
}

void client_state::drop(const std::shared_ptr<lease_record>& record) noexcept {
  const net::uncancelled until_done;
  try {
    record->is_let_go = true;
    if (quorum_) return quorum_->release_in_background(*record, quorum_->let_go(*record));
    if (pass_on(record)) return;
    let_keeper_go(*record);
    record->deadline.end();
    release_in_background(*record);
    forget_copies(*record);
    line_.ended(*record);
  } catch (...) {
    abandon(*record);
  }
}

// ---- several as one ----

std::optional<std::size_t> client_state::keep_as_one(const records& several, engine::keeper::leases joined,
                                                     time_point deadline) {
  if (quorum_) return quorum_->join({several.begin(), several.end()}, joined);
  return node_->keeper().join({several.begin(), several.end()}, std::move(joined), deadline, several.front()->mode);
}

// On a cluster each lease is kept by the node that serves its slot, and moves with that. What makes them one is what
// they share: who is told of the loss of one is told of the loss of all, and lease_set is valid while all of them are;
// and none is renewed any more when one is lost, or whoever hangs then would keep the others for ever.
std::optional<std::size_t> client_state::keep_each(const records& several, const records& joined) {
  const auto placed = moving();
  const time_point now = boottime_now();
  // They are released with the handles that still have them.
  const auto let_go_before = [&](std::size_t end) {
    for (std::size_t i = 0; i < end; ++i) {
      keeper_of(*joined[i])->keeper().let_go(*joined[i]);
      joined[i]->deadline.end();
    }
  };
  for (std::size_t i = 0; i < several.size(); ++i) {
    // It may have moved since it was copied.
    joined[i]->kept_at = several[i]->kept_at;
    const time_point ends = now + joined[i]->deadline.left(now);
    try {
      if (!keeper_of(*several[i])->keeper().join({several[i]}, {joined[i]}, ends, several[i]->mode)) continue;
    } catch (...) {
      let_go_before(i);
      throw;
    }
    let_go_before(i);
    return i;
  }
  return std::nullopt;
}

client_state::records client_state::join(const records& several) {
  const time_point now = boottime_now();
  const std::stop_source lost;
  const std::stop_source at_risk;
  const bool is_each_kept_by_itself = cluster_ || quorum_;
  const auto falls_with = is_each_kept_by_itself ? std::make_shared<std::atomic<errc>>(errc{}) : nullptr;
  time_point deadline = never;
  records joined;
  engine::keeper::leases to_keep;
  for (const auto& one : several) {
    const time_point ends = now + one->deadline.left(now);
    deadline = std::min(deadline, ends);
    joined.push_back(std::make_shared<lease_record>(*one, ends, lost, at_risk, falls_with));
    to_keep.push_back(joined.back());
  }
  if (!is_each_kept_by_itself) {  // They are renewed as one, and none beyond the first that may not be.
    time_point last = never;
    for (const auto& one : joined) last = std::min(last, one->last);
    for (const auto& one : joined) one->last = last;
  }
  if (const auto gone = cluster_ ? keep_each(several, joined) : keep_as_one(several, std::move(to_keep), deadline)) {
    error_detail detail;
    detail.subject = "'" + several[*gone]->name + "'";
    const errc reason = several[*gone]->lost_reason;
    throw error{reason == errc{} ? errc::lease_expired : reason, std::move(detail)};
  }
  for (const auto& one : several) {
    one->is_let_go = true;
    line_.ended(*one);  // Nobody hands on what is held with others.
    one->deadline.end();
  }
  return joined;
}

// The earliest deadline of what was kept; empty when it is lost, and everything is released in the background.
std::optional<time_point> client_state::let_go_all(const records& several) {
  const time_point now = boottime_now();
  bool was_kept = let_keeper_go(*several.front());
  for (std::size_t i = 1; cluster_ && i < several.size(); ++i) was_kept = let_keeper_go(*several[i]) && was_kept;
  time_point deadline = never;
  for (const auto& one : several) {
    one->is_let_go = true;
    deadline = std::min(deadline, now + one->deadline.left(now));
    one->deadline.end();
  }
  if (was_kept && deadline > now) return deadline;
  for (const auto& one : several) release_in_background(*one);
  return std::nullopt;
}

namespace {

// Those of several releases that one node does. `about`: what each is about.
struct at_one_node {
  std::shared_ptr<command_connection> node;
  std::vector<engine::call*> calls{};
  std::vector<const script::lock_keys*> about{};
};

at_one_node& part_of(std::vector<at_one_node>& all, const std::shared_ptr<command_connection>& node) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const at_one_node& one) { return one.node == node; });
  return found == all.end() ? all.emplace_back(at_one_node{node}) : *found;
}

// What fails of it is not done, and the calls say so. On a thread of its own where there is one to be had.
template <class Do>
void do_at_once(const std::vector<at_one_node>& all, const Do& what) {
  const auto try_it = [&what](const at_one_node& one) noexcept {
    try {
      what(one);
    } catch (...) {
      // No memory.
    }
  };
  std::vector<std::thread> threads(all.size());
  for (std::size_t i = 1; i < all.size(); ++i) {
    try {
      threads[i] = net::start_quietly([&, i] { try_it(all[i]); });
    } catch (...) {
      break;
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!threads[i].joinable()) try_it(all[i]);
  }
  for (auto& one : threads) net::let_end(std::move(one), true);
}

}  // namespace

// Each at its node, at all of them at once: one that does not answer in time takes nothing of the others' time. On the
// caller's own thread where there is one node.
release_outcome client_state::release_all(const records& several) {
  const net::uncancelled until_done;
  if (quorum_) return release_all_of_quorum(several);
  const auto deadline = let_go_all(several);
  std::deque<engine::release> calls;  // They must not move.
  std::vector<at_one_node> by_node;
  const time_point give_up = deadline ? give_up_at(*deadline) : time_point{};  // The same for all.
  for (const auto& one : several) {
    if (!deadline) break;
    const auto at = node_for(one->keys)->commands();
    calls.emplace_back(at->channel(), one->keys, one->owner, one->grant, *deadline, give_up);
    calls.back().set_slot(slot_of(one->keys));
    auto& its = part_of(by_node, at);
    its.calls.push_back(&calls.back());
    its.about.push_back(&one->keys);
  }
  do_at_once(by_node, [this](const at_one_node& part) {
    part.node->run_all(part.calls);
    for (std::size_t i = 0; i < part.calls.size(); ++i) {
      if (part.calls[i]->is_moved()) run(*part.calls[i], *part.about[i]);
    }
  });
  auto worst = release_outcome::released;
  for (std::size_t i = 0; i < several.size(); ++i) {
    const auto outcome = !deadline            ? release_outcome::already_lost
                         : calls[i].is_over() ? calls[i].end()
                                              : release_outcome::unknown;
    conclude(*several[i], outcome);
    worst = worse(worst, outcome);
  }
  return worst;
}

void client_state::drop_all(const records& several) noexcept {
  const net::uncancelled until_done;
  try {
    if (quorum_) {
      for (const auto& one : several) {
        one->is_let_go = true;
        quorum_->release_in_background(*one, quorum_->let_go(*one));
      }
      return;
    }
    if (let_go_all(several)) {
      for (const auto& one : several) release_in_background(*one);
    }
    for (const auto& one : several) forget_copies(*one);
  } catch (...) {
    for (const auto& one : several) abandon(*one);
  }
}

// ---- in the background ----

void client_state::release_in_background(const lease_record& record) {
  const auto placed = moving();
  node_for(record.keys)
      ->keeper()
      .release_later({record.keys, record.owner, record.grant, {}, {}, boottime_now() + record.ttl + after_ttl});
}

// An unanswered copy of the acquire that led to this lease could lock again after we released (P9).
void client_state::forget_copies(const lease_record& record) {
  const auto& copies = record.unsettled_until;
  if (copies.not_after == server_time{} || boottime_now() >= copies.not_after_local) return;
  const auto placed = moving();
  node_for(record.keys)
      ->keeper()
      .release_later({record.keys,
                      record.owner,
                      {},
                      copies.not_after,
                      copies.not_after_local,
                      copies.not_after_local + record.ttl + after_ttl,
                      core::route::was_cut});
}

std::shared_ptr<lease_record> client_state::hand_on(const std::shared_ptr<lease_record>& giver, fencing_token token) {
  const auto placed = moving();
  const time_point now = boottime_now();
  const time_point deadline = now + giver->deadline.left(now);
  auto next = std::make_shared<lease_record>(*giver, token, now, deadline);
  if (!keeper_of(*giver)->keeper().hand_on(*giver, next, now, deadline, next->mode)) return nullptr;
  giver->deadline.end();
  return next;
}

void client_state::ask_for_more(const lease_record& giver, const core::hand_over_queue::more& what) noexcept try {
  const auto placed = moving();
  keeper_of(giver)->keeper().reserve({giver.keys, giver.owner, giver.grant, what.last, what.block, what.is_granted});
} catch (...) {
  // No memory: the line has its turn as without it.
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
