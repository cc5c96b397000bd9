// SPDX-License-Identifier: Apache-2.0
// lease: one server, two clients that pause, and a network that delays and loses.
//
// Says: two clients never believe in the lock at the same time (C1); tokens rise from grant to grant (C2); a store that is
// guarded by raise, read and conditional write takes nothing stale (C3); nothing is granted to an owner id whose owner was
// told that it is over (C5); a renewal that is confirmed was that of the newest grant.
//
// Time is in ticks, and everything that depends on it counts down, so there is no horizon. A client may pause anywhere: no
// action of a client ever has to happen, and ticks go on. With DRIFT a client's clock may lose a tick in TTL of the server's.
//
// Runs, read by script/check-models: kind, name, switches, and which claim a bad one must break.
//   good  lease
//   good  drift             DRIFT,ACQUIRES=2
//   good  store             STORE
//   good  loss              LOSS,ACQUIRES=2
//   slow  drift_retry       DRIFT
//   slow  loss_retry        LOSS
//   bad   no_compare        NO_COMPARE                           exclusion
//   bad   from_reply        FROM_REPLY                           exclusion
//   bad   no_allowance      DRIFT,ACQUIRES=2,NO_ALLOWANCE        exclusion
//   bad   at_deadline       DRIFT,ACQUIRES=2,VALID_AT_DEADLINE   exclusion
//   bad   renew_recreates   RENEW_RECREATES                      newest_renewed
//   bad   no_not_after      NO_NOT_AFTER                         no_orphan
//   bad   hasty_clean_up    HASTY_CLEAN_UP                       no_orphan
//   bad   spent_ends_it     SPENT_ENDS_IT                        no_orphan
//   bad   no_fence_check    STORE,NO_FENCE_CHECK                 no_stale_write
//   bad   no_raise          STORE,NO_RAISE                       no_stale_write
//   bad   renew_by_id       LOSS,ACQUIRES=2,RENEW_BY_ID          newest_renewed
//   bad   bare_counter      LOSS,ACQUIRES=2,BARE_COUNTER         token_order
#include "claims.pml"

#define CLIENTS 2
#ifndef TTL
#define TTL 2
#endif
#define PATIENCE 1   // not_after: a request takes effect within so many ticks or never.
#ifdef NO_ALLOWANCE
#define ALLOWANCE 0
#else
#define ALLOWANCE 1  // What a client's clock may lose in TTL ticks (rho).
#endif

// Owner ids that a client uses, one after the other, and the acquires that it sends for all of them together.
#ifndef ACQUIRES
#define ACQUIRES 3
#endif
#define ENTRIES 2
#ifdef STORE
#define most_entries(me) 1
#define most_acquires(me) 1
#else
#define most_entries(me) (ENTRIES - me)
#define most_acquires(me) (me == 0 -> ACQUIRES : 1)
#endif

mtype = {nothing, acquire, renew, release, leave};  // Requests: one .lua file each.
mtype = {yes, busy, late, spent, not_mine};         // Answers.
mtype = {idle, asking, holding, releasing, cleaning};
mtype = {before, raised, has_read, after};          // A write to the guarded store.

typedef client_state {
  mtype state = idle;
  byte entry;             // The present one; its owner id is id_of(me).
  byte asked;             // Acquires sent in all: nobody tries for ever.
  byte token;
  byte left;              // Until the local deadline; valid() is left > 0.
  byte may;               // Until the last not_after of this entry, by the server's clock.
  bool has_copies;        // An acquire of this entry was cut off: it may still arrive.
  // The request that it waits for, and, when that has been executed, the answer on its way back.
  mtype request = nothing;
  mtype answer = nothing;
  byte age;               // Since it was sent, by the client's clock.
  byte ttl;               // How long the key lives from the execution on.
  bool is_last;           // Of a leave: it was executed after the last not_after.
  // A request whose connection it has given up, still in the network.
  mtype stray = nothing;
  byte stray_id, stray_token, stray_may;
  byte steady;            // So many ticks before its clock may lose another one.
  mtype stage = before;   // Its write to the store,
  bool overtaken          // and whether another one wrote since this one read.
}
client_state c[CLIENTS];

