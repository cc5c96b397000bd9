// SPDX-License-Identifier: Apache-2.0
// quorum: acquire, renew and release on three independent nodes, two clients, as design section 7 has them.
//
// Says: two clients never believe in the lock at the same time, also when a node loses its data and is then in quarantine;
// and whoever gives up or releases leaves no vote behind, at no node that answered it, however late its requests arrive.
//
// Time is in ticks that count down, as in lease.pml; clocks that drift are dealt with there. Every request may be delayed
// without bound, which is also how it gets lost; every answer may be lost. A client may pause anywhere.
//
// Runs, read by script/check-models: kind, name, switches, and which claim a bad one must break.
//   good  quorum            LOSSES=0
//   good  loss              LOSSES=1,NO_RENEWAL
//   bad   minority          LOSSES=0,MAJORITY=1,NO_RENEWAL    exclusion
//   bad   from_reply        LOSSES=0,FROM_REPLY,NO_RENEWAL    exclusion
//   bad   minority_renews   LOSSES=0,MINORITY_RENEWS          exclusion
//   bad   no_quarantine     LOSSES=1,QUARANTINE=0,NO_RENEWAL  exclusion
//   bad   short_quarantine  LOSSES=1,QUARANTINE=1,NO_RENEWAL  exclusion
//   bad   not_withdrawn     LOSSES=0,VOTES_NOT_WITHDRAWN      no_leftover
//   bad   no_not_after      LOSSES=0,NO_NOT_AFTER             no_leftover
//   bad   hasty_clean_up    LOSSES=0,HASTY_CLEAN_UP           no_leftover
#include "claims.pml"

#define CLIENTS 2
#define NODES 3
#define TTL 2
#define PATIENCE 1    // not_after: an acquire takes effect within so many ticks or never.
#ifndef MAJORITY
#define MAJORITY 2
#endif
#ifdef MINORITY_RENEWS
#define ENOUGH_RENEWED 1
#else
#define ENOUGH_RENEWED MAJORITY
#endif
#ifndef QUARANTINE
#define QUARANTINE TTL  // max_ttl: no lease that the node forgot is longer.
#endif

mtype = {idle, asking, holding, withdrawing, over};

// The nodes. Sets of nodes are bits: 1, 2 and 4.
byte holder[NODES];   // A client, from 1.
byte expires[NODES];  // In so many ticks.
byte shut[NODES];     // In quarantine for so many ticks.
byte losses = LOSSES;

// The clients, from 1. Each acquires once: a second try would have an owner id of its own, like another client.
mtype state[CLIENTS + 1] = idle;
byte out[CLIENTS + 1];    // Nodes that the present round's request is under way to.
byte yes[CLIENTS + 1];    // Nodes whose yes to the present round was read.
byte age[CLIENTS + 1];    // Since before the first request of the round was sent.
byte stray[CLIENTS + 1];  // Nodes that an acquire of no present round is under way to: a repair, or one that was given up.
byte may[CLIENTS + 1];    // Until the last not_after.
byte left[CLIENTS + 1];   // Until the local deadline; valid() is left > 0.

hidden byte until;
bool exclusion = true, no_leftover = true;

#define ALL_NODES 7
#define bit(n) (1 << n)
#define is_in(set, n) ((set & bit(n)) != 0)
#define size(set) ((set & 1) + ((set >> 1) & 1) + ((set >> 2) & 1))
#define valid(me) (left[me] > 0)

// ---- A node. One call is one script.

#ifdef NO_NOT_AFTER
#define in_time(me) true
#else
#define in_time(me) (may[me] > 0)
#endif

inline run_acquire(me, n) {
  if
  :: in_time(me) && holder[n] == 0 && shut[n] == 0 ->
     must(no_leftover, state[me] != over);
     holder[n] = me; expires[n] = TTL
  :: else  // Late, mine, busy, or in quarantine.
  fi
}

inline run_renew(me, n) {  // Who has forgotten us is asked again, and does not count in this round.
  if
  :: holder[n] == me -> expires[n] = TTL
  :: else -> stray[me] = stray[me] | bit(n); may[me] = PATIENCE
  fi
}

inline run_leave(me, n) {
  if
  :: holder[n] == me -> holder[n] = 0; expires[n] = 0
  :: else
  fi
}

