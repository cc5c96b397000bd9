// SPDX-License-Identifier: Apache-2.0
// What must be put into one order. A call that acquires and one that releases are not whole operations on the lock: a
// lease may end by itself in between. So each hold becomes two steps, its beginning and its end, each with the interval
// in which it must have taken effect:
//
//  recorded                        | step      | interval
//  --------------------------------+-----------+---------------------------------------------------------------
//  acquired, after try or wait     | take      | call to return
//  released; unlock of a short     | end       | call to return: it was held until then
//    hold                          |           |
//  drop, other unlock; release     | end       | may come: not before that call or the end of the lease
//    unknown or open               |           |
//  no release: killed, or the log  | end       | may come: not before the end of the lease
//    ended; already_lost           |           |
//  already_lost before the lease's | end       | none: the lease was to stand longer than it did, so the history is
//    own end                       |           |   refused
//  lock again, unlock of an inner  | again,    | call to return; none, and the history is refused: another token than
//    one                           |   back    |   the hold's, or an unlock too many
//  busy                            | busy      | call to return: there was no room then
//  busy while another waited in    | none      | who waits may be granted at any time, and is not overtaken: there
//    line, or a thread of the same |           |   is nothing to check
//    object had not unlocked yet   |           |
//  unknown, timed out, open, slow, | a ghost   | may come, once, at any time after the call, and end at any time
//    through the proxy, or busy    |           |   after that. Nobody ever believed in it
//    beside such a thread          |           |
//  downgrade done; unknown or open | downgrade | call to return; may come at any time after the call
//
// The end of the lease is the last instant until which the holder was told that it stands (lease::remaining): that is
// the promise of C1, and until then nobody else may come in, also when the holder was killed or stopped. After it the
// place may be free or not: the server lets go later, and by how much nobody has to know here.
//
// *Slow* is half the ttl or more. A grant whose answer is read with less than 30 % of its ttl left is given back in the
// background, whatever the call says in the end (H16); nothing like that can have happened to a faster one. *Through
// the proxy*: a copy of a request that was answered may still be on its way when its connection is cut, and lock again
// for at most a ttl (docs/protocol.md, "Downsides"). *Short*: an unlock waits for its answer until the lease ends,
// which is not before 30 % of the ttl after the lock was asked for; so what was over in a quarter of it had its answer.
#pragma once

#include "history/operation.hpp"

#include <compare>
#include <vector>

namespace holdfast::test::history {

enum class deed { take, busy, end, downgrade, again, back };

struct step {
  deed what{};
  int hold = 0;  // The number of a hold of this lock, over all workers; of a busy one: none.
  int part = everything;
  std::uint64_t token = 0;
  instant from = 0;
  instant to = never;
  const operation* of = nullptr;
};

// A hold that nobody knows of.
struct ghost {
  instant from = 0;
  int part = everything;
};

struct steps {
  std::vector<step> required{};             // In the order of `from`. All of them took effect.
  std::vector<step> optional{};             // Each may have taken effect. `to` is never.
  std::vector<ghost> ghosts{};              // In the order of `from`.
  std::vector<const operation*> holders{};  // Of each hold the call that acquired it.
};

// `all`: the operations on one lock.
steps steps_of(const operations& all);

}  // namespace holdfast::test::history
