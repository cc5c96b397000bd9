// SPDX-License-Identifier: Apache-2.0
#include "net/sentinel_watch.hpp"

#include "net/clock.hpp"
#include "net/quiet_thread.hpp"
#include "net/wait_for.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace holdfast::net {

using namespace std::chrono_literals;

namespace {

// Between two rounds for those who want to connect.
constexpr duration least_pause = 20ms;

using line = asked_line<engine::sentinel_talk>;

std::optional<std::string> named_by(const line& one) {
  if (!one.answer() || one.answer()->host.empty()) return std::nullopt;
  return text_of(tcp_address{one.answer()->host, one.answer()->port});
}

engine::sentinel_voice voice_of(const line& one) {
  return {one.answer() ? one.answer()->identity : std::string{}, named_by(one)};
}

std::string what_it_says(const line& one) {
  if (!one.answer()) return "no answer";
  return one.answer()->failure.empty() ? *named_by(one) : one.answer()->failure;
}

}  // namespace

sentinel_watch::sentinel_watch(const sentinel_set& whom, duration worth, core::clock_drift drift)
    : named_{std::make_shared<engine::named_primary>(worth, drift)}, period_{named_->grants_for() / 4}, whom_{whom} {
  for (const auto& one : whom.sentinels) {
    lines_.push_back(
        std::make_unique<line>(endpoint{one, whom.uses_tls, whom.tls}, engine::sentinel_talk{whom.who, whom.primary}));
  }
}

sentinel_watch::~sentinel_watch() = default;

void sentinel_watch::find(const std::function<void(const found&)>& whom) {
  std::optional<found> known;
  {
    const std::lock_guard held{mutex_};
    if (is_closing_) {
      known = found{.failure = "the client is closed"};
    } else {
      if (!thread_.joinable()) thread_ = start_quietly([self = shared_from_this()] { self->run(); });
      if (last_.term != 0 && boottime_now() - last_at_ < 2 * period_) known = last_;
      if (!known) waiting_.push_back(whom);
      is_wanted_ = true;
    }
  }
  wake_.set();
  if (known) whom(*known);
}

void sentinel_watch::close(bool wait) noexcept {
  std::thread ending;
  {
    const std::lock_guard held{mutex_};
    is_closing_ = true;
    ending = std::move(thread_);
  }
  wake_.set();
  let_end(std::move(ending), wait);
}

bool sentinel_watch::must_end() const {
  const std::lock_guard held{mutex_};
  return is_closing_;
}

time_point sentinel_watch::next_round(time_point last) const {
  const std::lock_guard held{mutex_};
  return last + (is_wanted_ ? least_pause : period_);
}

void sentinel_watch::run() {
  while (!must_end()) {
    const time_point began_at = boottime_now();
    std::vector<std::function<void(const found&)>> whom;
    {
      const std::lock_guard held{mutex_};
      whom.swap(waiting_);
      is_wanted_ = false;
    }
    auto result = ask_all();
    // Without a majority nobody is named anew, but who was named not long ago is the primary still.
    if (result.term == 0 && named_->is_fresh(last_.term, boottime_now())) result = last_;
    for (const auto& tell : whom) tell(result);
    while (!must_end() && boottime_now() < next_round(began_at)) wait(next_round(began_at));
  }
}

sentinel_watch::found sentinel_watch::ask_all() {
  const time_point until = boottime_now() + answer_patience;
  for (const auto& one : lines_) one->ask();
  for (;;) {
    auto result = what_they_say();
    if (result.term != 0 || all_are_done() || must_end() || boottime_now() >= until) return result;
    wait(until);
  }
}

bool sentinel_watch::all_are_done() const {
  return std::all_of(lines_.begin(), lines_.end(), [](const auto& one) { return one->answer().has_value(); });
}

sentinel_watch::found sentinel_watch::what_they_say() {
  std::vector<engine::sentinel_voice> heard;
  for (const auto& one : lines_) heard.push_back(voice_of(*one));
  const auto primary = engine::named_by_majority(heard);
  if (!primary) return why_nobody(heard);
  found result;
  time_point asked_at = never;  // The first of those who name it.
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (heard[i].names != primary) continue;
    result.where = {lines_[i]->answer()->host, lines_[i]->answer()->port};
    asked_at = std::min(asked_at, lines_[i]->asked_at());
  }
  const bool is_first = named_->term() == 0;
  const bool is_other = named_->name(*primary, asked_at, boottime_now());
  result.term = named_->term();
  {
    const std::lock_guard held{mutex_};
    last_ = result;
    last_at_ = asked_at;
  }
  if (is_other && !is_first && tell_of_change_) tell_of_change_();
  return result;
}

// Final if those of whom nothing better will be heard leave no majority to the others. Then the code is what they have
// in common. (A sentinel that is there a second time adds nothing to that.)
sentinel_watch::found sentinel_watch::why_nobody(const std::vector<engine::sentinel_voice>& heard) const {
  found out;
  std::size_t hopeless = 0;
  std::size_t refused = 0;
  errc common = errc::no_primary;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const auto& answer = lines_[i]->answer();
    const auto twin = engine::same_sentinel_as(heard, i);
    out.failure += (i == 0 ? "" : "; ") + text_of(whom_.sentinels[i]) + ": ";
    out.failure += twin ? "it is the same sentinel as " + text_of(whom_.sentinels[*twin]) : what_it_says(*lines_[i]);
    const bool is_refused = !twin && answer && answer->is_final;
    if (is_refused) common = refused == 0 || common == answer->code ? answer->code : errc::no_primary;
    refused += is_refused ? 1 : 0;
    hopeless += is_refused || twin ? 1 : 0;
  }
  out.is_final = (lines_.size() - hopeless) * 2 <= lines_.size();
  if (out.is_final) out.code = common;
  return out;
}

void sentinel_watch::wait(time_point until) {
  std::vector<pollfd> fds;
  for (const auto& one : lines_) fds.push_back(one->poll_for());
  fds.push_back({wake_.get(), POLLIN, 0});
  wait_for(fds, until);
  if (fds.back().revents) wake_.clear();
  for (std::size_t i = 0; i < lines_.size(); ++i) lines_[i]->collect(fds[i].revents);
}

}  // namespace holdfast::net
