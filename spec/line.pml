// SPDX-License-Identifier: Apache-2.0
// line: three waiters behind a holder; any of them may die, be cut off, miss its turn or give up.
//
// Says: two waiters never hold at once, whatever they are told; who is there and queued first is granted first (C7); whoever
// has left is gone for good; and, under fair scheduling, everybody who lives and does not give up holds in the end (LIVE).
//
// There is no clock. A waiter may look at any time and for any reason, so hints need no place here: lost, late, repeated and
// forged ones are all covered. What a clock would do (a window that lapses, a heartbeat that is missed) may happen at any
// time to the dead, and as often as the budget MISSES says to the living.
//
// Runs, read by script/check-models: kind, name, switches, and which claim a bad one must break.
//   good  line              CRASHES=2,MISSES=2
//   good  cut               CUTS=1,MISSES=1,LEAVES=1
//   good  deaf              DEAF,CRASHES=1,MISSES=1,LEAVES=1
//   good  served            LIVE,CRASHES=2,MISSES=1
//   good  served_cut        LIVE,CUTS=1,MISSES=1,LEAVES=1
//   good  served_deaf       LIVE,DEAF,CRASHES=1,MISSES=1,LEAVES=1
//   slow  served_more       LIVE,CRASHES=2,MISSES=2
//   slow  everything        CRASHES=1,MISSES=1,CUTS=1,LEAVES=1
//   bad   message_grants    MESSAGE_GRANTS,MISSES=1                 exclusion
//   bad   barging           BARGING,CRASHES=1                       order
//   bad   ticket_lost       TICKET_LOST,MISSES=1                    order
//   bad   look_adds         LOOK_ADDS,MISSES=1                      order
//   bad   no_late           NO_LATE,CUTS=1,LEAVES=1                 no_ghost
//   bad   leave_forgets     LEAVE_FORGETS_GRANT,LEAVES=1            no_ghost
//   bad   dead_block        LIVE,DEAD_BLOCK,CRASHES=1               served
//   bad   only_release      LIVE,ONLY_RELEASE_ADVANCES,CRASHES=1    served
#include "claims.pml"

#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef MISSES
#define MISSES 0
#endif
#ifndef CUTS
#define CUTS 0
#endif
#ifndef LEAVES
#define LEAVES 0
#endif

// Owner ids: 1 to 3 are those that the waiters use now, 4 to 6 those that they used before. Who takes a fresh one renames.
#define WAITERS 3
#define IDS 6
#define STRANGER 7      // Holds the lock at first, and releases or dies.
#define former(w) (w + WAITERS)
#define waiter_of(id) (id > WAITERS -> id - WAITERS : id)

mtype = {outside, entering, in_line, holding, leaving, done, dead};  // Where a waiter is, as acquire_call has it.
mtype = {nothing, wait, look, leave};                                // Requests that can be cut off.
mtype = {mine, queued, spent_before, not_in_line};                      // What a script says.
mtype = {fresh, silent, forgotten};                                  // How long nobody heard of a process.

// The server: the holder key, the line, and the owner id in the fence.
byte holder = STRANGER;
bool claimed = true;    // False: granted ahead of the claim, for a claim window.
byte ticket[IDS + 1];   // Zero: not in line.
byte last_ticket, spent;

mtype place[WAITERS + 1] = outside;
byte brings[WAITERS + 1];          // The ticket that it had before.
bool came_back[WAITERS + 1];
bool cleans_up[WAITERS + 1];       // A copy with its former id is still on its way: leaves again and again.
mtype stray[WAITERS + 1] = nothing;  // That copy,
byte stray_id[WAITERS + 1];        // and its owner id.
mtype silence[WAITERS + 1] = fresh;
bool hears[WAITERS + 1];           // Its subscription is open: PUBSUB NUMSUB.
bool must_look[WAITERS + 1];       // So it was not when it asked last: the ear of its entry is `-`.
byte arrived[WAITERS + 1];         // The ticket by which C7 is judged.
byte crashes = CRASHES, misses = MISSES, cuts = CUTS, leaves = LEAVES;

hidden mtype said;                 // The answer of the script that ran last,
hidden byte at, t, x, w2, in_it;          // and what is worked out within one step.
hidden byte head;
hidden byte first_silent;

bool exclusion = true, order = true, no_ghost = true;

#ifdef LIVE
#define is_over(w) (place[w] == done || place[w] == dead)
ltl served { <> (is_over(1) && is_over(2) && is_over(3)) }
#endif

#include "line_scripts.pml"

// ---- A waiter.

inline take_fresh_id(w) {  // What is left of the old one is now called by its former id; a stray has to be cleaned up.
  cleans_up[w] = (cleans_up[w] || stray[w] != nothing);
  stray_id[w] = (stray[w] != nothing -> former(w) : 0);
  spent = (spent != w -> spent : stray_id[w])
}

inline hold(w) {
  place[w] = holding; brings[w] = 0; came_back[w] = false;
  must(exclusion, (place[1] == holding) + (place[2] == holding) + (place[3] == holding) == 1)
}

