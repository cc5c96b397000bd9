// SPDX-License-Identifier: Apache-2.0
// Trying for a lock of a quorum until it is got, busy, or no use.
#include "client/client_state.hpp"
#include "client/part.hpp"
#include "client/quorum.hpp"
#include "client/turn_watch.hpp"
#include "core/backoff.hpp"
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

// One acquire. What was heard last says what the end means when the time is over.
class quorum::search {
public:
  search(quorum& of, const wish& what)
      : of_{of},
        what_{what},
        started_at_{boottime_now()},
        heard_at_{started_at_},
        limit_{what.only_once ? started_at_ + of.from_.options.timeout
               : what.wait    ? started_at_ + *what.wait
                              : never} {}

  end run();

private:
  using result = round::result;

  bool is_first_in_line() const { return turn_ && turn_.valid(); }
  time_point give_up_at() const { return std::min(limit_, heard_at_ + of_.from_.options.timeout); }
  void try_once(std::optional<round>& into);
  // Empty: go on.
  std::optional<end> on_result(const round& seen);
  std::optional<end> on_busy(const round& seen);
  std::optional<std::size_t> place_of_line() const;
  std::optional<end> wait_for_turn();
  std::optional<end> pause(duration at_most, errc if_over);
  end failed(errc code, const round& seen);
  end out_of_time(const round& seen);
  end failed(errc code);
  std::shared_ptr<lease_record> keep(const round& won);
  void settle(const round& lost);

  quorum& of_;
  const wish& what_;
  const time_point started_at_;
  time_point heard_at_;
  const time_point limit_;
  int attempts_ = 0;
  int splits_ = 0;
  std::size_t line_is_behind_ = 0;  // The servers before it had none, at our last try.
  bool was_busy_ = false;
  core::backoff backoff_{10ms, 250ms};
  core::backoff poll_{5ms, 300ms};
  std::string report_{};
  lease turn_{};
};

quorum::end quorum::acquire(const wish& what) { return search{*this, what}.run(); }

quorum::end quorum::search::run() {
  for (;;) {
    std::optional<round> seen;
    try_once(seen);
    if (seen->outcome() == result::won) return {keep(*seen), {}, {}, attempts_};
    settle(*seen);
    if (auto over = on_result(*seen)) return std::move(*over);
  }
}

void quorum::search::try_once(std::optional<round>& into) {
  ++attempts_;
  const auto& options = of_.from_.options;
  into.emplace(
      of_.votes_.all(),
      round::request{what_.keys, what_.label, what_.ttl, options.max_ttl, what_.min_fence, of_.drift_,
                     patience_of(what_.ttl, options.timeout), give_up_at(), options.prefix, of_.record_, what_.part,
                     is_first_in_line() ? script::standing::first_in_line : script::standing::newcomer},
      owner_id{net::system_random().bytes16()}, boottime_now());
  of_.votes_.run(*into, what_.cancel);
}

