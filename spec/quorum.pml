// SPDX-License-Identifier: Apache-2.0
// quorum: acquire, renew, mend and release on three independent nodes, two clients.
//
// Says: two clients never believe in the lock at the same time, also when a node loses its data and is then in
// quarantine; whoever gives up or releases leaves no vote behind, at no node that answered it, however late its
// requests arrive; and whoever has lost its majority to another believes for one ttl more at the longest (C1).
//
// Time is in ticks that count down, as in lease.pml; clocks that drift are dealt with there. Every request may be
// delayed without bound, which is also how it gets lost; every answer may be lost. A client may pause anywhere. Which
// lines of the code an action stands for is in actions.md.
//
// What nobody notices (SILENT_LOSS: a key deleted by hand, FLUSHALL on an old server; BROKEN: `break --now`) has no
// quarantine behind it, so C1 does not promise exclusion then. That the loss is told, it does.
//
// Runs, read by script/check-models: kind, name, switches, and which claim a bad one must break.
//   good  quorum                 LOSSES=0
//   good  loss                   LOSSES=1
//   good  counts_at_once         LOSSES=1,REPAIR_COUNTS
//   good  silent_loss            LOSSES=1,SILENT_LOSS,ONE_RENEWS
//   good  deleted                LOSSES=1,ALL_AT_ONCE,ONE_RENEWS
//   good  broken                 LOSSES=1,BROKEN,ONE_RENEWS
//   bad   never_given_at_once    LOSSES=1,ALL_AT_ONCE,NEVER_GIVEN_AT_ONCE,ONE_RENEWS     told_in_time
//   bad   first_renewal_counts   LOSSES=1,SILENT_LOSS,FIRST_RENEWAL_COUNTS,ONE_RENEWS    told_in_time
//   bad   first_renewal_deleted  LOSSES=1,ALL_AT_ONCE,FIRST_RENEWAL_COUNTS,ONE_RENEWS    told_in_time
//   bad   found_counts           LOSSES=1,SILENT_LOSS,FOUND_COUNTS,ONE_RENEWS            told_in_time
//   bad   repair_counts          LOSSES=1,SILENT_LOSS,REPAIR_COUNTS,ONE_RENEWS           told_in_time
//   bad   lost_revives           LOSSES=0,FIRST_RENEWAL_COUNTS,LOST_REVIVES              told_in_time
//   bad   minority               LOSSES=0,MAJORITY=1,NO_RENEWAL                          exclusion
//   bad   from_reply             LOSSES=0,FROM_REPLY,NO_RENEWAL                          exclusion
//   bad   minority_renews        LOSSES=0,MINORITY_RENEWS                                exclusion
//   bad   no_quarantine          LOSSES=1,QUARANTINE=0,NO_RENEWAL                        exclusion
//   bad   short_quarantine       LOSSES=1,QUARANTINE=1,NO_RENEWAL                        exclusion
//   bad   not_withdrawn          LOSSES=0,VOTES_NOT_WITHDRAWN                            no_leftover
//   bad   no_not_after           LOSSES=0,NO_NOT_AFTER                                   no_leftover
//   bad   hasty_clean_up         LOSSES=0,HASTY_CLEAN_UP                                 no_leftover
#include "claims.pml"

#define CLIENTS 2
#define NODES 3
#define TTL 2          // not_after is one tick: an acquire takes effect in the tick in which it was sent, or never.
#ifndef MAJORITY
#define MAJORITY 2
#endif
#ifdef BROKEN           // By somebody: the nodes say so.
#define ALL_AT_ONCE
#endif
#ifdef ALL_AT_ONCE      // All nodes lose the lock, and nothing else.
#define SILENT_LOSS
#endif
#ifdef SILENT_LOSS
#define QUARANTINE 0
#endif
#ifndef QUARANTINE
#define QUARANTINE TTL  // max_ttl: no lease that the node forgot is longer.
#endif

