// SPDX-License-Identifier: Apache-2.0
#include "engine/quorum_acquire.hpp"

#include "script/server_error.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

namespace holdfast::engine {

using refusal = core::quorum_round::refusal;
using std::chrono::duration_cast;

namespace {

constexpr const char* out_of_step = "its clock is far from that of the others";

}  // namespace

quorum_acquire::quorum_acquire(voters& all, request what, const owner_id& owner, time_point started_at)
    : quorum_call{all},
      what_{std::move(what)},
      owner_{owner},
      started_at_{started_at},
      wake_at_{started_at},
      nodes_(all.size()),
      votes_(all.size()) {}

void quorum_acquire::step(time_point now) {
  if (phase_ == phase::connecting) connect(now);
  if (phase_ == phase::voting) vote(now);
  if (phase_ == phase::withdrawing) await_withdrawal(now);
}

// What is read afterwards, without the driver's mutex, is noted here.
void quorum_acquire::finish(result how) {
  for (std::size_t i = 0; i < size(); ++i) {
    auto& one = nodes_[i];
    const bool is_just_there = !round_ && all()[i]->wire().is_ready();
    if (!one.trouble.empty() || (one.has_spoken && !one.is_raising) || is_just_there) continue;
    one.trouble = all()[i]->trouble();
    if (one.trouble.empty()) one.trouble = was_waited_for(one) ? "did not answer in time" : not_waited_for;
  }
  outcome_ = how;
  phase_ = phase::over;
  wake_at_ = never;
}

core::quorum_search::passage quorum_acquire::passage_at(std::size_t node) const {
  const auto& wire = all()[node]->wire();
  return {votes_[node].asked_over, wire.refused_unheard() - wire.sent_again_unheard()};
}

// Two of three may have decided it before the third could answer. Only of a round that is lost.
bool quorum_acquire::was_waited_for(const seen& one) const {
  return !round_ || withdrawn_at_ >= (one.is_raising ? raised_at_ : sent_at_) + what_.patience;
}

// ---- connecting ----

void quorum_acquire::connect(time_point now) {
  note_start();
  if (is_cancelled_) return finish(result::unreachable);
  std::size_t ready = 0;
  bool may_come = false;
  for (std::size_t i = 0; i < size(); ++i) {
    const bool is_ready = all()[i]->wire().is_ready();
    ready += is_ready ? 1 : 0;
    may_come = may_come || (!is_ready && !all()[i]->is_hopeless());
  }
  const time_point waits_until = std::min(started_at_ + what_.patience, what_.connect_until);
  if (ready >= needed() && (!may_come || now >= waits_until)) return begin(now);
  if (const bool is_refused = is_refused_for_good(); is_refused || now >= what_.connect_until) {
    note_final_failure();
    return finish(is_refused ? result::refused : result::unreachable);
  }
  wake_at_ = ready >= needed() ? waits_until : what_.connect_until;
}

// A wrong password does not become right while it is waited for.
bool quorum_acquire::is_refused_for_good() const {
  std::size_t may_be_ready = 0;
  for (std::size_t i = 0; i < size(); ++i) may_be_ready += has_failed_for_good(i) ? 0 : 1;
  return may_be_ready < needed();
}

void quorum_acquire::note_final_failure() {
  for (std::size_t i = 0; i < size() && final_ == errc{}; ++i) {
    const auto& wire = all()[i]->wire();
    const auto& failure = wire.last_failure();
    if (wire.is_ready() || !failure.is_final) continue;
    final_ = failure.code;
    final_text_ = all()[i]->name() + ": " + failure.text;
  }
}

// One server behind two addresses would vote twice (R20).
bool quorum_acquire::are_different() {
  for (std::size_t i = 0; i < size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const auto &one = all()[i]->wire(), &other = all()[j]->wire();
      if (!one.is_ready() || !other.is_ready() || one.run_id().empty() || one.run_id() != other.run_id()) continue;
      final_ = errc::invalid_uri;
      final_text_ = all()[j]->name() + " and " + all()[i]->name();
      return false;
    }
  }
  return true;
}

