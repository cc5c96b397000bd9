// SPDX-License-Identifier: Apache-2.0
// Decides the course of a background release: of a dropped lease, or of an acquire whose outcome is unknown.
//
// After an unknown acquire a copy of the request may still be on its way, and "not yours" to a release that overtakes
// it proves nothing. So the release is repeated until the first definite answer that the server gave after the last
// not_after: from then on no copy can take effect (P9, P10).
//
// What is sent behind a copy by the same connection ends what it did. One whose connection was cut comes when it likes,
// and the mark that a release leaves against it is one long (P9): where others come and go it may lock, for nobody, and
// everybody would wait until the release behind the last not_after. So there are releases in between, each distance
// four times the last, which renew the mark, too: nobody waits for longer than three times what the copy was late, and
// 50 ms. Within 5 s these are four. They decide nothing: what ends it stays the same.
#pragma once

#include "base/random.hpp"
#include "base/time.hpp"
#include "core/backoff.hpp"

#include <algorithm>
#include <chrono>

namespace holdfast::core {

// The connection by which the copies went.
enum class route : unsigned char { stands, was_cut };

class clean_up {
public:
  // `definite_after`: the last not_after; the epoch when no copy is outstanding. `resend_at` is our clock's estimate of
  // that instant. `give_up_at`: when whatever lease there was has expired by itself. `place_until`: a place in line has
  // not by then, if nothing was answered; the first answer ends that (P2).
  clean_up(time_point now, server_time definite_after, time_point resend_at, time_point give_up_at,
           route went_by = route::stands, time_point place_until = {})
      : definite_after_{definite_after},
        resend_at_{resend_at},
        give_up_at_{give_up_at},
        place_until_{std::max(give_up_at, place_until)},
        send_at_{now},
        may_come_at_any_time_{went_by == route::was_cut} {}

  // True: send a release now.
  bool on_wake(time_point now, bool can_send) {
    if (is_over(now) || is_asked_ || now < send_at_ || !can_send) return false;
    is_asked_ = true;
    return true;
  }

  // There are signs that a copy took effect: does not wait for the last not_after with the next release (P5).
  void hurry(time_point now) { send_at_ = std::min(send_at_, now); }

  bool is_over(time_point now) const { return is_done_ || now >= ends_at(); }
  time_point wake_at(bool can_send) const {
    if (is_done_) return never;
    return is_asked_ || !can_send ? ends_at() : std::min(send_at_, ends_at());
  }

  // The server answered "released" or "not yours" at `server_now`.
  void on_definite(time_point now, server_time server_now, base::random_source& rng) {
    is_asked_ = false;
    has_left_ = true;
    if (server_now > definite_after_) {
      is_done_ = true;
    } else {
      // Not sooner than a retry: the server's clock may have stepped back far behind our estimate.
      send_at_ = std::max(now + retry_.next(rng), std::min(next_look(now), resend_at_));
    }
  }

  // No answer, or one that says nothing.
  void on_failed(time_point now, base::random_source& rng) {
    is_asked_ = false;
    send_at_ = now + retry_.next(rng);
  }

private:
  time_point ends_at() const { return has_left_ ? give_up_at_ : place_until_; }

  time_point next_look(time_point now) {
    if (!may_come_at_any_time_) return never;
    const time_point at = now + distance_;
    distance_ = std::min(4 * distance_, longest_distance);
    return at;
  }

  static constexpr duration longest_distance = std::chrono::minutes{1};

  server_time definite_after_;
  time_point resend_at_;
  time_point give_up_at_;
  time_point place_until_;
  time_point send_at_;
  bool may_come_at_any_time_;
  duration distance_ = std::chrono::milliseconds{50};
  bool is_asked_ = false;
  bool is_done_ = false;
  bool has_left_ = false;  // Any answer was heard: what stands in line does not any more.
  backoff retry_{std::chrono::milliseconds{25}, std::chrono::seconds{1}};
};

}  // namespace holdfast::core