// ---- A client.

inline begin_round(me) { out[me] = ALL_NODES; yes[me] = 0; age[me] = 0 }
inline end_round(me) { out[me] = 0; yes[me] = 0; age[me] = 0 }

inline believe(me) {
#ifdef FROM_REPLY
  until = TTL;
#else
  until = TTL - age[me];
#endif
  left[me] = larger(left[me], until);
  must(exclusion, !valid(1) || !valid(2));
  end_round(me)
}

inline withdraw(me) {  // What is still under way may arrive.
  stray[me] = stray[me] | (state[me] == asking -> out[me] : 0);
  left[me] = 0;
#ifdef VOTES_NOT_WITHDRAWN
  end_round(me); finish(me)
#else
  begin_round(me); state[me] = withdrawing
#endif
}

inline finish(me) {
  must(no_leftover, holder[0] != me && holder[1] != me && holder[2] != me);
  state[me] = over; end_round(me)
}

// The request of the round arrives; its answer is read, or lost.
inline arrive(me, n, is_read) {
  out[me] = out[me] & ~bit(n);
  if
  :: state[me] == asking      -> run_acquire(me, n)
  :: state[me] == holding     -> run_renew(me, n)
  :: state[me] == withdrawing -> run_leave(me, n)
  fi;
  if
#ifdef HASTY_CLEAN_UP
  :: state[me] == withdrawing
#else
  :: state[me] == withdrawing ->  // Repeated until a node has answered after the last not_after.
     out[me] = (may[me] == 0 -> out[me] : out[me] | bit(n))
#endif
  :: else -> yes[me] = (is_read && holder[n] == me -> yes[me] | bit(n) : yes[me])
  fi
}

inline arrive_late(me, n) {
  stray[me] = stray[me] & ~bit(n);
  run_acquire(me, n);
#ifdef REPAIR_COUNTS
  yes[me] = (state[me] == holding && holder[n] == me && age[me] < TTL -> yes[me] | bit(n) : yes[me])
#endif
}

#define at_node(n) \
  :: d_step { is_in(out[me], n) -> arrive(me, n, true) } \
  :: d_step { is_in(out[me], n) && state[me] != withdrawing -> arrive(me, n, false) } \
  :: d_step { is_in(stray[me], n) -> arrive_late(me, n) }

active [CLIENTS] proctype client() {
  byte me = _pid + 1;
end:
  do
  :: d_step { state[me] == idle -> state[me] = asking; begin_round(me); may[me] = PATIENCE }
  :: d_step { state[me] == asking && size(yes[me]) >= MAJORITY && age[me] < TTL -> believe(me); state[me] = holding }
  :: d_step { state[me] == asking -> withdraw(me) }
#ifndef NO_RENEWAL
  :: d_step { state[me] == holding && valid(me) && out[me] == 0 && yes[me] == 0 -> begin_round(me) }
  :: d_step { state[me] == holding && valid(me) && size(yes[me]) >= ENOUGH_RENEWED && age[me] < TTL -> believe(me) }
  :: d_step { state[me] == holding && (out[me] != 0 || yes[me] != 0) -> end_round(me) }  // It gives the round up.
#endif
  :: d_step { state[me] == holding -> withdraw(me) }  // It releases, or has lost.
  :: d_step { state[me] == withdrawing && out[me] == 0 -> finish(me) }
  at_node(0)
  at_node(1)
  at_node(2)
  od
}

// ---- Time, and nodes that lose everything.

inline tick_node(n) {
  count_down(expires[n]);
  holder[n] = (expires[n] == 0 -> 0 : holder[n]);
  count_down(shut[n])
}

inline tick_client(me) {
  count_down(left[me]); count_down(may[me]);
  age[me] = (out[me] + yes[me] != 0 && state[me] != withdrawing && age[me] < TTL -> age[me] + 1 : age[me])
}

inline lose(n) { losses--; holder[n] = 0; expires[n] = 0; shut[n] = QUARANTINE }

active proctype world() {
  do
  :: d_step { true -> tick_node(0); tick_node(1); tick_node(2); tick_client(1); tick_client(2) }
  :: d_step { losses > 0 -> lose(0) }
  :: d_step { losses > 0 -> lose(1) }
  :: d_step { losses > 0 -> lose(2) }
  od
}
