// SPDX-License-Identifier: Apache-2.0
// What must hold in a quorum's world: the table of quorum_world.hpp.
#include "quorum/quorum_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;

bool quorum_world::is_excused(int lock, cause& why) const {
  instant since = events_.now();
  for (const auto& [id, v] : valid_.at(lock)) since = std::min(since, v.got_at);
  for (const auto& one : disturbances_) {
    if (one.what != cause::clock_stepped && one.what != cause::keys_deleted) continue;
    // The stamps that a node has lost may be those of longer ago.
    if (one.at + plan_.max_ttl >= since) {
      why = one.what;
      return true;
    }
  }
  return false;
}

void quorum_world::on_hold(int client, const quorum_client::held& one, instant valid_until) {
  mix(one.token.value());
  if (keeps_trace_) {
    say(fmt::format("c{} holds lock {} ({} {}) with token {}", client, one.lock, one.part.mode, one.part.permits,
                    one.token.value()));
  }
  idle_[one.lock].waits_since.erase(client);  // It may wait anew before the next look.
  const auto seen = view_of(client, one, valid_until);
  let_in(client, one, seen);
  check_broken(client, one, valid_until);
  check_token(client, one, seen);
}

auto quorum_world::view_of(int client, const quorum_client::held& one, instant valid_until) -> view {
  const auto list = history_.find(clients_[static_cast<std::size_t>(client)]->list());
  for (const auto node : history_.list(0).nodes) note_record(node);
  return {valid_until,
          events_.now(),
          client,
          one.token.value(),
          permits_of(one),
          std::string{one.owner.hex()},
          list,
          list == 0 && is_replacing() && history_.is_first_left_open(events_.now())};
}

int quorum_world::permits_of(const quorum_client::held& one) const {
  return lock_of(one.lock).kind == lock_kind::exclusive ? 1 : one.part.permits;
}

void quorum_world::let_in(int client, const quorum_client::held& one, const view& seen) {
  const instant now = events_.now();
  std::erase_if(valid_[one.lock], [&](const auto& other) { return other.second.valid_until <= now; });
  check_room(client, one, seen);
  valid_[one.lock][one.id] = seen;
  note_votes(one);
}

// Nothing moves a deadline that has passed, and others may have come since (P13c).
void quorum_world::on_deadline(int client, const quorum_client::held& one, instant until) {
  const instant now = events_.now();
  auto& all = valid_[one.lock];
  const auto known = all.find(one.id);
  const bool is_over = known == all.end() || now >= known->second.valid_until;
  if (is_over && until > now) {
    complain("C4", fmt::format("client {}, lock {}, token {}: comes back behind its deadline, for {} us", client,
                               one.lock, one.token.value(), (until - now).count() / 1000));
  }
  if (known == all.end()) {
    return let_in(client, one, view_of(client, one, until));
  }
  if (until > known->second.valid_until) {
    ++statistics_->extensions;
    note_votes(one);
    check_broken(client, one, until);
  }
  known->second.valid_until = until;
}

// C6: what was under way when release() returned is the network's business.
void quorum_world::check_renewal(std::size_t node, const script_run& run) {
  if (run.which != script::id::renew && run.which != script::id::renew_counted) return;
  const auto over = released_at_.find(run.owner());
  if (over == released_at_.end() || run.sent_at <= over->second) return;
  complain("C6", fmt::format("client {}, lock {}: asked node {} for a renewal {} us after release() had returned",
                             run.process, run.lock, node, (run.sent_at - over->second).count() / 1000));
}

void quorum_world::note_given_back(std::size_t node, const script_run& run) {
  const bool gives_back = run.which == script::id::release || run.which == script::id::release_counted ||
                          run.which == script::id::leave || run.which == script::id::leave_counted;
  if (!gives_back) return;
  const auto has_it = [&](const std::vector<holder>& all) {
    return std::any_of(all.begin(), all.end(), [&](const holder& one) { return one.owner == run.owner(); });
  };
  if (has_it(run.before) && !has_it(run.after)) given_back_by_[run.owner()].insert(node);
}

// Servers may have lost votes, and may have got them again: only what was given back counts.
void quorum_world::check_release(int client, const quorum_client::held& one, release_outcome told) {
  const auto found = given_back_by_.find(one.owner.hex());
  const auto votes = found == given_back_by_.end() ? 0 : static_cast<int>(found->second.size());
  const bool was_enough = votes >= engine::votes_needed(list().nodes.size(), one.part);
  if (told == release_outcome::unknown || was_enough == (told == release_outcome::released)) return;
  complain("C5",
           fmt::format("client {} was told that lock {}, token {}, {}, and gave back {} votes", client, one.lock,
                       one.token.value(), told == release_outcome::released ? "is released" : "had been lost", votes));
}

