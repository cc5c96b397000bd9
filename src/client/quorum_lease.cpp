// SPDX-License-Identifier: Apache-2.0
// Trying for a lock of a quorum until it is got, busy, or no use.
#include "client/client_state.hpp"
#include "client/part.hpp"
#include "client/quorum.hpp"
#include "client/turn_watch.hpp"
#include "core/quorum_search.hpp"
#include "net/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;
using std::chrono::duration_cast;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

// One acquire: what core::quorum_search decides, done.
class quorum::search {
public:
  search(quorum& of, const quorum_wish& what)
      : of_{of},
        what_{what},
        started_at_{boottime_now()},
        flow_{{what.only_once, what.wait, of.from_.options.timeout, is_counted(what.part),
               static_cast<std::size_t>(engine::votes_needed(of.size(), what.part)),
               patience_of(what.ttl, of.from_.options.timeout)},
              started_at_,
              net::system_random()} {}

  end run();

private:
  using decider = core::quorum_search;
  using result = round::result;

  bool has_turn() const { return turn_ && turn_.valid(); }
  void try_once(std::optional<round>& into);
  decider::step go_on(const decider::pause& how);
  decider::step go_on(const decider::stand_in_line& how);
  decider::step stand_in_line_of(std::size_t server, time_point until);
  errc take_turn(std::size_t server, time_point until);
  end failed(const decider::end& how, const round& seen) const;
  std::shared_ptr<lease_record> keep(const round& won);
  void settle(const round& lost);

  quorum& of_;
  const quorum_wish& what_;
  const time_point started_at_;
  decider flow_;
  int attempts_ = 0;
  lease turn_{};
};

quorum::end quorum::acquire(const quorum_wish& what) {
  keeper_->stand_by();
  return search{*this, what}.run();
}

namespace {

core::quorum_search::lost_round facts_of(const engine::quorum_acquire& seen, time_point now,
                                         const std::stop_token& cancel) {
  return {seen.outcome(),      seen.final_reason(), seen.was_cancelled() || cancel.stop_requested(),
          seen.enough_voted(), seen.held_for(),     now - seen.sent_at(),
          seen.left(),         seen.has_opened()};
}

}  // namespace

quorum::end quorum::search::run() {
  for (;;) {
    std::optional<round> seen;
    try_once(seen);
    if (seen->outcome() == result::won) return {keep(*seen), {}, {}, attempts_};
    settle(*seen);
    const time_point now = boottime_now();
    auto next = flow_.on_lost(now, facts_of(*seen, now, what_.cancel), has_turn());
    while (!std::holds_alternative<decider::try_now>(next)) {
      if (const auto* over = std::get_if<decider::end>(&next)) return failed(*over, *seen);
      const auto* rest = std::get_if<decider::pause>(&next);
      next = rest ? go_on(*rest) : go_on(std::get<decider::stand_in_line>(next));
    }
  }
}

void quorum::search::try_once(std::optional<round>& into) {
  ++attempts_;
  const auto& options = of_.from_.options;
  const time_point now = boottime_now();
  into.emplace(
      of_.votes_.all(),
      round::request{what_.keys, what_.label, what_.ttl, options.max_ttl, what_.min_fence, of_.drift_,
                     flow_.patience(now), flow_.give_up_at(), options.prefix, of_.record_, what_.part,
                     has_turn() ? script::standing::first_in_line : script::standing::newcomer, flow_.over_at()},
      owner_id{net::system_random().bytes16()}, now);
  of_.votes_.run(*into, what_.cancel);
}

std::shared_ptr<lease_record> quorum::search::keep(const round& won) {
  auto record = std::make_shared<lease_record>(what_.name, what_.keys, won.owner(), won.token(), what_.ttl,
                                               won.sent_at(), won.deadline());
  record->mode = what_.mode;
  record->hold_at_most(what_.max_hold, won.sent_at());
  record->kind = kind_of(what_.part);
  std::vector<core::server_clock> clocks;
  for (const auto& one : of_.votes_.states()) clocks.push_back(one.clock);
  of_.keeper_->keep(record, *what_.label, won.votes(), won.sent_at(), what_.mode, what_.part, clocks);
  return record;
}

// What may still be a vote somewhere is withdrawn in the background, until that is certain (B55, R17).
void quorum::search::settle(const round& lost) {
  const time_point now = boottime_now();
  for (std::size_t i = 0; i < of_.size(); ++i) {
    const auto& vote = lost.votes()[i];
    if (vote.not_after == server_time{}) continue;
    of_.keeper_->release_later(i, {what_.keys,
                                   lost.owner(),
                                   {},
                                   vote.not_after,
                                   vote.not_after_local,
                                   std::max(now, vote.not_after_local) + what_.ttl + client_state::after_ttl});
  }
}

