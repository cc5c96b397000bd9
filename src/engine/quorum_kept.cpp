// SPDX-License-Identifier: Apache-2.0
#include "engine/quorum_kept.hpp"

#include "core/lease_time.hpp"

namespace holdfast::engine {

using std::chrono::milliseconds;

namespace {

// Between asking a server for a vote that it does not have and asking it again; and until the first time, so that what
// is released soon costs nothing here.
duration pause_of(milliseconds ttl) {
  return std::clamp<duration>(duration{ttl} / 10, milliseconds{10}, milliseconds{500});
}

class share_wish final : public renewal_wish {
public:
  explicit share_wish(std::function<void(errc)> tell) : tell_{std::move(tell)} {}
  void on_end(errc how) noexcept override { tell_(how); }

private:
  std::function<void(errc)> tell_;
};

}  // namespace

// ---- a wish ----

namespace {

// What a server says of its vote is not yet said of the lease.
bool is_end_of_a_vote(errc how) {
  return how == errc::lease_gone || how == errc::lease_taken || how == errc::lease_broken || how == errc::lease_expired;
}

}  // namespace

void quorum_keeper::wish::on_one(errc how) noexcept {
  may_be_sent_ = may_be_sent_ || how != errc::cancelled;
  if (is_decided() || is_cancelled_) return;
  --open_;
  if (how == errc{}) {
    --needed_;
  } else if (std::error_code{how} == outcome::unknown) {
    ++unknown_;
  } else if (first_failure_ == errc{} || is_end_of_a_vote(first_failure_)) {
    first_failure_ = how;
  }
  // Where as many as are needed may have renewed it, whoever was heard to fail says nothing of that (C5).
  const bool may_be_done = open_ + unknown_ >= needed_;
  if (needed_ == 0) {
    end_ = errc{};
  } else if (may_be_done && open_ > 0) {
    return;
  } else {
    end_ = may_be_done || first_failure_ == errc{} ? errc::reply_lost : first_failure_;
  }
  if (whole) whole->on_decided_wish();
}

void quorum_keeper::wish::note_that_the_lease_stands() {
  if (end_ && is_end_of_a_vote(*end_)) end_ = errc::no_quorum;
}

// ---- a lease ----

quorum_keeper::kept::kept(quorum_keeper& of, std::shared_ptr<held_lease> lease, std::string label,
                          std::vector<quorum_vote> votes, renewal mode, const script::part& what)
    : number{++of.last_number_},
      of_{&of},
      lease_{std::move(lease)},
      label_{std::move(label)},
      part_{what},
      needed_{votes_needed(of.size(), what)},
      mode_{mode},
      until_{static_cast<int>(of.size()), needed_},
      votes_{std::move(votes)},
      shares_(of.size()),
      pause_{pause_of(lease_->ttl)},
      broken_(of.size()),
      expired_(of.size()),
      given_again_(of.size()) {
  for (std::size_t i = 0; i < of.size(); ++i) {
    repairs_.push_back(std::make_unique<repair>(*this, i));
  }
}

void quorum_keeper::kept::begin(time_point sent_at) {
  const time_point until = std::min(core::deadline_of(sent_at, lease_->ttl, of_->how_.drift), lease_->last);
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (!votes_[i].token) {
      mend_at_ = mode_ == renewal::automatic ? sent_at + pause_ : never;
      continue;
    }
    keep_share(i, votes_[i].token, sent_at, until);
    until_.hold(static_cast<int>(i), until);
  }
  lease_->deadline.shorten(until);
  told_until_ = until;
  of_->look_at(*this, std::min(mend_at_, until - core::risk_lead(lease_->ttl)));
}

quorum_keeper::kept::~kept() {
  for (const auto& one : wishes_) one->whole = nullptr;
  let_shares_go();
  repairs_.clear();
  of_->agenda_.remove(place);
  for (const auto& one : std::exchange(wishes_, {})) {
    one->end(errc::empty_handle);  // It was let go.
    one->tell();
  }
}

