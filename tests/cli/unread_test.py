# SPDX-License-Identifier: Apache-2.0
"""A stderr that nobody reads. What the command has to say keeps neither the lock nor itself."""

import os
import signal
import subprocess
import unittest

from fixture import COMMAND, CommandTest, FullPipe, now, signals_of, until


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

    def wait_for_the_notice(self):
        """It is due after 400 ms and a look at the server of 300 ms at most; nobody sees it."""
        began_at = now()
        until(lambda: now() > began_at + 1, "the time of the notice is over")


if __name__ == "__main__":
    unittest.main()
