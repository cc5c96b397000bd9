// SPDX-License-Identifier: Apache-2.0
// Decides the course of one release: send, send again after a lost reply, and what the answer is worth then.
#pragma once

#include "base/time.hpp"

#include <holdfast/observer.hpp>

#include <algorithm>
#include <chrono>
#include <optional>

namespace holdfast::core {

class release_call {
public:
  // `lease_deadline`: until when nobody else can hold the lock. `give_up_at`: when the caller stops waiting.
  release_call(time_point lease_deadline, time_point give_up_at)
      : lease_deadline_{lease_deadline}, give_up_at_{give_up_at} {}

  // True: send a release now.
  bool on_wake(time_point now, bool can_send) {
    if (!end_ && now >= give_up_at_) end_ = release_outcome::unknown;
    if (end_ || is_asked_ || now < send_at_ || !can_send) return false;
    is_asked_ = true;
    return true;
  }

  // Without a connection there is nothing to do before one comes.
  time_point wake_at(bool can_send) const {
    return is_asked_ || !can_send ? give_up_at_ : std::min(send_at_, give_up_at_);
  }

  void on_released() {
    if (!end_) end_ = release_outcome::released;
  }

  // "Not yours" to the first copy is definite. To a repeated one it may be that the first took effect: then it is
  // `released`, if nobody else can have come in between, and otherwise nobody knows (P12).
  void on_not_mine(time_point sent_at) {
    if (end_) return;
    if (!is_repeated_) {
      end_ = release_outcome::already_lost;
    } else {
      end_ = sent_at < lease_deadline_ ? release_outcome::released : release_outcome::unknown;
    }
  }

  // The connection ended: the first copy may have taken effect.
  void on_cut() {
    if (is_asked_) is_repeated_ = true;
    is_asked_ = false;
  }

  // The server could not do it now, and says that it did not.
  void on_not_done(time_point now) {
    is_asked_ = false;
    send_at_ = now + std::chrono::milliseconds{25};
  }

  // Trying again will not help: permission, password.
  void on_hopeless() {
    if (!end_) end_ = release_outcome::unknown;
  }

  const std::optional<release_outcome>& end() const { return end_; }

private:
  time_point lease_deadline_;
  time_point give_up_at_;
  time_point send_at_{};
  bool is_asked_ = false;
  bool is_repeated_ = false;
  std::optional<release_outcome> end_{};
};

}  // namespace holdfast::core
