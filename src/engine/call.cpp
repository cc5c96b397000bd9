// SPDX-License-Identifier: Apache-2.0
#include "engine/call.hpp"

#include "script/server_error.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace holdfast::engine {

namespace {

template <class... Ts>
struct overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
overloaded(Ts...) -> overloaded<Ts...>;  // clang 14 does not make this one by itself.

// An answer that contradicts the greeting: the next connection's greeting will say what is wrong.
void distrust_if_told(channel& to, time_point now, const script::classified& error, const std::string& text) {
  if (error.what == script::reaction::reconnect) to.hang_up(now, {error.code, text, false, false});
}

}  // namespace

// ---- acquire ----

acquire::acquire(channel& to, request what, time_point now, base::random_source& rng)
    : call{to}, what_{std::move(what)}, flow_{what_.settings, now, rng}, wake_at_{now} {}

void acquire::step(time_point now) {
  for (;;) {
    const auto action = flow_.on_wake(now, to().is_ready());
    if (const auto* sleep = std::get_if<core::sleep_until>(&action)) {
      wake_at_ = sleep->at;
      return;
    }
    const auto* ask = std::get_if<core::ask>(&action);
    if (!ask) return;
    const auto may_take = std::chrono::duration_cast<server_time::duration>(ask->may_take);
    const server_time not_after = to().server_now(now) + may_take;
    last_not_after_ = std::max(last_not_after_, not_after);
    to().send(now,
              script::acquire(what_.keys, ask->owner, what_.settings.ttl, not_after, what_.max_ttl, what_.label,
                              what_.min_fence),
              *this);
  }
}

void acquire::cancel(time_point now) {
  flow_.on_cancel(now);
  to().forget(*this);
}

void acquire::on_reply(time_point now, time_point sent_at, const resp::value& reply) {
  flow_.on_answer(now, sent_at, judge(now, sent_at, reply));
  step(now);
  if (on_news) on_news();
}

core::acquire_answer acquire::judge(time_point now, time_point sent_at, const resp::value& reply) {
  if (const auto* error = reply.as_error()) {
    note(error->text);
    const auto what = script::classify(error->text);
    distrust_if_told(to(), now, what, error->text);
    return core::was_refused{what.code, what.what == script::reaction::try_again};
  }
  const auto parsed = script::parse_acquire(reply);
  if (!parsed) return core::was_refused{errc::unexpected_reply, false};
  to().observe_clock(parsed->now, sent_at, now);
  return std::visit(overloaded{
                        [](const script::granted& g) -> core::acquire_answer { return core::was_granted{g.token}; },
                        [](const script::mine& m) -> core::acquire_answer {
                          return core::was_mine{m.token, m.remaining};
                        },
                        [](const script::busy& b) -> core::acquire_answer {
                          if (b.remaining.count() < 0) return core::was_busy{};
                          return core::was_busy{b.remaining};
                        },
                        [](const script::late&) -> core::acquire_answer { return core::was_late{}; },
                        [](const script::spent&) -> core::acquire_answer { return core::was_spent{}; },
                        [&](const script::wrong_kind& k) -> core::acquire_answer {
                          found_kind_ = k.found;
                          return core::was_refused{errc::wrong_kind, false};
                        },
                        [&](const script::bad_argument& b) -> core::acquire_answer {
                          note(b.what);
                          return core::was_refused{errc::invalid_option, false};
                        },
                        [](const script::fence_too_far&) -> core::acquire_answer {
                          return core::was_refused{errc::fence_too_far, false};
                        },
                        [](const script::quarantined&) -> core::acquire_answer {
                          return core::was_refused{errc::server_loading, true};
                        },
                    },
                    parsed->what);
}

void acquire::on_cut(time_point now) {
  note(to().last_failure().text);
  flow_.on_cut(now);
  step(now);
  if (on_news) on_news();
}

void acquire::on_no_connection(time_point now, const connection_failure& failure) {
  note(failure.text);
  flow_.on_no_connection(now, failure.code, failure.is_final, failure.is_refusal);
}

