# SPDX-License-Identifier: Apache-2.0
"""script/campaign failovers: a primary that is killed again and again under processes that contend.

Its own file, because it has a topology to hurt. The judge goes by instants that the workers saw: a hold is from an
instant at which its lease was valid to the last such one. So two holds that overlap were two valid leases, however slow
the machine was; what a worker did between two looks, a millisecond each, is not seen.
"""
import collections
import contextlib
import datetime
import json
import os
import pathlib
import random
import re
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

RECORD = struct.Struct("=iiQq")  # tests/support/witness.hpp: what, who, token, CLOCK_BOOTTIME in ns.
STORE = struct.Struct("=Qqq")  # tests/support/fenced_store.hpp: largest token, value, refused.
ENTER = 1

PROCESSES = 50
MAX_TTL_MS = 3000
# With their ttls. The long ones are held for two ttls, so that there is always somebody to lose something; with the
# longest ttl that there may be a lease can also live through a failover.
LOCKS = {"hot": 2000, "warm": 2000, "long1": 2000, "long2": MAX_TTL_MS, "long3": MAX_TTL_MS}
# A sentinel that has begun a failover begins no other of that primary for twice this lab's failover-timeout.
BETWEEN_KILLS_S = 8
FORGOTTEN_S = 0.2
PATIENCE_S = 60


class Campaign(Exception):
    """What went wrong, for people."""


def boottime():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def until(condition, what, pause=0.01):
    """The first answer that is not false or empty."""
    give_up_at = time.monotonic() + PATIENCE_S
    while not (answer := condition()):
        if time.monotonic() >= give_up_at:
            raise Campaign(f"after {PATIENCE_S} s: {what() if callable(what) else what}")
        time.sleep(pause)
    return answer


