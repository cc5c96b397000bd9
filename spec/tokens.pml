// SPDX-License-Identifier: Apache-2.0
// tokens: fencing tokens of a quorum of three nodes whose clocks differ.
//
// The client proposes one: its largest estimate of the nodes' clocks and 5 ms, here one stamp. A node takes it if it is
// above its last stamp and not below its TIME, else it answers its own. Equal answers from a majority are the token;
// otherwise the largest is written over the smaller ones until a majority has it.
//
// Says: tokens strictly increase in the order of the grants, also when a node loses its data, with quarantine. No clock
// is farther than max_ttl/2 from the median: one ahead of two others by that, or (STAGGERED) two apart by max_ttl and
// the third between them. MENDS: a node is asked so often for a vote that a granted lease has lost there, as late as it
// likes, also when another has been granted since. Which lines of the code an action stands for is in actions.md.
//
// Runs, read by script/check-models: kind, name, switches, and which claim a bad or an open one must break.
//   good  no_loss            LOSSES=0
//   good  loss               LOSSES=1,HORIZON=2
//   good  staggered          LOSSES=1,STAGGERED,SKEW=2,PATIENCE=0,HORIZON=2
//   good  mended             LOSSES=1,MENDS=1,HORIZON=2
//   slow  loss_longer        LOSSES=1
//   slow  staggered_longer   LOSSES=1,STAGGERED,SKEW=2,PATIENCE=0
//   slow  any_skew           LOSSES=1,ANY_SKEW
//   bad   one_phase          LOSSES=0,ONE_PHASE                       token_order
//   bad   raises_value_only  LOSSES=0,RAISES_VALUE_ONLY               token_order
//   bad   no_quarantine      LOSSES=1,NO_QUARANTINE                   token_order
//   bad   far_clocks         LOSSES=1,SKEW=2,PATIENCE=0,HORIZON=2     token_order
//   bad   slow_round         LOSSES=1,STAGGERED,SKEW=2,HORIZON=2      token_order
//   bad   no_clock           LOSSES=1,NO_CLOCK                        token_order
//   bad   mend_takes_back    LOSSES=0,MENDS=1,MEND_TAKES_BACK,ENTRIES=3,HORIZON=1  token_order
#include "claims.pml"

#define NODES 3
#define MAJORITY 2
#ifndef ENTRIES
#define ENTRIES 2       // Attempts in all, each by a client of its own; they overlap as they like.
#endif
#define TTL 2
#define MAX_TTL 2
#ifndef PATIENCE
#define PATIENCE 1      // A vote that is read was given within so many ticks of the round's begin.
#endif
#ifndef SKEW
#define SKEW 1          // How far the fastest clock is ahead of the slowest: max_ttl/2, in whole ticks.
#endif
#ifndef HORIZON
#define HORIZON 3       // Ticks,
#endif
#define TICK 4          // each of so many stamps: more than a node can be made to give in one.
#ifdef NO_QUARANTINE
#define QUARANTINE 0
#else
#define QUARANTINE MAX_TTL
#endif

mtype = {unborn, asking, raising, granted, over};

byte now;
byte ahead[NODES], fastest;      // By so many ticks a node's clock is ahead of the slowest; the largest of these.
byte last[NODES];                // Its last stamp,
byte holder[NODES];              // who holds it: an entry, from 1,
byte until[NODES];               // until when,
byte shut[NODES];                // and until when it is in quarantine.
byte losses = LOSSES;

mtype state[ENTRIES + 1] = unborn;
byte born[ENTRIES + 1];          // When it sent its request; its lease counts from there.
byte proposed[ENTRIES + 1];
byte sent[ENTRIES + 1];          // By bits: where its request has arrived.
byte given[NODES * (ENTRIES + 1)];  // The token of each vote that it has read.
byte token[ENTRIES + 1];         // Of the second phase.
byte newest;                     // The token of the last grant.
#ifdef MENDS
byte held[ENTRIES + 1];          // The token of its grant, while votes may be asked for again.
byte mends = MENDS;
#endif

hidden byte stamp;
bool token_order = true;

#ifdef NO_CLOCK  // A proposal below TIME is taken, too.
#define TIME(n) 1
#else
#define TIME(n) (1 + TICK * (now + ahead[n]))
#endif
#define bit(n) (1 << n)
#define is_in(set, n) (((set) & bit(n)) != 0)
#define vote(e, n) given[NODES * (e) + n]
#define is_alive(e) (now < born[e] + TTL)
#define in_time(e) (now <= born[e] + PATIENCE)

// ---- A node. One call is one script.

inline unlock(n) { holder[n] = 0; until[n] = 0 }

// The vote and the stamp are one step. Busy is as if it had not been asked. Who is in quarantine gives one, too.
inline run_vote(e, n) {
  stamp = larger(last[n] + 1, TIME(n));
  stamp = larger(stamp, proposed[e]);  // Its own is the larger one, or the proposal is good.
  last[n] = stamp; holder[n] = e; until[n] = now + TTL; sent[e] = sent[e] | bit(n)
}

inline run_raise(e, n) {
#ifndef RAISES_VALUE_ONLY
  last[n] = larger(last[n], token[e])
#else
  skip
#endif
}

inline forget_held() {
  held[1] = 0; held[2] = 0;
#if ENTRIES > 2
  held[3] = 0
#endif
}

// Its token again, unless the node has given a larger one.
inline run_mend(e, n) {
#ifdef MENDS
#ifdef MEND_TAKES_BACK
  last[n] = held[e];
#else
  last[n] = (last[n] <= held[e] -> held[e] : larger(last[n] + 1, TIME(n)));
#endif
  holder[n] = e; until[n] = now + TTL; mends--;
  if
  :: mends == 0 -> forget_held()
  :: else
  fi
#else
  skip
#endif
}

