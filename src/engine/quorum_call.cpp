// SPDX-License-Identifier: Apache-2.0
#include "engine/quorum_call.hpp"

#include "script/reply.hpp"

namespace holdfast::engine {

std::string voter::trouble() const {
  if (channel_.is_ready()) return is_slow_ ? "did not answer in time" : "";
  const auto& failure = channel_.last_failure();
  if (!failure.text.empty()) return failure.text;
  return "no connection yet";
}

bool voter::is_out_of_reach() const {
  const int tries = channel_.connect_attempts();
  return !channel_.is_ready() && (tries > 1 || (tries == 1 && channel_.is_closed()));
}

void voter::on_ready(time_point now) {
  // Ahead of the first vote: one that had to be sent again might be decided without it.
  for (const auto which : {script::id::vote, script::id::leave}) channel_.load(now, which);
  is_slow_ = false;
  has_news_ = true;
  ++connections_;
  if (tell_.on_up) tell_.on_up();
}

void voter::on_down(time_point /*now*/, const connection_failure& failure, bool was_ready) {
  has_news_ = true;
  ++downs_;
  if (was_ready && tell_.on_down) tell_.on_down(failure);
}

void voter::on_clock_step(time_point /*now*/, duration step) {
  if (tell_.on_clock_step) tell_.on_clock_step(step, channel_.clock());
}

quorum_call::quorum_call(voters& all) : voters_{&all} {
  for (auto& one : all) slips_.push_back(std::make_unique<slip>(*this, *one));
}

void quorum_call::slip::on_reply(time_point now, time_point sent, const resp::value& answer) {
  // The connection may be days old, and clocks go apart.
  if (const auto there = script::server_time_in(answer)) whom->wire().observe_clock(*there, sent, now);
  worth = whom->wire().worth_of_grant(sent_at);
  whom->found_quick();
  reply = answer;
  of->tell_news();
}

void quorum_call::slip::on_cut(time_point /*now*/) {
  was_cut = true;
  of->tell_news();
}

void quorum_call::slip::clear() {
  whom->wire().forget(*this);
  is_asked = was_cut = false;
  reply.reset();
  worth = epoch_watch::worth::nothing;
}

void quorum_call::forget_all() {
  for (auto& one : slips_) one->whom->wire().forget(*one);
}

void quorum_call::ask(std::size_t whom, time_point now, script::command what) {
  auto& paper = of(whom);
  paper.clear();
  all()[whom]->wire().send(now, std::move(what), paper);
  paper.is_asked = true;  // Not before: without memory nobody answers it.
  paper.sent_at = now;
}

void quorum_call::note_start() {
  if (!downs_before_.empty()) return;
  for (const auto& one : all()) downs_before_.push_back(one->downs());
}

bool quorum_call::has_failed_for_good(std::size_t whom) const {
  const auto& wire = all()[whom]->wire();
  return wire.is_closed() && all()[whom]->downs() != downs_before_[whom] && wire.last_failure().is_final;
}

void quorum_call::judge_error(time_point now, std::size_t whom) {
  const auto* error = of(whom).reply->as_error();
  if (!error) return;
  const auto what = script::classify(error->text);
  if (what.what == script::reaction::reconnect) {
    all()[whom]->wire().hang_up(now, {what.code, error->text, false, false});
  }
}

}  // namespace holdfast::engine