// ---- voting ----

void quorum_acquire::begin(time_point now) {
  if (!are_different()) return finish(result::refused);
  phase_ = phase::voting;
  sent_at_ = now;
  round_.emplace(core::quorum_round::settings{static_cast<int>(size()), what_.ttl, what_.drift, what_.patience,
                                              votes_needed(size(), what_.part)},
                 now);
  auto clocks = clocks_at(now);
  const auto is_out = core::out_of_step(clocks, most_apart());
  for (std::size_t i = 0; i < size(); ++i) {
    if (is_out[i]) clocks[i].reset();
    // It was waited for in vain: the next one does not wait.
    if (!all()[i]->wire().is_ready() && !all()[i]->is_hopeless()) all()[i]->found_slow();
  }
  proposal_ = core::token_proposal(clocks, what_.min_fence);
  for (std::size_t i = 0; i < size(); ++i) {
    auto& wire = all()[i]->wire();
    if (!wire.is_ready()) {
      refuse(i, refusal::unreachable, {});
    } else if (is_out[i]) {
      nodes_[i].has_spoken = true;
      refuse(i, refusal::other, out_of_step);
      wire.ask_epoch_if_due(now);  // Whose answer says what it shows now.
    } else if (wire.quarantined_until() > now) {
      nodes_[i].has_spoken = true;
      const auto left = std::chrono::ceil<std::chrono::seconds>(wire.quarantined_until() - now);
      refuse(i, refusal::quarantined,
             "may have forgotten locks: no vote for " + std::to_string(left.count()) + " s more");
      wire.ask_epoch_if_due(now);
    } else {
      ask_for_vote(i, now);
    }
  }
}

std::vector<std::optional<server_time>> quorum_acquire::clocks_at(time_point now) const {
  std::vector<std::optional<server_time>> clocks(size());
  for (std::size_t i = 0; i < size(); ++i) {
    if (const auto& wire = all()[i]->wire(); wire.is_ready()) clocks[i] = wire.server_now(now);
  }
  return clocks;
}

// As the answer that has just come says, not as it was when it was asked (P24).
bool quorum_acquire::is_out_of_step(std::size_t node, time_point now) const {
  return core::out_of_step(clocks_at(now), most_apart())[node];
}

void quorum_acquire::ask_for_vote(std::size_t node, time_point now) {
  // So long may the request be on its way; what comes later has no effect (H12).
  const duration late = 2 * what_.patience;
  auto& kept = votes_[node];
  kept.not_after = all()[node]->wire().server_now(now) + duration_cast<server_time::duration>(late);
  kept.not_after_local = now + late;
  kept.asked_over = all()[node]->connection();
  nodes_[node].is_read = false;
  nodes_[node].sent_again = all()[node]->wire().sent_again_unheard();
  ask(node, now,
      script::vote(what_.keys, owner_, what_.ttl, kept.not_after, what_.max_ttl, *what_.label, what_.min_fence,
                   proposal_, what_.prefix, what_.record, what_.part, what_.who));
}

void quorum_acquire::vote(time_point now) {
  for (std::size_t i = 0; i < size(); ++i) read(i, now);
  if (is_cancelled_) return withdraw(now, result::unreachable);
  // Two lists of servers have majorities without a server in common: whoever says so is right, and not outvoted (P26).
  if (final_ == errc::other_quorum) return withdraw(now, result::refused);
  const auto next = round_->decide(now);
  for (const int node : next.raise) {
    const auto i = static_cast<std::size_t>(node);
    if (!all()[i]->wire().is_ready()) {
      nodes_[i].trouble = "the connection ended";
      round_->on_not_raised(node);
      continue;
    }
    nodes_[i].is_read = false;
    nodes_[i].is_raising = true;
    raised_at_ = now;
    ask(i, now, script::raise(what_.keys, owner_, round_->token(), what_.part));
  }
  if (!next.is_over) {
    wake_at_ = next.wake_at;
  } else if (round_->outcome() == result::won) {
    win(now);
  } else if (now < sent_at_ + what_.patience && may_hear_that_it_is_open()) {
    wake_at_ = sent_at_ + what_.patience;
  } else {
    withdraw(now, round_->outcome());
  }
}

