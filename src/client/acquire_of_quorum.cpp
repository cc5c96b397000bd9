// SPDX-License-Identifier: Apache-2.0
// client_state's calls where a quorum is behind it.
#include "client/client_state.hpp"
#include "client/part.hpp"
#include "client/quorum.hpp"
#include "net/clock.hpp"

#include <utility>

namespace holdfast {
inline namespace v0 {
namespace detail {

using net::boottime_now;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

quorum_wish client_state::plan_on_quorum(std::string_view text, const acquire_options& what, patience how,
                                         const script::part& part, purpose why) {
  require_ours();
  const lock_name name = name_of(text);
  check(what, options_);
  if (part.mode != 'p') check_no_permits(what);
  if (why == purpose::work) *wants_locks_ = true;

  quorum_wish wish;
  wish.name = name.text();
  wish.keys = is_counted(part) ? counted_keys_of(name) : keys_of(name);
  wish.part = part;
  wish.label = what.owner.empty() ? owner() : std::make_shared<const std::string>(what.owner);
  wish.ttl = what.ttl;
  wish.min_fence = what.min_fence;
  wish.mode = what.renew;
  wish.max_hold = what.max_hold;
  wish.only_once = how == patience::once || what.wait == milliseconds{0};
  if (what.wait && !wish.only_once) wish.wait = *what.wait;
  wish.is_trial = why == purpose::trial;
  wish.cancel = what.cancel;
  return wish;
}

std::optional<lease> client_state::acquire_of_quorum(const quorum_wish& what) {
  const time_point started_at = boottime_now();
  callbacks_->stand_by();
  auto end = quorum_->acquire(what);
  std::optional<lease> got;
  if (end.got) got = handle_of(end.got);
  report_end(what.name,
             end.got              ? acquire_result::acquired
             : end.code == errc{} ? acquire_result::busy
                                  : result_of(end.code),
             started_at, end.attempts);
  if (got || end.code == errc{}) return got;
  auto& detail = end.why;
  detail.attempts = end.attempts;
  detail.elapsed = duration_cast<milliseconds>(boottime_now() - started_at);
  // Of these it is the user, or the database: fail() names it.
  const bool is_of_our_login =
      end.code == errc::wrong_password || end.code == errc::no_permission || end.code == errc::wrong_database;
  if (detail.subject.empty() && !is_of_our_login) detail.subject = "'" + what.name + "'";
  fail(end.code, std::move(detail));
}

void client_state::downgrade_on_majority(lease_record& record) {
  require_shared(record);
  const time_point give_up_at = boottime_now() + options_.timeout;
  if (!quorum_->downgrade(record, give_up_at)) fail_as_gone(record, give_up_at);
}

// One after the other: each is asked of all servers at once. None is renewed meanwhile.
release_outcome client_state::release_all_of_quorum(const records& several) {
  const time_point give_up_at = boottime_now() + options_.timeout;
  try {
    std::vector<last_votes> had;
    for (const auto& one : several) {
      one->is_let_go = true;
      had.push_back(quorum_->let_go(*one));
    }
    auto worst = release_outcome::released;
    for (std::size_t i = 0; i < several.size(); ++i) {
      worst = worse(worst, release_of_quorum(*several[i], had[i], give_up_at));
    }
    return worst;
  } catch (...) {
    for (const auto& one : several) abandon(*one);
    throw;
  }
}

release_outcome client_state::release_of_quorum(const lease_record& record, const last_votes& had,
                                                time_point give_up_at) {
  const auto outcome = quorum_->release(record, had, give_up_at);
  const auto held = duration_cast<std::chrono::microseconds>(boottime_now() - record.granted_at);
  reporter_->tell([=, name = record.name](observer& o) { o.on_released(name, outcome, held); });
  return outcome;
}

}  // namespace detail
}  // namespace v0
}  // namespace holdfast
