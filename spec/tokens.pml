// SPDX-License-Identifier: Apache-2.0
// tokens: fencing tokens of a quorum of three nodes whose clocks differ, as design section 7 has them.
//
// The client proposes one: its largest estimate of the nodes' clocks and 5 ms, less than a tick. A node takes it if it is above its last
// stamp and not below its TIME, else it answers its own. Equal answers from a majority are the token; otherwise the largest
// is written back to a majority before anyone sees it.
//
// Says: tokens strictly increase in the order of the grants, also when a node loses its data, with quarantine and clocks that
// are no further apart than max_ttl/2.
//
// A tick is coarse, a stamp's unit a microsecond: so two grants are never made in one tick, or stamps would run away from
// the clocks as they cannot in a day. No renewals: a lease that lives long changes no stamp.
//
// Runs, read by script/check-models: kind, name, switches, and which claim a bad one must break.
//   good  no_loss           LOSSES=0,HORIZON=2
//   good  loss              LOSSES=1
//   slow  any_skew          LOSSES=1,ANY_SKEW
//   bad   one_phase         LOSSES=0,ONE_PHASE               token_order
//   bad   write_to_one      LOSSES=0,WRITE_BACK_TO_ONE       token_order
//   bad   no_quarantine     LOSSES=1,NO_QUARANTINE           token_order
//   bad   far_clocks        LOSSES=1,SKEW=2                  token_order
//   bad   no_clock          LOSSES=1,NO_CLOCK                token_order
#include "claims.pml"

#define NODES 3
#define MAJORITY 2
#ifndef ENTRIES
#define ENTRIES 2       // Attempts in all, each by a client of its own; they overlap as they like.
#endif
#define TTL 2
#define MAX_TTL 2
#ifndef SKEW
#define SKEW 1          // How far the nodes' clocks are apart: max_ttl/2, in whole ticks.
#endif
#ifndef HORIZON
#define HORIZON 3       // Ticks.
#endif
#ifdef NO_QUARANTINE
#define QUARANTINE 0
#else
#define QUARANTINE MAX_TTL
#endif

mtype = {unborn, asking, writing, granted, over};

byte now;
byte ahead[NODES], fastest;      // By so much a node's clock is ahead of the slowest; the largest of these.
byte last[NODES];                // Its last stamp,
byte holder[NODES];              // who holds it: an entry, from 1,
byte until[NODES];               // until when,
byte shut[NODES];                // and until when it is in quarantine.
byte losses = LOSSES;

mtype state[ENTRIES + 1] = unborn;
byte born[ENTRIES + 1];          // When it sent its request; its lease counts from there.
byte proposed[ENTRIES + 1];
byte votes[ENTRIES + 1], equal[ENTRIES + 1], largest[ENTRIES + 1], acks[ENTRIES + 1];
byte voted[ENTRIES + 1];         // By bits: which nodes gave their vote, and have not been written back to.
byte newest;                     // The token of the last grant,
byte granted_at;                 // and its tick.

hidden byte stamp;
bool token_order = true;

#ifdef NO_CLOCK  // A proposal below TIME is taken, too.
#define TIME(n) 1
#else
#define TIME(n) (1 + now + ahead[n])
#endif
#define is_alive(e) (now < born[e] + TTL)

// acquire at a node: the vote and the stamp are one step.
inline vote(e, n) {
  if
  :: holder[n] == 0 && now >= shut[n] ->
     voted[e] = voted[e] | (1 << n);
     stamp = larger(last[n] + 1, TIME(n));
     stamp = larger(stamp, proposed[e]);  // Its own is the larger one, or the proposal is good.
     last[n] = stamp; holder[n] = e; until[n] = now + TTL;
     votes[e]++; equal[e] = equal[e] + (stamp == proposed[e] -> 1 : 0);
     largest[e] = larger(largest[e], stamp)
  :: else  // Busy, or in quarantine: as if it had not been asked.
  fi
}

// The second round: raises the node's last stamp, if the vote is still ours.
inline write_back(e, n) {
  voted[e] = voted[e] & ~(1 << n);
  if
  :: holder[n] == e -> last[n] = larger(last[n], largest[e]); acks[e]++
  :: else
  fi
}