#ifdef NO_RENEWAL
#define renews(me) false
#else
#ifdef ONE_RENEWS
#define renews(me) (me == 1)
#else
#define renews(me) true
#endif
#endif

// When does a vote count that comes later than the round? When it is renewed after a majority of the others was, behind
// it. Planted, NEVER_GIVEN_AT_ONCE: one that its node never gave to this lease from its first renewal on;
// FIRST_RENEWAL_COUNTS: each from then on; REPAIR_COUNTS: each at once. FOUND_COUNTS is the exception that is shipped, and
// what it costs: one that the first question for it finds there counts from its first renewal on. (Its answers are the
// question's own: a copy of the round's request comes before it.)
#if !defined(FIRST_RENEWAL_COUNTS) && !defined(REPAIR_COUNTS)
#define OTHERS_FIRST
#endif

mtype = {idle, asking, holding, withdrawing, over};

// The nodes. Sets of nodes are bits: 1, 2 and 4.
byte holder[NODES];   // A client, from 1.
byte expires[NODES];  // In so many ticks.
byte shut[NODES];     // In quarantine for so many ticks.
byte losses = LOSSES;
bool was_lost;        // Unnoticed: from here on exclusion is not promised.

// The clients, from 1. Each acquires once: a second try would have an owner id of its own, like another client.
mtype state[CLIENTS + 1] = idle;
byte out[CLIENTS + 1];    // Nodes whose answer is awaited: to the round's request, or to the withdrawal.
byte yes[CLIENTS + 1];    // Nodes that gave their vote, as far as it knows.
byte age[CLIENTS + 1];    // Of the round: since before its first request was sent.
byte stray[CLIENTS + 1];  // Nodes to which a request for a vote is under way of no round, or of one that is over.
byte may[CLIENTS + 1];    // Nodes where a request for a vote, the round's or another, is still before its not_after.
byte until[NODES * (CLIENTS + 1)];  // For so many ticks each node's vote counts.
byte lost[CLIENTS + 1];   // Zero; or it has lost its majority: 1, and the ticks for which it may still believe.
#ifdef OTHERS_FIRST
byte back[CLIENTS + 1];       // Nodes whose vote came later, and has to wait until enough of the others,
byte confirmed[CLIENTS + 1];  // these, have been renewed since.
#endif
#ifdef NEVER_GIVEN_AT_ONCE
byte dropped[CLIENTS + 1];    // Nodes that had its vote and lost it, once.
#endif
#ifdef FOUND_COUNTS
byte asked[CLIENTS + 1];      // Nodes that were asked for a vote behind the round,
byte not_first[CLIENTS + 1];  // and those where that says nothing of the round: asked twice, or had and lost.
#endif
#ifdef BROKEN
byte broken[CLIENTS + 1];     // Nodes where its vote was broken. It has heard of it where it has no vote any more.
#endif

hidden byte had;
hidden byte was_there;
bool exclusion = true, no_leftover = true, told_in_time = true;

#define ALL_NODES 7
#define ONE_TTL (1 + TTL)
#define bit(n) (1 << n)
#define is_in(set, n) (((set) & bit(n)) != 0)
#define size(set) (((set) & 1) + (((set) >> 1) & 1) + (((set) >> 2) & 1))
#define other(me) (3 - (me))
#define votes_of(me) ((holder[0] == me) + 2 * (holder[1] == me) + 4 * (holder[2] == me))
#define has_won(me) (state[me] == asking && size(yes[me]) >= MAJORITY && age[me] < TTL)
#define vote(me, n) until[NODES * (me) + n]

// The deadline is the q-th latest of those of the votes.
#define smaller(a, b) ((a) < (b) -> (a) : (b))
#if MAJORITY == 1 || defined(MINORITY_RENEWS)
#define deadline(me) larger(larger(vote(me, 0), vote(me, 1)), vote(me, 2))
#else
#define deadline(me) \
  larger(smaller(vote(me, 0), vote(me, 1)), smaller(larger(vote(me, 0), vote(me, 1)), vote(me, 2)))
