// SPDX-License-Identifier: Apache-2.0
// The local: server: one user's private redis-server on one machine, on a Unix socket, so that the first command
// works with nothing set up. `holdfast::client{"local:"}` finds or starts it; this header is for those who manage it.
//
// Directory: as given, else HOLDFAST_LOCAL_DIR, else /var/tmp/holdfast-UID; never from XDG or HOME, which cron does
// not have. It is made with mode 0700 if it is missing. It must be ours (root is no exception), mode 0700, no symlink,
// and on no network file system. A directory that you name in the call may instead be shared with a group: mode 2770;
// who are in it must trust each other with what the user can write who starts its server, since redis-server follows
// links; started by root it is its owner's, and root finds it as that user, which takes CAP_SETUID and CAP_SETGID. In a
// service of systemd's with PrivateTmp= the default would be a directory that nobody else sees, and is refused there:
// name one. A service that makes such a directory in another way (TemporaryFileSystem=/var/tmp, a container) looks like
// a machine of its own: name one there, too.
//
// The server belongs to the control group of who started it. A unit of systemd's takes it along at its end, and each
// later start is one that may have forgotten locks: nothing is granted for --max-ttl (errc::quarantined). Where units
// use it that come and go, as timers start them, have one unit that stays start it before them: Type=oneshot,
// RemainAfterExit=yes, ExecStart=holdfast local start. Its starter's limits and low priorities (nice, ionice,
// SCHED_BATCH and SCHED_IDLE, oom_score_adj) are not the server's, as far as its user may change them. A server
// that has ended is started again by the clients that need it: who waits or asks does so some second later, who holds a
// lease that renews itself at its next renewal. That forks: a program that waits for any child (wait, waitpid(-1)) may
// hear of one that is not its own, and had better wait for its own by their numbers. While a server runs,
// systemd-tmpfiles does not clean its directory (flock(2) on it); keep other cleaners of old files (tmpreaper, find
// -mtime) away from it. All calls throw holdfast::error with errc::local_server and are safe from any process at the
// same time: a file lock in the directory orders them.
#pragma once

#include <holdfast/version.hpp>

#include <string>
#include <string_view>

namespace holdfast {
inline namespace v0 {

struct local_status {
  std::string directory{};
  std::string socket{};
  bool running = false;
  int pid = 0;               // 0 when not running, or when it runs in another PID namespace.
  bool was_started = false;  // start_local: this call started it.
  bool was_stopped = false;  // stop_local: this call ended it, though it may only just have been coming up.
};

// Finds the server of `directory` (empty: the default) or starts it, and waits until it answers.
HOLDFAST_EXPORT local_status start_local(std::string_view directory = {});

// Ends it and waits until it is gone. Locks that are held stay in its append-only file until they expire. Not running
// is not an error. Who waits for a lock of it, or renews one, starts it again, unless the directory is gone. Behind the
// next start nothing is granted for max_ttl, 60 s by default (errc::quarantined).
HOLDFAST_EXPORT local_status stop_local(std::string_view directory = {});

// Only looks: starts nothing and makes no directory.
HOLDFAST_EXPORT local_status query_local(std::string_view directory = {});

}  // namespace v0
}  // namespace holdfast