void quorum_acquire::refuse(std::size_t node, refusal why, std::string text, errc final) {
  round_->on_refusal(static_cast<int>(node), why);
  note_trouble(node, std::move(text), final);
}

void quorum_acquire::refuse_what_it_is(std::size_t node, errc final, std::string what) {
  if (final_ == errc{}) final_why_ = what + " on " + all()[node]->name();
  refuse(node, refusal::other, std::move(what), final);
}

void quorum_acquire::read(std::size_t node, time_point now) {
  auto& one = nodes_[node];
  const auto& paper = of(node);
  if (one.is_read || paper.is_open()) return;
  one.is_read = true;
  const int n = static_cast<int>(node);
  if (paper.was_cut) {
    one.trouble = "the connection ended";
    return round_->on_cut(n);
  }
  one.has_spoken = true;
  if (!std::exchange(one.is_raising, false)) return read_vote(node, now, *paper.reply);
  const auto said = script::parse_release(*paper.reply);
  if (said && said->what == script::release_answer::released) return round_->on_raised(n);
  one.trouble = "its vote was gone before it had the token of the others";
  if (const auto* error = paper.reply->as_error()) note_error(node, error->text);
  round_->on_not_raised(n);
}

void quorum_acquire::note_error(std::size_t node, const std::string& text) {
  const auto what = script::classify(text);
  note_trouble(node, text, script::ends_a_call(what.what) ? what.code : errc{});
}

void quorum_acquire::note_trouble(std::size_t node, std::string text, errc final) {
  nodes_[node].trouble = std::move(text);
  // That there is another list is never outvoted, whatever was said before (P26).
  if (final == errc{} || (final_ != errc{} && final != errc::other_quorum)) return;
  final_ = final;
  final_text_ = all()[node]->name() + ": " + nodes_[node].trouble;
}

// It answers in order: whatever the tries before had asked there is done. But what is sent again after NOSCRIPT goes
// out behind what is asked meanwhile: then the answer says nothing of it.
void quorum_acquire::note_heard(std::size_t node) {
  const bool is_behind = nodes_[node].sent_again == all()[node]->wire().sent_again_unheard();
  if (is_behind) nodes_[node].heard_over = passage_at(node);
}