#endif
#define valid(me) (deadline(me) > 0)
#ifdef LOST_REVIVES
#define keeps(me) (state[me] == holding && renews(me))
#define is_lost(me) false
#else
#define keeps(me) (state[me] == holding && valid(me) && renews(me))
#define is_lost(me) (state[me] == holding && !valid(me))
#endif

// ---- A node. One call is one script.

inline run_vote(me, n) {  // Who is in quarantine votes, too; it is the client that does not count it.
  if
  :: holder[n] == 0 ->
     must(no_leftover, state[me] != over);
     holder[n] = me; expires[n] = TTL
  :: else  // Mine, or busy.
  fi
}

inline run_renew(me, n) { expires[n] = TTL }

inline run_leave(me, n) {
  if
  :: holder[n] == me -> holder[n] = 0; expires[n] = 0
  :: else
  fi
}

// ---- A client.

inline lose_majority(me) { lost[me] = (state[me] == holding || has_won(me) -> ONE_TTL : 0) }

#define forget_copy(me, n) may[me] = (is_in(stray[me], n) -> may[me] : may[me] & ~bit(n))

inline forget_votes(me) {
  vote(me, 0) = 0; vote(me, 1) = 0; vote(me, 2) = 0; yes[me] = 0;
#ifdef OTHERS_FIRST
  back[me] = 0; confirmed[me] = 0;
#endif
#ifdef NEVER_GIVEN_AT_ONCE
  dropped[me] = 0;
#endif
#ifdef FOUND_COUNTS
  asked[me] = 0; not_first[me] = 0;
#endif
#ifdef BROKEN
  broken[me] = 0
#endif
}

inline begin(me) { state[me] = asking; out[me] = ALL_NODES; may[me] = ALL_NODES }

// The request for the round's vote arrives; its answer is read, or lost.
inline on_vote(me, n, is_read) {
  if
  :: is_in(may[me], n) ->
     run_vote(me, n);
     yes[me] = (is_read && holder[n] == me && shut[n] == 0 -> yes[me] | bit(n) : yes[me]);
     if
     :: size(yes[me] & votes_of(me)) >= MAJORITY -> lost[me] = 0; lose_majority(other(me))
     :: else
     fi;
     out[me] = out[me] & ~bit(n); may[me] = may[me] & ~bit(n)
  :: else -> out[me] = out[me] & ~bit(n)
  fi
}

inline ask_again(me, n) { may[me] = may[me] | bit(n) }  // It came too late.

inline round_over(me) {  // What is still under way may arrive.
  stray[me] = stray[me] | (out[me] & may[me]); may[me] = stray[me]; out[me] = 0; age[me] = 0
}

inline win(me) {
#ifdef FROM_REPLY
  had = TTL;
#else
  had = TTL - age[me];
#endif
  vote(me, 0) = (is_in(yes[me], 0) -> had : 0);
  vote(me, 1) = (is_in(yes[me], 1) -> had : 0);
  vote(me, 2) = (is_in(yes[me], 2) -> had : 0);
  had = 0;
  state[me] = holding;
  must(exclusion, was_lost || !valid(1) || !valid(2));
  round_over(me)
}

// The node has our vote for so long.
inline hold(me, n, ticks) {
  vote(me, n) = larger(vote(me, n), ticks);
  must(exclusion, was_lost || !valid(1) || !valid(2));
#ifndef MINORITY_RENEWS  // That one is planted for the other claim.
  must(told_in_time, lost[me] == 0 || deadline(me) <= lost[me] - 1)
#endif
}

#ifdef BROKEN
#define is_broken(me, n) is_in(broken[me], n)
#else
#define is_broken(me, n) false
#endif

