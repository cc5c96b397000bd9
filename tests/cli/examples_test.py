# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/, where they meet trouble: they are copied, and so is what they do then."""

import os
import re
import resource
import shutil
import signal
import subprocess
import unittest

from fixture import IS_SANITIZED, CommandTest, content, state_of, until

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
EXAMPLES = os.environ.get("HOLDFAST_EXAMPLES", os.path.join(os.path.dirname(__file__), "../../build/examples"))


def stopped_in_a_job(test, semaphore, *command):
    """An example that is stopped while it has something of `semaphore`."""
    running = subprocess.Popen([os.path.join(EXAMPLES, command[0]), *command[1:]], env=test.environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    test.addCleanup(running.wait)
    test.addCleanup(running.kill)

    def has_it():
        running.send_signal(signal.SIGSTOP)
        until(lambda: state_of(running.pid) == "T", "it is stopped")
        test.server.ask("PING")  # Behind it the server has read what was sent before.
        if test.server.ask("ZRANGE", f"hf:{{{semaphore}}}", 0, 0):
            return True
        running.send_signal(signal.SIGCONT)
        return False
    until(has_it, "it is stopped in a job")
    return running


class First(CommandTest):
    def run_it(self, directory):
        environment = {**self.environment, "HOLDFAST_LOCAL_DIR": directory}
        return subprocess.run([os.path.join(EXAMPLES, "first")], env=environment, text=True, capture_output=True,
                              timeout=30, check=False)

    # Its server is `local:`.
    def test_without_its_server_says_so_and_does_not_abort(self):
        bad = self.run_it(self.path("no/where"))
        self.assertEqual((bad.returncode, bad.stdout), (69, ""))
        self.assertIn("cannot be made", bad.stderr)


class Cache(CommandTest):
    def run_it(self, file):
        return subprocess.run([os.path.join(EXAMPLES, "cache"), file, "60"], env=self.environment, text=True,
                              capture_output=True, timeout=30, check=False)

    def test_rebuilds_what_is_stale_and_prints_it(self):
        first = self.run_it(self.path("page"))
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertRegex(first.stdout, r"^rebuilt\nbuilt under token \d{16}\n$")
        self.assertEqual(os.listdir(self.directory), ["page"])
        self.assertRegex(self.run_it(self.path("page")).stdout, r"^built under token ")

    def test_of_a_file_that_cannot_be_written_says_so_and_gives_the_lock_back(self):
        bad = self.run_it(self.path("missing/page"))
        self.assertEqual(bad.returncode, 1, bad.stderr)
        self.assertIn("cannot write", bad.stderr)
        self.assertIn("No such file or directory", bad.stderr)
        self.assertTrue(self.is_free("cache:page"))

    def test_of_a_file_that_cannot_be_replaced_leaves_no_draft(self):
        os.makedirs(self.path("page/full"))
        os.utime(self.path("page"), (1, 1))
        bad = self.run_it(self.path("page"))
        self.assertEqual(bad.returncode, 1, bad.stderr)
        self.assertIn("cannot read", bad.stderr)
        self.assertEqual(os.listdir(self.directory), ["page"])
        self.assertTrue(self.is_free("cache:page"))


class Nightly(CommandTest):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("reports"))
        self.report = self.path("reports/2026-11-27")

    def begin(self, steps="3"):
        running = subprocess.Popen([os.path.join(EXAMPLES, "nightly"), self.report, steps], env=self.environment,
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        return running

    def end(self, running):
        """What it has said, and how it ended."""
        out, err = running.communicate(timeout=30)
        return out, err, running.returncode

    def until_it_works(self):
        until(lambda: os.listdir(self.path("reports")), "the job has begun")

    def test_of_which_the_starts_follow_each_other_is_done_once(self):
        ended = [self.end(self.begin(steps)) for steps in ("3", "6000", "6000")]  # A minute, if they did it again.
        self.assertRegex(ended[0][0], r"^published under token \d{16}\n$")
        self.assertEqual(ended[1:], [("done already\n", "", 0)] * 2, ended)
        self.assertEqual(os.listdir(self.path("reports")), ["2026-11-27"])

    def test_that_waited_for_another_finds_it_done(self):
        first = self.begin("100")
        self.until_it_works()
        second = self.begin()
        until(lambda: self.server.ask("ZCARD", "hf:{nightly:2026-11-27}:line"), "the second one waits")
        self.assertRegex(self.end(first)[0], "^published")
        self.assertEqual(self.end(second), ("done already\n", "", 0))

    def test_that_comes_late_does_not_publish_over_another(self):
        late = self.begin("100")
        self.until_it_works()
        with open(self.report, "w", encoding="utf-8") as file:
            file.write("another's")
        self.assertEqual(self.end(late), ("done already\n", "", 0))
        self.assertEqual(content(self.report), "another's")
        self.assertEqual(os.listdir(self.path("reports")), ["2026-11-27"])

    # It learns of that with its next renewal, 10 s after the last one.
    def test_of_which_the_lease_is_lost_says_so_and_publishes_nothing(self):
        broken = self.begin("6000")
        self.until_it_works()
        token = self.show("nightly:2026-11-27")["token"]
        self.assertEqual(self.finish("break", "--now", "--token", str(token), "nightly:2026-11-27").status, 0)
        out, err, status = self.end(broken)
        self.assertEqual((out, status), ("", 1))
        self.assertRegex(err, "nightly: stopped: .*broke")
        self.assertEqual(os.listdir(self.path("reports")), [])


class WorkerPool(CommandTest):
    def setUp(self):
        super().setUp()
        for key in self.server.ask("KEYS", "hf:{example:uploads}*"):
            self.server.ask("DEL", key)  # Its size is another one in each test.

    def run_it(self, *words, **environment):
        return subprocess.run([os.path.join(EXAMPLES, "worker_pool"), *words], env={**self.environment, **environment},
                              text=True, capture_output=True, timeout=60, check=False)

    def stopped_in_a_job(self):
        """A pool of one, which is stopped while it has its permit."""
        return stopped_in_a_job(self, "example:uploads", "worker_pool", "1", "1", "1000000")

    def end(self, pool):
        pool.send_signal(signal.SIGCONT)
        out, err = pool.communicate(timeout=30)
        self.assertEqual(pool.returncode, 1, err)
        return out, err

    def test_does_each_job_once(self):
        good = self.run_it("3", "8", "40")
        self.assertEqual((good.returncode, good.stderr), (0, ""))
        self.assertEqual(sorted(re.findall(r"^job (\d+) ", good.stdout, re.M), key=int), [str(n) for n in range(40)])

    # Others may have had the permit meanwhile: the job is not finished as if nothing had been.
    def test_that_was_stopped_for_longer_than_the_ttl_does_not_finish_its_job(self):
        pool = self.stopped_in_a_job()
        until(lambda: self.is_free("example:uploads"), "the server has let its permit go")
        out, err = self.end(pool)
        # Of one that was stopped before it had read the answer, that this may have taken effect.
        job = re.fullmatch(r"worker_pool: job (\d+): .*\n", err)
        self.assertTrue(job, err)
        self.assertNotIn(f"job {job[1]} ", out)

    def test_that_cannot_give_its_permits_back_says_so(self):
        pool = self.stopped_in_a_job()
        self.server.ask("DEL", "hf:{example:uploads}")
        _, err = self.end(pool)
        self.assertRegex(err, r"^worker_pool: job \d+: the permits were lost at its end\n$")

    @unittest.skipIf(IS_SANITIZED, "a sanitizer has memory of its own")
    def test_that_gets_too_few_threads_says_so_and_does_not_abort(self):
        """Each thread's stack takes a part of the address space; the jobs would take for ever."""
        def scarce():
            resource.setrlimit(resource.RLIMIT_STACK, (2**28, 2**28))
            resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
        bad = subprocess.run([os.path.join(EXAMPLES, "worker_pool"), "3", "64", "1000000000"], env=self.environment,
                             text=True, capture_output=True, timeout=60, preexec_fn=scarce, check=False)
        self.assertEqual(bad.returncode, 1, bad.stderr)
        self.assertRegex(bad.stderr, r"(?m)^worker_pool: Resource temporarily unavailable$")

    def test_prints_what_the_server_said(self):
        bad = self.run_it("3", "1", "1", HOLDFAST_URI=self.server.uri.replace("://", "://nobody:wrong@"))
        self.assertEqual(bad.returncode, 1, bad.stdout)
        self.assertRegex(bad.stderr, "^worker_pool: job 0: .*WRONGPASS")


class Fencing(CommandTest):
    def test_refuses_the_late_write_alone(self):
        ran = subprocess.run([os.path.join(EXAMPLES, "fencing")], env=self.environment, text=True, capture_output=True,
                             timeout=30, check=False)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertRegex(ran.stdout, r"(?s)^first owner .* refused: .*second owner .* accepted\nbalance +100 - 30\n$")

    # The copy of somebody who leaves out what docs/fencing.md says of step 1: "If it is larger already, stop".
    def test_result_of_raise_and_of_write_cannot_be_dropped(self):
        source = content(os.path.join(ROOT, "examples/fencing.cpp"))
        compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
        for used, dropped in ((r"if \(!(account\.raise\(first\.token\(\)\))\).*", r"\1;"),
                              (r"const bool \w+ = (account\.write\(second.*)", r"const bool second_wrote = true; \1")):
            changed, count = re.subn(used, dropped, source)
            self.assertEqual(count, 1, used)
            compiled = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-I", os.path.join(ROOT, "include"),
                                       "-x", "c++", "-"], input=changed, text=True, capture_output=True, check=False)
            self.assertEqual(compiled.returncode, 0, compiled.stderr)
            self.assertIn("nodiscard", compiled.stderr)


