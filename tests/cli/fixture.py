# SPDX-License-Identifier: Apache-2.0
"""What every suite here stands on: the command, a redis-server of our own, and waiting for conditions.

The server listens on a Unix socket in a directory that is removed afterwards, and is ended by its pid. Its tear-down
checks C8: no key of ours without an expiry. Nothing sleeps for a time and hopes: `until` waits for a condition and
fails at its deadline.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

COMMAND = os.environ.get("HOLDFAST_COMMAND", os.path.join(os.path.dirname(__file__), "../../build/holdfast"))
IS_SANITIZED = bool(os.environ.get("HOLDFAST_SANITIZED"))
DEADLINE = 30.0
EPOCH = os.path.join(os.path.dirname(__file__), "../../src/script/epoch.lua")
OURS = ("HOLDFAST_", "REDISCLI_AUTH")

# A background job of a script has INT and QUIT ignored, one of nohup HUP, and what is ignored stays so in everything
# that is started here, whose end they are meant to be. A handler is the default again in who is executed.
for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)  # Ignored here all the same.


def now():
    """Seconds on the clock that leases are counted on; it can be compared between processes."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def until(condition, what, deadline=DEADLINE):
    """Waits for `condition` to be true and returns its value."""
    give_up_at = now() + deadline
    while True:
        value = condition()
        if value:
            return value
        if now() > give_up_at:
            raise AssertionError(f"not within {deadline:.0f} s: {what}")
        time.sleep(0.003)


def content(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def state_of(pid):
    """The letter that ps shows: R, S, T, Z..."""
    return content(f"/proc/{pid}/stat").rpartition(")")[2].split()[0]


def is_alive(pid):
    """A zombie is dead."""
    try:
        return state_of(pid) not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def signals_of(pid, which):
    """A set of /proc/PID/status, SigBlk or ShdPnd, as bits."""
    return int(re.search(rf"^{which}:\s*(\w+)", content(f"/proc/{pid}/status"), re.M)[1], 16)


def has_terminals():
    """A bare chroot has no /dev/pts."""
    try:
        for end in os.openpty():
            os.close(end)
        return True
    except OSError:
        return False


class Connection:
    """As much of RESP2 as a test needs. `where` is the path of a Unix socket, or a host and a port."""

    def __init__(self, where):
        self.socket = socket.socket(socket.AF_INET if isinstance(where, tuple) else socket.AF_UNIX)
        self.socket.settimeout(10)
        try:
            self.socket.connect(where)
        except OSError:
            self.socket.close()
            raise
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def ask(self, *words):
        self.send(*words)
        return self.reply()

    def send(self, *words):
        words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        out = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)
        self.socket.sendall(out)

    def reply(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind in (b"+", b"-"):
            if kind == b"-":
                raise RuntimeError(rest.decode())
            return rest.decode()
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2].decode(errors="replace")
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        raise RuntimeError(f"not RESP2: {line!r}")


class Server:
    def __init__(self, *options):
        # Short, because a socket's path has 107 bytes at most.
        self.directory = tempfile.mkdtemp(prefix="hf-")
        self.socket = os.path.join(self.directory, "s")
        self.log = os.path.join(self.directory, "log")
        self.uri = f"redis+unix://{self.socket}"
        self.password = options[options.index("--requirepass") + 1] if "--requirepass" in options else None
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--unixsocketperm", "700", "--save", "",
             "--appendonly", "no", "--dir", self.directory, "--logfile", self.log, *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        until(self.answers, "redis-server answers")
        self.declare_nothing_forgotten()

    def answers(self):
        try:
            return self.ask("PING") == "PONG"
        except (OSError, RuntimeError):
            return False

    def ask(self, *words):
        connection = Connection(self.socket)
        try:
            if self.password:
                connection.ask("AUTH", self.password)
            return connection.ask(*words)
        finally:
            connection.close()

    def declare_nothing_forgotten(self, prefix="hf:"):
        """As `holdfast init`: this is its first start, so that there is no quarantine."""
        said = self.ask("EVAL", content(EPOCH), "1", prefix + "epoch", "0", "first")
        assert said.isdigit(), said

    def scripts_run(self):
        """How many scripts ran so far: grows while somebody waits."""
        stats = self.ask("INFO", "commandstats")
        lines = (l for l in stats.splitlines() if l.startswith(("cmdstat_eval:", "cmdstat_evalsha:", "cmdstat_fcall:")))
        return sum(int(l.split("calls=")[1].split(",")[0]) for l in lines)

    def pause(self):
        os.kill(self.process.pid, signal.SIGSTOP)
        until(lambda: state_of(self.process.pid) == "T", "redis-server is stopped")

    def resume(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def keys_without_expiry(self):
        return [key for key in self.ask("KEYS", "*") if self.ask("PTTL", key) == -1]

    def stop(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.directory)


class FarServer:
    """Another address of a server on the loopback, whose answers take their time."""

    def __init__(self, test, address, delay):
        self.delay = delay
        host, port = address.split(":")
        self.target = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        test.addCleanup(self.listener.close)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            server = socket.create_connection(self.target)
            for source, sink, delay in ((client, server, 0), (server, client, self.delay)):
                threading.Thread(target=self.pump, args=(source, sink, delay), daemon=True).start()

    @staticmethod
    def pump(source, sink, delay):
        with contextlib.suppress(OSError), source:
            while data := source.recv(65536):
                time.sleep(delay)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


class FullPipe:
    """A stderr that nobody reads."""

    def __init__(self):
        self.read, self.write = os.pipe()
        os.set_blocking(self.write, False)
        try:
            while True:
                os.write(self.write, b"x" * 4096)
        except BlockingIOError:
            pass
        os.set_blocking(self.write, True)

    def drain(self):
        """Reads to the end of it; gives what was said."""
        os.close(self.write)
        said = b""
        while more := os.read(self.read, 65536):
            said += more
        os.close(self.read)
        return said.lstrip(b"x").decode()


class Running:
    """A holdfast that runs: its process, and what it has said so far, in files so that no pipe can fill up."""

    def __init__(self, arguments, environment, directory, stdin, prefix, as_job):
        self.out_path = tempfile.mktemp(dir=directory)
        self.err_path = tempfile.mktemp(dir=directory)
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.process = subprocess.Popen([*prefix, COMMAND, *arguments], env=environment, stdin=stdin, stdout=out,
                                            stderr=err, preexec_fn=os.setpgrp if as_job else None)
        self.pid = self.process.pid

    @property
    def out(self):
        return content(self.out_path)

    @property
    def err(self):
        return content(self.err_path)

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self, deadline=DEADLINE):
        """The exit status, negative if a signal ended it."""
        return self.process.wait(deadline)


