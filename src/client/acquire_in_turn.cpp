// SPDX-License-Identifier: Apache-2.0
// client_state's acquire where other threads of this process may want the same lock (client/local_line.hpp).
#include "client/client_state.hpp"
#include "net/clock.hpp"

#include <algorithm>
#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

namespace {

// Says how it ended to those who wait behind it, also if it ends by an exception.
class asking {
public:
  asking(local_line& line, std::string&& key) noexcept : line_{line}, key_{std::move(key)} {}
  ~asking() {
    if (!is_told_) line_.failed(key_, {errc{}});
  }
  asking(const asking&) = delete;
  asking& operator=(const asking&) = delete;

  void got(const std::shared_ptr<lease_record>& record, int block, time_point granted_at,
           const core::hand_over_wish& wish) {
    line_.got(record, block, granted_at, wish);
    is_told_ = true;
  }
  void failed(errc code, time_point silent_since) {
    if (is_told_) return;
    line_.failed(key_, {code, silent_since});
    is_told_ = true;
  }

private:
  local_line& line_;
  const std::string key_;
  bool is_told_ = false;
};

int block_behind(const local_line::outcome& turn, const client_options& options, command_connection& at,
                 time_point now) {
  const core::hand_over_limits limits{options.hand_overs, options.hand_over_span};
  if (limits.most <= core::modest_block) return limits.most;
  const core::server_clock clock = at.server_clock();
  return clock.is_known() ? core::block_of(limits, turn.others_wait, turn.last, clock.at(now)) : core::modest_block;
}

}  // namespace

std::optional<lease> client_state::acquire_in_turn(planned& what, const acquire_options& options,
                                                   time_point started_at) {
  auto& [name, wanted, rules, attempts_before] = what;
  const core::hand_over_wish wish{rules.ttl, wanted.min_fence, options.renew == renewal::automatic, options.max_hold,
                                  *wanted.label};
  const time_point until = rules.wait ? started_at + *rules.wait : never;
  std::string key = wanted.keys.holder;  // From the turn on nothing may fail before `ours` is there.
  auto turn = line_.enter(key, wish, until, options.cancel);
  while (turn.what == local_line::turn::given) {
    auto given = handle_of(turn.given);
    if (core::hand_over_chain::is_worth_taking(boottime_now(), turn.given->deadline.at(), rules.ttl)) {
      report_end(name, acquire_result::acquired, started_at, 0);
      return given;
    }
    given = {};  // We stood still meanwhile, and who gets little or nothing of a lease has not got the lock (B82).
    turn = line_.enter(key, wish, until, options.cancel, local_line::place::again);
  }
  if (turn.what != local_line::turn::ask) fail_behind_others(what, turn, started_at);

  asking ours{line_, std::move(key)};
  stand_by(wanted.keys);
  time_point now = boottime_now();
  if (rules.wait) {
    rules.wait = std::max(duration{1}, until - now);
    if (turn.heard != errc::server_silent) {
      rules.heard = turn.heard;
      rules.too_little = core::too_little_in_a_crowd;
    }
  } else {
    // Our own patience began when we did, or when who asked before us heard the server last.
    now = std::min(now, std::max(started_at, turn.silent_since));
  }
  rules.silent_since = turn.silent_since;
  const auto& at = node_for(wanted.keys)->commands();
  rules.round_trip = at->so_far().round_trip;  // Those before us have had answers since.
  const int block = block_behind(turn, options_, *at, now);
  wanted.block_at_once = turn.others_wait ? block : 0;
  wanted.part.permits = block;
  const int slot = slot_of(wanted.keys);
  engine::acquire call{at->channel(), at->ear(), std::move(wanted), rules, now, net::system_random()};
  call.set_slot(slot);
  // What is left of our time is too little for an answer: meanwhile the next one may ask.
  if (call.is_past_asking())
    ours.failed(errc::timed_out, never);
  else
    call.write_news_to(*turn.news);
  run(call, options.cancel);
  auto end = conclude(call, name, {options.renew, options.max_hold}, started_at);
  if (end.code != errc{}) {
    ours.failed(end.code, call.silent_since());
    fail(end.code, call, name, {started_at, attempts_before});
  }
  const auto& record = lease_handle::of(*end.got).record;
  // A copy that may still arrive is cleaned up by its owner id, whoever has the lease then.
  const bool has_copies = record->unsettled_until.not_after != server_time{};
  ours.got(record, has_copies ? 0 : call.reserved(), std::get<core::got_lease>(call.end()).granted_at, wish);
  return std::move(end.got);
}

// Behind a thread that reaches nobody, or hears nothing, it is not somebody else's hold that our time went to.
void client_state::fail_behind_others(const planned& what, const local_line::outcome& turn, time_point started_at) {
  const auto& at = node_for(what.what.keys)->commands();
  const auto trouble = at->trouble();
  const errc code = turn.what == local_line::turn::cancelled ? errc::cancelled
                    : trouble.second > 0                     ? refined(errc::server_silent, *node_for(what.what.keys))
                    : at->quarantine()                       ? errc::quarantined
                    : turn.heard == errc::server_silent      ? what.how.heard
                                                             : turn.heard;
  report_end(what.name, result_of(code), started_at, 0);
  error_detail detail;
  detail.subject = "'" + what.name + "'";
  if (trouble.second > 0 && code == trouble.first.code) detail.server_text = trouble.first.text;
  if (code == errc::quarantined) detail.why = why_nothing_is_granted(*node_for(what.what.keys));
  detail.elapsed = duration_cast<milliseconds>(boottime_now() - started_at);
  fail(code, std::move(detail));
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