void quorum_keeper::kept::keep_share(std::size_t node, fencing_token token, time_point sent_at, time_point until) {
  expired_[node] = {};
  shares_[node] = std::make_shared<share>(*this, *lease_, token, until, of_->how_);
  of_->servers_[node]->flow.keep(shares_[node], sent_at, until, mode_);
}

// One that was given in the round, and only not heard of, counts from its first renewal (spec/README.md has what is
// left). One that is given now counts when enough of the others have been renewed, too. All are renewed at once: a
// lease of a bare majority must not wait for that.
void quorum_keeper::kept::keep_mended(time_point now, std::size_t node, fencing_token token, time_point sent_at,
                                      time_point until, bool is_of_the_round) {
  keep_share(node, token, sent_at, until);
  if (is_of_the_round) return renew_of_the_round(now, node);
  until_.regain(static_cast<int>(node), core::deadline_of(now, lease_->ttl, of_->how_.drift));
  given_again_[node] = true;
  // Who renews by hand says when: it counts with his next one (docs/decisions/0010).
  if (mode_ != renewal::automatic) return;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (shares_[i]) renew_share(now, i);
  }
}

void quorum_keeper::kept::renew_share(time_point now, std::size_t node) {
  auto& share = *shares_[node];
  of_->servers_[node]->flow.renew_now(now, share, share.deadline.at(), std::make_shared<share_wish>([](errc) {}));
}

// It counts for whoever waits for a renewal. By hand, nothing is renewed that nobody has asked for.
void quorum_keeper::kept::renew_of_the_round(time_point now, std::size_t node) {
  for (const auto& one : wishes_) {
    if (!one->is_decided()) ask(now, one, node);
  }
  if (mode_ == renewal::automatic || is_renewed_by_hand_) renew_share(now, node);
}

void quorum_keeper::kept::let_shares_go() noexcept {
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (const auto one = std::exchange(shares_[i], nullptr)) of_->servers_[i]->flow.let_go(*one);
  }
}

votes_left quorum_keeper::kept::take_votes() noexcept {
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const auto ended = broken_[i] ? broken_[i] : expired_[i];
    votes_[i].token = shares_[i] ? shares_[i]->grant : ended;
  }
  let_shares_go();
  return {std::move(votes_), needed_};
}

void quorum_keeper::kept::go_on_as(std::shared_ptr<held_lease> next) {
  lease_ = std::move(next);
  if (std::exchange(is_warned_, false)) of_->look_at(*this, time_point{});  // Who has it now was not told.
}

std::vector<fencing_token> quorum_keeper::kept::begin_narrowing() {
  std::vector<fencing_token> tokens;
  for (const auto& one : shares_) tokens.push_back(one ? one->grant : fencing_token{});
  is_narrowing_ = true;
  return tokens;
}

void quorum_keeper::kept::end_narrowing(const std::optional<script::part>& to) {
  is_narrowing_ = false;
  if (to) part_ = *to;
  if (mode_ != renewal::automatic) return;
  mend_at_ = time_point{};
  of_->look_at(*this, mend_at_);
}

void quorum_keeper::kept::on_renewed(std::size_t node, time_point until) {
  may_count_again_ = until_.renew(static_cast<int>(node), until) || may_count_again_;
  of_->look_at(*this, time_point{});
}

void quorum_keeper::kept::on_lost(std::size_t node, errc reason) {
  const bool were_enough = until_.at() != time_point{};
  until_.drop(static_cast<int>(node));
  const bool are_enough = until_.at() != time_point{};
  if (reason == errc::lease_broken) broken_[node] = shares_[node]->grant;
  if (reason == errc::lease_expired) expired_[node] = shares_[node]->grant;
  shares_[node].reset();
  given_again_[node] = false;
  if (reason != errc::lease_expired) {
    reason_ = reason;
  } else if (were_enough && !are_enough) {
    reason_ = {};  // Its time is over, whatever a server said of its vote before.
  }
  if (mode_ == renewal::automatic) mend_at_ = time_point{};
  of_->look_at(*this, time_point{});
}