void quorum_acquire::read_vote(std::size_t node, time_point now, const resp::value& reply) {
  auto& kept = votes_[node];
  if (const auto* error = reply.as_error()) {
    // An ACL may deny what stands behind the vote in the script: then it was given.
    nodes_[node].is_denied = script::classify(error->text).code == errc::no_permission;
    nodes_[node].is_to_leave = nodes_[node].is_denied;
    if (!nodes_[node].is_to_leave) kept = {};
    round_->on_refusal(static_cast<int>(node), refusal::other);
    note_error(node, error->text);
    return judge_error(now, node);
  }
  const auto said = script::parse_vote(reply);
  if (!said) {
    nodes_[node].is_to_leave = true;  // Who knows what it did.
    return refuse(node, refusal::other, "its answer is not one of ours", errc::unexpected_reply);
  }
  note_heard(node);
  const auto voted = [&](fencing_token token) {
    if (of(node).worth != epoch_watch::worth::counts) {
      nodes_[node].is_to_leave = true;
      return refuse(node, refusal::quarantined, "may have forgotten locks");
    }
    if (is_out_of_step(node, now)) {
      nodes_[node].is_to_leave = true;
      return refuse(node, refusal::other, out_of_step);
    }
    nodes_[node].keeps_our_list = true;
    round_->on_vote(static_cast<int>(node), token);
  };
  if (const auto* granted = std::get_if<script::granted>(&said->what)) return voted(granted->token);
  if (const auto* mine = std::get_if<script::mine>(&said->what)) return voted(mine->token);
  kept = {};
  if (const auto* busy = std::get_if<script::busy>(&said->what)) {
    // Negative: it has no expiry.
    if (const auto left = busy->remaining; left >= std::chrono::milliseconds{0})
      held_for_ = std::min(held_for_.value_or(left), left);
    nodes_[node].keeps_our_list = true;
    // Of several places it is one of those who are in the way, and another server may name another of the same. It may
    // of the readers before a writer, too: what is taken for a tie then is busy after some more tries.
    const bool is_named = what_.part.mode != 'p' || what_.part.size == 1;
    auto holder = is_named ? busy->by.id : std::string{};
    return round_->on_refusal(static_cast<int>(node), refusal::busy, std::move(holder));
  }
  if (std::holds_alternative<script::late>(said->what)) return on_late(node, now);
  if (const auto* other = std::get_if<script::other_quorum>(&said->what)) {
    return refuse_for_list(node, other->record);
  }
  if (const auto* kind = std::get_if<script::wrong_kind>(&said->what)) {
    return refuse_what_it_is(
        node, errc::wrong_kind,
        kind->found == "zset" ? "it is a shared lock or a semaphore (a zset)" : "it is a " + kind->found);
  }
  if (const auto* other = std::get_if<script::other_size>(&said->what)) {
    return refuse_what_it_is(node, errc::other_size, "it has " + std::to_string(other->size) + " permits");
  }
  if (std::holds_alternative<script::fence_too_far>(said->what)) {
    return refuse(node, refusal::other, "min_fence is far ahead of its clock", errc::fence_too_far);
  }
  refuse(node, refusal::other, "it does not take the request", errc::unexpected_reply);
}

// It had no effect (P10). Its answer has said what the clock there shows; if that is late again and again, it is
// running away from us (P11).
void quorum_acquire::on_late(std::size_t node, time_point now) {
  constexpr int most = 3;
  if (is_out_of_step(node, now)) return refuse(node, refusal::other, out_of_step);
  if (++nodes_[node].lates < most && all()[node]->wire().is_ready()) return ask_for_vote(node, now);
  refuse(node, refusal::late, "the request came too late");
}

// Until `holdfast quorum replace` has opened it nobody's vote counts for our list there; then who wants to wait may, as
// in a quarantine. Anything else that a server says of another list is a mistake, or ours was replaced.
void quorum_acquire::refuse_for_list(std::size_t node, const std::string& kept) {
  const auto why = script::why_it_does_not_count(kept, what_.record);
  if (!script::is_not_open_yet(kept, what_.record)) return refuse(node, refusal::other, why, errc::other_quorum);
  if (script::may_open(kept, what_.record)) nodes_[node].unopened = kept;
  refuse(node, refusal::quarantined, why);
}

// Where more than a majority must vote, one server where our list is not open yet ends each round, and perhaps before
// the others have said that it is open there.
bool quorum_acquire::may_hear_that_it_is_open() const {
  if (2 * needed() <= size() + 1 || is_open_at_majority()) return false;
  std::size_t may_be = 0;
  bool is_wanted = false;
  for (std::size_t i = 0; i < size(); ++i) {
    is_wanted = is_wanted || nodes_[i].unopened;
    may_be += nodes_[i].keeps_our_list || of(i).is_open() ? 1 : 0;
  }
  return is_wanted && 2 * may_be > size();
}

bool quorum_acquire::is_open_at_majority() const {
  const auto open = std::count_if(nodes_.begin(), nodes_.end(), [](const seen& one) { return one.keeps_our_list; });
  return 2 * static_cast<std::size_t>(open) > size();
}

// The list before ours is closed then: a server that was away when ours was opened, or lost its data since, may know
// it, too (P26). Not only from who wins: where all must vote, nobody would.
void quorum_acquire::open_the_rest(time_point now) {
  if (!is_open_at_majority()) return;
  for (std::size_t i = 0; i < size(); ++i) {
    auto& wire = all()[i]->wire();
    if (!nodes_[i].unopened || !wire.is_ready()) continue;
    has_opened_ = true;
    wire.load(now, script::id::quorum_record);  // Our process may be gone before it is asked for.
    wire.send_and_forget(now, script::write_record(what_.prefix, what_.record, *nodes_[i].unopened));
  }
}

