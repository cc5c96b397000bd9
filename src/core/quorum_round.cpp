// SPDX-License-Identifier: Apache-2.0
#include "core/quorum_round.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::core {

namespace {

using namespace std::chrono_literals;

// What a request may take to reach the node: a clock may go on by so much before the proposal arrives.
constexpr auto on_its_way = 5ms;

}  // namespace

fencing_token token_proposal(std::span<const std::optional<server_time>> clocks, fencing_token min_fence) {
  server_time latest{};
  for (const auto& clock : clocks) {
    if (clock) latest = std::max(latest, *clock);
  }
  const auto stamp =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, (latest + on_its_way).time_since_epoch().count()));
  const auto floor = std::min(min_fence.value(), fencing_token::max_value - 1) + 1;
  return fencing_token{std::clamp<std::uint64_t>(std::max(stamp, floor), 1, fencing_token::max_value)};
}

std::vector<bool> out_of_step(std::span<const std::optional<server_time>> clocks, duration most) {
  std::vector<server_time> known;
  for (const auto& clock : clocks) {
    if (clock) known.push_back(*clock);
  }
  std::vector<bool> out(clocks.size(), false);
  if (known.empty()) return out;
  const auto middle = known.begin() + static_cast<std::ptrdiff_t>((known.size() - 1) / 2);
  std::nth_element(known.begin(), middle, known.end());
  for (std::size_t i = 0; i < clocks.size(); ++i) {
    // In the servers' unit: 16 digits of it are more nanoseconds than a duration holds.
    if (clocks[i])
      out[i] = std::chrono::abs(*clocks[i] - *middle) > std::chrono::floor<std::chrono::microseconds>(most);
  }
  return out;
}

quorum_round::quorum_round(const settings& how, time_point started_at)
    : how_{how}, started_at_{started_at}, votes_(static_cast<std::size_t>(how.nodes)), phase_began_at_{started_at} {
  HOLDFAST_ASSERT(how.nodes > 0 && how.nodes % 2 == 1);
  if (how_.needed == 0) how_.needed = majority_of(how.nodes);
  HOLDFAST_ASSERT(how_.needed >= majority_of(how.nodes) && how_.needed <= how.nodes);
}

void quorum_round::on_vote(int node, fencing_token token) {
  auto& of = votes_[static_cast<std::size_t>(node)];
  if (of.is == state::asked || of.is == state::cut) of = {state::voted, token};
}

void quorum_round::on_refusal(int node, refusal why, std::string holder) {
  votes_[static_cast<std::size_t>(node)] = {state::refused, {}, why, std::move(holder)};
}

void quorum_round::on_cut(int node) {
  auto& of = votes_[static_cast<std::size_t>(node)];
  if (of.is == state::asked || of.is == state::raising) of = {state::cut};
}

void quorum_round::on_raised(int node) {
  auto& of = votes_[static_cast<std::size_t>(node)];
  if (of.is == state::raising) of = {state::voted, token_};
}

int quorum_round::count(state what) const {
  return static_cast<int>(std::count_if(votes_.begin(), votes_.end(), [&](const vote& v) { return v.is == what; }));
}

int quorum_round::refusals(refusal why) const {
  return static_cast<int>(std::count_if(votes_.begin(), votes_.end(),
                                        [&](const vote& v) { return v.is == state::refused && v.why == why; }));
}

int quorum_round::with(fencing_token token) const {
  return static_cast<int>(std::count_if(votes_.begin(), votes_.end(),
                                        [&](const vote& v) { return v.is == state::voted && v.token == token; }));
}

// So many nodes one other has, at most, by what those say that are busy.
int quorum_round::most_of_another() const {
  int most = 0;
  for (const auto& one : votes_) {
    const auto may_be_of_the_same = [&](const vote& v) {
      return v.is == state::refused && v.why == refusal::busy && (v.holder.empty() || v.holder == one.holder);
    };
    if (one.is != state::refused || one.why != refusal::busy) continue;
    most = std::max(most, static_cast<int>(std::count_if(votes_.begin(), votes_.end(), may_be_of_the_same)));
  }
  return most;
}

std::optional<fencing_token> quorum_round::agreed() const {
  for (const auto& one : votes_) {
    if (one.is == state::voted && with(one.token) >= how_.needed) return one.token;
  }
  return std::nullopt;
}