bool quorum_keeper::kept::look(time_point now) {
  if (lease_->fallen() != errc{}) {
    fall(now);
    return false;
  }
  const milliseconds ttl = lease_->ttl;
  const time_point at = until_.at();
  const time_point had = lease_->deadline.at();
  const bool is_over = now >= at - core::lost_lead(ttl);
  // A reader saw the old deadline pass and was told "not valid": that stands.
  if (is_over || (at > had && !lease_->deadline.extend(now, at))) {
    lose(now);
    return false;
  }
  if (at > had) {
    is_warned_ = false;
    // The votes behind those that were enough move it again, a little.
    const bool is_another = at - told_until_ > duration{ttl} / 6;
    if (is_another || !wishes_.empty()) {
      told_until_ = at;
      of_->listener_->on_renewed(lease_, had - now);
    }
  } else {
    lease_->deadline.shorten(at);
  }
  if (now >= at - core::risk_lead(ttl) && !std::exchange(is_warned_, true)) of_->listener_->on_at_risk(lease_);
  for (const auto& one : wishes_) one->note_that_the_lease_stands();
  tell_wishes();
  if (std::exchange(may_count_again_, false)) renew_given_again(now);
  if (now >= mend_at_) mend(now);
  time_point next = std::min(mend_at_, at - core::lost_lead(ttl));
  if (!is_warned_) next = std::min(next, at - core::risk_lead(ttl));
  of_->look_at(*this, next);
  return true;
}

void quorum_keeper::kept::lose(time_point now) {
  const bool is_said = reason_ != errc{} && now >= until_.at();
  const errc if_nobody_says = until_.at() < lease_->last ? errc::lease_expired : errc::lease_held_too_long;
  end_as_lost(now, is_said ? reason_ : if_nobody_says);
}

void quorum_keeper::kept::end_as_lost(time_point now, errc reason) {
  lease_->lost_reason = reason;
  lease_->deadline.end();
  lease_->fall(reason);
  withdraw_repairs(now);
  for (const auto& one : wishes_) one->end(reason);
  let_shares_go();
  of_->listener_->on_lost(lease_, reason);
  tell_wishes();
}

// Lost with another that it is held with, as by a keeper of one server (renewing::fall).
void quorum_keeper::kept::fall(time_point now) {
  const errc reason = lease_->fallen();
  if (reason == errc::lease_expired || reason == errc::lease_held_too_long) return end_as_lost(now, reason);
  lease_->deadline.end();
  withdraw_repairs(now);
  let_shares_go();
}

// A vote may be given after the end of what it was for (P27), also when its connection ended (R17).
void quorum_keeper::kept::withdraw_repairs(time_point now) {
  for (std::size_t i = 0; i < repairs_.size(); ++i) {
    const auto& vote = votes_[i];
    if (!repairs_[i]->is_open() && now >= vote.not_after_local) continue;
    of_->release_later(now, i,
                       {lease_->keys,
                        lease_->owner,
                        {},
                        vote.not_after,
                        vote.not_after_local,
                        vote.not_after_local + lease_->ttl + std::chrono::seconds{1}});
  }
}

// ---- votes that are missing ----

void quorum_keeper::kept::mend_on(std::size_t node) {
  if (shares_[node] || (mode_ != renewal::automatic && !is_renewed_by_hand_)) return;
  mend_at_ = time_point{};
  of_->look_at(*this, mend_at_);
}