std::shared_ptr<lease_record> quorum::search::keep(const round& won) {
  auto record = std::make_shared<lease_record>(what_.name, what_.keys, won.owner(), won.token(), what_.ttl, started_at_,
                                               won.deadline());
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

quorum::end quorum::search::failed(errc code) { return {nullptr, code, {}, attempts_}; }

quorum::end quorum::search::failed(errc code, const round& seen) {
  auto out = failed(code);
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

// The last try may have had no time left for its answers: then what was heard before it counts.
quorum::end quorum::search::out_of_time(const round& seen) {
  if (seen.final_reason() != errc{}) return failed(seen.final_reason(), seen);
  const bool is_silence = boottime_now() >= heard_at_ + of_.from_.options.timeout;
  return was_busy_ && !is_silence ? failed(errc::timed_out) : failed(errc::no_quorum, seen);
}

std::optional<quorum::end> quorum::search::on_result(const round& seen) {
  if (seen.was_cancelled() || what_.cancel.stop_requested()) {
    const bool is_clean = std::all_of(seen.votes().begin(), seen.votes().end(),
                                      [](const auto& v) { return v.not_after == server_time{}; });
    return failed(is_clean ? errc::cancelled : errc::cancelled_in_flight);
  }
  const bool is_time_over = boottime_now() >= give_up_at();
  switch (seen.outcome()) {
    case result::won: break;
    case result::busy: heard_at_ = boottime_now(); return on_busy(seen);
    case result::split:
      heard_at_ = boottime_now();
      if (what_.only_once && ++splits_ > 1) return end{nullptr, {}, {}, attempts_};
      // Several may hold it: what somebody else has of it may be there to stay, and the line knows whose turn it is.
      if (is_counted(what_.part) && !what_.only_once && !is_first_in_line()) return on_busy(seen);
      // Nobody has it: who draws the shorter pause wins (R12).
      return pause(duration{net::system_random().between(1'000'000, 30'000'000)}, errc::timed_out);
    case result::quarantined:
      heard_at_ = boottime_now();
      if (what_.only_once || boottime_now() >= limit_) return failed(errc::quarantined, seen);
      if (auto over = pause(250ms, errc::quarantined))
        return over->code == errc::quarantined ? failed(errc::quarantined, seen) : std::move(over);
      return std::nullopt;
    case result::refused:
      if (seen.final_reason() != errc{}) return failed(seen.final_reason(), seen);
      [[fallthrough]];
    case result::unreachable:
      if (is_time_over) return out_of_time(seen);
      if (auto over = pause(backoff_.next(net::system_random()), errc::no_quorum)) {
        return over->code == errc::no_quorum ? out_of_time(seen) : std::move(over);
      }
      return std::nullopt;
  }
  return std::nullopt;
}

// Only the head of the line tries while it is busy, and not hot (P25, H62).
std::optional<quorum::end> quorum::search::on_busy(const round& seen) {
  was_busy_ = true;
  if (what_.only_once) return end{nullptr, {}, {}, attempts_};
  if (boottime_now() >= limit_) return failed(errc::timed_out);
  if (!is_first_in_line()) return wait_for_turn();
  // Soon at first, because most locks are held for a moment, and then ten to three times a second.
  const duration held_for = seen.held_for().value_or(300ms) + 2ms;
  return pause(std::min(poll_.next(net::system_random()), held_for), errc::timed_out);
}

// The first server that speaks, so that all come to the same one.
std::optional<std::size_t> quorum::search::place_of_line() const {
  const auto there = of_.votes_.states();
  for (std::size_t i = 0; i < there.size(); ++i) {
    const std::size_t which = (line_is_behind_ + i) % there.size();
    if (there[which].is_ready) return which;
  }
  return std::nullopt;
}

std::optional<quorum::end> quorum::search::wait_for_turn() {
  const auto first = place_of_line();
  if (!first) return pause(100ms, errc::timed_out);
  acquire_options how;
  how.ttl = std::min<milliseconds>(5s, of_.from_.options.max_ttl);
  how.owner = *what_.label;
  if (limit_ != never) {
    how.wait = std::max(milliseconds{1}, duration_cast<milliseconds>(limit_ - boottime_now()));
  }
  turn_ = lease{};
  poll_.reset();
  const auto turn = of_.turn_of(*first);
  std::stop_source stop;
  const auto end_wait = [&stop] { stop.request_stop(); };
  const std::stop_callback by_caller{what_.cancel, end_wait};
  const std::stop_callback by_server{turn.watch->gone(), end_wait};
  how.cancel = stop.get_token();
  try {
    turn_ = turn.line->acquire_or_throw(what_.name, how);
  } catch (const error& e) {
    if (e.code() == errc::timed_out) return failed(errc::timed_out);
    if (what_.cancel.stop_requested()) return failed(errc::cancelled);
    heard_at_ = boottime_now();  // Until now it was the line that we waited for.
    // That server is gone, and its line with it: the next one that speaks has another. The votes' connection may not
    // know that yet.
    line_is_behind_ = *first + 1;
    return pause(50ms, errc::timed_out);
  }
  line_is_behind_ = 0;
  heard_at_ = boottime_now();
  return std::nullopt;
}

std::optional<quorum::end> quorum::search::pause(duration at_most, errc if_over) {
  const duration left = give_up_at() - boottime_now();
  if (left <= duration{0}) return failed(if_over);
  of_.wait_for_release(std::min(at_most, left), what_.cancel);
  if (what_.cancel.stop_requested()) return failed(errc::cancelled);
  return std::nullopt;
}

// "3 of 5 servers gave no vote: 10.0.0.2:6379: Connection refused; ..."
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

std::string quorum::report(const round& of, const wish& what) const {
  std::vector<std::string> troubles;
  for (std::size_t i = 0; i < names_.size(); ++i) troubles.push_back(of.trouble(i));
  auto out = report(troubles, "gave no vote");
  const int needed = engine::votes_needed(names_.size(), what.part);
  if (what.part.mode == 'p' && what.part.size > 1) {
    out += fmt::format("; a semaphore of {} takes {} votes", what.part.size, needed);
  }
  return out;
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
