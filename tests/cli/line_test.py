#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the command says of those who stand in line, and of itself among them."""

import os
import signal
import struct
import time
import unittest

from fixture import IS_SANITIZED, CommandTest, until


class Line(CommandTest):
    def key(self, part=""):
        return "hf:{%s}%s" % (self.lock, part)

    def let_many_wait(self, count):
        """So many more in line, of a process that looks at it now and never again."""
        seconds, micros = self.server.ask("TIME")
        now = f"{seconds}{int(micros):06}"
        script = ("for i = 1, tonumber(ARGV[1]) do local id = string.format('%032x', i) redis.call('ZADD', KEYS[1], i, id) "
                  "redis.call('HSET', KEYS[2], id, 'v1|hf:wake:other|-' .. ARGV[2] .. '|10000|1000|0|0|' .. ARGV[2] .. "
                  "'|x|other') end "
                  "redis.call('HSET', KEYS[2], 'hf:wake:other', ARGV[2]) "
                  "redis.call('EXPIRE', KEYS[1], 60) redis.call('EXPIRE', KEYS[2], 60)")
        self.server.ask("EVAL", script, "2", self.key(":line"), self.key(":waiters"), count, now)


class Free(Line):
    def test_is_not_what_somebody_in_line_will_take(self):
        holder = self.hold("--owner", "ann")
        waiter = self.start("run", "--owner", "bob", self.lock, "--", "true")
        self.wait_for_a_waiter()
        waiter.signal(signal.SIGSTOP)
        self.server.ask("DEL", self.key())
        check = self.finish("check", self.lock)
        self.assertEqual(check.status, 75)
        self.assertEqual(check.out, f"'{self.lock}' is free, and it is somebody else's turn, 1 waiting\n")
        scripts = self.server.scripts_run()
        wait = self.finish("wait", "-w", "1s", self.lock)
        self.assertEqual(wait.status, 75)
        self.assertIn("somebody else's turn", wait.err)
        self.assertLess(self.server.scripts_run() - scripts, 20, "it looks twice a second")
        waiter.signal(signal.SIGCONT)
        self.assertEqual(waiter.wait(), 0)
        self.assertEqual(self.finish("wait", "-w", "10s", self.lock).status, 0)
        holder.signal(signal.SIGTERM)
        holder.wait()


class FreeOfTheDead(Line):
    def test_whoever_was_killed_in_line_is_waited_for_by_nobody_P1(self):
        holder = self.hold("--owner", "ann")
        waiter = self.start("run", "--owner", "bob", self.lock, "--", "true")
        self.wait_for_a_waiter()
        waiter.signal(signal.SIGKILL)
        waiter.wait()
        until(lambda: self.server.ask("PUBSUB", "CHANNELS", "hf:wake:*") == [], "its connection is gone")
        holder.signal(signal.SIGTERM)
        holder.wait()
        self.assertEqual(self.finish("check", self.lock).status, 0)
        self.assertEqual(self.finish("wait", "-w", "5s", self.lock).status, 0)


@unittest.skipIf(IS_SANITIZED, "a sanitizer's run-time must be the first library of a process")
class Suspended(Line):
    """The machine sleeps for longer than a wait: its end is seen soon behind that (H2)."""

    def give_up(self, *words, waits):
        clocks = self.path("clocks")  # As tests/support/skewed_clock.hpp.
        with open(clocks, "wb") as file:
            file.write(struct.pack("qq", 0, 0))
        self.hold("--owner", "ann")
        waiter = self.start(*words, LD_PRELOAD=os.environ["HOLDFAST_SKEW_LIBRARY"], SKEW_FILE=clocks)
        waits()
        with open(clocks, "r+b") as file:
            file.write(struct.pack("qq", 0, 90_000_000))
        began = time.monotonic()
        self.assertEqual(waiter.wait(), 75)
        self.assertLess(time.monotonic() - began, 15)

    def looks_again(self):
        before = self.server.scripts_run()
        until(lambda: self.server.scripts_run() > before + 5, "it looks twice a second")

    def test_wait_ends(self):
        self.give_up("wait", "-w", "60s", self.lock, waits=self.looks_again)

    def test_run_ends(self):
        self.give_up("run", "-w", "60s", self.lock, "--", "true", waits=self.wait_for_a_waiter)


class Demoted(Line):
    def test_is_no_lock_that_somebody_holds(self):
        """Its wait is shorter than until its next look, and it looks who holds it when that is over."""
        self.hold()
        quiet = ((), ("-q",), ("--quiet-busy",))
        waiters = [self.start("run", *options, "-w", "2s", self.lock, "--", "true") for options in quiet]
        self.wait_for_a_waiter(len(waiters))
        self.addCleanup(self.server.declare_nothing_forgotten)
        self.addCleanup(self.server.ask, "REPLICAOF", "NO", "ONE")
        self.server.ask("REPLICAOF", "127.0.0.1", "1")
        for waiter in waiters:
            self.assertEqual(waiter.wait(), 78)
            self.assertIn("error[E06]", waiter.err)


class Ahead(Line):
    def test_is_said_though_the_holder_has_our_label(self):
        self.hold("--owner", "backup")
        waiter = self.start("run", "-w", "30s", "--owner", "backup", self.lock, "--", "true")
        until(lambda: waiter.err, "it says for whom it waits")
        self.assertRegex(waiter.err, rf"^holdfast: waiting: '{self.lock}' is held by backup for \S+; nobody ahead of us")

    def test_counts_those_who_have_our_label_and_came_before(self):
        self.hold("--owner", "backup")
        self.start("run", "--owner", "backup", self.lock, "--", "true")
        self.wait_for_a_waiter()
        last = self.start("run", "--owner", "backup", self.lock, "--", "true")
        until(lambda: last.err, "it says for whom it waits")
        self.assertIn("; 1 ahead of us in line", last.err)

    def test_is_at_least_a_hundred_for_whoever_stands_behind_them(self):
        self.hold("--owner", "ann")
        self.let_many_wait(150)
        waiter = self.start("run", "--owner", "bob", self.lock, "--", "true")
        until(lambda: waiter.err, "it says for whom it waits")
        self.assertIn("; at least 100 ahead of us in line", waiter.err)
        shown = self.show()
        self.assertEqual((shown["waiting"], len(shown["waiters"])), (151, 100))
        text = self.finish("show", self.lock).out
        self.assertRegex(text, r"\nwaiting +and 51 more: the first 100 are listed\n$")
        self.assertIn(", 151 waiting", self.finish("run", "-n", self.lock, "true").err)


if __name__ == "__main__":
    unittest.main()
