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

acquire::acquire(channel& to, hints& ear, request what, const core::acquire_settings& how, time_point now,
                 base::random_source& rng)
    : call{to}, ear_{&ear}, what_{std::move(what)}, flow_{how, now, rng} {}

acquire::rare& acquire::rarely() {
  if (!rare_) rare_ = std::make_unique<rare>();
  return *rare_;
}

void acquire::step(time_point now) {
  if (is_moved()) return;
  for (;;) {
    mind_quarantine();
    let_leave(now);
    while (leave_it_to_the_first(now)) {
    }
    const auto action = flow_.on_wake(now, to().is_ready(), ear_->hearing());
    if (flow_.wants_hints()) ear_->want(now);  // Behind that: in quarantine it goes to the line by itself.
    if (std::holds_alternative<core::sleep_until>(action) || std::holds_alternative<core::finish>(action)) return;
    send(now, action);
  }
}

void acquire::send(time_point now, const core::acquire_action& action) try {
  if (const auto* ask = std::get_if<core::ask>(&action)) {
    send(now, *ask);
  } else if (const auto* stand = std::get_if<core::stand>(&action)) {
    send(now, *stand);
  } else if (const auto* look = std::get_if<core::look>(&action)) {
    send(now, *look);
  } else if (const auto* back = std::get_if<core::give_back>(&action)) {
    send(now, *back);
  }
} catch (...) {
  flow_.on_cut(now);  // Else it would wait for the answer to what was not sent.
  throw;
}

server_time acquire::not_after(time_point now, duration may_take) {
  const server_time at = to().server_now(now) + std::chrono::duration_cast<server_time::duration>(may_take);
  last_not_after_ = std::max(last_not_after_, at);
  return at;
}

void acquire::send(time_point now, const core::ask& what) {
  const auto until = not_after(now, what.may_take);
  if (!what_.keys.is_counted) {
    reserved_ = what_.block_at_once;
    to().send(now,
              script::acquire(what_.keys, what.owner, flow_.ttl(), until, what_.max_ttl, *what_.label, what_.min_fence,
                              what_.block_at_once),
              *this);
    return;
  }
  const script::line_entry entry{.ttl = flow_.ttl(),
                                 .label = *what_.label,
                                 .min_fence = what_.min_fence,
                                 .window = flow_.ttl(),
                                 .wait_until = {},
                                 .ticket = 0,
                                 .what = what_.part};
  const script::listener who{ear_->channel_name(), false};
  to().send(now, script::try_line(what_.keys, what.owner, entry, who, until, what_.max_ttl), *this);
}

void acquire::send(time_point now, const core::stand& what) {
  if (!what_.keys.is_counted) reserved_ = what_.part.permits;
  was_in_line_ = true;
  expect_hints_as(what.owner);  // A hint may arrive before the answer (P6).
  script::line_entry entry{.ttl = flow_.ttl(),
                           .label = *what_.label,
                           .min_fence = what_.min_fence,
                           .window = what.window,
                           .wait_until = {},
                           .ticket = what.ticket,
                           .what = what_.part};
  if (what.wait_left) {
    const auto left = std::chrono::duration_cast<server_time::duration>(*what.wait_left);
    entry.wait_until = to().server_now(now) + left;
  }
  const script::listener who{ear_->channel_name(), ear_->hearing() == core::hearing::yes};
  const auto until = not_after(now, what.may_take);
  to().send(now,
            what.only_try ? script::try_line(what_.keys, what.owner, entry, who, until, what_.max_ttl)
                          : script::wait(what_.keys, what.owner, entry, who, until, what_.max_ttl),
            *this);
}