byte holder, holder_token, holder_left;  // The holder key and its expiry.
byte last, last_owner;                   // The fence key: the last stamp, and the owner id that is spent or holds.
byte grants;                             // TIME in its finest unit: it has moved on between any two grants.
byte newest;                             // The largest token that was ever granted.
bool over[CLIENTS * ENTRIES + 1];        // The owner was told that this id is over.
bool was_lost;                           // The server lost data: from here on C1 is not promised.
byte seen;                               // By the store: the largest token.
hidden mtype answer;                     // What a script says, until somebody takes it,
hidden byte ttl, until, me2;             // and what is worked out within one step.

bool exclusion = true, token_order = true, no_orphan = true, no_stale_write = true, newest_renewed = true;

#define id_of(me) (me * ENTRIES + c[me].entry)
#define valid(me) (c[me].left > 0)

#include "lease_scripts.pml"

// ---- A client.

inline send(me, what) { c[me].request = what; c[me].age = 0 }

inline send_acquire(me) { send(me, acquire); c[me].asked++; c[me].may = PATIENCE; c[me].state = asking }

inline hang_up(me) {  // What was not executed may stay in the network; an answer is lost.
  c[me].has_copies = (c[me].has_copies || c[me].request == acquire);
  if
  :: c[me].answer == nothing && c[me].stray == nothing && (c[me].request == acquire || c[me].request == renew) ->
     c[me].stray = c[me].request; c[me].stray_id = id_of(me); c[me].stray_token = c[me].token;
     c[me].stray_may = (c[me].request == acquire -> c[me].may : 0)
  :: else
  fi;
  if
  :: c[me].state == asking -> c[me].token = 0  // The answer had it.
  :: else
  fi;
  forget_answer(me)
}

inline forget_answer(me) {
  c[me].request = nothing; c[me].answer = nothing; c[me].age = 0; c[me].ttl = 0; c[me].is_last = false
}

inline forget_stray(me) { c[me].stray = nothing; c[me].stray_id = 0; c[me].stray_token = 0; c[me].stray_may = 0 }

inline finish(me) {
  over[id_of(me)] = true; c[me].state = idle; c[me].token = 0; c[me].may = 0; c[me].has_copies = false; c[me].stage = after
}

inline clean_up_or_finish(me) {
  if
  :: c[me].has_copies -> c[me].state = cleaning
  :: else -> finish(me)
  fi
}

// The deadline counts from the instant before the request was sent.
inline believe(me) {
#ifdef FROM_REPLY
  until = c[me].ttl;
#else
  until = (c[me].ttl > c[me].age -> c[me].ttl - c[me].age : 0);
#endif
#ifdef VALID_AT_DEADLINE
  until++;
#endif
  until = (until > ALLOWANCE -> until - ALLOWANCE : 0);
  c[me].left = larger(c[me].left, until);
  must(exclusion, was_lost || !valid(0) || !valid(1))
}

inline hear(me) {
  if
  :: c[me].state == asking && c[me].answer == yes ->
     believe(me);
     c[me].state = (valid(me) -> holding : cleaning); c[me].stage = before
  :: c[me].state == asking && c[me].answer == late  // This copy had no effect: ask again.
  :: c[me].state == asking && c[me].answer == busy -> clean_up_or_finish(me)
  :: c[me].state == asking && c[me].answer == spent ->
#ifdef SPENT_ENDS_IT
     finish(me)
#else
     clean_up_or_finish(me)
#endif
  :: c[me].state == holding && c[me].answer == yes && valid(me) -> believe(me)
  :: c[me].state == holding && c[me].answer == yes && !valid(me)  // Lost is final.
  :: c[me].state == holding && c[me].answer == not_mine -> c[me].left = 0
  :: c[me].state == releasing -> clean_up_or_finish(me)
  :: c[me].state == cleaning && c[me].is_last -> finish(me)
  :: c[me].state == cleaning && !c[me].is_last
  fi;
  forget_answer(me)
}

inline give_up(me) { c[me].state = cleaning }

inline let_go(me) { c[me].left = 0; c[me].state = releasing }  // In time, or late.