inline forget(e) {  // What it was worked out from says nothing any more.
  born[e] = 0; proposed[e] = 0; votes[e] = 0; equal[e] = 0; largest[e] = 0; acks[e] = 0; voted[e] = 0
}

inline grant(e, token) {
  must(token_order, token > newest);
  newest = token; granted_at = now + 1; state[e] = granted; forget(e)
}

// The attempts are alike, so it is enough to let them begin in one order.
#define may_begin(e) (state[e] == unborn && (e == 1 || state[e - 1] != unborn))
#define has_majority(count) (count >= MAJORITY)
#define may_grant(e) (is_alive(e) && granted_at <= now)

proctype attempt(byte e) {
end:
  do
  // An estimate may be as old as it likes; and nobody needs to have one.
  :: d_step { may_begin(e) -> state[e] = asking; born[e] = now }
  :: d_step {
       may_begin(e) -> state[e] = asking; born[e] = now;
       proposed[e] = 1 + now + fastest
     }
  :: d_step { state[e] == asking && (voted[e] & 1) == 0 -> vote(e, 0) }
  :: d_step { state[e] == asking && (voted[e] & 2) == 0 -> vote(e, 1) }
  :: d_step { state[e] == asking && (voted[e] & 4) == 0 -> vote(e, 2) }
  :: d_step { state[e] == asking && may_grant(e) && has_majority(equal[e]) -> grant(e, proposed[e]) }
#ifdef ONE_PHASE
  :: d_step { state[e] == asking && may_grant(e) && has_majority(votes[e]) -> grant(e, largest[e]) }
#else
  :: d_step { state[e] == asking && has_majority(votes[e]) -> state[e] = writing; proposed[e] = 0; equal[e] = 0 }
#endif
  :: d_step { state[e] == writing && (voted[e] & 1) != 0 -> write_back(e, 0) }
  :: d_step { state[e] == writing && (voted[e] & 2) != 0 -> write_back(e, 1) }
  :: d_step { state[e] == writing && (voted[e] & 4) != 0 -> write_back(e, 2) }
#ifdef WRITE_BACK_TO_ONE
  :: d_step { state[e] == writing && may_grant(e) && acks[e] >= 1 -> grant(e, largest[e]) }
#else
  :: d_step { state[e] == writing && may_grant(e) && has_majority(acks[e]) -> grant(e, largest[e]) }
#endif
  :: d_step { (state[e] == asking || state[e] == writing) -> state[e] = over; forget(e) }  // It gives up.
  od
}

// Its release arrives at each node, sooner or later or never.
#define is_released(n) (holder[n] != 0 && (state[holder[n]] == granted || state[holder[n]] == over))
#define unlock(n) holder[n] = 0; until[n] = 0

inline tick_node(n) {
  if
  :: until[n] <= now -> unlock(n)
  :: else
  fi;
  shut[n] = (shut[n] <= now -> 0 : shut[n])
}

inline lose(n) { losses--; last[n] = 0; unlock(n); shut[n] = now + QUARANTINE }

active proctype world() {
  byte n;
  atomic {
    // One of the clocks is the slowest: let that be the last node.
#ifdef ANY_SKEW
    select(n : 0 .. SKEW); ahead[0] = n; select(n : 0 .. SKEW); ahead[1] = n;
#else
    ahead[0] = SKEW;
#endif
    fastest = larger(ahead[0], ahead[1]);
    n = 1;
    do
    :: n <= ENTRIES -> run attempt(n); n++
    :: else -> n = 0; break
    od
  }
end:
  do
  :: d_step { is_released(0) -> unlock(0) }
  :: d_step { is_released(1) -> unlock(1) }
  :: d_step { is_released(2) -> unlock(2) }
  :: d_step { now < HORIZON -> now++; tick_node(0); tick_node(1); tick_node(2) }
  :: d_step { losses > 0 -> lose(0) }
  :: d_step { losses > 0 -> lose(1) }
  :: d_step { losses > 0 -> lose(2) }
  od
}