std::vector<unsettled> acquire::take_unsettled() {
  std::vector<unsettled> all;
  for (const auto& owner : flow_.take_clean_ups()) all.push_back({owner, last_not_after_});
  return all;
}

// ---- release ----

release::release(channel& to, script::lock_keys keys, owner_id owner, fencing_token token, time_point lease_deadline,
                 time_point give_up_at)
    : call{to}, keys_{std::move(keys)}, owner_{owner}, token_{token}, flow_{lease_deadline, give_up_at} {}

void release::step(time_point now) {
  if (flow_.on_wake(now, to().is_ready())) to().send(now, script::release(keys_, owner_, token_), *this);
}

void release::on_reply(time_point now, time_point sent_at, const resp::value& reply) {
  if (const auto* error = reply.as_error()) {
    note(error->text);
    const auto what = script::classify(error->text);
    distrust_if_told(to(), now, what, error->text);
    // NOREPLICAS and MISCONF block releases too (H31): the lease stays until its ttl; the background goes on.
    what.what == script::reaction::give_up ? flow_.on_hopeless() : flow_.on_not_done(now);
  } else if (const auto parsed = script::parse_release(reply)) {
    to().observe_clock(parsed->now, sent_at, now);
    parsed->what == script::release_answer::released ? flow_.on_released() : flow_.on_not_mine(sent_at);
  } else {
    flow_.on_hopeless();
  }
  if (on_news) on_news();
}

void release::on_cut(time_point now) {
  note(to().last_failure().text);
  flow_.on_cut();
  step(now);
  if (on_news) on_news();
}

void release::on_no_connection(time_point /*now*/, const connection_failure& failure) {
  note(failure.text);
  if (failure.is_final) flow_.on_hopeless();
}

// ---- question ----

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
  if (is_asked_ || !to().is_ready()) return;
  is_asked_ = true;
  ++attempts_;
  command_ ? to().send(now, *command_, *this) : to().send_raw(now, encoded_, *this);
}

void question::on_reply(time_point now, time_point sent_at, const resp::value& reply) {
  is_asked_ = false;
  round_trip_ = now - sent_at;
  if (const auto* error = reply.as_error()) {
    note(error->text);
    const auto what = script::classify(error->text);
    distrust_if_told(to(), now, what, error->text);
  }
  reply_ = reply;
  if (on_news) on_news();
}

void question::on_cut(time_point now) {
  note(to().last_failure().text);
  is_asked_ = false;
  is_cut_ = true;
  last_news_ = errc::connection_lost;
  if (how_ == repeat::refused) failure_ = errc::reply_lost;
  step(now);
  if (on_news) on_news();
}

void question::on_no_connection(time_point /*now*/, const connection_failure& failure) {
  if (is_over()) return;
  note(failure.text);
  last_news_ = failure.code;
  const bool is_typing_error = failure.is_refusal && !to().was_ever_ready() && ++refusals_ >= 3;
  if (failure.is_final || is_typing_error) failure_ = failure.code;
}

// ---- caller ----

void caller::start(call& what, time_point now) {
  calls_.push_back(&what);
  channel_.set_demand(true);
  what.step(now);
}

void caller::stop(call& what) {
  std::erase(calls_, &what);
  channel_.forget(what);
  if (calls_.empty()) channel_.set_demand(false);
}

// A call that is told may end but never leaves the list by itself, so the list stays as it is.
template <class Tell>
void caller::tell_all(Tell&& tell) {
  for (call* c : calls_) {
    if (c->is_over()) continue;
    tell(*c);
    if (c->on_news) c->on_news();
  }
}

void caller::on_ready(time_point now) {
  if (tell_.on_up) tell_.on_up();
  tell_all([&](call& c) { c.step(now); });
}

void caller::on_down(time_point now, const connection_failure& failure, bool was_ready) {
  if (was_ready && tell_.on_down) tell_.on_down(failure);
  if (!was_ready) tell_all([&](call& c) { c.on_no_connection(now, failure); });
}

void caller::on_clock_step(duration step) {
  if (tell_.on_clock_step) tell_.on_clock_step(step);
}

}  // namespace holdfast::engine