inline drop(me, n) {  // It has it no longer. Lost is final.
  yes[me] = yes[me] & ~bit(n); vote(me, n) = 0;
#ifdef OTHERS_FIRST
  back[me] = back[me] & ~bit(n);
  confirmed[me] = (back[me] != 0 -> confirmed[me] & ~bit(n) : 0);
#endif
#ifdef NEVER_GIVEN_AT_ONCE
  dropped[me] = dropped[me] | bit(n);
#endif
#ifdef FOUND_COUNTS
  not_first[me] = not_first[me] | bit(n);
#endif
  if
  :: is_lost(me) -> forget_votes(me)
  :: else
  fi
}

inline lapse(me, n) {  // Its own deadline has passed, before the node said anything.
#ifdef BROKEN
  broken[me] = broken[me] & ~bit(n);
#endif
  drop(me, n)
}

#ifdef OTHERS_FIRST
#define is_back(me, n) is_in(back[me], n)
#else
#define is_back(me, n) false
#endif

inline confirm(me, n) {  // Enough of them, and those that came later count from their next renewal on.
#ifdef OTHERS_FIRST
  confirmed[me] = (back[me] != 0 -> confirmed[me] | bit(n) : 0);
  if
  :: size(confirmed[me]) >= MAJORITY -> back[me] = 0; confirmed[me] = 0
  :: else
  fi
#else
  skip
#endif
}

inline renew(me, n) {  // One step from sending to reading: a renewal that takes longer is believed in for less.
  if
  :: holder[n] == me && !is_broken(me, n) ->
     run_renew(me, n);
     if
     :: is_back(me, n)
     :: else -> hold(me, n, TTL); confirm(me, n)
     fi
  :: else -> drop(me, n)
  fi
}

inline renew_unheard(me, n) { run_renew(me, n) }  // The answer is lost.

#define may_mend(me, n) (keeps(me) && !is_in(yes[me], n) && !is_broken(me, n))

// The vote is asked for again; a copy of an earlier request may still be under way.
inline mend(me, n) {
  stray[me] = stray[me] | bit(n); may[me] = may[me] | bit(n);
#ifdef FOUND_COUNTS
  not_first[me] = not_first[me] | (asked[me] & bit(n)); asked[me] = asked[me] | bit(n)
#endif
}

#ifdef FOUND_COUNTS
#define may_ask(me, n) (may_mend(me, n) && !is_in(stray[me], n))
#define may_have_copies false
#else
#define may_ask(me, n) may_mend(me, n)
#define may_have_copies true
#endif

#if defined(FOUND_COUNTS)
#define must_wait(me, n) (!was_there || is_in(not_first[me], n))
#elif defined(NEVER_GIVEN_AT_ONCE)
#define must_wait(me, n) is_in(dropped[me], n)
#else
#define must_wait(me, n) true
#endif

inline regain(me, n) {  // It came later.
#ifdef OTHERS_FIRST
  if
  :: must_wait(me, n) -> back[me] = back[me] | bit(n); confirmed[me] = 0
  :: else
  fi
#else
  skip
#endif
}

inline on_mended(me, n, is_read) {
  if
  :: is_read && may_mend(me, n) && holder[n] == me && shut[n] == 0 ->
     yes[me] = yes[me] | bit(n);
     regain(me, n);
#ifdef REPAIR_COUNTS
     hold(me, n, expires[n])
#endif
  :: else
  fi
}

// A request for a vote arrives which belongs to no round; another copy of it may still be under way.
inline arrive(me, n, is_read, is_last) {
  was_there = (holder[n] == me);
  run_vote(me, n);
  on_mended(me, n, is_read);
  stray[me] = (is_last -> stray[me] & ~bit(n) : stray[me]);
  forget_copy(me, n)
}

inline finish(me) {
  must(no_leftover, holder[0] != me && holder[1] != me && holder[2] != me);
  state[me] = over; lost[me] = 0
}

inline withdraw(me) {
  round_over(me); forget_votes(me); lost[me] = 0;
#ifdef VOTES_NOT_WITHDRAWN
  finish(me)
#else
  out[me] = ALL_NODES; state[me] = withdrawing
#endif
}

