// SPDX-License-Identifier: Apache-2.0
#include "help_topics.hpp"

#include "acl_rule.hpp"
#include "subcommands.hpp"

#include <fmt/format.h>

#include <array>

namespace holdfast::cli {
namespace {

constexpr std::array topics{
    help_text{"durations", R"(Durations: a plain number is seconds, as in flock: 90, 0.2, .2
With units, from the largest down: 500ms, 1.5s, 2m, 1h30m, 1d. ISO 8601: PT15M, PT1H30M, P1D.
Finer than a millisecond is rounded up. Negative, empty and endless ones are refused.
)"},
    help_text{"servers", R"(Servers: --uri URI, else HOLDFAST_URI, else local:.
  redis://HOST:PORT/DB                   TCP; port 6379, database 0
  rediss://HOST:PORT/DB                  TLS; certificate and name are verified (--cacert, --cert, --key)
  redis+unix:///run/redis.sock?db=N      a Unix socket
  redis+sentinel://S1,S2,S3/NAME/DB      the primary that most of these sentinels name; port 26379; name all of them
  rediss+sentinel://S1,S2,S3/NAME        the same over TLS
  redis+cluster://A,B,C                  a cluster; some of its nodes are enough; port 6379
  rediss+cluster://A,B,C                 the same over TLS
  redis+quorum://A,B,C/DB                a majority of 3, 5, 7 or 9 independent servers; rediss+quorum: over TLS
                                         ?generation=N after `holdfast quorum replace`
  local:  local:/DIRECTORY               a private redis-server of this user on this machine, started when needed
Passwords: REDISCLI_AUTH or --password-file FILE keep them out of `ps`; in a URI they are redis://USER:PASSWORD@HOST.
A password in --uri is overwritten in our command line and warned about.
The sentinels' own password: HOLDFAST_SENTINEL_PASSWORD, and HOLDFAST_SENTINEL_USER.
local: ends with the systemd unit that was the first to need it, and grants nothing for a minute after that (E23). For
units that come and go: one with Type=oneshot, RemainAfterExit=yes, ExecStart=holdfast local start, before them.
With no server named, one line on stderr says that the locks are yours on this machine alone; -q leaves it out.
A --uri or a HOLDFAST_URI that is there and empty names no server and is refused (E17).
)"},
    help_text{"environment", R"(Environment read:
  HOLDFAST_URI          the server
  HOLDFAST_LOCAL_DIR    the directory of local:
  HOLDFAST_HOLDS        the locks that processes above us hold; asking for one that they still hold is refused (E16)
  REDISCLI_AUTH         the server's password
  HOLDFAST_SENTINEL_USER  HOLDFAST_SENTINEL_PASSWORD    the sentinels' own
  SSL_CERT_FILE, SSL_CERT_DIR    OpenSSL's: whom rediss:// trusts without --cacert
  PATH                  where redis-server is, of local: and `lab`, and the command
  LOGNAME, else USER    the user in what others see of us (--owner); else as in /etc/passwd
  TMPDIR                where `lab` makes its directory
  NO_COLOR, TERM=dumb   no colours on a terminal
Environment of the command, always overwritten:
  HOLDFAST_HELD=1  HOLDFAST_NAME  HOLDFAST_OWNER  HOLDFAST_MODE  HOLDFAST_TTL_MS
  HOLDFAST_MODE         exclusive, shared (-s) or permits (-l)
  HOLDFAST_TOKEN        the fencing token: give it to what you write to
  HOLDFAST_HOLDS        server, prefix, naming, name and token of every lock held around the command
Passwords are taken out of it: REDISCLI_AUTH and HOLDFAST_SENTINEL_PASSWORD are removed;
HOLDFAST_URI loses user and password.
--keep-password leaves them, for a command that needs them.
)"},
    help_text{"loss", R"(When the lock is lost while the command runs:
The lease ends ttl after the last renewal that the server confirmed. Before that, while nobody else can have the lock:
  TERM (--signal) to the command's whole process group, then
  KILL, after --kill-after but at most a quarter of the ttl, and always before the lease ends; exit status 79.
When the server says that the lock is gone, taken or broken, TERM at once and KILL after the same time. If it says so
only when the lock is given back, the command has ended by itself; the exit status is 79 all the same. What is lost
later, in the rest of --at-least, is a warning, and the exit status is the command's.
  --max-hold 2h         lose it after two hours, so that a command that hangs does not keep it for ever
  --on-lost kill        no TERM: KILL just before the end
  --on-lost warn        say so and let it run; the exit status is the command's own
A process that leaves the group cannot be reached: setsid, a daemon, a job of `set -m`, and whatever timeout(1) runs in
a script (`timeout --foreground`, or holdfast inside: timeout 1h holdfast run ..). Nor can one that becomes another user
(sudo): put holdfast inside, `sudo holdfast run`. With --foreground the command has no group of its own, and only the
command itself is ended, none of its children.
A second process, "holdfast watch", does the same when holdfast itself cannot. When that was killed (KILL, out of
memory): TERM at once, KILL after the same time. When it stands still (SIGSTOP, a debugger): before the lease ends, and
the exit status is 79 when it goes on. A command that is suspended with it (Ctrl-Z) is kept suspended then, and not
ended. Not with --on-lost warn.
It is there when the command has run for 100ms (a tenth of a short ttl). Until then, or if both are killed, holdfast's
death is TERM for the command itself, none of its children. Under another holdfast, which may be killing us because its
lock is over, the second process is there at once, with --on-lost warn too, and our death is KILL for all of them.
What no process can help with is for the token: a stale one (HOLDFAST_TOKEN) is refused where the command writes.
)"},
    help_text{"signals", R"(Signals:
While waiting, HUP, INT, QUIT, TERM, USR1 and USR2 end the wait; exit status 128+N.
While the command runs they are passed on to its process group, and WINCH, TSTP and CONT too; the exit status is the
command's. A signal that our parent ignores (nohup) stays ignored.
TSTP (Ctrl-Z) suspends the command and then us, and nothing is renewed until CONT; what has not stopped after 100 ms
gets STOP (50 ms in a run in a run, 33 in one within that). It is ignored where nobody could say `fg`: as PID 1, or at
the head of a session (ssh -t HOST, xterm -e). Where another user's part of the command goes on (sudo in a script),
which we cannot stop, we say so, and nothing is suspended.
INT, QUIT, TERM and HUP also wake a command that is stopped.
In a systemd unit with ExecStart=holdfast run: KillMode=mixed. Its default tells each process of the unit to end: the
command would get TERM twice, from systemd and from us, and many programs take a second one as "at once". And
SuccessExitStatus=143: of a command that dies of TERM that is our status, which systemd takes for a failure.
The command has a process group of its own and, if we are alone in ours, the terminal's foreground from the start.
Inside a script, `make` or a pipeline the foreground is the script's, and the command gets it when it first uses the
terminal, until it ends. Where nobody can bring us to the foreground any more (the script or shell has ended) it gets
HUP then, --signal when it uses the terminal again, and then KILL; if it is another user's, it stands, and keeps the
lock. Ctrl-C ends the script too, as with flock: until then it goes to all, and a command that dies of it afterwards
makes us pass it on; not one that exits with 130 by itself. After Ctrl-C or Ctrl-\ we end by that signal ourselves
(status 128+N all the same), so that shells end their loops; not at the head of a session.
If INT, QUIT or TERM came while the command ran, or it has died of HUP, nothing is kept for --at-least. When the command
has ended, a signal ends the rest of that: the lock is given back, and the exit status is the command's; after Ctrl-C or
Ctrl-\ it is 128+N, and so it is where they come while the lock is given back or only its group is left (--wait-group;
but where that has the terminal they come to it alone).
A command that was killed, or stopped for a loss, leaves the terminal as it was when it got it (echo, lines).
--foreground leaves the command in our process group, and then signals go to the command alone. `fg` wakes both at
once: if the lease has ended meanwhile, the command runs for about a millisecond before we have seen it.
As PID 1, holdfast also collects orphans.
)"},
};

constexpr std::array codes{
    help_text{"E01",
              "the server cannot be reached: name, network, port, or it hangs.\nIs it up (redis-cli PING)? Is "
              "HOLDFAST_URI right? Exit status 69.\n"},
    help_text{"E02",
              "the server wants a password, or another one.\nREDISCLI_AUTH, --password-file FILE, or "
              "HOLDFAST_URI=redis://USER:PASSWORD@HOST. Sentinels have their own:\nHOLDFAST_SENTINEL_PASSWORD, and "
              "HOLDFAST_SENTINEL_USER.\nThe command of a run finds none of them in its environment, unless that has "
              "--keep-password. Exit status 77.\n"},
    help_text{"E03",
              "the database number does not exist there.\nUse the same /N on every client, normally none: locks in "
              "different databases do not see each other. Exit status 78.\n"},
    help_text{"E04",
              "the server's ACL denies a command, a key or a channel.\n`holdfast help acl` has the rule that locks "
              "need. Exit status 77.\n"},
    help_text{"E05",
              "the server may throw locks away: its maxmemory-policy is not noeviction.\nCONFIG SET maxmemory-policy "
              "noeviction, or give locks a server of their own. `holdfast doctor` finds this.\n"},
    help_text{"E06",
              "the server is a replica; locks must be taken on the primary.\nName the primary. Exit status 78.\n"},
    help_text{"E07",
              "that is no name for a lock: 1 to 512 bytes of UTF-8 without control characters.\nAnother name, the "
              "same for all. (--plain takes any bytes that do not begin with --prefix, and is another key.) Exit "
              "status 64.\n"},
    help_text{
        "E08",
        "an option is out of its range: a ttl is 100ms to --max-ttl (60s), a wait at most a year.\nA plain number "
        "is seconds (holdfast help durations). Or it makes no sense with another one, or with this server, as TLS "
        "files without\nTLS: the message says what to leave out. Exit status 64.\n"},
    help_text{"E09",
              "the server's clock moved, so that it cannot be trusted with the end of a lease for a moment.\nRun ntpd "
              "or chrony there, slewing and not stepping. Exit status 69.\n"},
    help_text{"E10",
              "too few servers of a quorum voted, or one of them belongs to another list of servers.\nStart those that "
              "are down, and name the same servers everywhere. Exit status 69, or 78 for another list.\n"},
    help_text{"E11",
              "somebody else holds the lock, or held it until your wait was over.\nWait with -w, look with `holdfast "
              "show NAME`. Exit status 75, or -E N.\n"},
    help_text{"E12",
              "the lock was lost while it was held; the command was stopped, if it had not ended by itself.\n`holdfast "
              "help loss` tells how. Give "
              "writes the token (HOLDFAST_TOKEN), and stale ones can be refused. Exit status 79.\n"},
    help_text{"E13",
              "no TLS with the server; the message says what failed, and the way out of that.\nIs the port plain "
              "(redis://)? Is the authority known (--cacert)? Is the host name the certificate's? Has it expired? Does "
              "the\nserver want a certificate of ours (--cert, --key)? Exit status 69.\n"},
    help_text{"E14",
              "the name is used as another kind of lock, or its key is some other program's; the message says which.\n"
              "One name, one kind: -s and -x for readers and writers, -l N for a limit, neither for a lock; a name is "
              "forgotten a week after its last use.\nWho wants it alone gets it of either of the first two, but -s "
              "only where its first use had -s or -x: say -x\neverywhere. Another name, or another --prefix. Exit "
              "status 78.\n"},
    help_text{"E15",
              "the server answers and cannot serve: loading, blocked, out of memory, read-only disk, protected mode, a "
              "sentinel, another protocol.\nIts own words are in the message. Exit status 69, or 78 when waiting will "
              "not help.\n"},
    help_text{"E16",
              "the command runs already under this lock: a holdfast above it holds the same name on the same "
              "server.\nTaking it again would wait for itself for ever. With -s and -l it might, so there the wait "
              "needs a bound: -n or -w. Exit status 64.\n"},
    help_text{"E17",
              "the command line cannot be understood, or no server was named.\n`holdfast help run` has all options. "
              "Exit status 64.\n"},
    help_text{"E18",
              "the local: server, or a server of a lab, cannot be started or used.\napt-get install redis-server; "
              "`holdfast local status`; or name a server with HOLDFAST_URI. Exit status 69.\n"},
    help_text{"E19",
              "nothing was broken: the lock is free, or is held under another token than the one you saw.\nLook again "
              "with `holdfast show NAME`. Exit status 75.\n"},
    help_text{"E20",
              "nobody knows whether the server did it: the request left and no answer came.\nIt is not retried "
              "blindly; the message says for how long the lock may be left taken. Exit status 69.\n"},
    help_text{
        "E21",
        "a defect of holdfast, or this machine is out of memory, descriptors, threads or processes, or its answer\n"
        "could not be printed. Please report it, unless the message names a limit to raise, or standard output.\n"
        "What was done (break, init, resize, lab stop, local start or stop) and could not be printed is a warning that "
        "has it,\nand 0; a document of that (--json) or the new URI of quorum replace is in the warning, too, and 70.\n"
        "Exit status 70.\n"},
    help_text{"E22",
              "the semaphore has another size on the server than the --limit you gave.\nThe same --limit everywhere; "
              "`holdfast show NAME` says which it has, and `holdfast resize NAME N` changes it; that of a quorum on "
              "each server alone, while nobody holds it. Exit status 78.\n"},
    help_text{"E23",
              "the server started or was promoted a moment ago and may have forgotten locks whose holders live.\n"
              "Nothing is granted until their leases must have ended (--max-ttl, 60s); who waits keeps its place. Was "
              "this its very first start, or do you know that nothing was lost? `holdfast init`, with the same --uri, "
              "--prefix and --max-ttl; of a cluster or a quorum it ends the quarantine of all servers, so know it of "
              "each. Exit status 69.\n"},
    help_text{"E24",
              "fewer replicas than --replicas confirmed a grant within --replicas-timeout; it was given back.\n"
              "Are they up and connected (`holdfast doctor --replicas K`)? Wait for them with -w, or ask for fewer: "
              "then a lock may be forgotten with the primary. Exit status 69.\n"},
    help_text{
        "E25",
        "no majority of the sentinels, or of a cluster's primaries, names a primary: too many are down, or they "
        "disagree.\n"
        "Name all sentinels: redis+sentinel://S1,S2,S3/NAME; a majority of those named must answer. Of a cluster: "
        "redis-cli --cluster check ANY. Exit status 69.\n"},
};

}  // namespace

std::string about_acl() {
  return fmt::format(
      R"(The ACL rule that locks need, for redis-cli as it stands (a shell wants quotes).
Put your own name and password into it; what that user may do so far is taken away.

{}

What some need besides, also by ACL SETUSER:
  {}   holdfast ls; it shows the names of all keys, other people's too: for operators, not for programs
  {}   --replicas
  {}
          redis+cluster://, on every node; Redis 6.2 knows the first two alone
What the sentinels' own user needs (HOLDFAST_SENTINEL_USER), on each of them, and nothing else:
  {}   redis+sentinel://
  {}   holdfast doctor besides
With another --prefix, say b: it is ~b:* and &b:* in place of ~hf:* and &hf:*.
With --plain the lock's key is NAME itself: ~NAME besides, and ~hf:* stays. It is a pattern: a \ before each \ * ? [ ]
of NAME, and ? for a space.
docs/acl.md says what each word is for.
)",
      acl_rule, acl_of_listing, acl_of_replicas, acl_of_cluster, acl_of_sentinels, acl_of_sentinels_doctor);
}