def ask(port, *words):
    """The answer of a server as lists and text. None: there is none."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=0.5) as connection, connection.makefile("rb") as file:
            connection.sendall(b"*%d\r\n" % len(words) + b"".join(
                b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words))
            return read_reply(file)
    except (OSError, ValueError):
        return None


def read_reply(file):
    line = file.readline().decode().rstrip("\r\n")
    kind, rest = line[:1], line[1:]
    if kind == "*":
        return [read_reply(file) for _ in range(int(rest))]
    if kind == "$":
        return file.read(int(rest) + 2)[:-2].decode() if rest != "-1" else ""
    if kind == "-" or not kind:
        raise ValueError(line)
    return rest


def fields(reply):
    return dict(zip(reply[::2], reply[1::2])) if reply else {}


def info(port):
    return dict(line.split(":", 1) for line in (ask(port, "INFO", "replication") or "").splitlines() if ":" in line)


class Topology:
    """A lab with sentinels, whose nodes are killed and started again."""

    def __init__(self, holdfast):
        said = subprocess.run([holdfast, "lab", "sentinel", "--json", "--quiet"], check=True, capture_output=True,
                              text=True).stdout
        lab = json.loads(said)
        self.holdfast, self.uri, self.directory = holdfast, lab["uri"], lab["directory"]
        ports = [(int(node["address"].rpartition(":")[2]), node) for node in lab["nodes"]]
        self.servers = {port: node["pid"] for port, node in ports if node["role"] != "sentinel"}
        self.sentinels = [port for port, node in ports if node["role"] == "sentinel"]
        self.started = {}  # Port: a process of ours, which the lab does not know.

    def named(self):
        """The port that most sentinels name."""
        said = [ask(port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster") for port in self.sentinels]
        (most, votes), = collections.Counter(int(one[1]) for one in said if one).most_common(1) or [(None, 0)]
        return most if 2 * votes > len(said) else None

    def missing(self):
        """What keeps the topology from being healthy; empty when it is."""
        primary = self.named()
        if not primary:
            return "no majority of the sentinels names a primary"
        for port in self.sentinels:
            master = fields(ask(port, "SENTINEL", "MASTER", "mymaster"))
            if (master.get("port"), master.get("flags"), master.get("num-other-sentinels")) != (
                    str(primary), "master", "2"):
                return f"sentinel {port} says {master.get('port')} {master.get('flags')}"
            replicas = [fields(one) for one in ask(port, "SENTINEL", "REPLICAS", "mymaster") or []]
            if sorted(int(one["port"]) for one in replicas) != sorted(set(self.servers) - {primary}):
                return f"sentinel {port} knows other replicas"
            for one in replicas:
                if one["flags"] != "slave" or one["master-link-status"] != "ok" or one["master-port"] != str(primary):
                    return f"sentinel {port} says of {one['port']}: {one['flags']} of {one['master-port']}"
        state = info(primary)
        if state.get("role") != "master" or sum("state=online" in value for value in state.values()) != 2:
            return f"{primary} has not its replicas"
        for port in set(self.servers) - {primary}:
            state = info(port)
            if (state.get("master_port"), state.get("master_link_status")) != (str(primary), "up"):
                return f"{port} does not follow {primary}"
        return ""

    def forget(self, port):
        """From now on nothing that this primary does reaches its replicas."""
        for other in set(self.servers) - {port}:
            os.kill(self.servers[other], signal.SIGSTOP)
        ask(port, "CLIENT", "KILL", "TYPE", "replica")
        time.sleep(FORGOTTEN_S)

    def kill(self, port):
        os.kill(self.servers[port], signal.SIGKILL)
        at = boottime()
        for other in set(self.servers) - {port}:
            os.kill(self.servers[other], signal.SIGCONT)
        if port in self.started:
            self.started[port].wait()
        return at

    def restart(self, port, *options):
        home = f"{self.directory}/node-{port}"
        with open(f"{home}/redis.log", "ab") as log:
            self.started[port] = subprocess.Popen(["redis-server", f"{home}/redis.conf", *options], stdout=log,
                                                  stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        self.servers[port] = self.started[port].pid

    def end(self):
        for process in self.started.values():
            process.kill()
            process.wait()
        subprocess.run([self.holdfast, "lab", "stop", self.directory, "--quiet"], check=False)


class Sightings:
    """What the workers have written so far."""

    def __init__(self, directory):
        self.files = {}
        for lock in LOCKS:
            path = pathlib.Path(directory, f"{lock}.witness")
            path.touch()
            self.files[lock] = path.open("rb")
        self.holds = {lock: {} for lock in LOCKS}  # (who, token): [first, last] instant.
        self.recent = []  # (first instant, lock, who) since forget_recent().

    def read(self):
        for lock, file in self.files.items():
            holds = self.holds[lock]
            while len(record := file.read(RECORD.size)) == RECORD.size:
                what, who, token, at = RECORD.unpack(record)
                if what == ENTER:
                    holds[who, token] = [at, at]
                    self.recent.append((at, lock, who))
                else:
                    holds[who, token][1] = at
            file.seek(-len(record), os.SEEK_CUR)

    def forget_recent(self):
        self.recent.clear()

    def first_since(self, lock, instant):
        return min((at for at, which, _ in self.recent if which == lock and at > instant), default=None)

    def served_since(self, instant):
        """{process: when it was granted anything first}."""
        served = {}
        for at, _, who in self.recent:
            if at > instant:
                served[who] = min(at, served.get(who, at))
        return served

    def survivors(self, killed_at):
        """How many leases lived through that failover: they were renewed by the next primary."""
        return sum(first < killed_at and end > killed_at + MAX_TTL_MS * 1_000_000
                   for holds in self.holds.values() for first, end in holds.values())

    def judge(self):
        """(holds, [overlaps], [token regressions]) as sentences."""
        total, overlaps, regressions = 0, [], []
        for lock, holds in self.holds.items():
            total += len(holds)
            last, largest = (0, None), (0, None)
            for (who, token), (first, end) in sorted(holds.items(), key=lambda item: item[1]):
                if first < last[0]:
                    overlaps.append(f"{lock}: {who} was valid with token {token} {(last[0] - first) / 1e6:.3f} ms before "
                                    f"{last[1]} ended, at {first}")
                if token <= largest[0]:
                    regressions.append(f"{lock}: {who} was granted {token} after {largest}, at {first}")
                last, largest = max(last, (end, (who, token))), max(largest, (token, who))
        return total, overlaps, regressions


def end_of_quarantine(port):
    """When the quarantine of that primary is over by CLOCK_BOOTTIME, and its length; both in ns."""
    offset = boottime() - time.time_ns()
    epoch = re.match(r"v1\|\w+\|\w+\|(\d+)\|(\d+)$", ask(port, "GET", "hf:epoch") or "")
    if not epoch:
        raise Campaign(f"{port} has granted a lock and has no epoch")
    return int(epoch[1]) * 1000 + int(epoch[2]) * 1_000_000 + offset, int(epoch[2]) * 1_000_000


class Round(collections.namedtuple("Round", "named hot served quarantine after killed_at")):
    """Of one failover, in seconds: until another was named, the hot lock was granted, and every process was; how long
    its quarantine was, and what came after it. And when it began, in ns of CLOCK_BOOTTIME."""


def fail_over(topology, seen, workers, number):
    seen.read()
    seen.forget_recent()
    old = topology.named()
    if number % 2:
        topology.forget(old)
    killed_at = topology.kill(old)
    new = until(lambda: (port := topology.named()) != old and port, "the sentinels name nobody else")
    named_at = boottime()

    def all_served():
        seen.read()
        return (served := seen.served_since(named_at)).keys() >= {worker.pid for worker in workers} and served

    def who_is_not():
        return f"of {PROCESSES} processes, {sorted({w.pid for w in workers} - seen.served_since(named_at).keys())} wait"

    served = until(all_served, who_is_not)
    first_hot = until(lambda: seen.read() or seen.first_since("hot", named_at), "nobody was granted the hot lock")
    over_at, quarantine = end_of_quarantine(new)
    # As a replica, as an operator would; or as what it was, an empty primary, until a sentinel finds out.
    topology.restart(old, *([] if number % 4 >= 2 else ["--replicaof", f"127.0.0.1 {new}"]))
    return Round(*(ns / 1e9 for ns in (named_at - killed_at, first_hot - killed_at, max(served.values()) - killed_at,
                                       quarantine, first_hot - over_at)), killed_at)


def summary(workers):
    """What they counted, summed."""
    total, failures = collections.Counter(), []
    for worker in workers:
        said = worker.communicate(timeout=PATIENCE_S)[0].split()
        if said[:1] != ["done"]:
            failures.append(f"worker {worker.pid}: {' '.join(said)} ({worker.returncode})")
        else:
            total.update({what: int(count) for what, count in zip(said[1::2], said[2::2])})
    return total, failures


def violations(seen, total, directory):
    """(holds, sentences)."""
    seen.read()
    holds, overlaps, regressions = seen.judge()
    found = overlaps + regressions
    values = 0
    for lock in LOCKS:
        with contextlib.suppress(FileNotFoundError):
            values += STORE.unpack(pathlib.Path(directory, f"{lock}.store").read_bytes())[1]
    # Each update is the value that was read and one: a write in between that was not refused would be missing.
    if values != total["written"]:
        found.append(f"the fenced stores count {values} updates of {total['written']}: a stale write was accepted")
    for what, why in (("untold", "leases ended and lost() did not say so"),
                      ("refused_while_valid", "writes under a valid lease were refused"),
                      ("failed.timed_out", "waiters were not served within 30 s")):
        if total[what]:
            found.append(f"{total[what]} {why}")
    return holds, len(overlaps), len(regressions), found


def parts(total, prefix):
    return ", ".join(f"{what.removeprefix(prefix)} {count}" for what, count in sorted(total.items())
                     if what.startswith(prefix)) or "none"


def spread(values):
    return f"{statistics.median(values):.2f} / {max(values):.2f} s"


def line(rounds, survivors, holds, overlaps, regressions, total, is_good):
    of_hot = statistics.median(one.quarantine / one.hot for one in rounds)
    return (f"| {datetime.date.today()} | {len(rounds)} | {holds} | {overlaps} | {regressions} | "
            f"{total['stale_refused'] + total['refused_in_time']} | {parts(total, 'told.')}; {survivors} | "
            f"{parts(total, 'failed.')} | "
            f"{spread([one.named for one in rounds])} | {spread([one.hot for one in rounds])} | "
            f"{statistics.median(one.quarantine for one in rounds):.2f} s, {100 * of_hot:.0f} % | "
            f"{spread([one.served for one in rounds])} | {'holds' if is_good else 'FAILS'} |")


def run(count, holdfast, worker, directory):
    topology = Topology(holdfast)
    workers, rounds = [], []
    try:
        seen = Sightings(directory)
        locks = ",".join(f"{name}:{ttl}" for name, ttl in LOCKS.items())
        environment = os.environ | {"HOLDFAST_TEST_MAX_TTL_MS": str(MAX_TTL_MS)}
        workers = [subprocess.Popen([worker, topology.uri, "endure", locks, directory],
                                    stdout=subprocess.PIPE, text=True, env=environment, preexec_fn=lambda: os.nice(10))
                   for _ in range(PROCESSES)]
        until(lambda: seen.read() or len(seen.served_since(0)) == PROCESSES, "not every process was granted anything")
        last_kill = -BETWEEN_KILLS_S
        for number in range(count):
            until(lambda: time.monotonic() - last_kill >= BETWEEN_KILLS_S and not topology.missing(),
                  topology.missing, 0.2)
            time.sleep(random.random())
            last_kill = time.monotonic()
            rounds.append(fail_over(topology, seen, workers, number))
            print(f"{number + 1}: " + ", ".join(f"{what} {s:.2f}" for what, s in rounds[-1]._asdict().items()
                                                if what != "killed_at"), file=sys.stderr)
        until(lambda: not topology.missing(), topology.missing, 0.2)
        pathlib.Path(directory, "stop").touch()
        total, failures = summary(workers)
    finally:
        for one in workers:
            if one.poll() is None:
                one.kill()
                one.communicate()
        topology.end()
    holds, overlaps, regressions, found = violations(seen, total, directory)
    print(" ".join(f"{what} {n}" for what, n in sorted(total.items())), file=sys.stderr)
    print("\n".join(failures + found), end="\n" if failures or found else "", file=sys.stderr)
    survivors = sum(seen.survivors(one.killed_at) for one in rounds)
    print(line(rounds, survivors, holds, overlaps, regressions, total, not failures and not found))
    return not failures and not found


def failovers(count, holdfast, worker):
    with tempfile.TemporaryDirectory(prefix="hf-") as directory:
        try:
            return run(count, holdfast, worker, directory)
        except Campaign as e:
            print(e, file=sys.stderr)
            return False