void quorum_world::check_room(int client, const quorum_client::held& one, const view& seen) {
  const auto& all = valid_.at(one.lock);
  int taken = seen.permits;
  for (const auto& [id, other] : all) taken += other.permits;
  if (taken <= lock_of(one.lock).size) return;
  cause why{};
  for (const auto& [id, other] : all) {
    const bool is_broken = is_let_in_by_a_break(seen.owner, other.owner);
    const bool is_left_open = seen.is_left_open || other.is_left_open;
    if (!is_broken && !history_.may_overlap(seen.list, other.list, is_left_open, events_.now())) continue;
    taken -= other.permits;
    why = is_broken ? cause::broken_at_once : cause::data_lost;
  }
  if (taken <= lock_of(one.lock).size || is_excused(one.lock, why)) {
    ++statistics_->attributed[static_cast<std::size_t>(why)];
    return;
  }
  const auto& other = all.begin()->second;
  complain("C1",
           fmt::format("lock {}: client {} got token {} while client {} is valid with token {} for {} us, {} of {}",
                       one.lock, client, one.token.value(), other.client, other.token,
                       (other.valid_until - events_.now()).count() / 1000, taken, lock_of(one.lock).size));
}

// Where stamps are lost the clock stands in for them, unless it has gone behind the last token, as with one server
// (checkers/token_order.cpp). Of several servers none has a vote whose clock is far off (P24); who is alone is compared
// with nobody.
bool quorum_world::has_lost_its_place(const view& seen, std::uint64_t token) const {
  const auto& nodes = history_.list(seen.list).nodes;
  if (nodes.size() > 1 || (seen.list == 0 && !has_forgotten_.contains(nodes.front()))) return false;
  const auto shown = servers_[nodes.front()].clock().read(events_.now()).time_since_epoch().count();
  return static_cast<std::uint64_t>(shown) <= token;
}

void quorum_world::check_token(int client, const quorum_client::held& one, const view& seen) {
  const bool is_all = seen.permits == lock_of(one.lock).size;
  auto& last = last_token_[one.lock];
  auto& last_full = last_full_token_[one.lock];
  const auto before = is_all ? last : last_full;
  const bool is_new = tokens_[one.lock].insert(one.token.value()).second;
  cause why{};
  const bool is_behind = one.token.value() <= before && !seen.is_left_open;
  const bool is_of_a_late_clock = is_behind && has_lost_its_place(seen, before);
  if (is_of_a_late_clock) why = cause::clock_stepped;
  if (is_behind && !is_of_a_late_clock && !is_excused(one.lock, why)) {
    complain("C2",
             fmt::format("lock {}: client {} got token {} after {}", one.lock, client, one.token.value(), before));
  } else if (!is_new) {
    granted_twice_.insert({{one.lock, one.token.value()}, why});
  }
  if (seen.is_left_open) return;
  last = std::max(last, one.token.value());
  if (is_all) last_full = std::max(last_full, one.token.value());
}

// It rests on each token being granted once, as checkers/stale_write.cpp.
void quorum_world::check_write(int lock, std::uint64_t token, guarded_store::written how) {
  ++statistics_->writes[static_cast<std::size_t>(how)];
  mix(static_cast<std::uint64_t>(how) + 30);
  if (how != guarded_store::written::lost_an_update) return;
  if (const auto twice = granted_twice_.find({lock, token}); twice != granted_twice_.end()) {
    ++statistics_->attributed[static_cast<std::size_t>(twice->second)];
    return;
  }
  complain("C3", fmt::format("lock {}: an update was overwritten with token {}", lock, token));
}

// At worst, with nothing befallen: there and back for the connection, the greeting, the epoch and the vote.
duration quorum_world::farthest_vote(int client) {
  const auto& path = nets_.front().of(client);
  return 4 * 2 * (path.least + path.jitter);
}

// A quarantine is no silence: who waits waits for its end.
void quorum_world::check_silence(int client, const script::part& what, duration silence) {
  const duration timeout = client_plans_[static_cast<std::size_t>(client)].timeout;
  // It had less time to wait than that; or what befalls them is written by hand, and we do not know of it.
  if (silence < timeout || !is_drawn_ || timeout < farthest_vote(client)) return;
  const instant since = events_.now() - timeout;
  if (const auto own = client_trouble_until_.find(client); own != client_trouble_until_.end() && own->second > since) {
    return;
  }
  const auto& list = clients_[static_cast<std::size_t>(client)]->list();
  if ((must_finish_ && !is_finished_) || history_.is_being_replaced(list, since)) return;
  const auto untroubled = static_cast<int>(std::count_if(
      list.nodes.begin(), list.nodes.end(), [&](std::size_t node) { return node_trouble_until_[node] <= since; }));
  if (untroubled < engine::votes_needed(list.nodes.size(), what)) return;
  complain("C5", fmt::format("client {} is told that there is no quorum, and {} of {} servers were there for {} ms",
                             client, untroubled, list.nodes.size(), timeout / 1ms));
}