const char* about_lab() {
  return R"(Kinds:
  single         one server
  replicas [K]   a primary with K replicas in sync (2)
  sentinel       a primary, two replicas and three sentinels; a failover takes about two seconds
  cluster        three primaries with a replica each
  quorum [N]     N servers that know nothing of each other (5); odd, because an even number can end in a tie
Prints the URI when the topology is ready. The servers are redis-server processes on 127.0.0.1, on free ports; they run
on in the background until `holdfast lab stop DIR`, which ends them and nothing else, and removes their directory; one
that was there before stays, and is empty. To stop a directory that is missing or has other files is an error (E18), for
it may be a wrong name; an empty one is none, so that a teardown can be said twice.
When they do not get ready, or a signal comes before, all are ended and nothing is left.
They grant at once under the prefix hf:, because they have been told that they are new. A server that you start
yourself, another --prefix or another database is told so by `holdfast init --uri URI --prefix P`, or the first lock
waits a minute.
)";
}

std::span<const help_text> help_topics() { return topics; }
std::span<const help_text> error_codes() { return codes; }

std::string examples() {
  return R"(holdfast: flock for your whole fleet. It frees itself when its owner dies.

  holdfast run nightly -- ./backup.sh        run it under the lock 'nightly'; wait for the lock if need be
  holdfast run -n nightly -- ./backup.sh     or not at all: exit status 75, and who has it
  holdfast run -w 10m nightly -c 'a && b'    wait ten minutes at most; a shell line
  holdfast show nightly                      who holds it, since when, under which token
  holdfast ls                                everything that is held
  holdfast doctor                            is this server fit for locks?

The server: export HOLDFAST_URI=redis://HOST; without it, one of yours on this machine alone.
More: holdfast help
)";
}

}  // namespace holdfast::cli
