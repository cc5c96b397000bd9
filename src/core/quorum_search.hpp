// SPDX-License-Identifier: Apache-2.0
// Decides how a lock of a quorum is searched for until it is got, busy, or no use: when to try (core/quorum_round.hpp),
// how long to pause, when to stand in the line of one of the servers, and what the end means. Pure, like the round.
#pragma once

#include "base/random.hpp"
#include "base/time.hpp"
#include "core/backoff.hpp"
#include "core/quorum_round.hpp"

#include <holdfast/error.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace holdfast::core {

//  a try ended | in the line's turn      | else
//  ------------+-------------------------+-----------------------------------------------------------------
//  busy        | pause, soon at first    | stand in line; once: it ends
//  tied        | as busy                 | as busy: the line says who comes first; once: as split
//  split       | pause, by lot (R12)     | the same; of a counted kind stand in line
//  split again | as busy, from the fourth in a row on
//  quarantined | pause; once: it ends. But at once again, where the try itself has opened our list at who refused
//  refused     | it ends where trying again is no use, else as unreachable
//  unreachable | pause, longer and longer
//
// Only who has its turn tries while the lock is busy, so that waiters do not poll hot (P25, H62). The line itself
// promises nothing: two who have their turn at once harm nobody, the votes decide. Who has stood there in vain tries
// once more before its time is over.
//
// Whatever ends it: while as many servers as make a lock may have a vote of ours, from whichever try, nobody knows
// whether we have the lock, and the end is reply_lost (C5); cancelled, it is in flight.
class quorum_search {
public:
  struct settings {
    bool only_once;                // try_acquire, or wait = 0: busy ends it.
    std::optional<duration> wait;  // Empty: until cancelled.
    duration timeout;              // The longest time without any answer that is put up with.
    bool is_counted = false;       // Several may hold it.
    std::size_t needed = 1;        // So many votes make a lock.
    duration patience{0};          // How long one server is waited for when the others have not decided a try.
  };
  quorum_search(const settings& how, time_point now, base::random_source& rng);

  // However little time is left: the answer of a server that is near.
  static constexpr duration least_patience = std::chrono::milliseconds{50};

  struct try_now {};
  struct pause {  // Or until somebody of this process released something.
    time_point until;
  };
  struct stand_in_line {  // At the server that line_of() says, until there is a turn.
    time_point until;
  };
  struct end {
    errc code;                 // None: busy.
    bool round_tells = false;  // The last round has more to say of it.
    errc reason{};             // Of reply_lost: what ended it.
  };
  using step = std::variant<try_now, pause, stand_in_line, end>;

  // A connection, and how much of what was told over it and not heard of had been refused by then: what stands between
  // two that are equal was done.
  struct passage {
    std::uint64_t connection = 0;  // 0: none.
    std::uint64_t refused = 0;
    friend bool operator==(const passage&, const passage&) = default;
  };
  // What a try that was not won may have left with one server, and whether that answered.
  struct leftover {
    time_point until{};    // A vote of ours may be there until then. Past: there is none.
    passage told_over{};   // Over this it was told to leave, behind the request.
    passage heard_over{};  // Over this it answered this try.
  };
  // A try that was not won.
  struct lost_round {
    quorum_round::result how;
    errc final_reason{};  // Which trying again will not remove.
    bool was_cancelled = false;
    bool enough_voted = false;           // But under several tokens, and these were not made one.
    std::optional<duration> held_for{};  // The shortest remaining time of those who hold it.
    duration took{0};                    // From asking the servers on, with the withdrawal.
    std::vector<leftover> left{};        // With each server.
    bool has_opened = false;             // Our list, where a server did not have it as open.
  };
  step on_lost(time_point now, const lost_round& what, bool has_turn);
  // None: there is a turn. Else why not, of the server of line_of(), or that there was none to go to.
  step on_turn(time_point now, errc why_not);
  step on_pause_over(time_point now);
  step on_cancel(time_point now) const {
    return end{left(now) >= how_.needed ? errc::cancelled_in_flight : errc::cancelled};
  }

  // The first of those that speak, so that all come to the same one; behind those that had no line at our last try,
  // which its connection for votes may not know yet.
  std::optional<std::size_t> line_of(const std::vector<bool>& is_ready);

  // When to stop a try.
  time_point give_up_at() const;
  // How long a try that begins now waits for one server. It is given little time by the end of a wait, but not by that
  // of a silence: then nobody would know whether there is one.
  duration patience(time_point now) const;
  // When the wait is over; never, where it has no bound.
  time_point over_at() const { return how_.wait ? limit_ : never; }
  // By then nothing is left of any try.
  time_point left_until() const;

private:
  step decide(time_point now, const lost_round& what, bool has_turn);
  step on_busy(time_point now, const lost_round& what, bool has_turn);
  step on_split(time_point now, const lost_round& what, bool has_turn);
  duration lot(time_point now, duration took);
  time_point leaves_line_at(time_point now) const;
  step rest(time_point now, duration at_most, const end& if_over);
  end out_of_time(time_point now, const lost_round& what) const;
  void note(time_point now, const std::vector<leftover>& of_a_try);
  // How many servers may have a vote of ours.
  std::size_t left(time_point now) const;
  step told(time_point now, step what) const;

  base::random_source* rng_;
  settings how_;
  time_point limit_;
  time_point heard_at_;  // The last answer of a majority, or the end of a wait in line.
  errc heard_{};         // That others hold it, or that nothing is granted: what a wait ends with. None: neither.
  end rested_from_{};    // What the last try met, if there is no time for another.
  time_point rests_until_ = never;
  bool is_last_try_ = false;
  bool has_come_to_opened_ = false;
  int splits_ = 0;                // In a row.
  std::vector<leftover> left_{};  // Of all tries, with each server.
  std::optional<std::size_t> line_{};
  std::size_t without_line_ = 0;  // The servers before it.
  backoff unreachable_{std::chrono::milliseconds{10}, std::chrono::milliseconds{250}};
  backoff busy_{std::chrono::milliseconds{5}, std::chrono::milliseconds{300}};
};

}  // namespace holdfast::core
