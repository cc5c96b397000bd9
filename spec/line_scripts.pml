// SPDX-License-Identifier: Apache-2.0
// line_scripts: the scripts of line.pml, which includes it. One call is one script: nothing comes between its steps.
// src/script/advance.lua, wait.lua, look.lua, leave.lua, release.lua.

// In line, there, and before a grant by the ticket t: whoever is granted must not be behind such a one.
#define is_passed_over(v) \
  (v != w2 && place[v] == in_line && ticket[v] != 0 && hears[v] && silence[v] == fresh && arrived[v] < t)

inline grant(id, whole) {
  w2 = waiter_of(id);
  must(no_ghost, place[w2] != done || cleans_up[w2]);
  t = (ticket[id] == 0 -> last_ticket + 1 : arrived[w2]);
  must(order, id > WAITERS || !(is_passed_over(1) || is_passed_over(2) || is_passed_over(3)));
  holder = id; claimed = whole; ticket[id] = 0; spent = id; t = 0
}

inline find(at) {  // The entry with this ticket: x, or zero.
  x = IDS;
  do
  :: x > 0 && ticket[x] != at -> x--
  :: else -> break
  od
}

inline offer(id) {
#ifdef DEAF
  head = 1  // Nobody can be told: it takes the lock with its next look.
#else
  grant(id, false)
#endif
}

// Grants to the first who is there; to `me` with its whole ttl. head: there is somebody whose turn it is.
inline advance(me) {
  head = 0; first_silent = 0; at = 1;
  do
  :: at <= last_ticket && holder == 0 && head == 0 ->
     find(at);
     w2 = waiter_of(x);
     if
     :: x == 0
     :: x != 0 && x == me -> grant(x, true)
#ifdef DEAD_BLOCK
     :: x != 0 && x != me -> head = 1
#else
     :: x != 0 && x != me && silence[w2] == forgotten -> ticket[x] = 0
     :: x != 0 && x != me && silence[w2] == silent && first_silent == 0 -> first_silent = x
     :: x != 0 && x != me && silence[w2] == silent && first_silent != 0
     :: x != 0 && x != me && silence[w2] == fresh && must_look[w2] -> head = 1
     :: x != 0 && x != me && silence[w2] == fresh && !must_look[w2] && !hears[w2]
     :: x != 0 && x != me && silence[w2] == fresh && !must_look[w2] && hears[w2] -> offer(x)
#endif
     fi;
     at++
  :: else -> break
  od;
  w2 = waiter_of(first_silent);
  if
  :: holder == 0 && head == 0 && first_silent != 0 && hears[w2] && !must_look[w2] -> offer(first_silent)
  :: else
  fi;
  at = 0
}

inline enqueue(id, brought) {
  w2 = waiter_of(id);
  must(no_ghost, place[w2] != done || cleans_up[w2]);
  if
  :: brought == 0 -> last_ticket++; ticket[id] = last_ticket
  :: else -> ticket[id] = brought
  fi;
  // Whoever missed a turn before it heard of its ticket has none to bring, and is new.
  arrived[w2] = (arrived[w2] == 0 || (brought == 0 && !came_back[w2] && id <= WAITERS) -> ticket[id] : arrived[w2])
}

inline heard_by(id) { must_look[waiter_of(id)] = !hears[waiter_of(id)] }

inline run_wait(id, brought) {
  if
  :: holder == id -> claimed = true; said = mine
  :: holder != id && spent == id -> said = spent_before
  :: else ->
     if
#ifdef BARGING
     :: holder == 0 -> grant(id, true)
#else
     :: holder == 0 ->
        advance(id);
        if
        :: holder == 0 && head == 0 -> grant(id, true)
        :: else
        fi
#endif
     :: else
     fi;
     if
     :: holder == id -> said = mine
     :: holder != id && ticket[id] != 0 -> heard_by(id); said = queued
     :: holder != id && ticket[id] == 0 && brought == 0 -> enqueue(id, 0); heard_by(id); said = queued
     :: else ->  // It comes back to its place, and what there is may be its.
        enqueue(id, brought); heard_by(id);
        if
        :: holder == 0 -> advance(id)
        :: else
        fi;
        said = (holder == id -> mine : queued)
     fi;
     silence[waiter_of(id)] = (place[waiter_of(id)] == dead -> silence[waiter_of(id)] : fresh)
  fi
}

inline run_look(id) {
  if
  :: holder == id -> claimed = true; said = mine
#ifdef LOOK_ADDS
  :: holder != id && ticket[id] == 0 -> came_back[waiter_of(id)] = true; enqueue(id, 0); said = queued
#else
  :: holder != id && ticket[id] == 0 -> said = not_in_line
#endif
  :: else ->
     heard_by(id);
#ifndef ONLY_RELEASE_ADVANCES
     if
     :: holder == 0 -> advance(id)
     :: else
     fi;
#endif
     said = (holder == id -> mine : queued);
     silence[waiter_of(id)] = (place[waiter_of(id)] == dead -> silence[waiter_of(id)] : fresh)
  fi
}

inline run_leave(id) {
  w2 = (ticket[id] != 0 || holder == id);  // Something of it was there.
  ticket[id] = 0;
  if
#ifndef LEAVE_FORGETS_GRANT
  :: holder == id -> holder = 0; claimed = false
#endif
  :: else
  fi;
  spent = (w2 -> spent : id);
  if
  :: w2 && holder == 0 -> advance(0)
  :: else
  fi
}

inline run_release(id) {
  if
  :: holder == id -> holder = 0; claimed = false; advance(0)
  :: else
  fi
}