class CommandTest(unittest.TestCase):
    """A server, a directory, and the command; all processes are gone afterwards."""

    server_options = ()
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.server_options)

    @classmethod
    def tearDownClass(cls):
        cls.server.resume()
        try:
            left = cls.server.keys_without_expiry()
        finally:
            cls.server.stop()
        assert not left, f"C8: keys without an expiry: {left}"

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="hf-")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
        self.environment["HOLDFAST_URI"] = self.server.uri
        self.environment["LC_ALL"] = "C.UTF-8"
        self.lock = f"{self.id().rpartition('.')[2]}"
        self.started = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for running in self.started:
            if running.process.poll() is None:
                running.signal(signal.SIGCONT)
                running.signal(signal.SIGTERM)
                try:
                    running.wait(10)
                except subprocess.TimeoutExpired:
                    running.process.kill()
                    running.wait()

    def path(self, name):
        return os.path.join(self.directory, name)

    def start(self, *arguments, stdin=subprocess.DEVNULL, prefix=(), as_job=False, **environment):
        """`as_job`: in a group of its own, as a shell with job control starts it."""
        running = Running(arguments, {**self.environment, **environment}, self.directory, stdin, prefix,
                          as_job)
        self.started.append(running)
        return running

    def finish(self, *arguments, **options):
        running = self.start(*arguments, **options)
        running.status = running.wait()
        return running

    def into_full_disk(self, *arguments, **environment):
        """The exit status, and what was said on stderr."""
        with open("/dev/full", "wb") as full:
            done = subprocess.run([COMMAND, *arguments], env={**self.environment, **environment}, stdout=full,
                                  stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=60, check=False)
        return done.returncode, done.stderr.decode()

    def start_child(self, *options, code, lock=None, as_job=False, **environment):
        """A run whose command is a Python program that has `ready` to call; returns when it did."""
        program = self.path(f"child{len(self.started)}.py")
        mark = program + ".ready"
        with open(program, "w", encoding="utf-8") as file:
            file.write(f"import os, signal, sys, time\ndef ready():\n  open({mark!r} + '~', 'w').write(str(os.getpid()))\n"
                       f"  os.rename({mark!r} + '~', {mark!r})\n{code}")
        running = self.start("run", *options, lock or self.lock, "--", sys.executable, "-S", "-E", program,
                             as_job=as_job, **environment)
        until(lambda: os.path.exists(mark) or running.process.poll() is not None, "the command is ready")
        self.assertTrue(os.path.exists(mark), running.err)
        running.child = int(content(mark))
        return running

    def hold(self, *options, lock=None):
        """Somebody else who holds the lock, until the returned process is ended."""
        holder = self.start("hold", *options, lock or self.lock, stdin=subprocess.PIPE)
        self.addCleanup(holder.process.stdin.close)
        until(lambda: holder.out.endswith("\n") or holder.process.poll() is not None, "the lock is held")
        self.assertIsNone(holder.process.poll(), holder.err)
        holder.token = int(holder.out)
        return holder

    def wait_for_a_waiter(self, count=1):
        """Returns when so many stand in line for the lock."""
        until(lambda: self.server.ask("ZCARD", "hf:{%s}:line" % self.lock) >= count, f"{count} wait")

    def show(self, lock=None):
        shown = self.finish("show", "--json", lock or self.lock)
        self.assertEqual(shown.status, 0, shown.err)
        return json.loads(shown.out)

    def is_free(self, lock=None):
        return self.finish("check", "-q", lock or self.lock).status == 0
