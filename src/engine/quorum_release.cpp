// SPDX-License-Identifier: Apache-2.0
#include "engine/quorum_release.hpp"

#include "script/command.hpp"
#include "script/reply.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace holdfast::engine {

quorum_release::quorum_release(voters& all, script::lock_keys keys, const owner_id& owner, votes_left votes,
                               time_point give_up_at)
    : quorum_call{all},
      keys_{std::move(keys)},
      owner_{owner},
      votes_{std::move(votes.of_each)},
      needed_{static_cast<std::size_t>(votes.needed)},
      give_up_at_{give_up_at},
      is_settled_(all.size(), false) {
  // What was never asked for a vote has none.
  for (std::size_t i = 0; i < votes_.size(); ++i)
    is_settled_[i] = !votes_[i].token && votes_[i].not_after == server_time{};
}

// Where no connection can be made, or where one ends, the background goes on (H55): to wait here would make the next
// one wait. One that the server ended while nobody asked anything (its `timeout`, a restart) is made again first.
void quorum_release::step(time_point now) {
  for (std::size_t i = 0; i < size(); ++i) {
    if (of(i).is_asked || !all()[i]->wire().is_ready()) continue;
    if (!asked_at_) asked_at_ = now;
    const auto token = votes_[i].token;
    ask(i, now, token ? script::release(keys_, owner_, token) : script::leave(keys_, owner_));
  }
  std::size_t released = 0;
  std::size_t open = 0;
  std::size_t silent = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto& vote = votes_[i];
    const auto said = of(i).reply ? script::parse_release(*of(i).reply) : std::nullopt;
    if (!said) {
      if (is_settled_[i]) continue;  // It never was asked for a vote.
      // Also one that let somebody else wait: without it the release would be unknown (C5).
      const bool may_be_asked = !of(i).is_asked && !all()[i]->is_out_of_reach();
      ++(of(i).is_open() || may_be_asked ? open : silent);
      continue;
    }
    released += said->what == script::release_answer::released ? 1 : 0;
    // A vote that was asked for over another connection, and never answered, may come behind this answer, unless the
    // server gave that when it was too late for any. (Not by the time at which we look at it, which comes later.)
    is_settled_[i] = said->now > vote.not_after || vote.asked_over == all()[i]->connection();
  }
  if (!end_) decide(now, released, open, silent);
  is_over_ = end_ && (end_ == release_outcome::unknown || !lingers(now));
}

// And will that settle it?
bool quorum_release::is_answered_soon(std::size_t node) const {
  const auto& vote = votes_[node];
  const bool settles = vote.not_after == server_time{} || vote.asked_over == all()[node]->connection();
  return settles && !is_settled_[node] && of(node).is_open() && all()[node]->wire().is_next(of(node));
}

bool quorum_release::lingers(time_point now) {
  constexpr duration least = std::chrono::milliseconds{1};
  constexpr duration most = std::chrono::milliseconds{20};
  if (lingers_until_ == never) lingers_until_ = now + std::clamp(now - asked_at_.value_or(now), least, most);
  bool is_waited_for = false;
  for (std::size_t i = 0; i < size(); ++i) is_waited_for = is_waited_for || is_answered_soon(i);
  return is_waited_for && now < wake_at();
}

// The votes that were known at last are no proof: a key is deleted, a lock broken at once, and nobody told us.
void quorum_release::decide(time_point now, std::size_t released, std::size_t open, std::size_t silent) {
  const bool may_be_decided = released + open >= needed_ || released + silent < needed_;
  if (released >= needed_) {
    end_ = release_outcome::released;
  } else if (released + open + silent < needed_) {
    end_ = release_outcome::already_lost;
  } else if (!may_be_decided || now >= give_up_at_) {
    end_ = release_outcome::unknown;
  }
}

}  // namespace holdfast::engine
