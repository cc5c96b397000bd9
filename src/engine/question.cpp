// SPDX-License-Identifier: Apache-2.0
#include "engine/question.hpp"

#include "script/reply.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace holdfast::engine {

namespace {

constexpr std::chrono::seconds least_patience{1};

}  // namespace

question::question(channel& to, script::command what, repeat how, time_point give_up_at)
    : call{to}, command_{std::move(what)}, how_{how}, give_up_at_{give_up_at}, wake_at_{give_up_at} {}

question::question(channel& to, std::string encoded, repeat how, time_point give_up_at)
    : call{to}, encoded_{std::move(encoded)}, how_{how}, give_up_at_{give_up_at}, wake_at_{give_up_at} {}

void question::step(time_point now) {
  if (is_over()) return;
  if (now >= give_up_at_) {
    failure_ = is_asked_ || is_cut_ ? errc::reply_lost : last_news_;
    return;
  }
  if (is_asked_ || !to().is_ready() || now < ask_at_) return;
  ask(now);
}

void question::ask(time_point now) {
  is_asked_ = true;
  ++attempts_;
  if (how_ == repeat::timed) {
    // Long enough for an answer, and no longer than who is cut off may be kept waiting for.
    const duration patience = std::max<duration>(least_patience, 4 * to().round_trip());
    not_after_ = to().server_now(now) + std::chrono::duration_cast<server_time::duration>(patience);
    script::set_not_after(*command_, not_after_);
  }
  command_ ? to().send(now, *command_, *this) : to().send_raw(now, encoded_, *this);
}

bool question::is_too_early(time_point now, time_point sent_at, const resp::value& reply) {
  const auto said = script::parse_change(reply);
  if (!said) return false;
  to().observe_clock(said->now, sent_at, now);  // What comes late knew another time.
  if (said->was_late) last_news_ = errc::clock_stepped;
  if (!said->was_late && said->now > left_until_) return false;
  const auto left = std::max(server_time::duration{0}, left_until_ - said->now);
  ask_at_ = now + std::max<duration>(left, std::chrono::milliseconds{25});
  return true;
}

void question::on_reply(time_point now, time_point sent_at, const resp::value& reply) {
  is_asked_ = false;
  round_trip_ = now - sent_at;
  const auto* error = reply.as_error();
  const auto what = error ? judge_error(now, *error) : script::classified{errc{}, script::reaction::give_up};
  // A cluster that moves a slot says so, and so does who is the primary no more; what was asked was not done.
  if (what.what == script::reaction::try_again && (slot() != no_slot || what.code == errc::no_primary)) {
    ask_at_ = now + std::chrono::milliseconds{25};
    last_news_ = what.code;
    return tell_news();
  }
  if (how_ == repeat::timed && is_too_early(now, sent_at, reply)) return tell_news();
  // To a later copy: of the first one it says nothing.
  if (error && may_have_been_done()) {
    failure_ = errc::reply_lost;
  } else {
    reply_ = reply;
  }
  tell_news();
}

void question::on_left(time_point /*now*/) {
  if (is_asked_) left_until_ = std::max(left_until_, not_after_);
  is_asked_ = false;
  is_cut_ = true;
  last_news_ = errc::connection_lost;
  if (how_ == repeat::refused) failure_ = errc::reply_lost;
}

void question::on_cut(time_point now) {
  note(to().last_failure().text);
  on_left(now);
  step(now);
  tell_news();
}

void question::on_no_connection(time_point /*now*/, const connection_failure& failure) {
  if (is_over()) return;
  note(failure.text);
  last_news_ = failure.code;
  const bool is_typing_error = failure.is_refusal && !to().was_ever_ready() && ++refusals_ >= 3;
  if (failure.is_final || is_typing_error) failure_ = may_have_been_done() ? errc::reply_lost : failure.code;
}

}  // namespace holdfast::engine