inline hear(w) {
  if
  :: said == mine -> hold(w)
  :: said == queued -> place[w] = in_line; brings[w] = ticket[w]
  :: said == spent_before -> place[w] = entering; take_fresh_id(w)
  :: said == not_in_line ->  // It missed its turn. Once it comes back with its ticket.
     place[w] = entering; take_fresh_id(w);
     if
     :: came_back[w] -> brings[w] = 0; arrived[w] = 0
     :: else -> came_back[w] = true
     fi;
#ifdef TICKET_LOST
     brings[w] = 0
#endif
  fi
}

inline execute(what, id, brought) {
  if
  :: what == wait -> run_wait(id, brought)
  :: what == look -> run_look(id)
  fi
}

#define waits(w) (place[w] == entering || place[w] == in_line)
#define request(w) (place[w] == entering -> wait : look)

inline lose_answer(w) { cuts--; execute(request(w), w, brings[w]) }

inline delay(w) { cuts--; stray[w] = request(w); stray_id[w] = w }  // The connection is cut; it may arrive.

inline give_up(w) { leaves--; place[w] = leaving }

inline listen(w) { hears[w] = true }

inline die(w) { crashes--; place[w] = dead }

proctype waiter(byte w) {
end:
  do
  :: d_step {  // acquire knows no line: somebody holds it, or may be in line for it.
       place[w] == outside ->
       if
       :: holder == 0 && ticket[1] + ticket[2] + ticket[3] + ticket[4] + ticket[5] + ticket[6] == 0 ->
          grant(w, true); hold(w)
       :: else -> place[w] = entering
       fi
     }
  :: d_step { place[w] == entering -> run_wait(w, brings[w]); hear(w) }
  :: d_step { place[w] == in_line -> run_look(w); hear(w) }
#ifdef MESSAGE_GRANTS
  :: d_step { place[w] == in_line && holder == w -> hold(w) }
#endif
  :: d_step { waits(w) && cuts > 0 -> lose_answer(w) }
  :: d_step { waits(w) && cuts > 0 && stray[w] == nothing -> delay(w) }
  :: d_step { place[w] == holding -> place[w] = done; run_release(w); take_fresh_id(w) }
  :: d_step { waits(w) && leaves > 0 -> give_up(w) }
  :: d_step {
       place[w] == leaving -> run_leave(w);
       if
#ifdef NO_LATE
       :: true ->
#else
       :: stray[w] == nothing ->  // The answer came after the last not_after.
#endif
          place[w] = done;
          must(no_ghost, holder != w && ticket[w] == 0)
       :: else
       fi
     }
  :: d_step {
       cleans_up[w] && place[w] != dead -> run_leave(former(w));
       if
       :: stray[w] == nothing -> cleans_up[w] = false; must(no_ghost, holder != former(w) && ticket[former(w)] == 0)
       :: else
       fi
     }
  :: d_step { place[w] != dead && !hears[w] -> listen(w) }
  :: d_step { place[w] != done && place[w] != dead && crashes > 0 -> die(w) }
  od
}

// ---- Whatever happens to them. All of it happens only so often, so that a fair schedule comes to an end of it.

// Nobody is there to claim or renew what this owner id holds.
#define is_dead(id) (id > WAITERS || place[id] == dead || place[id] == done)

inline fall_silent(w) { silence[w] = (silence[w] == fresh -> silent : forgotten) }

inline miss_look(w) { misses--; fall_silent(w) }

inline go_deaf(w) { hears[w] = false }

inline miss_hint(w) { misses--; go_deaf(w) }

inline forget_stray(w) { stray[w] = nothing; stray_id[w] = 0 }

inline arrive(w) {
  in_it = (stray_id[w] == w -> brings[w] : 0); execute(stray[w], stray_id[w], in_it); forget_stray(w)
}

inline expire() { holder = 0; claimed = false }

inline lapse() { misses--; holder = 0 }

#define may_happen_to(w) \
  :: d_step { place[w] == dead && silence[w] != forgotten -> fall_silent(w) } \
  :: d_step { place[w] == dead && hears[w] -> go_deaf(w) } \
  :: d_step { waits(w) && misses > 0 && silence[w] == fresh -> miss_look(w) } \
  :: d_step { waits(w) && misses > 0 && hears[w] -> miss_hint(w) } \
  :: d_step { stray[w] != nothing -> arrive(w) } \
  :: d_step { stray[w] != nothing -> forget_stray(w) }  /* Past its not_after. */

active proctype world() {
  d_step { listen(1); listen(2); listen(3) }
  atomic { run waiter(1); run waiter(2); run waiter(3) }
end:
  do
  :: d_step { holder == STRANGER -> run_release(STRANGER) }
  :: d_step { holder == STRANGER -> expire() }  // It died.
  :: d_step { holder != 0 && holder != STRANGER && is_dead(holder) -> expire() }
  :: d_step { holder != 0 && !claimed && !is_dead(holder) && misses > 0 -> lapse() }
  may_happen_to(1)
  may_happen_to(2)
  may_happen_to(3)
  od
}