void acquire::send(time_point now, const core::look& what) {
  was_called_ = std::exchange(is_called_, false);
  expect_hints_as(what.owner);  // It may have stood in line at another server before.
  auto along = what.is_heartbeat ? take_mates_along(now) : std::vector<owner_id>{};
  if (!along.empty()) rarely();  // Without memory nothing is sent.
  const script::listener who{ear_->channel_name(), ear_->hearing() == core::hearing::yes};
  const auto until = not_after(now, what.may_take);
  to().send(now, script::look(what_.keys, what.owner, what_.part, who, until, what_.max_ttl, along), *this,
            what.is_heartbeat ? channel::hope::little : channel::hope::grant);
  if (!along.empty()) rarely().taken_along = std::move(along);
}

void acquire::send(time_point now, const core::give_back& what) {
  to().send(now, script::leave(what_.keys, what.owner), *this);
}

// ---- one look for all of us ----

void acquire::stand_with_mates(std::uint64_t at) {
  if (index()) index()->by_line.place(what_.keys.holder, *this, at);
}

bool acquire::leave_it_to_the_first(time_point now) {
  if (ticket == 0 || !to().is_ready() || !flow_.is_heartbeat_due(now)) return false;
  for (auto& one : *index()->by_line.of(what_.keys.holder)) {
    auto& mate = static_cast<acquire&>(one);
    if (&mate == this) return false;
    if (!mate.flow_.can_be_looked_for(now)) continue;
    mate.flow_.on_chosen(now);
    mate.step_and_tell(now);
    return true;
  }
  return false;
}

std::vector<owner_id> acquire::take_mates_along(time_point now) {
  std::vector<owner_id> along;
  if (ticket == 0) return along;
  for (auto& one : *index()->by_line.of(what_.keys.holder)) {
    auto& mate = static_cast<acquire&>(one);
    if (&mate == this || !mate.flow_.can_be_looked_for(now)) continue;
    along.push_back(mate.flow_.owner());
    mate.flow_.on_taken_along(now);
    if (along.size() == script::most_others) break;
  }
  return along;
}

void acquire::tell_mates(time_point now, const core::acquire_answer& answer, const std::vector<std::size_t>& missing) {
  if (!rare_ || rare_->taken_along.empty()) return;
  const auto along = std::exchange(rare_->taken_along, {});
  const bool is_lost = std::holds_alternative<core::was_not_in_line>(answer);  // Perhaps all of the line is.
  const bool was_for_them = std::holds_alternative<core::was_queued>(answer);
  std::vector<acquire*> to_step;
  for (std::size_t i = 0; i < along.size(); ++i) {
    // Only acquires expect hints.
    auto* const mate = static_cast<acquire*>(find_by_owner(along[i]));
    if (!mate) continue;
    mate->mind_quarantine();
    if (is_lost || std::find(missing.begin(), missing.end(), i) != missing.end()) {
      mate->flow_.on_missed(now);
      to_step.push_back(mate);
    } else if (was_for_them) {
      mate->flow_.on_looked_for(now);
    } else {
      mate->flow_.on_not_looked_for(now);
      to_step.push_back(mate);
    }
  }
  for (auto* mate : to_step) mate->step_and_tell(now);
}

void acquire::step_and_tell(time_point now) {
  step(now);
  tell_news();
}

void acquire::cancel(time_point now) {
  flow_.on_cancel(now);
  to().forget(*this);
}

void acquire::on_reply(time_point now, time_point sent_at, const resp::value& reply) {
  mind_quarantine();
  if (!flow_.is_giving_back()) forget_words();  // Of a trouble that has passed.
  std::vector<std::size_t> missing;
  const auto answer = flow_.is_giving_back() ? judge_leave(now, sent_at, reply) : judge(now, sent_at, reply, missing);
  const bool is_proof = have_all_left();
  flow_.on_answer(now, sent_at, is_doubtful(now, sent_at, answer, is_proof) ? core::was_unconfirmed{} : answer,
                  is_proof);
  if (rare_ && rare_->news) *rare_->news = flow_.last_news();
  stand_with_mates(flow_.is_in_line() ? flow_.ticket() : 0);
  tell_mates(now, answer, missing);
  // Who was called and comes too late has not missed it for want of hearing: a break may have ended the grant.
  if (std::holds_alternative<core::was_not_in_line>(answer) && !was_called_ && !is_called_) ear_->doubt(now);
  step_and_tell(now);
}

