// SPDX-License-Identifier: Apache-2.0
#include "core/hand_over_queue.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace holdfast::core {

namespace {

// Who is not the first looks so often whether it has become it, so that a hand-over wakes nobody but its receiver.
constexpr duration look_around = std::chrono::milliseconds{100};

bool is_silence(errc code) { return code == errc::reply_lost || code == errc::server_silent; }

// Whose own time was too short for an answer has not found that there is none.
bool is_trouble(const hand_over_queue::in_vain& what, time_point now, duration patience) {
  switch (what.code) {
    case errc::timed_out:
    case errc::quarantined:
    case errc::not_replicated:
    case errc::cancelled:
    case errc::cancelled_in_flight: return false;
    default: return !is_silence(what.code) || now - what.silent_since >= patience;
  }
}

}  // namespace

void hand_over_queue::join(waiter_ptr who) {
  if (chain_) who->heard = errc::timed_out;  // One of us has it.
  waiting_.push_back(std::move(who));
}

void hand_over_queue::join_again(waiter_ptr who) {
  who->heard = errc::timed_out;  // One of us had it.
  waiting_.push_front(std::move(who));
}

errc hand_over_queue::heard_by(const waiter& who) const {
  const errc news = news_;
  return news == errc::server_silent ? who.heard : news;
}

void hand_over_queue::end_asking(errc news) {
  --asking_;
  if (asking_ == 0) news_ = errc::server_silent;
  if (news == errc::server_silent) return;
  for (const auto& one : waiting_) one->heard = news;
}

void hand_over_queue::leave(const waiter_ptr& who) {
  const auto at = std::find(waiting_.begin(), waiting_.end(), who);
  if (at != waiting_.end()) waiting_.erase(at);
}

bool hand_over_queue::may_ask(const waiter& who, time_point now) {
  hear_of_more();
  if (who.is_told_to_ask) return true;
  return is_first(who) && asking_ == 0 && (!chain_ || now >= chain_->tokens.ends_at());
}

time_point hand_over_queue::wake_at(const waiter& who, time_point now, time_point until) const {
  if (!is_first(who)) return std::min(until, now + look_around);
  return asking_ > 0 || !chain_ ? until : std::min(until, chain_->tokens.ends_at());
}

bool hand_over_queue::go_and_ask(const waiter_ptr& who) {
  leave(who);
  ++asking_;
  return !waiting_.empty();
}

void hand_over_queue::got(const lease_of& first, int block, time_point granted_at, const hand_over_wish& wish,
                          const hand_over_limits& limits) {
  std::optional<held_chain> chain;  // First, because without memory the caller has failed() and nothing else.
  if (block > 0) chain.emplace(held_chain{{first.token, block, granted_at, wish, limits}, first});
  end_asking(errc::timed_out);  // For all others.
  last_ = fencing_token{first.token.value() + static_cast<std::uint64_t>(block)};
  chain_ = std::move(chain);
}

bool hand_over_queue::failed(const in_vain& what, time_point now, duration patience) {
  end_asking(news_);
  const bool all = is_trouble(what, now, patience);
  const time_point silent_since = is_silence(what.code) ? what.silent_since : never;
  for (const auto& one : waiting_) {
    one->is_told_to_ask = one->is_told_to_ask || all;
    one->silent_since = silent_since;
    if (!all) break;
  }
  return all;
}

std::optional<fencing_token> hand_over_queue::next_token(const lease_of& held, time_point now, time_point deadline) {
  hear_of_more();
  if (!chain_ || chain_->held != held || waiting_.empty()) return std::nullopt;
  if (!chain_->tokens.can_pass(now, deadline, waiting_.front()->wish)) return std::nullopt;
  return chain_->tokens.pass();
}

hand_over_queue::waiter_ptr hand_over_queue::hand_on(fencing_token next) {
  auto to = std::move(waiting_.front());
  waiting_.pop_front();
  chain_->held.token = next;
  return to;
}

std::optional<hand_over_queue::more> hand_over_queue::wants_more(time_point now, time_point deadline) {
  if (!chain_ || !chain_->tokens.wants_to_go_on(now, deadline)) return std::nullopt;
  chain_->has_more = std::make_shared<std::atomic<bool>>(false);
  chain_->tokens.ask_to_go_on(now);
  return more{chain_->tokens.last(), chain_->tokens.most(), chain_->has_more};
}

// Not when the first is on its way to the server: it has its turn.
void hand_over_queue::hear_of_more() {
  if (!chain_ || !chain_->has_more || !*chain_->has_more || asking_ > 0) return;
  chain_->has_more.reset();
  chain_->tokens.go_on();
  last_ = chain_->tokens.last();
}

bool hand_over_queue::ended(const lease_of& held) {
  if (!chain_ || chain_->held != held) return false;
  chain_.reset();
  return true;
}

}  // namespace holdfast::core