// The answer is the last word if no request for a vote can come behind it.
#ifdef HASTY_CLEAN_UP
#define is_settled(me, n) true
#else
#define is_settled(me, n) !is_in(stray[me] & may[me], n)
#endif

inline leave(me, n) {
  run_leave(me, n);
  out[me] = (is_settled(me, n) -> out[me] & ~bit(n) : out[me])
}

#define at_node(n) \
  :: d_step { state[me] == asking && is_in(out[me], n) -> on_vote(me, n, true) } \
  :: d_step { state[me] == asking && is_in(out[me] & may[me], n) -> on_vote(me, n, false) } \
  :: d_step { state[me] == asking && is_in(out[me] & ~may[me], n) -> ask_again(me, n) } \
  :: d_step { is_in(stray[me], n) -> arrive(me, n, true, true) } \
  :: d_step { is_in(stray[me], n) -> arrive(me, n, false, true) } \
  :: d_step { may_have_copies && is_in(stray[me], n) -> arrive(me, n, true, false) } \
  :: d_step { keeps(me) && is_in(yes[me], n) -> renew(me, n) } \
  :: d_step { keeps(me) && is_in(yes[me], n) && holder[n] == me && !is_broken(me, n) -> renew_unheard(me, n) } \
  :: d_step { keeps(me) && is_in(yes[me], n) && vote(me, n) == 0 -> lapse(me, n) } \
  :: d_step { may_ask(me, n) -> mend(me, n) } \
  :: d_step { state[me] == withdrawing && is_in(out[me], n) -> leave(me, n) }

active [CLIENTS] proctype client() {
  byte me = _pid + 1;
end:
  do
  :: d_step { state[me] == idle -> begin(me) }
  :: d_step { has_won(me) -> win(me) }
  :: d_step { state[me] == asking -> withdraw(me) }
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
  count_down(vote(me, 0)); count_down(vote(me, 1)); count_down(vote(me, 2));
  if
  :: is_lost(me) -> forget_votes(me)
  :: else
  fi;
  lost[me] = (lost[me] > 1 -> lost[me] - 1 : lost[me]);
  age[me] = (state[me] == asking && age[me] < TTL -> age[me] + 1 : age[me]);
  may[me] = 0;
#ifndef NO_NOT_AFTER
  stray[me] = 0  // Too late for any effect.
#endif
}

inline forget(n) { holder[n] = 0; expires[n] = 0; shut[n] = QUARANTINE }

// Whoever has no vote left has lost its majority, too, if to nobody.
#define has_nothing(me) (lost[me] == 0 && state[me] == holding && votes_of(me) == 0)

inline unnoticed() {
  was_lost = true;
  if
  :: has_nothing(1) -> lose_majority(1)
  :: else
  fi;
  if
  :: has_nothing(2) -> lose_majority(2)
  :: else
  fi
}

inline lose(n) {
  losses--; forget(n);
#ifdef SILENT_LOSS
  unnoticed()
#endif
}

inline delete() { losses--; forget(0); forget(1); forget(2); unnoticed() }

inline break_now() {  // What a client has not heard of yet is not broken for it, but gone.
#ifdef BROKEN
  broken[1] = broken[1] | (yes[1] & votes_of(1)); broken[2] = broken[2] | (yes[2] & votes_of(2));
#endif
  delete()
}

active proctype world() {
  do
  :: d_step { true -> tick_node(0); tick_node(1); tick_node(2); tick_client(1); tick_client(2) }
#ifdef BROKEN
  :: d_step { losses > 0 -> break_now() }
#elif defined(ALL_AT_ONCE)
  :: d_step { losses > 0 -> delete() }
#else
  :: d_step { losses > 0 -> lose(0) }
  :: d_step { losses > 0 -> lose(1) }
  :: d_step { losses > 0 -> lose(2) }
#endif
  od
}
