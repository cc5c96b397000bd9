// SPDX-License-Identifier: Apache-2.0
#include "engine/acquire.hpp"

#include "script/command.hpp"
#include "script/reply.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace holdfast::engine {

namespace {

template <class... Ts>
struct overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
overloaded(Ts...) -> overloaded<Ts...>;  // clang 14 does not make this one by itself.

}  // namespace

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
    const auto what = judge_error(now, *error);
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

}  // namespace holdfast::engine