// Our own grant may have been in the way; and who is in line asks nothing more for seconds, so that its wait might end
// as unknown (C5). Not for ever: an ACL may deny the leave.
bool acquire::is_doubtful(time_point now, time_point sent_at, const core::acquire_answer& answer, bool is_proof) {
  if (is_proof) return false;
  constexpr int most_doubts = 3;
  const bool is_no = std::holds_alternative<core::was_busy>(answer) || std::holds_alternative<core::was_lined>(answer);
  const bool may_wait_for_proof =
      std::holds_alternative<core::was_queued>(answer) && flow_.can_ask_for_proof(now, sent_at);
  return (is_no || may_wait_for_proof) && rare_->doubts++ < most_doubts;
}

// They were told ahead of what is answered now; but the server may have refused that, or not have known the script.
bool acquire::have_all_left() {
  if (!rare_ || rare_->through == rare_->told) return true;
  if (rare_->refused != to().refused_unheard()) {
    let_leave_again();
    return false;
  }
  rare_->through = rare_->told;
  return true;
}

core::acquire_answer acquire::of_worth(time_point now, time_point sent_at, core::acquire_answer grant) {
  if (!to().counts_grant(sent_at, now)) return core::was_unconfirmed{};
  switch (to().worth_of_grant(sent_at)) {
    case epoch_watch::worth::counts: break;
    case epoch_watch::worth::unconfirmed: return core::was_unconfirmed{};
    case epoch_watch::worth::nothing: return core::was_uncounted{};
  }
  const auto& replicas = to().confirmed();
  switch (replicas.what) {
    case confirmation::word::not_needed:
    case confirmation::word::enough: break;
    case confirmation::word::not_asked: return core::was_unconfirmed{};
    case confirmation::word::few:
      rarely().replicas = replicas.replicas;
      return core::was_unreplicated{errc::not_replicated, true};
    case confirmation::word::refused:
      note(replicas.text);
      return core::was_unreplicated{replicas.code, replicas.passes};
  }
  return grant;
}

core::acquire_answer acquire::refused(time_point now, const resp::server_error& error) {
  const auto what = judge_error(now, error);
  return core::was_refused{what.code, what.what == script::reaction::try_again, what.what == script::reaction::keep};
}

core::acquire_answer acquire::judge_leave(time_point now, time_point sent_at, const resp::value& reply) {
  if (const auto* error = reply.as_error()) return refused(now, *error);
  const auto parsed = script::parse_release(reply);
  if (!parsed) return core::was_refused{errc::unexpected_reply, false};
  to().observe_clock(parsed->now, sent_at, now);
  return core::was_left{};
}

