# SPDX-License-Identifier: Apache-2.0
"""A stderr or a stdout that nobody reads. What the command has to say keeps neither the lock nor itself."""

import os
import signal
import subprocess
import unittest

from fixture import COMMAND, CommandTest, FullPipe, content, now, signals_of, until


def waits_for_its_reader(pid):
    until(lambda: "pipe_write" in content(f"/proc/{pid}/wchan"), "it waits for its reader", deadline=10)


class FullStderr(CommandTest):
    def start_unread(self, *arguments):
        self.pipe = FullPipe()
        process = subprocess.Popen([COMMAND, *arguments], env=self.environment, stderr=self.pipe.write,
                                   stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def start_with_leftovers(self):
        """Returns when the lock is free."""
        up = self.path("up")
        process = self.start_unread("run", self.lock, "--", "sh", "-c", f"touch {up}; sleep 5 2>&- & exit 3")
        until(lambda: os.path.exists(up), "the command is up")
        until(self.is_free, "the lock is free", deadline=10)
        return process

    def test_leftovers_are_warned_of_when_the_lock_is_given_back(self):
        process = self.start_with_leftovers()
        self.assertIsNone(process.poll())
        self.assertIn("of its group 1 still runs", self.pipe.drain())
        self.assertEqual(process.wait(10), 3)

    def test_term_is_heard_while_leftovers_are_warned_of(self):
        process = self.start_with_leftovers()
        until(lambda: not signals_of(process.pid, "SigBlk") & 1 << signal.SIGTERM - 1, "it hears TERM")
        process.terminate()
        self.assertEqual(process.wait(10), -signal.SIGTERM)

    def test_term_is_heard_while_the_notice_of_the_wait_is_unread(self):
        self.hold()
        process = self.start_unread("run", self.lock, "--", "true")
        self.wait_for_a_waiter()
        self.wait_for_the_notice()
        process.terminate()
        self.assertEqual(process.wait(10), 143)

    def test_the_command_starts_though_the_notice_of_the_wait_is_unread(self):
        holder = self.hold()
        process = self.start_unread("run", self.lock, "--", "true")
        self.wait_for_a_waiter()
        self.wait_for_the_notice()
        holder.process.stdin.close()
        self.assertEqual(process.wait(10), 0)

    # In a crontab or a unit, its input is empty.
    def test_hold_gives_the_lock_back_before_it_warns_that_it_had_no_input(self):
        process = self.start_unread("hold", "--ttl", "30s", self.lock)
        waits_for_its_reader(process.pid)
        self.assertTrue(self.is_free())
        self.assertIsNone(process.poll())
        self.assertIn("the input was at its end", self.pipe.drain())
        self.assertEqual(process.wait(10), 0)

    def test_term_ends_a_hold_that_warns_that_it_had_no_input(self):
        process = self.start_unread("hold", "--ttl", "30s", self.lock)
        waits_for_its_reader(process.pid)
        process.terminate()
        self.assertEqual(process.wait(10), -signal.SIGTERM)

    # None of these has the lock, or ever had.
    def test_term_ends_whoever_tells_why_it_did_not_begin(self):
        for words in (("run", "-u", "local:/proc/nope", self.lock, "--", "true"),
                      ("run", "-u", "redis://h:99999", self.lock, "--", "true"),
                      ("run", "--why", "x" * 300, self.lock, "--", "true"),
                      ("hold", "-u", "redis://h:99999", self.lock),
                      ("quorum", "replace", "-u", "redis+quorum://h:bad", "--with", "redis+quorum://h:1"),
                      ("lab", "single", "--directory", "/proc/nope")):
            with self.subTest(words):
                process = self.start_unread(*words)
                waits_for_its_reader(process.pid)
                process.terminate()
                self.assertEqual(process.wait(10), -signal.SIGTERM)

    # The outer one passes TERM on, and keeps the lock until the inner one has ended.
    def test_term_ends_a_run_under_the_same_lock_that_tells_why_it_did_not_begin(self):
        process = self.start_unread("run", self.lock, "--", COMMAND, "run", self.lock, "--", "true")
        children = f"/proc/{process.pid}/task/{process.pid}/children"
        waits_for_its_reader(until(lambda: content(children).split(), "the inner one is there")[0])
        process.terminate()
        self.assertEqual(process.wait(10), 143)
        self.assertTrue(self.is_free())

    def wait_for_the_notice(self):
        """It is due after 400 ms and a look at the server of 300 ms at most; nobody sees it."""
        began_at = now()
        until(lambda: now() > began_at + 1, "the time of the notice is over")


# Of `hold`: what it prints is its token, and whoever it is for may never read it.
class FullStdout(CommandTest):
    def hold_unread(self, *options):
        """Returns when it has the lock."""
        self.pipe = FullPipe()
        process = subprocess.Popen([COMMAND, "hold", *options, self.lock], env=self.environment,
                                   stdin=subprocess.PIPE, stdout=self.pipe.write, stderr=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdin.close)
        until(lambda: not self.is_free(), "the lock is held")
        return process

    def test_each_that_asks_to_end_ends_it(self):
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
            with self.subTest(number):
                process = self.hold_unread()
                process.send_signal(number)
                self.assertEqual(process.wait(10), 128 + number)
                self.assertTrue(self.is_free())

    def test_the_end_of_its_input_ends_it(self):
        process = self.hold_unread()
        process.stdin.close()
        self.assertEqual(process.wait(10), 0)
        self.assertTrue(self.is_free())

    def test_the_loss_ends_it(self):
        process = self.hold_unread("--ttl", "1s")
        self.server.ask("DEL", "hf:{%s}" % self.lock)
        self.assertEqual(process.wait(10), 79)

    def test_max_hold_ends_it(self):
        process = self.hold_unread("--ttl", "3s", "--max-hold", "8s")
        self.assertEqual(process.wait(30), 79)
        self.assertIn(b"nearly over (--max-hold)", process.stderr.read())

    def test_the_token_is_there_as_soon_as_somebody_reads(self):
        process = self.hold_unread()
        os.set_blocking(self.pipe.read, False)
        said = b""
        def token():
            nonlocal said
            try:
                said += os.read(self.pipe.read, 65536)
            except BlockingIOError:
                pass
            return said.lstrip(b"x").endswith(b"\n")
        until(token, "the token is printed")
        self.assertEqual(int(said.lstrip(b"x")), self.show()["token"])
        self.assertIsNone(process.poll())


if __name__ == "__main__":
    unittest.main()