void quorum_keeper::kept::mend(time_point now) {
  mend_at_ = never;
  if (is_narrowing_) return;
  // It would count from a renewal behind those of the others, and those end at the longest hold.
  if (core::deadline_of(now, lease_->ttl, of_->how_.drift) > lease_->last) return;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (shares_[i] || broken_[i]) continue;
    auto& at = *of_->servers_[i];
    if (!at.flow.wire().is_ready()) {
      at.is_wanted = true;  // mend_on() is called then.
      continue;
    }
    if (mode_ == renewal::automatic) {  // Else with the next renewal.
      // However soon it is lost again.
      const time_point again_at = repairs_[i]->sent_at() + pause_;
      mend_at_ = std::min(mend_at_, again_at > now ? again_at : now + pause_);
      if (again_at > now) continue;
    }
    if (repairs_[i]->is_open() || !until_.may_repair(now)) continue;
    if (at.flow.wire().quarantined_until() <= now) {
      repairs_[i]->send(now);
    } else {
      at.flow.wire().ask_epoch_if_due(now);
    }
  }
}

// Their others are there still.
void quorum_keeper::kept::renew_given_again(time_point now) {
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (!given_again_[i]) continue;
    given_again_[i] = false;
    renew_share(now, i);
  }
  const auto is_kept = [](const auto& one) { return one != nullptr; };
  if (std::all_of(shares_.begin(), shares_.end(), is_kept)) reason_ = errc{};
}

quorum_keeper::repair::~repair() { whole_->of_->wire(index_).forget(*this); }

void quorum_keeper::repair::send(time_point now) {
  const auto& how = whole_->of_->how_;
  const auto& lease = *whole_->lease_;
  channel& wire = whole_->of_->wire(index_);
  auto& vote = whole_->votes_[index_];
  const duration patience = std::min<duration>(duration{lease.ttl} / 4, std::chrono::seconds{1});
  const auto not_after = wire.server_now(now) + std::chrono::duration_cast<server_time::duration>(patience);
  vote.not_after = std::max(vote.not_after, not_after);
  vote.not_after_local = std::max(vote.not_after_local, now + patience);
  vote.asked_over = 0;
  is_open_ = true;
  asked_as_ = whole_->part_.mode;
  ++asked_;
  sent_at_ = now;
  // Not under a smaller token: whoever comes next must find ours or a larger one on any majority (C2).
  const fencing_token below{lease.token.value() - 1};
  wire.send(now,
            script::vote(lease.keys, lease.owner, lease.ttl, not_after, how.max_ttl, whole_->label_, below, lease.token,
                         how.prefix, how.record, whole_->part_, script::standing::keeper),
            *this);
}

void quorum_keeper::repair::on_reply(time_point now, time_point sent_at, const resp::value& reply) {
  is_open_ = false;
  if (std::exchange(is_raising_, false)) {
    const auto said = script::parse_release(reply);
    if (!said || said->what != script::release_answer::released || is_asked_as_another()) return;
    return whole_->keep_mended(now, index_, whole_->lease_->token, asked_at_, until_, found_of_the_round());
  }
  channel& wire = whole_->of_->wire(index_);
  const auto said = script::parse_vote(reply);
  if (!said) return;
  wire.observe_clock(said->now, sent_at, now);
  // Its own keeper renews it, and from then on it counts (R18, B57). In quarantine it stays where it is, and is found
  // again when that is over.
  if (wire.worth_of_grant(sent_at) != epoch_watch::worth::counts) return;
  if (is_asked_as_another()) return;
  const auto& lease = *whole_->lease_;
  const core::clock_drift drift = whole_->of_->how_.drift;
  if (const auto* granted = std::get_if<script::granted>(&said->what)) {
    whole_->keep_mended(now, index_, granted->token, sent_at, core::deadline_of(sent_at, lease.ttl, drift), false);
  } else if (const auto* mine = std::get_if<script::mine>(&said->what)) {
    // Given in the round, after it was decided; perhaps under a token that was raised since, elsewhere.
    // It counts from its first renewal: however little is left there, or if it has no expiry, that one says whether
    // it stands. By what is left it would have ended here before it was renewed, and be asked for anew.
    until_ = core::deadline_of(sent_at, lease.ttl, drift);
    if (mine->token.value() >= lease.token.value())
      return whole_->keep_mended(now, index_, mine->token, sent_at, until_, found_of_the_round());
    is_open_ = is_raising_ = true;
    asked_at_ = sent_at;
    wire.send(now, script::raise(lease.keys, lease.owner, lease.token, whole_->part_), *this);
  } else if (std::holds_alternative<script::broken>(said->what)) {
    whole_->broken_[index_] = lease.token;
    whole_->reason_ = errc::lease_broken;
  } else if (std::holds_alternative<script::spent>(said->what)) {
    // The vote has expired there, or the key was deleted, and the server remembers who had it last. Another's leave is
    // remembered instead, and the next vote is not refused for ours.
    wire.send_and_forget(now, script::leave(lease.keys, owner_id{whole_->of_->rng_->bytes16()}));
  } else if (const auto* other = std::get_if<script::other_quorum>(&said->what)) {
    // As quorum_acquire::win: the majority that keeps this lease has our list as open. Asked again after the pause.
    const auto& how = whole_->of_->how_;
    if (script::may_open(other->record, how.record)) {
      wire.send_and_forget(now, script::write_record(how.prefix, how.record, other->record));
    }
  }
}

