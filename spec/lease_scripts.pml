// SPDX-License-Identifier: Apache-2.0
// lease_scripts: the scripts of lease.pml, which includes it. One call is one script: nothing comes between its steps.
// src/script/acquire.lua, renew.lua, release.lua, leave.lua.

inline unlock() { holder = 0; holder_token = 0; holder_left = 0 }

inline run_acquire(id, in_time) {
  if
#ifndef NO_NOT_AFTER
  :: in_time == 0 -> answer = late
#endif
  :: else ->
     if
     :: holder == id -> answer = yes; ttl = holder_left  // Mine.
     :: holder != id && last_owner == id -> answer = spent
     :: holder != id && last_owner != id && holder != 0 -> answer = busy
     :: else ->
        must(no_orphan, !over[id]);
        grants++; holder = id; holder_left = TTL; last_owner = id;
#ifdef BARE_COUNTER
        last = last + 1;
#else
        last = larger(last + 1, grants);
#endif
        must(token_order, last > newest);
        newest = last; holder_token = last; answer = yes; ttl = TTL
     fi
  fi
}

inline run_renew(id, with) {
  if
#ifdef RENEW_BY_ID
  :: holder == id ->
#else
  :: holder == id && holder_token == with ->
#endif
     must(newest_renewed, with == newest);
     holder_left = TTL; answer = yes; ttl = TTL
#ifdef RENEW_RECREATES
  :: holder == 0 -> holder = id; holder_token = with; holder_left = TTL; answer = yes; ttl = TTL
#endif
  :: else -> answer = not_mine
  fi
}

inline run_release(id, with) {
  if
#ifdef NO_COMPARE
  :: true -> unlock(); last_owner = id; answer = yes
#else
  :: holder == id && holder_token == with -> unlock(); last_owner = id; answer = yes
#endif
  :: else -> answer = not_mine
  fi
}

inline run_leave(id) {  // Knows no token: it is for an acquire whose answer was never read.
  if
  :: holder == id -> unlock()
  :: else
  fi;
  last_owner = id; answer = yes
}

inline execute(what, id, with, in_time) {
  if
  :: what == acquire -> run_acquire(id, in_time)
  :: what == renew   -> run_renew(id, with)
  :: what == release -> run_release(id, with)
  :: what == leave   -> run_leave(id)
  fi
}