bool quorum_round::is_waited_for(const vote& of, time_point now) const {
  if (of.is == state::raising) return now < phase_began_at_ + how_.patience;
  return of.is == state::asked && now < started_at_ + how_.patience;
}

void quorum_round::begin_second_phase(time_point now) {
  is_second_phase_ = true;
  phase_began_at_ = now;
  for (const auto& one : votes_) {
    if (one.is == state::voted && token_.value() < one.token.value()) token_ = one.token;
  }
}

// What a round that cannot be won is lost to; none, while those that are waited for decide that.
std::optional<quorum_round::result> quorum_round::lost_to(time_point now) const {
  const int too_many = how_.nodes - how_.needed + 1;
  const auto open = static_cast<int>(
      std::count_if(votes_.begin(), votes_.end(), [&](const vote& v) { return is_waited_for(v, now); }));
  const int away =
      count(state::asked) + count(state::cut) + count(state::raising) - open + refusals(refusal::unreachable);
  const int busy = refusals(refusal::busy);
  const int voted = count(state::voted);
  const int quarantined = refusals(refusal::quarantined);
  const int unwilling = refusals(refusal::other);
  // Where one refusal can be too many, it may be that of another who tries at the same time for the last place.
  const bool is_torn = how_.needed > majority_of(how_.nodes) && busy > 0 && voted > 0;
  if (busy >= too_many && !is_torn) {
    const int of_another = most_of_another();
    if (of_another + how_.nodes - busy - voted < how_.needed) return result::tied;
    if (of_another < too_many && open > 0) return std::nullopt;  // They say whether one of them has it.
    return result::busy;
  }
  if (is_torn || (busy > 0 && busy + voted >= how_.needed)) return result::split;
  if (quarantined >= too_many) return result::quarantined;
  if (unwilling >= too_many) return result::refused;
  if (away >= too_many) return result::unreachable;
  if (open > 0) return std::nullopt;
  if (quarantined > 0 && away + unwilling < too_many) return result::quarantined;
  return away > 0 ? result::unreachable : result::refused;
}

quorum_round::decision quorum_round::decide(time_point now) {
  decision d;
  if (outcome_) {
    d.is_over = true;
    return d;
  }
  const int enough = how_.needed;
  had_enough_votes_ = had_enough_votes_ || count(state::voted) >= enough;
  if (deadline() - now < least_useful(how_.ttl)) {
    outcome_ = count(state::voted) >= enough ? result::refused : lost_to(now).value_or(result::unreachable);
    d.is_over = true;
    return d;
  }
  if (!is_second_phase_) {
    if (const auto token = agreed()) {
      token_ = *token;
      outcome_ = result::won;
    } else if (count(state::voted) >= enough) {
      begin_second_phase(now);
    }
  }
  if (is_second_phase_ && !outcome_) {
    if (with(token_) >= enough) outcome_ = result::won;
    for (std::size_t i = 0; i < votes_.size() && !outcome_; ++i) {
      auto& of = votes_[i];
      if (of.is != state::voted || of.token.value() >= token_.value()) continue;
      of.is = state::raising;
      d.raise.push_back(static_cast<int>(i));
    }
  }
  if (!outcome_) {
    const auto may_come = std::count_if(votes_.begin(), votes_.end(), [&](const vote& v) {
      return is_waited_for(v, now) || (v.is == state::voted && !(is_second_phase_ && token_.value() < v.token.value()));
    });
    if (may_come < enough) outcome_ = lost_to(now);
  }
  d.is_over = outcome_.has_value();
  if (!d.is_over) {
    d.wake_at = deadline() - least_useful(how_.ttl);
    if (now < started_at_ + how_.patience) d.wake_at = std::min(d.wake_at, started_at_ + how_.patience);
    if (count(state::raising) > 0) d.wake_at = std::min(d.wake_at, phase_began_at_ + how_.patience);
  }
  return d;
}

bool quorum_round::has_vote_of(int node) const {
  const auto& of = votes_[static_cast<std::size_t>(node)];
  return of.is == state::voted && of.token == token_;
}

bool quorum_round::may_have_voted(int node) const {
  return votes_[static_cast<std::size_t>(node)].is != state::refused;
}

std::optional<quorum_round::refusal> quorum_round::why_not(int node) const {
  const auto& of = votes_[static_cast<std::size_t>(node)];
  if (of.is != state::refused) return std::nullopt;
  return of.why;
}

}  // namespace holdfast::core