bool quorum_world::has_vote(std::size_t node, int lock, const owner_id& owner) {
  const auto now = std::chrono::floor<std::chrono::microseconds>(servers_[node].now().time_since_epoch());
  const auto& holder = lock_of(lock).keys.holder;
  if (const auto* text = servers_[node].redis().peek_as<std::string>(holder)) {
    return text->size() > 36 && text->substr(3, 32) == owner.hex();
  }
  const auto* all = servers_[node].redis().peek_as<model_redis::sorted_set>(holder);
  if (!all) return false;
  const auto found = all->scores.find(std::string{owner.hex()});
  return found != all->scores.end() && found->second > static_cast<double>(now.count());
}

void quorum_world::check_that_it_has_none(int client, int lock, const script::part& what,
                                          const std::vector<owner_id>& owners) {
  const auto is_step = [](const disturbance& one) { return one.what == cause::clock_stepped; };
  if (std::any_of(disturbances_.begin(), disturbances_.end(), is_step)) return;  // A late copy may take effect.
  for (const auto& owner : owners) {
    int votes = 0;
    for (std::size_t i = 0; i < servers_.size(); ++i) votes += has_vote(i, lock, owner) ? 1 : 0;
    if (votes < engine::votes_needed(list().nodes.size(), what)) continue;
    complain("C5", fmt::format("client {} was told that nothing has come of it, and has {} votes for lock {}", client,
                               votes, lock));
  }
}

void quorum_world::check_that_nothing_is_left() {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (i == gone_ || retired_.contains(i)) continue;
    servers_[i].now();
    for (const auto& one : plan_.locks) {
      if (servers_[i].redis().peek(one.keys.holder)) {
        complain("C5", fmt::format("lock {} is still held on node {}, and nobody is there", one.number, i));
      }
    }
    for (const auto& [key, entry] : servers_[i].redis().all()) {
      if (!entry.expires_at) complain("C8", fmt::format("key {} of node {} never expires", key, i));
    }
  }
}

// With a server gone there may be too few for all of a semaphore (hazards.md, section 0, point 12).
bool quorum_world::is_to_be_had(const lock& of) const {
  const auto& list = current_list();
  const auto left = static_cast<int>(list.nodes.size()) - (gone_ && list.has(*gone_) ? 1 : 0);
  return engine::votes_needed(list.nodes.size(), all_of(of)) <= left;
}

// Who waits for as long as it takes. Who does so in the line of a server that is gone goes elsewhere (P25).
void quorum_world::check_that_all_are_served() {
  for (const auto& one : clients_) {
    one->wind_down();
    for (const auto& of : plan_.locks) {
      if (!is_to_be_had(of)) one->stop_waiting_for(of.number);
    }
  }
  const auto somebody_waits = [this] {
    return std::any_of(clients_.begin(), clients_.end(), [](const auto& one) { return one->is_waiting(); });
  };
  const instant until =
      events_.now() + 10s + 2 * duration{plan_.max_ttl} + 10 * duration{plan_.ttl} + patience_with_the_dead();
  while (somebody_waits() && goes_on(until)) {
  }
  if (violations_.empty() && somebody_waits()) complain("liveness", "somebody waits still, long after all trouble");
}

// By somebody new, and by whoever has been there longest: what he knows of the servers is old.
void quorum_world::check_that_all_is_to_be_had() {
  const auto old = std::find_if(clients_.begin(), clients_.end(), [](const auto& one) { return one->is_running(); });
  if (old != clients_.end()) check_that_all_is_to_be_had_by(**old);
  const process_plan somebody = plan_.processes.empty() ? process_plan{0, 1s, 100us, 50us, 0, {}} : plan_.processes[0];
  check_that_all_is_to_be_had_by(start_client(somebody, some_list()));
  clients_.back()->stop();
}

void quorum_world::check_that_all_is_to_be_had_by(quorum_client& who) {
  for (const auto& one : plan_.locks) {
    if (!is_to_be_had(one)) continue;
    ++probes_;
    const duration within = 10s + 2 * duration{plan_.max_ttl} + patience_with_the_dead();
    who.probe(one.number, within, [this, lock = one.number, &who](bool is_got) {
      --probes_;
      if (is_got) return;
      complain("liveness", fmt::format("lock {} is not to be had by c{} after all trouble", lock, who.number()));
    });
  }
}

}  // namespace holdfast::sim
