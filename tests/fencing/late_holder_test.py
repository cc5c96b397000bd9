# SPDX-License-Identifier: Apache-2.0
"""A holder that is stopped beyond its ttl, with the built command, a real redis-server and each guard (C3, R1, H1);
and the resource that has seen a larger token than Redis remembers (H64)."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from guards import ColumnGuard, FileGuard, PostgresGuard, RedisGuard, Stale
from fixture import CommandTest, state_of, until
from postgres_server import PostgresServer

HERE = os.path.dirname(os.path.abspath(__file__))
MIN_FENCE = os.environ.get("HOLDFAST_MIN_FENCE", os.path.join(HERE, "../../build/examples/min_fence"))

# A holder's work by a guard's own commands: raise, read, wait for a file, write. What the write said goes into a file.
WORK = """
import json, subprocess
commands, value, go = json.loads({what!r})
def step(verb, **more):
  return subprocess.run(["sh", "-c", commands[verb]], env={{**os.environ, **more}}, stdin=subprocess.DEVNULL,
                        capture_output=True, text=True)
done = step("raise")
assert done.returncode == 0, done
step("read")
ready()
while go and not os.path.exists(go): time.sleep(0.003)
done = step("write", VALUE=value)
with open(sys.argv[0] + ".said~", "w") as file:
  json.dump([os.environ["HOLDFAST_TOKEN"], done.returncode, done.stdout, done.stderr], file)
os.rename(sys.argv[0] + ".said~", sys.argv[0] + ".said")
"""


class LateHolder:
    """Each subclass makes `self.guard`."""

    written_by_the_second = 70

    def work(self, value, go="", ttl="20s"):
        self.environment.update(self.guard.environment)
        code = WORK.format(what=json.dumps([self.guard.commands, str(value), go]))
        # With warn, because the watchdog would end it: of a machine that stands still it stands still, too.
        return self.start_child("--ttl", ttl, "--on-lost", "warn", code=code)

    def work_until_stopped(self, value, go):
        """With a short ttl, since it has to be over; but on a starved machine it is over before the work has begun."""
        for ttl in ("2s", "6s"):
            try:
                return self.work(value, go, ttl)
            except self.failureException as e:
                if "error[E12]" not in str(e):
                    raise
        return self.work(value, go)

    def said(self, running):
        path = running.process.args[-1] + ".said"
        until(lambda: os.path.exists(path), "the holder has written")
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def stop(self, running):
        """The command first: it would kill its child when its lock is lost, and here the child is to write."""
        for pid in (running.pid, running.child):
            os.kill(pid, signal.SIGSTOP)
            until(lambda pid=pid: state_of(pid) == "T", "it is stopped")

    def test_a_holder_that_was_stopped_beyond_its_ttl_is_refused_R1(self):
        go = self.path("go")
        first = self.work_until_stopped(20, go)
        self.stop(first)
        self.addCleanup(lambda: first.process.poll() is None and os.kill(first.child, signal.SIGKILL))
        second = self.work(self.written_by_the_second)
        self.assertEqual(second.wait(), 0, second.err)
        newer, status, *words = self.said(second)
        self.assertEqual(status, 0, words)
        with open(go, "w", encoding="ascii"):
            pass
        os.kill(first.child, signal.SIGCONT)
        older, status, out, err = self.said(first)
        self.assertLess(int(older), int(newer))
        with self.assertRaises(Stale) as refused:
            self.guard.judge(status, out, err)
        self.assertEqual(refused.exception.current, int(newer))
        self.assertEqual(self.guard.read(), self.written_by_the_second)
        first.signal(signal.SIGCONT)
        first.wait()

    def test_a_token_that_went_back_is_healed_by_min_fence_H64(self):
        """The resource has seen a token an hour ahead; Redis lost its data since, and its clock went back."""
        token = self.token_of_a_run()
        seen = token + 3_600_000_000
        self.guard.raise_to(seen)
        with self.assertRaises(Stale) as refused:
            self.guard.raise_to(self.token_of_a_run())
        self.assertEqual(refused.exception.current, seen)
        healed = self.run_min_fence(refused.exception.current)
        self.assertGreater(healed, seen)
        self.guard.raise_to(healed)
        last = self.token_of_a_run()
        self.assertGreater(last, healed, "from now on every grant is above it")
        self.guard.write(last, 70)
        self.assertEqual(self.guard.read(), 70)

    def token_of_a_run(self):
        ran = self.finish("run", self.lock, "--", "printenv", "HOLDFAST_TOKEN")
        self.assertEqual(ran.status, 0, ran.err)
        return int(ran.out)

    def run_min_fence(self, current):
        done = subprocess.run([MIN_FENCE, self.lock, str(current)], env=self.environment, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(done.stdout)


class RedisLateHolderTest(LateHolder, CommandTest):
    """The data are in the same Redis as the lock."""

    def setUp(self):
        super().setUp()
        self.guard = RedisGuard(self.server)
        self.addCleanup(self.guard.forget)


class FileStoreLateHolderTest(LateHolder, CommandTest):
    def setUp(self):
        super().setUp()
        directory = tempfile.mkdtemp(prefix="hf-")
        self.addCleanup(shutil.rmtree, directory)
        self.guard = FileGuard(directory)


class SqlLateHolder(LateHolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.postgres = PostgresServer()
        cls.addClassCleanup(cls.postgres.stop)


class ColumnLateHolderTest(SqlLateHolder, CommandTest):
    def setUp(self):
        super().setUp()
        self.guard = ColumnGuard(self.postgres)


class PostgresLateHolderTest(SqlLateHolder, CommandTest):
    def setUp(self):
        super().setUp()
        self.guard = PostgresGuard(self.postgres)

    def work(self, value, go="", ttl="20s"):
        return super().work(value + 30, go, ttl)  # The example's write takes 30 away.


if __name__ == "__main__":
    unittest.main()