core::acquire_answer acquire::judge(time_point now, time_point sent_at, const resp::value& reply,
                                    std::vector<std::size_t>& missing) {
  if (const auto* error = reply.as_error()) return refused(now, *error);
  const auto parsed = script::parse_acquire(reply);
  if (!parsed) return core::was_refused{errc::unexpected_reply, false};
  to().observe_clock(parsed->now, sent_at, now);
  return std::visit(overloaded{
                        [&](const script::granted& g) -> core::acquire_answer {
                          return of_worth(now, sent_at, core::was_granted{g.token, to().counts_until()});
                        },
                        [&](const script::mine& m) -> core::acquire_answer {
                          return of_worth(now, sent_at, core::was_mine{m.token, m.remaining, to().counts_until()});
                        },
                        [](const script::busy&) -> core::acquire_answer { return core::was_busy{}; },
                        [](const script::lined&) -> core::acquire_answer { return core::was_lined{}; },
                        [](const script::unseen&) -> core::acquire_answer { return core::was_unseen{}; },
                        [&](const script::queued& q) -> core::acquire_answer {
                          missing = q.missing;
                          return core::was_queued{q.ticket, q.look_in};
                        },
                        [](const script::not_in_line&) -> core::acquire_answer { return core::was_not_in_line{}; },
                        [](const script::late&) -> core::acquire_answer { return core::was_late{}; },
                        [](const script::spent&) -> core::acquire_answer { return core::was_spent{}; },
                        [&](const script::wrong_kind& k) -> core::acquire_answer {
                          rarely().found_kind = k.found;
                          return core::was_refused{errc::wrong_kind, false};
                        },
                        [&](const script::other_size& o) -> core::acquire_answer {
                          rarely().found_size = o.size;
                          return core::was_refused{errc::other_size, false};
                        },
                        [&](const script::bad_argument& b) -> core::acquire_answer {
                          note(b.what);
                          return core::was_refused{errc::invalid_option, false};
                        },
                        [](const script::fence_too_far&) -> core::acquire_answer {
                          return core::was_refused{errc::fence_too_far, false};
                        },
                    },
                    parsed->what);
}

void acquire::on_cut(time_point now) {
  note(to().last_failure().text);
  lose_connection(now);
  step_and_tell(now);
}

void acquire::on_left(time_point now) { lose_connection(now); }

void acquire::lose_connection(time_point now) {
  flow_.on_cut(now);
  if (!rare_) return;
  rare_->taken_along.clear();
  let_leave_again();
}

// What was told and not answered behind may be nowhere.
void acquire::let_leave_again() {
  if (rare_) rare_->told = rare_->through;
}

// With its owner id and its ticket, which went with the slot's keys.
void acquire::on_going_on(time_point now, hints& ear) {
  ear_ = &ear;
  let_leave_again();
  flow_.on_connected(now);
}

void acquire::on_no_connection(time_point now, const connection_failure& failure) {
  note(failure.text);
  flow_.on_no_connection(now, failure.code, failure.is_final, failure.is_refusal);
}

void acquire::on_connected(time_point now) {
  flow_.on_connected(now);
  step(now);
}

void acquire::on_hint(time_point now, std::string_view owner, server_time /*said_at*/, duration look_in) {
  if (owner != flow_.owner().hex()) return;
  is_called_ = true;
  flow_.on_hint(now, look_in);
  step(now);
}

void acquire::on_hearing_changed(time_point now) {
  flow_.on_hearing_changed(now);
  step(now);
}

// While the call goes on: at once and ahead of what is asked next, because a grant to a former owner id of ours would
// keep us out, and because what is answered then proves that it is back (core/acquire_call.hpp). So it is said again
// where nothing was answered behind it, or it was refused.
void acquire::let_leave(time_point now) {
  collect_unsettled();
  if (!rare_ || flow_.is_over() || !to().is_ready()) return;
  const auto& all = rare_->left_behind;
  if (rare_->told < all.size()) rare_->refused = to().refused_unheard();
  for (; rare_->told < all.size(); ++rare_->told) {
    to().send_and_forget(now, script::leave(what_.keys, all[rare_->told].owner));
  }
}

void acquire::collect_unsettled() {
  if (flow_.clean_ups() == 0) return;
  auto& all = rarely().left_behind;
  all.reserve(all.size() + flow_.clean_ups());  // Without memory they are where they were.
  for (const auto& u : flow_.take_clean_ups()) {
    all.push_back({u.owner, u.may_have_copies ? last_not_after_ : server_time{}, u.went_by, u.may_stand, false});
  }
}

std::vector<unsettled> acquire::take_unsettled() {
  collect_unsettled();
  if (!rare_) return {};
  for (std::size_t i = 0; i < rare_->told; ++i) rare_->left_behind[i].was_told = true;
  rare_->told = rare_->through = 0;
  return std::exchange(rare_->left_behind, {});
}

}  // namespace holdfast::engine
