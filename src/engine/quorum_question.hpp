// SPDX-License-Identifier: Apache-2.0
// A question to all servers of a quorum, whose answers are their asker's to read. Unlike a vote it waits for all of
// them that can be asked, but not for long: what people are shown should be all that is to be seen. Where so many
// refuse us for good that no majority can answer, it is over at once.
#pragma once

#include "engine/quorum_call.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holdfast::engine {

class quorum_question final : public quorum_call {
public:
  // `each`: what is asked of each of them, or one for all. `patience`: with those that have not answered, once a
  // majority has.
  quorum_question(voters& all, std::vector<script::command> each, duration patience, time_point give_up_at);

  void step(time_point now) override;
  time_point wake_at() const override { return wake_at_; }
  bool is_over() const override { return is_over_; }

  // Only when is_over(). Empty: it did not answer.
  const std::optional<resp::value>& reply(std::size_t node) const { return of(node).reply; }
  // It was asked, and nobody knows whether it did what it was asked for: a copy of that has no answer.
  bool may_have_done(std::size_t node) const { return was_cut_[node] || of(node).is_open(); }
  // Why it did not, for people.
  const std::string& trouble(std::size_t node) const { return troubles_[node]; }
  // The same as a code; none: it answered, or there was no time to make a connection.
  errc trouble_code(std::size_t node) const { return codes_[node]; }
  // What a server said of a quarantine that still lasts.
  const std::optional<quarantine>& quarantine_of(std::size_t node) const { return quarantines_[node]; }

private:
  std::vector<script::command> each_;
  duration patience_;
  time_point give_up_at_;
  time_point wake_at_;
  std::optional<time_point> enough_at_{};
  bool is_over_ = false;
  std::vector<bool> was_cut_;  // With a copy unanswered.
  std::vector<std::string> troubles_;
  std::vector<errc> codes_;
  std::vector<std::optional<quarantine>> quarantines_;
};

}  // namespace holdfast::engine