inline raise(me) {
#ifdef NO_RAISE
  c[me].stage = raised
#else
  c[me].stage = (seen <= c[me].token -> raised : after); seen = larger(seen, c[me].token)
#endif
}

inline read(me) { c[me].stage = has_read; c[me].overtaken = false }

inline write(me) {
  me2 = 1 - me;
  c[me].stage = after;
  if
#ifndef NO_FENCE_CHECK
  :: seen > c[me].token
#endif
  :: else ->
     must(no_stale_write, !c[me].overtaken);
     seen = larger(seen, c[me].token);
     c[me2].overtaken = (c[me2].stage == has_read)
  fi
}

#define waits (c[me].request != nothing)
#define may_ask (c[me].asked < most_acquires(me))

active [CLIENTS] proctype client() {
  byte me = _pid;
  do
  :: d_step { !waits && c[me].state == idle && may_ask && c[me].entry < most_entries(me) -> c[me].entry++; send_acquire(me) }
  :: d_step { !waits && c[me].state == asking && may_ask -> send_acquire(me) }          // The same owner id again,
  :: d_step { !waits && c[me].state == asking -> give_up(me) }  // or not.
#ifndef STORE
  :: d_step { !waits && c[me].state == holding && valid(me) -> send(me, renew) }
#endif
  :: d_step { !waits && c[me].state == holding -> let_go(me) }
  :: d_step { !waits && c[me].state == releasing -> send(me, release) }
  :: d_step { !waits && c[me].state == cleaning -> send(me, leave) }
  :: d_step { waits -> hang_up(me) }
  :: d_step { c[me].answer != nothing -> hear(me) }
#ifdef STORE
  // Any of these may be the first after a pause: none looks at the lease.
  :: d_step { c[me].state == holding && c[me].stage == before -> raise(me) }
  :: d_step { c[me].state == holding && c[me].stage == raised -> read(me) }
  :: d_step { c[me].state == holding && c[me].stage == has_read -> write(me) }
#endif
  od
}

// ---- The network, and what may happen to the server.

active [CLIENTS] proctype network() {
  byte me = _pid - CLIENTS;
  do
  :: d_step {
       waits && c[me].answer == nothing ->
       execute(c[me].request, id_of(me), c[me].token, c[me].may);
       c[me].answer = answer; c[me].ttl = (answer == yes -> ttl : 0);
       if
       :: c[me].request == acquire && answer == yes -> c[me].token = holder_token
       :: else
       fi;
#ifdef HASTY_CLEAN_UP
       c[me].is_last = (c[me].request == leave)
#else
       c[me].is_last = (c[me].request == leave && c[me].may == 0)
#endif
     }
  :: d_step {  // Nobody reads the answer.
       c[me].stray != nothing ->
       execute(c[me].stray, c[me].stray_id, c[me].stray_token, c[me].stray_may);
       forget_stray(me)
     }
  :: d_step { c[me].stray != nothing -> forget_stray(me) }
#ifdef LOSS
  :: d_step { !was_lost -> was_lost = true; unlock() }                               // DEL
  :: d_step { !was_lost -> was_lost = true; unlock(); last = 0; last_owner = 0 }     // FLUSHALL
#endif
  od
}

// ---- Time.

inline tick_client(me, loses) {
  if
  :: loses -> c[me].steady = TTL
  :: else ->
     count_down(c[me].steady); count_down(c[me].left);
     c[me].age = (c[me].request != nothing && c[me].age < TTL -> c[me].age + 1 : c[me].age)
  fi;
  count_down(c[me].may); count_down(c[me].stray_may)
}

inline tick(first_loses, second_loses) {
  count_down(holder_left);
  if
  :: holder_left == 0 -> unlock()
  :: else
  fi;
  tick_client(0, first_loses); tick_client(1, second_loses)
}

active proctype clock() {
  do
  :: d_step { true -> tick(false, false) }
#ifdef DRIFT
  :: d_step { c[0].steady == 0 -> tick(true, false) }
  :: d_step { c[1].steady == 0 -> tick(false, true) }
  :: d_step { c[0].steady == 0 && c[1].steady == 0 -> tick(true, true) }
#endif
  od
}