// ---- A client.

inline on_vote(e, n) {
  run_vote(e, n);
  vote(e, n) = (now >= shut[n] -> stamp : 0);
  stamp = 0
}

inline on_unheard_vote(e, n) { run_vote(e, n); stamp = 0; forget_request(e) }  // Nobody reads it, or not any more.

inline on_raise(e, n, is_read) {  // If the vote is still ours.
  if
  :: holder[n] == e -> run_raise(e, n); vote(e, n) = (is_read -> token[e] : 0)
  :: else -> vote(e, n) = 0
  fi
}

inline forget_request(e) {  // What was proposed says nothing when it has arrived everywhere.
  proposed[e] = (sent[e] == 7 && state[e] != asking && state[e] != raising -> 0 : proposed[e])
}

inline forget(e) {
  born[e] = 0; token[e] = 0; vote(e, 0) = 0; vote(e, 1) = 0; vote(e, 2) = 0; forget_request(e)
}

inline grant(e) {
  must(token_order, stamp > newest);
#ifdef MENDS
  held[e] = (mends > 0 -> stamp : 0);
#endif
  newest = stamp; stamp = 0; state[e] = granted; forget(e)
}

#define votes(e) ((vote(e, 0) != 0) + (vote(e, 1) != 0) + (vote(e, 2) != 0))
#define with(e, what) ((vote(e, 0) == what) + (vote(e, 1) == what) + (vote(e, 2) == what))
#define largest(e) larger(larger(vote(e, 0), vote(e, 1)), vote(e, 2))
#define agree(e, n, m) (vote(e, n) != 0 && vote(e, n) == vote(e, m))
#define agreed(e) (agree(e, 0, 1) || agree(e, 0, 2) -> vote(e, 0) : (agree(e, 1, 2) -> vote(e, 1) : 0))

inline begin(e, proposal) { state[e] = asking; born[e] = now; proposed[e] = proposal }

inline begin_second_phase(e) { state[e] = raising; token[e] = largest(e) }

inline give_up(e) { state[e] = over; forget(e) }

// The attempts are alike, so it is enough to let them begin in one order.
#define may_begin(e) (state[e] == unborn && (e == 1 || state[e - 1] != unborn))
#define is_trying(e) (state[e] == asking || state[e] == raising)
#define may_vote(e, n) (!is_in(sent[e], n) && holder[n] == 0)
#ifdef MENDS
#define may_mend(e, n) (state[e] == granted && mends > 0 && holder[n] == 0)
#else
#define may_mend(e, n) false
#endif
#define must_raise(e, n) (state[e] == raising && vote(e, n) != 0 && vote(e, n) < token[e])

#define at_node(e, n) \
  :: d_step { is_trying(e) && in_time(e) && may_vote(e, n) -> on_vote(e, n) } \
  :: d_step { state[e] != unborn && may_vote(e, n) -> on_unheard_vote(e, n) } \
  :: d_step { must_raise(e, n) -> on_raise(e, n, true) } \
  :: d_step { must_raise(e, n) -> on_raise(e, n, false) } \
  :: d_step { may_mend(e, n) -> run_mend(e, n) }

proctype attempt(byte e) {
end:
  do
  // An estimate may be as old as it likes; and nobody needs to have one.
  :: d_step { may_begin(e) -> begin(e, 0) }
  :: d_step { may_begin(e) -> begin(e, 2 + TICK * (now + fastest)) }
  at_node(e, 0)
  at_node(e, 1)
  at_node(e, 2)
  :: d_step { state[e] == asking && is_alive(e) && agreed(e) != 0 -> stamp = agreed(e); grant(e) }
#ifdef ONE_PHASE
  :: d_step { state[e] == asking && is_alive(e) && votes(e) >= MAJORITY -> stamp = largest(e); grant(e) }
#else
  :: d_step { state[e] == asking && votes(e) >= MAJORITY && agreed(e) == 0 -> begin_second_phase(e) }
#endif
  :: d_step { state[e] == raising && is_alive(e) && with(e, token[e]) >= MAJORITY -> stamp = token[e]; grant(e) }
  :: d_step { is_trying(e) -> give_up(e) }
  od
}

// ---- Time, releases, and nodes that lose everything.

// A release arrives at each node, sooner or later or never.
#define is_released(n) (holder[n] != 0 && (state[holder[n]] == granted || state[holder[n]] == over))

inline tick_node(n) {
  if
  :: until[n] <= now -> unlock(n)
  :: else
  fi;
  shut[n] = (shut[n] <= now -> 0 : shut[n])
}

inline tick() { now++; tick_node(0); tick_node(1); tick_node(2) }

inline lose(n) { losses--; last[n] = 0; unlock(n); shut[n] = now + QUARANTINE }

active proctype world() {
  byte n;
  atomic {
    // One of the clocks is the slowest: let that be the last node.
#ifdef ANY_SKEW
    select(n : 0 .. SKEW); ahead[0] = n; select(n : 0 .. SKEW); ahead[1] = n;
#else
    ahead[0] = SKEW;
#ifdef STAGGERED
    ahead[1] = SKEW / 2;
#endif
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
  :: d_step { now < HORIZON -> tick() }
  :: d_step { losses > 0 -> lose(0) }
  :: d_step { losses > 0 -> lose(1) }
  :: d_step { losses > 0 -> lose(2) }
  od
}
