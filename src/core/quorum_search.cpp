// SPDX-License-Identifier: Apache-2.0
#include "core/quorum_search.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::core {

using namespace std::chrono_literals;
using result = quorum_round::result;

namespace {

constexpr int most_splits = 3;  // In a row, before it is taken for held.

}  // namespace

quorum_search::quorum_search(const settings& how, time_point now, base::random_source& rng)
    : rng_{&rng},
      how_{how},
      limit_{how.only_once ? now + how.timeout
             : how.wait    ? now + *how.wait
                           : never},
      heard_at_{now} {}

time_point quorum_search::give_up_at() const { return std::min(limit_, heard_at_ + how_.timeout); }

duration quorum_search::patience(time_point now) const {
  return std::min(how_.patience, std::max(least_patience, over_at() - now));
}

quorum_search::step quorum_search::on_lost(time_point now, const lost_round& what, bool has_turn) {
  note(now, what.left);
  if (what.was_cancelled) return on_cancel(now);
  return told(now, decide(now, what, has_turn));
}

quorum_search::step quorum_search::decide(time_point now, const lost_round& what, bool has_turn) {
  const bool is_told = what.how == result::busy || what.how == result::tied || what.how == result::split ||
                       what.how == result::quarantined;
  if (is_told || (what.enough_voted && what.final_reason == errc{})) heard_at_ = now;
  if (what.how == result::quarantined) heard_ = errc::quarantined;
  const bool is_split = what.how == result::split || (what.how == result::tied && how_.only_once);
  if (!is_split) splits_ = 0;
  switch (what.how) {
    case result::won: break;
    case result::busy: return on_busy(now, what, has_turn);
    case result::tied:
    case result::split: return is_split ? on_split(now, what, has_turn) : on_busy(now, what, has_turn);
    case result::quarantined: {
      // Once: a server that does not take what was written would be tried for ever.
      const bool comes_to_opened = what.has_opened && !std::exchange(has_come_to_opened_, true);
      if (how_.only_once && !comes_to_opened) return end{errc::quarantined, true};
      return rest(now, comes_to_opened ? duration{0} : duration{250ms}, {errc::quarantined, true});
    }
    case result::refused:
    case result::unreachable:
      if (what.how == result::refused && what.final_reason != errc{}) return end{what.final_reason, true};
      return rest(now, unreachable_.next(*rng_), out_of_time(now, what));
  }
  return try_now{};
}

quorum_search::step quorum_search::on_busy(time_point now, const lost_round& what, bool has_turn) {
  if (how_.only_once) return end{};
  heard_ = errc::timed_out;
  if (now >= limit_) return end{errc::timed_out};
  if (!has_turn) {
    if (is_last_try_) return rest(now, limit_ - now, {errc::timed_out});
    busy_.reset();
    return stand_in_line{leaves_line_at(now)};
  }
  // Soon at first, because most locks are held for a moment, and then ten to three times a second.
  const duration held_for = what.held_for.value_or(300ms) + 2ms;
  return rest(now, std::min(busy_.next(*rng_), held_for), {errc::timed_out});
}

quorum_search::step quorum_search::on_split(time_point now, const lost_round& what, bool has_turn) {
  ++splits_;
  // Several may hold it: what somebody else has of it may be there to stay, and the line knows whose turn it is. So may
  // a vote be that nobody withdraws any more.
  if (splits_ > most_splits || (!how_.only_once && how_.is_counted && !has_turn)) return on_busy(now, what, has_turn);
  return rest(now, lot(now, what.took), {how_.only_once ? errc{} : errc::timed_out});
}

// Nobody has it: who draws the shorter pause wins (R12), if the others do not come while its votes are under way. Who
// waits has the line for that.
duration quorum_search::lot(time_point now, duration took) {
  duration most = 30ms;
  if (how_.only_once) most = std::min(std::max(most, 3 * took) * (1 << (splits_ - 1)), give_up_at() - now);
  return duration{rng_->between(1'000'000, std::max<duration>(1ms, most).count())};
}