bool quorum_keeper::repair::is_asked_as_another() const {
  return whole_->is_narrowing_ || whole_->part_.mode != asked_as_;
}

void quorum_keeper::repair::on_cut(time_point /*now*/) { is_open_ = is_raising_ = false; }

// ---- wishes ----

void quorum_keeper::kept::renew_now(time_point now, time_point give_up_at, std::shared_ptr<renewal_wish> whose) {
  const auto needed = static_cast<std::size_t>(needed_);
  const auto one = std::make_shared<wish>(*this, std::move(whose), shares_.size(), needed, give_up_at);
  wishes_.reserve(wishes_.size() + 1);  // It is there when all is asked, or without memory nothing is left of it.
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (shares_[i] && !until_.is_back(static_cast<int>(i))) ask(now, one, i);
  }
  // Who is renewed by hand is to outlive a server, too.
  is_renewed_by_hand_ = true;
  if (mode_ != renewal::automatic) mend(now);
  wishes_.push_back(one);
}

void quorum_keeper::kept::ask(time_point now, const std::shared_ptr<wish>& one, std::size_t node) {
  auto part = std::make_shared<share_wish>([to = std::weak_ptr{one}](errc how) {
    if (const auto whole = to.lock()) whole->on_one(how);
  });
  of_->servers_[node]->flow.renew_now(now, *shares_[node], one->give_up_at, part);
  one->add(node, std::move(part));
}

void quorum_keeper::kept::cancel(const renewal_wish& whose) {
  const auto found = std::find_if(wishes_.begin(), wishes_.end(), [&](const auto& one) { return one->is_of(whose); });
  if (found == wishes_.end() || (*found)->is_decided()) return;
  (*found)->begin_cancelling();
  end_parts(**found);
  (*found)->end_cancelling();
  // It alone: what others are told is look()'s, which knows whether the lease stands.
  const auto one = *found;
  wishes_.erase(found);
  is_renewed_by_hand_ = !wishes_.empty();
  one->tell();
}

void quorum_keeper::kept::end_parts(const wish& of) {
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (of.asked[i] && shares_[i]) of_->servers_[i]->flow.cancel(*shares_[i], *of.asked[i]);
  }
}

// What one that has failed has asked of the other servers ends with it. Else enough of them might renew it behind the
// back of somebody who was told that it is not renewed.
void quorum_keeper::kept::tell_wishes() {
  const auto decided =
      std::stable_partition(wishes_.begin(), wishes_.end(), [](const auto& one) { return !one->is_decided(); });
  const std::vector<std::shared_ptr<wish>> told{decided, wishes_.end()};
  wishes_.erase(decided, wishes_.end());
  for (const auto& one : told) {
    if (one->has_failed()) end_parts(*one);
    is_renewed_by_hand_ = !one->has_failed() || !wishes_.empty();
    one->tell();
  }
}

}  // namespace holdfast::engine
