// SPDX-License-Identifier: Apache-2.0
// Gives a lease of a quorum back: on all servers, also where no vote of it is known (B55). It is over when a majority
// has said that nothing of it is left there: then nobody can have it any more, and others can. Of a semaphore, which
// may take more votes, fewer than a majority would do for the first.
#pragma once

#include "engine/quorum_call.hpp"
#include "engine/quorum_keeper.hpp"
#include "script/keys.hpp"

#include <holdfast/names.hpp>
#include <holdfast/observer.hpp>

#include <vector>

namespace holdfast::engine {

class quorum_release final : public quorum_call {
public:
  // `votes`: as of quorum_keeper::let_go.
  quorum_release(voters& all, script::lock_keys keys, const owner_id& owner, std::vector<quorum_vote> votes,
                 time_point give_up_at);

  void step(time_point now) override;
  time_point wake_at() const override { return give_up_at_; }
  bool is_over() const override { return end_.has_value(); }

  // Only when is_over(). already_lost: a majority had nothing of it any more.
  release_outcome end() const { return *end_; }
  // Has this server nothing of it, now and for ever? If not it is to be released there in the background.
  bool is_settled(std::size_t node) const { return is_settled_[node]; }

private:
  script::lock_keys keys_;
  owner_id owner_;
  std::vector<quorum_vote> votes_;
  time_point give_up_at_;
  bool is_asked_ = false;
  std::vector<bool> is_settled_;
  std::optional<release_outcome> end_{};
};

}  // namespace holdfast::engine