void quorum_acquire::win(time_point now) {
  open_the_rest(now);
  for (std::size_t i = 0; i < size(); ++i) {
    const int node = static_cast<int>(i);
    if (round_->has_vote_of(node)) {
      votes_[i] = {round_->token()};
    } else if (!round_->may_have_voted(node) && !nodes_[i].is_to_leave) {
      votes_[i] = {};
    }
  }
  finish(result::won);
}

// ---- withdrawing ----

// Before anybody tries again: our own votes would be another's in the next round (B55). Behind the request for the vote
// on the same connection; who has not answered that one is not waited for.
void quorum_acquire::withdraw(time_point now, result how) {
  phase_ = phase::withdrawing;
  withdrawn_at_ = now;
  outcome_ = how;
  open_the_rest(now);
  for (std::size_t i = 0; i < size(); ++i) {
    if (!round_->may_have_voted(static_cast<int>(i)) && !nodes_[i].is_to_leave) {
      votes_[i] = {};
      nodes_[i].is_read = true;
      continue;
    }
    const bool has_voted = !of(i).is_open() && !of(i).was_cut;
    if (!has_voted && now >= sent_at_ + what_.patience) all()[i]->found_slow();
    nodes_[i].is_read = !has_voted;
    of(i).clear();  // The answer to the vote, or to raise, is none to this.
    if (!all()[i]->wire().is_ready()) continue;
    ask(i, now, script::leave(what_.keys, owner_));
    if (votes_[i].asked_over != all()[i]->connection()) continue;
    nodes_[i].told_over = passage_at(i);
  }
}

void quorum_acquire::await_withdrawal(time_point now) {
  bool is_waited_for = false;
  bool is_open = false;
  std::size_t left = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    if (votes_[i].not_after == server_time{}) continue;
    const auto& paper = of(i);
    // Over the connection of the request itself it came behind it: no copy of that is left.
    const bool is_behind = votes_[i].asked_over == all()[i]->connection();
    if (is_behind && paper.reply && script::parse_release(*paper.reply)) {
      note_heard(i);
      votes_[i] = {};
      continue;
    }
    if (paper.reply) nodes_[i].told_over = {};  // An error: it has not left.
    ++left;
    is_open = is_open || paper.is_open();
    is_waited_for = is_waited_for || (!nodes_[i].is_read && paper.is_open());
  }
  // One server's word has ended this before the others were heard, and all tries with it. While so many may have voted
  // that it could be ours, it would not be told (C5).
  if (final_ == errc::other_quorum && is_open && left >= needed()) is_waited_for = true;
  const duration left_to_wait = std::max(core::quorum_search::least_patience, what_.over_at - withdrawn_at_);
  wake_at_ = withdrawn_at_ + std::min(what_.patience, left_to_wait);
  if (!is_waited_for || now >= wake_at_) finish(outcome_);
}

// One that the ACL denied counts as refused, as on one server (core/acquire_call.cpp): what was written before is given
// back as far as it may be.
std::vector<core::quorum_search::leftover> quorum_acquire::left() const {
  std::vector<core::quorum_search::leftover> all(size());
  const duration longest = 2 * duration{what_.ttl} - core::usable(what_.ttl, what_.drift);
  for (std::size_t i = 0; i < size(); ++i) {
    all[i].heard_over = nodes_[i].heard_over;
    if (votes_[i].not_after == server_time{} || nodes_[i].is_denied) continue;
    all[i].until = votes_[i].not_after_local + longest;
    const auto& answer = of(i).reply;  // Perhaps behind the end, when nobody read it any more.
    const bool has_refused = answer && !script::parse_release(*answer);
    if (!has_refused) all[i].told_over = nodes_[i].told_over;
  }
  return all;
}

}  // namespace holdfast::engine
