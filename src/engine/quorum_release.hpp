// SPDX-License-Identifier: Apache-2.0
// Gives a lease of a quorum back: on all servers, also where no vote of it is known (B55). It is over when as many as
// made it have given it back, so that it was ours and others can have it; or when so many have nothing of it that it
// was not, and may be somebody else's (B47, C5).
//
// Whoever is only a little slower than those is waited for as long again as they took, 1 ms at least and 20 ms at most:
// what is left to the background asks over another connection, and goes on until no copy of a request can take effect
// any more, and so would the end of a process. Who has not even answered what was asked before is not waited for (B56).
#pragma once

#include "engine/quorum_call.hpp"
#include "engine/quorum_keeper.hpp"
#include "script/keys.hpp"

#include <holdfast/names.hpp>
#include <holdfast/observer.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace holdfast::engine {

class quorum_release final : public quorum_call {
public:
  // `votes`: as of quorum_keeper::let_go.
  quorum_release(voters& all, script::lock_keys keys, const owner_id& owner, votes_left votes, time_point give_up_at);

  void step(time_point now) override;
  time_point wake_at() const override { return std::min(lingers_until_, give_up_at_); }
  bool is_over() const override { return is_over_; }

  // Only when is_over(). already_lost: too many had nothing of it any more.
  release_outcome end() const { return *end_; }
  // Has this server nothing of it, now and for ever? If not it is to be released there in the background.
  bool is_settled(std::size_t node) const { return is_settled_[node]; }

private:
  void decide(time_point now, std::size_t released, std::size_t open, std::size_t silent);
  bool is_answered_soon(std::size_t node) const;
  bool lingers(time_point now);

  script::lock_keys keys_;
  owner_id owner_;
  std::vector<quorum_vote> votes_;
  std::size_t needed_;
  time_point give_up_at_;
  std::vector<bool> is_settled_;
  std::optional<time_point> asked_at_{};
  time_point lingers_until_ = never;
  std::optional<release_outcome> end_{};
  bool is_over_ = false;
};

}  // namespace holdfast::engine
