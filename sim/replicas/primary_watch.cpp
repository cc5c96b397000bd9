// SPDX-License-Identifier: Apache-2.0
#include "replicas/primary_watch.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

// As src/net/sentinel_watch.cpp and asked_line.hpp.
constexpr duration least_pause = 20ms;
constexpr duration answer_patience = 1s;

}  // namespace

primary_watch::primary_watch(event_queue& events, settings what, seeded_random rng, hooks tell)
    : events_{&events},
      what_{what},
      rng_{rng},
      tell_{std::move(tell)},
      named_{std::make_shared<engine::named_primary>(what.worth)},
      period_{named_->grants_for() / 4} {}

void primary_watch::find(std::function<void(const found&)> whom) {
  if (is_closed_) return whom({});
  const bool is_known = last_.term != 0 && tell_.now() - last_at_ < 2 * period_;
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
  began_at_ = tell_.now();
  const auto way = [this] { return what_.least_delay + rng_.span(duration{0}, what_.jitter); };
  const instant patience_ends = events_->now() + answer_patience;
  round answers;
  for (std::size_t i = 0; i < sentinels::count; ++i) {
    const instant given_at = events_->now() + way();
    const instant comes_at = given_at + way();
    const bool answers_it = what_.whom->answers(what_.process, i, given_at);
    answers[i] = {i, given_at, answers_it ? comes_at : patience_ends, answers_it};
  }
  std::sort(answers.begin(), answers.end(), [](const answer& a, const answer& b) { return a.comes_at < b.comes_at; });
  read(answers, 2);
}

void primary_watch::read(const round& answers, std::size_t count) {
  events_->at(answers[count - 1].comes_at, [this, answers, count] {
    tell_.when_running([this, answers, count] {
      std::array<std::optional<std::string>, sentinels::count> named{};
      for (std::size_t i = 0; i < count; ++i) {
        const auto& one = answers[i];
        if (one.is_given) named[i] = std::to_string(what_.whom->named_by(one.sentinel, one.given_at));
      }
      const auto primary = engine::named_by_majority(named);
      if (!primary && count < sentinels::count) return read(answers, count + 1);
      found result;
      if (primary) {
        const bool is_first = named_->term() == 0;
        const bool is_other = named_->name(*primary, began_at_, tell_.now());
        result = {std::stoi(*primary), named_->term()};
        last_ = result;
        last_at_ = began_at_;
        if (is_other && !is_first) tell_.on_change();
      }
      end_round(result);
    });
  });
}

void primary_watch::end_round(found result) {
  // As there: without a majority, who was named not long ago is the primary still.
  if (result.term == 0 && named_->is_fresh(last_.term, tell_.now())) result = last_;
  is_asking_ = false;
  for (const auto& tell : std::exchange(asking_for_, {})) tell(result);
  if (!is_asking_) wait_for_next();
}

void primary_watch::wait_for_next() {
  const duration passed = tell_.now() - began_at_;
  const duration left = std::max((is_wanted_ ? least_pause : period_) - passed, duration{0});
  events_->after(left, [this, number = ++pause_] {
    tell_.when_running([this, number] {
      if (number == pause_ && !is_asking_ && !is_closed_) begin_round();
    });
  });
}

}  // namespace holdfast::sim
