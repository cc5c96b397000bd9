// SPDX-License-Identifier: Apache-2.0
#include "engine/call.hpp"

namespace holdfast::engine {

script::classified call::judge_error(time_point now, const resp::server_error& error) {
  note(error.text);
  auto what = script::classify(error.text);
  const bool is_elsewhere = what.what == script::reaction::elsewhere;
  if (!is_elsewhere || slot_ != no_slot) what = channel_->judge(error.text);
  if (what.what == script::reaction::reconnect) channel_->hang_up(now, {what.code, error.text, false, false});
  if (what.code == errc::no_primary) {
    what.what = script::reaction::try_again;
  } else if (is_elsewhere) {
    what.what = script::reaction::give_up;
  }
  return what;
}

void call::leave_server(time_point now) {
  if (is_done()) return;
  const bool is_asked = channel::open_requests(*this) > 0;
  channel_->forget(*this);
  is_moved_ = true;
  on_stop();  // Nobody here looks for it any more, nor it for anybody.
  if (is_asked) on_left(now);
}

void call::go_on(channel& to, hints& ear, time_point now) {
  channel_ = &to;
  is_moved_ = false;
  on_going_on(now, ear);
}

call* call::find_by_owner(const owner_id& who) const { return index_ ? index_->by_owner.find(who.hex()) : nullptr; }

void call::expect_hints_as(const owner_id& who) {
  if (!index_ || expected_ == who) return;
  expect_no_hints();
  expected_ = who;
  index_->by_owner.add(*this);
}

void call::expect_no_hints() {
  if (!expected_) return;
  index_->by_owner.remove(*this);
  expected_.reset();
}

}  // namespace holdfast::engine
