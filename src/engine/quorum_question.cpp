// SPDX-License-Identifier: Apache-2.0
#include "engine/quorum_question.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {

quorum_question::quorum_question(voters& all, std::vector<script::command> each, duration patience,
                                 time_point give_up_at)
    : quorum_call{all},
      each_{std::move(each)},
      patience_{patience},
      give_up_at_{give_up_at},
      wake_at_{give_up_at},
      was_cut_(all.size(), false),
      troubles_(all.size()),
      codes_(all.size()),
      quarantines_(all.size()) {}

void quorum_question::step(time_point now) {
  note_start();
  std::size_t answered = 0;
  std::size_t settled = 0;
  std::size_t may_answer = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    was_cut_[i] = was_cut_[i] || of(i).was_cut;
    if (!of(i).is_open() && !of(i).reply && all()[i]->wire().is_ready())
      ask(i, now, each_.size() == 1 ? each_.front() : each_[i]);
    answered += of(i).reply ? 1 : 0;
    settled += of(i).reply || (!of(i).is_open() && all()[i]->is_hopeless()) ? 1 : 0;
    may_answer += of(i).reply || !has_failed_for_good(i) ? 1 : 0;
  }
  if (answered >= majority() && !enough_at_) enough_at_ = now;
  wake_at_ = enough_at_ ? std::min(give_up_at_, *enough_at_ + patience_) : give_up_at_;
  // A wrong password does not become right while it is waited for.
  is_over_ = (settled == size() && (enough_at_ || may_answer < majority())) || now >= wake_at_;
  if (!is_over_) return;
  // Not when our own time was short: who was given a millisecond is not slow.
  const bool was_waited_for = enough_at_ && now >= *enough_at_ + patience_;
  for (std::size_t i = 0; i < size(); ++i) {
    quarantines_[i] = all()[i]->wire().in_quarantine(now);
    if (of(i).reply) continue;
    if (was_waited_for) all()[i]->found_slow();  // The next one does not wait for a connection.
    const auto trouble = all()[i]->trouble();
    troubles_[i] = trouble.empty() ? "did not answer in time" : trouble;
    codes_[i] = all()[i]->wire().is_ready() ? errc::server_silent : all()[i]->wire().last_failure().code;
  }
}

}  // namespace holdfast::engine
