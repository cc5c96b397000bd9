// SPDX-License-Identifier: Apache-2.0
// What can be set, with units, defaults and which way each setting trades.
// Precedence: an argument over the environment over the default. There is no configuration file.
#pragma once

#include <holdfast/names.hpp>
#include <holdfast/observer.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace holdfast {
inline namespace v0 {

// Whether a lease keeps itself alive.
enum class renewal {
  automatic,  // Renewed in the background until released or lost.
  none,       // Ends with its ttl, unless you call lease::renew(). Without: at most once, at most that long.
              // A lease_set has no renew(), so it ends with its ttl.
};

// What a restart or a promotion of the server means for the locks that it kept.
enum class quarantine_mode {
  on,                           // Some may be forgotten: nothing is granted until their leases must have ended.
  trust_every_write_is_synced,  // None is, or you can live with two holders: granted at once.
};

// How many replicas must have a grant, or a renewal, before it counts: with one, a lock outlives the loss of the
// primary if that replica is promoted. Asked with WAIT behind each request, so each takes one more round trip, to the
// replica.
//
// Too few within `timeout`: a lock that was granted is given back at once. A try ends with errc::not_replicated; an
// acquire that waits tries again, with pauses of 12.5 ms to 1 s, until its `wait` is over, and ends with it then; one
// that waits without end goes on until cancelled. A renewal is tried again, and the lease stays valid until its old
// deadline: a stall of the replicas shorter than half the ttl costs no lease. WAIT is no fsync, and no election need
// know of it: quarantine and fencing tokens stay.
struct durability {
  int replicas = 0;  // 0: none is asked. At most 100.

  // How long to wait for them. While they are slow, all that this client asks of the server waits that long, releases
  // too: other locks that cannot wait belong to a client of their own. 100 ms is hundreds of round trips to a healthy
  // replica, rides out a hiccup of one, and leaves a renewal several tries. 1 ms to half of client_options::timeout,
  // and no ttl may be shorter than four times this.
  std::chrono::milliseconds timeout{100};
};

// One acquire. All of it is checked before anything is sent (errc::invalid_option names the field).
struct acquire_options {
  // How long Redis keeps the lock after it last heard from us.
  //
  // Longer rides out longer pauses and failovers; shorter lets the next one in sooner after a crash. Keep it
  // several times your worst round trip: renewal starts at a third of it, or after 10 s. 100 ms to
  // client_options::max_ttl.
  std::chrono::milliseconds ttl = std::chrono::seconds{10};

  // How long to go on while someone else holds the lock. Everything in the call counts: name look-up, connect,
  // TLS, AUTH, retries. Zero tries once and gives the server client_options::timeout to answer. Unset waits until
  // cancelled. Of a server that is silent meanwhile client_options::timeout tells.
  // Zero to a year, else errc::invalid_option, of try_acquire too, which ignores it otherwise.
  std::optional<std::chrono::milliseconds> wait{};

  // Ask this to stop the wait (never the hold), a try's for its answer too. One that was asked before the call ends it
  // with errc::cancelled at once, though the lock be free. Not in a signal handler, where request_stop() may wait for
  // the thread that it interrupts (docs/threads.md has another way). Unanswered requests are cleaned up in the
  // background: no orphan outlives the request's own deadline plus the ttl.
  std::stop_token cancel{};

  // Who, for people: shown by `holdfast show` and in busy messages. At most 256 bytes, escaped.
  // Empty: client_options::owner.
  std::string owner{};

  // Grant only with a token above this one, for a resource that has seen it already (docs/fencing.md).
  // More than a year ahead of the server's clock is errc::fence_too_far; 2^53 - 1, above which there is no token,
  // errc::invalid_option. Zero: no demand.
  fencing_token min_fence{};

  renewal renew = renewal::automatic;

  // Of a semaphore: how many of its permits. Anything else has one holder or is shared, and takes 1 only.
  int permits = 1;

  // The longest that it is held, however well it is renewed: then it is lost, with errc::lease_held_too_long, so that a
  // program that hangs does not keep it for ever. Counted from when the request was sent that was granted; of a lease
  // that another thread hands on, from then. The next one gets it when it is released, or when the ttl of the last
  // renewal is over. ttl to a year; of several with acquire_all, of each. Unset: no bound.
  std::optional<std::chrono::milliseconds> max_hold{};
};

// One client. Checked in the constructor; nothing is sent until the first call.
struct client_options {
  // What our keys and channels begin with, 1 to 64 bytes of printable ASCII without space, `{`, `}`, `%`, `|`, `*`,
  // `?`, `[`, `]` or `\`. Every client that shares locks must use the same.
  std::string prefix = "hf:";

  // See `naming`. Plain shares a lock with other libraries; then quarantine, lines and clamps cannot bind them.
  naming names = naming::holdfast;

  // How long the server may be silent before a call gives up; of a quorum, a majority of its servers. Longer rides out
  // longer outages, shorter tells of them sooner. 10 ms to 1 hour.
  //
  // A try (try_acquire, wait = 0), a release, a renewal, a question: it is their deadline.
  // acquire that waits, on one server or a cluster: with `wait` it is no limit. The server may come back, so the call
  //   goes on until `wait` is over, and ends with what was heard last: timed_out if the lock was busy, reply_lost if a
  //   request is unanswered, else what the connection failed of, or server_silent. Without `wait` the call gives up,
  //   likewise, with server_silent for timed_out; in line after 15 s, if that is later, because so long the place is
  //   kept. Who waits behind another thread of this client (docs/threads.md) begins to count with it; behind one that
  //   has a `wait`, it may be told of the silence only when that is over, and counts up to twice if this is below 1 s.
  //   A server that takes no writes (out_of_memory, NOREPLICAS, MISCONF) is silent to who stands in line, and ends
  //   every other call at once (docs/protocol.md).
  // acquire that waits, on a quorum: with `wait` and without, it ends as no_quorum after so long without a majority, or
  //   as reply_lost if one may have its votes, be it long before `wait` is over. The time in line does not count. Who
  //   wants to ride out more calls again.
  // What will not pass (a wrong password), or three refused connections where there never was one, is not waited for.
  std::chrono::milliseconds timeout = std::chrono::seconds{5};

  // The longest ttl that acquire accepts. A longer one lengthens the quarantine, and a server that may be a replica for
  // a time needs a repl-backlog-ttl (an hour, by default) that is no shorter.
  // Use the same on every client. 100 ms to 24 h.
  std::chrono::milliseconds max_ttl = std::chrono::seconds{60};

  // When the server restarted or was promoted a moment ago it may have forgotten locks whose holders live. Then nothing
  // is granted for max_ttl (the largest that the server has heard of) after that: a try ends with errc::quarantined,
  // others wait in line; leases that survived are renewed. A server that was started for the first time waits likewise,
  // because it cannot know that it is the first: see client::declare_nothing_forgotten. Needs +info.
  // Off is for a server that cannot lose a write (appendfsync always, no replica that is ever promoted), or for locks
  // that only save work.
  quarantine_mode quarantine = quarantine_mode::on;

  // On a primary with replicas: what counts when it is lost. Of all locks of this client, because WAIT stops its
  // connections. Needs +wait.
  holdfast::durability durability{};

  // How often threads of this process may hand an exclusive lock on to each other, without Redis, before the line
  // outside gets its turn; and for how long since the server granted it, or said that nobody waits there, whichever
  // comes first. More is faster where others wait, and lets them wait longer. 0 times: never. 0 to 1000; 0 to 1 s. Each
  // grant of the server while other threads wait reserves so many tokens, of a microsecond each; above 16 only while
  // they are not a second ahead of its clock.
  int hand_overs = 16;
  std::chrono::milliseconds hand_over_span = std::chrono::milliseconds{20};

  // How far apart the rates of our clock and the server's may be, as a fraction: lease deadlines are shortened by
  // it (docs/lease_time.md). 0.001 to 0.2.
  double clock_drift = 0.01;

  // Who, when an acquire does not say. Empty: user@host:pid program. Never put secrets here.
  std::string owner{};

  // Credentials; over those of the URI. Without a user in either it is the default user. REDISCLI_AUTH is read when
  // neither has a password, but not for local:.
  std::string user{};
  std::string password{};

  // Credentials for the sentinels of a redis+sentinel:// URI, which have their own. HOLDFAST_SENTINEL_USER and
  // HOLDFAST_SENTINEL_PASSWORD are read when these are empty.
  std::string sentinel_user{};
  std::string sentinel_password{};

  // TLS files in PEM; over the URI's cacert, cert and key. Empty cacert: the system's authorities. Empty key: it is
  // in `cert`. Without a cert a key is not used. A key that wants a pass phrase is refused: decrypt it (openssl pkey).
  // Read for each connection, 5 s before it at most: a pipe is refused, and a path that is not absolute goes by the
  // working directory of that moment. Refused with a URI of another scheme than rediss: and its kin, whose traffic
  // anybody can read.
  std::string cacert{};
  std::string cert{};
  std::string key{};

  // Called on the callback thread, never under a lock of ours, one record at a time. An exception is swallowed.
  log_sink log{};

  // As `log`. The client keeps it alive until its callback thread has ended.
  std::shared_ptr<observer> observe{};
};

}  // namespace v0
}  // namespace holdfast