class Async(CommandTest):
    def run_it(self, environment):
        ran = subprocess.run([os.path.join(EXAMPLES, "async"), "one", "two"], env=environment, text=True,
                             capture_output=True, timeout=30, check=False)
        if "has no coroutines" in ran.stderr:
            self.skipTest(ran.stderr.strip())
        return ran

    def test_bills_each(self):
        good = self.run_it(self.environment)
        self.assertEqual(good.returncode, 0, good.stderr)
        self.assertIn("one: billed\n", good.stdout)
        self.assertIn("two: billed\n", good.stdout)

    # A third one may bill beside it, or has.
    def test_that_lost_its_place_has_not_billed(self):
        self.run_it(self.environment)
        tenants = [f"t{n}" for n in range(500)]
        running = stopped_in_a_job(self, "billing", "async", *tenants)
        self.server.ask("DEL", "hf:{billing}")
        running.send_signal(signal.SIGCONT)
        out, err = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 1, err)
        failed = re.findall(r"^(t\d+): ", err, re.M)
        self.assertTrue(failed, err)
        self.assertEqual(sorted(re.findall(r"^(t\d+): billed$", out, re.M) + failed), sorted(tenants))

    def test_that_could_not_bill_says_so_and_fails(self):
        bad = self.run_it({**self.environment, "HOLDFAST_URI": "redis+unix://" + self.path("none")})
        self.assertEqual(bad.returncode, 1, bad.stderr)
        self.assertIn("one: ", bad.stderr)


if __name__ == "__main__":
    unittest.main()
