// SPDX-License-Identifier: Apache-2.0
#include "engine/call.hpp"

namespace holdfast::engine {

script::classified call::judge_error(time_point now, const resp::server_error& error) {
  note(error.text);
  const auto what = script::classify(error.text);
  if (what.what == script::reaction::reconnect) channel_->hang_up(now, {what.code, error.text, false, false});
  return what;
}

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