// Nothing is heard of the lock there: whoever was the head may be dead, and the lock free. So there is time left for a
// try behind it (C7).
time_point quorum_search::leaves_line_at(time_point now) const {
  return limit_ == never ? never : limit_ - std::min(how_.patience, (limit_ - now) / 4);
}

quorum_search::step quorum_search::on_pause_over(time_point now) {
  // Who comes back later than it wanted stood still, or its machine did: that silence is its own (H2).
  heard_at_ += std::max(duration{0}, now - rests_until_);
  if (is_last_try_ && now >= limit_) return told(now, rested_from_);
  return try_now{};
}

quorum_search::step quorum_search::on_turn(time_point now, errc why_not) {
  const bool is_timed_out = why_not == errc::timed_out;
  if (is_timed_out && now >= limit_) return told(now, end{errc::timed_out});
  if (!line_ && !is_timed_out) return told(now, rest(now, 100ms, {errc::timed_out}));
  heard_at_ = now;  // Until now it was the line that we waited for.
  is_last_try_ = is_last_try_ || is_timed_out;
  if (is_timed_out) return try_now{};
  without_line_ = why_not == errc{} ? 0 : *line_ + 1;
  if (why_not == errc{}) return try_now{};
  return told(now, rest(now, 50ms, {errc::timed_out}));
}

std::optional<std::size_t> quorum_search::line_of(const std::vector<bool>& is_ready) {
  line_.reset();
  for (std::size_t i = 0; i < is_ready.size() && !line_; ++i) {
    const std::size_t which = (without_line_ + i) % is_ready.size();
    if (is_ready[which]) line_ = which;
  }
  return line_;
}

quorum_search::step quorum_search::rest(time_point now, duration at_most, const end& if_over) {
  rested_from_ = if_over;
  const time_point last = give_up_at();
  if (now >= last) return if_over;
  rests_until_ = std::min(now + at_most, last);
  return pause{rests_until_};
}

// The last try may have had no time left for its answers: then what was heard before it counts.
quorum_search::end quorum_search::out_of_time(time_point now, const lost_round& what) const {
  if (what.final_reason != errc{}) return {what.final_reason, true};
  const bool is_silence = now >= heard_at_ + how_.timeout + (now < limit_ ? duration{0} : how_.patience);
  if (heard_ != errc{} && !is_silence) return {heard_, heard_ == errc::quarantined};
  return {errc::no_quorum, true};
}

// ---- what is left ----

void quorum_search::note(time_point now, const std::vector<leftover>& of_a_try) {
  left_.resize(std::max(left_.size(), of_a_try.size()));
  for (std::size_t i = 0; i < of_a_try.size(); ++i) {
    auto& had = left_[i];
    const auto& one = of_a_try[i];
    // It answers in order: what it was told to leave before, and has not refused, it has left.
    if (one.heard_over.connection != 0 && one.heard_over == had.told_over) had = {};
    if (one.until <= now) continue;
    // Of two connections neither says what has become of the other's.
    const bool is_alone = had.until <= now || had.told_over == one.told_over;
    had = {std::max(had.until, one.until), is_alone ? one.told_over : passage{}};
  }
}

std::size_t quorum_search::left(time_point now) const {
  return static_cast<std::size_t>(
      std::count_if(left_.begin(), left_.end(), [&](const leftover& one) { return now < one.until; }));
}

time_point quorum_search::left_until() const {
  time_point last{};
  for (const auto& one : left_) last = std::max(last, one.until);
  return last;
}

// Votes of different tries do not make a lock together; but then nobody has counted them apart.
quorum_search::step quorum_search::told(time_point now, step what) const {
  const auto* over = std::get_if<end>(&what);
  if (!over || over->code == errc::unexpected_reply || left(now) < how_.needed) return what;
  return end{errc::reply_lost, over->round_tells, over->code};
}

}  // namespace holdfast::core
