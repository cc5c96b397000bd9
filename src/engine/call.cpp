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
  if (!hints_ || expected_ == who) return;
  if (expected_) hints_->remove(*expected_);
  expected_ = who;
  hints_->add(*expected_, *this);
}

}  // namespace holdfast::engine
