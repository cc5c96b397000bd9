// SPDX-License-Identifier: Apache-2.0
#include "replicas/primary_watch.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::sim {

primary_watch::primary_watch(event_queue& events, const sentinels& whom, const settings& what, seeded_random rng,
                             hooks how, std::function<void()> on_change)
    : watch{events, what, rng, std::move(how)},
      whom_{&whom},
      on_change_{std::move(on_change)},
      named_{std::make_shared<engine::named_primary>(what.worth)} {}

void primary_watch::find(std::function<void(const found&)> whom) {
  if (is_closed_) return whom({});
  const bool is_known = last_.term != 0 && now() - last_at_ < 2 * period();
  is_wanted_ = true;
  if (!is_known) waiting_.push_back(whom);
  if (!std::exchange(is_started_, true)) {
    begin_round();
  } else if (!is_asking_) {
    wait_for_next();
  }
  if (is_known) whom(last_);
}

void primary_watch::begin_round() {
  is_asking_ = true;
  is_wanted_ = false;
  asking_for_ = std::exchange(waiting_, {});
  began_at_ = now();
  const instant patience_ends = events().now() + answer_patience;
  round answers;
  for (std::size_t i = 0; i < sentinels::count; ++i) {
    const instant given_at = events().now() + way();
    const instant comes_at = given_at + way();
    const bool answers_it = whom_->answers(process(), i, given_at);
    answers[i] = {i, given_at, answers_it ? comes_at : patience_ends, answers_it};
  }
  std::sort(answers.begin(), answers.end(), [](const answer& a, const answer& b) { return a.comes_at < b.comes_at; });
  read(answers, 2);
}

void primary_watch::read(const round& answers, std::size_t count) {
  events().at(answers[count - 1].comes_at, [this, answers, count] {
    when_running([this, answers, count] {
      std::array<std::optional<std::string>, sentinels::count> named{};
      for (std::size_t i = 0; i < count; ++i) {
        const auto& one = answers[i];
        if (one.is_given) named[i] = std::to_string(whom_->named_by(one.sentinel, one.given_at));
      }
      const auto primary = engine::named_by_majority(named);
      if (!primary && count < sentinels::count) return read(answers, count + 1);
      found result;
      if (primary) {
        const bool is_first = named_->term() == 0;
        const bool is_other = named_->name(*primary, began_at_, now());
        result = {std::stoi(*primary), named_->term()};
        last_ = result;
        last_at_ = began_at_;
        if (is_other && !is_first) on_change_();
      }
      end_round(result);
    });
  });
}

void primary_watch::end_round(found result) {
  // As there: without a majority, who was named not long ago is the primary still.
  if (result.term == 0 && named_->is_fresh(last_.term, now())) result = last_;
  is_asking_ = false;
  for (const auto& tell : std::exchange(asking_for_, {})) tell(result);
  if (!is_asking_) wait_for_next();
}

}  // namespace holdfast::sim