quorum::end quorum::search::failed(const decider::end& how, const round& seen) const {
  end out{nullptr, how.code, {}, attempts_};
  const errc code = how.reason == errc{} ? how.code : how.reason;
  if (std::error_code{how.code} == outcome::unknown) {
    const auto left = std::max(duration{0}, flow_.left_until() - boottime_now());
    out.why.may_remain = std::chrono::ceil<milliseconds>(left);
  }
  if (!how.round_tells) return out;
  if (code == errc::invalid_uri) {
    out.why.subject = seen.final_text();
    out.why.why = "they are one server, which would vote twice";
  } else if (code == errc::wrong_kind || code == errc::other_size) {
    const bool is_size = code == errc::other_size;
    out.why.subject = is_size ? "'" + what_.name + "'" : "key '" + what_.keys.holder + "'";
    out.why.why = seen.final_why() + (is_size ? fmt::format(", and you say {}", what_.part.size) : "");
  } else if (code == seen.final_reason()) {
    out.why.server_text = seen.final_text();
  } else {
    out.why.why = of_.report(seen, what_);
  }
  return out;
}

// ---- between two tries ----

core::quorum_search::step quorum::search::go_on(const decider::pause& how) {
  of_.wait_for_release(what_.keys, how.until - boottime_now(), what_.cancel);
  return what_.cancel.stop_requested() ? flow_.on_cancel(boottime_now()) : flow_.on_pause_over(boottime_now());
}

core::quorum_search::step quorum::search::go_on(const decider::stand_in_line& how) {
  std::vector<bool> is_ready;
  for (const auto& one : of_.votes_.states()) is_ready.push_back(one.is_ready);
  turn_ = lease{};
  const auto server = flow_.line_of(is_ready);
  return server ? stand_in_line_of(*server, how.until) : flow_.on_turn(boottime_now(), errc::server_silent);
}

// The end of a connection that the server closed while nobody waited on it is read by whoever waits on it next, and
// says nothing of the server: who went to another's line for it would be the first there, before all who wait here
// (C7).
core::quorum_search::step quorum::search::stand_in_line_of(std::size_t server, time_point until) {
  constexpr auto old_news = 500ms;
  const time_point began_at = boottime_now();
  errc how = take_turn(server, until);
  const auto has_failed = [&] { return how != errc{} && how != errc::timed_out; };
  if (has_failed() && !what_.cancel.stop_requested() && boottime_now() - began_at < old_news)
    how = take_turn(server, until);
  if (!has_failed()) return flow_.on_turn(boottime_now(), how);
  if (what_.cancel.stop_requested()) return flow_.on_cancel(boottime_now());
  // That server is gone, and its line with it.
  return flow_.on_turn(boottime_now(), errc::server_silent);
}

// None: it is ours.
errc quorum::search::take_turn(std::size_t server, time_point until) {
  acquire_options how;
  // Its head renews it. Nobody gives it back for one that died, and nobody has a turn until it ends.
  how.ttl = std::min<milliseconds>(1s, of_.from_.options.max_ttl);
  how.owner = *what_.label;
  if (until != never) how.wait = std::max(milliseconds{1}, duration_cast<milliseconds>(until - boottime_now()));
  std::stop_source stop;
  const auto end_wait = [&stop] { stop.request_stop(); };
  const std::stop_callback by_caller{what_.cancel, end_wait};
  how.cancel = stop.get_token();
  try {
    const auto turn = of_.turn_of(server);  // There may be too few descriptors for it: then another's line will do.
    const std::stop_callback by_server{turn.watch->gone(), end_wait};
    const auto why = what_.is_trial ? client_state::purpose::trial : client_state::purpose::work;
    turn_ = turn.line->acquire_or_throw(what_.name, how, {}, client_state::patience::as_told, why);
    return {};
  } catch (const error& e) {
    return static_cast<errc>(e.code().value());
  }
}

// "3 of 5 servers gave no vote: 10.0.0.2:6379: Connection refused; ...; 2 were not waited for"
std::string quorum::report(const std::vector<std::string>& troubles, std::string_view missed) const {
  std::string out;
  std::size_t without = 0;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (troubles[i].empty()) continue;
    ++without;
    out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", names_[i], troubles[i]);
  }
  return fmt::format("{} of {} servers {}: {}", without, names_.size(), missed, out);
}

std::string quorum::report(const round& of, const quorum_wish& what) const {
  std::vector<std::string> troubles;
  for (std::size_t i = 0; i < names_.size(); ++i) troubles.push_back(of.trouble(i));
  // They may well have voted: the others had decided it by then.
  std::size_t unheard = 0;
  for (auto& one : troubles) {
    if (one != round::not_waited_for) continue;
    one.clear();
    ++unheard;
  }
  auto out = report(troubles, "gave no vote");
  if (unheard > 0) {
    const bool is_alone = out.ends_with(": ");  // Nobody said anything.
    out += fmt::format("{}{} {} not waited for", is_alone ? "" : "; ", unheard, unheard == 1 ? "was" : "were");
  }
  const int needed = engine::votes_needed(names_.size(), what.part);
  if (what.part.mode == 'p' && what.part.size > 1) {
    out += fmt::format("; a semaphore of {} takes {} votes", what.part.size, needed);
  }
  return out;
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
