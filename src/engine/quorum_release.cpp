// SPDX-License-Identifier: Apache-2.0
#include "engine/quorum_release.hpp"

#include "script/command.hpp"
#include "script/reply.hpp"

#include <utility>

namespace holdfast::engine {

quorum_release::quorum_release(voters& all, script::lock_keys keys, const owner_id& owner,
                               std::vector<quorum_vote> votes, time_point give_up_at)
    : quorum_call{all},
      keys_{std::move(keys)},
      owner_{owner},
      votes_{std::move(votes)},
      give_up_at_{give_up_at},
      is_settled_(all.size(), false) {
  // What was never asked for a vote has none.
  for (std::size_t i = 0; i < votes_.size(); ++i)
    is_settled_[i] = !votes_[i].token && votes_[i].not_after == server_time{};
}

// Where no connection is, or where it ends, the background goes on (H55): to wait here would make the next one wait.
void quorum_release::step(time_point now) {
  if (!std::exchange(is_asked_, true)) {
    for (std::size_t i = 0; i < size(); ++i) {
      if (!all()[i]->wire().is_ready()) continue;
      const auto token = votes_[i].token;
      ask(i, now, token ? script::release(keys_, owner_, token) : script::leave(keys_, owner_));
    }
  }
  std::size_t released = 0;
  std::size_t answered = 0;
  std::size_t open = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    open += of(i).is_open() ? 1 : 0;
    if (!of(i).reply) continue;
    const auto said = script::parse_release(*of(i).reply);
    if (!said) continue;
    ++answered;
    released += said->what == script::release_answer::released ? 1 : 0;
    // A vote that was asked for over another connection, and never answered, may come behind this answer, unless the
    // server gave that when it was too late for any. (Not by the time at which we look at it, which comes later.)
    const auto& vote = votes_[i];
    is_settled_[i] = said->now > vote.not_after || vote.asked_over == all()[i]->connection();
  }
  if (answered >= majority() && (released > 0 || open == 0)) {
    end_ = released > 0 ? release_outcome::released : release_outcome::already_lost;
  } else if (open + answered < majority() || now >= give_up_at_) {
    end_ = answered >= majority() ? release_outcome::already_lost : release_outcome::unknown;
  }
}

}  // namespace holdfast::engine
