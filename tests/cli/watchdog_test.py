# SPDX-License-Identifier: Apache-2.0
"""H54: holdfast itself is killed or stopped, and its watchdog ends the command's whole group before the lease ends."""

import os
import re
import signal
import struct
import subprocess
import unittest

from fixture import COMMAND, CommandTest, content, is_alive, now, state_of, until

# A command and its child, which write the time as often as they can; the word is what they do at TERM.
FAMILY = """
import mmap, struct
signal.signal(signal.SIGTERM, signal.{})
file = open(sys.argv[0] + ".alive", "w+b"); file.truncate(16)
alive = mmap.mmap(file.fileno(), 16)
who = 0 if os.fork() else 8
def tick(): alive[who:who + 8] = struct.pack("d", time.clock_gettime(time.CLOCK_BOOTTIME))
tick()
if who == 0:
  while not any(alive[8:]): time.sleep(0.001)
  ready()
while True:
  tick()
  time.sleep(0.001)
"""
STUBBORN, POLITE = FAMILY.format("SIG_IGN"), FAMILY.format("SIG_DFL")


def last_alive(running):
    """When any of them was."""
    with open(running.process.args[-1] + ".alive", "rb") as file:
        return max(struct.unpack("dd", file.read(16)))


def children_of(pid):
    return [int(child) for child in content(f"/proc/{pid}/task/{pid}/children").split()]


def name_of(pid):
    try:
        return content(f"/proc/{pid}/comm").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def watchdog_of(running):
    """Waits for it."""
    return until(lambda: next((c for c in children_of(running.pid) if name_of(c) == "holdfast watch"), None),
                 "there is a watchdog")


def members_of(group):
    """Who lives of it."""
    def is_of(pid):
        try:
            state, _, its = content(f"/proc/{pid}/stat").rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            return False
        return its == str(group) and state not in "ZX"
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and is_of(pid)]


class Watched(CommandTest):
    def expires_at(self):
        """The latest instant, by the server's own words, if nobody renews any more."""
        left = self.server.ask("PTTL", "hf:{%s}" % self.lock)
        self.assertGreater(left, 0)
        return now() + left / 1000

    def watched(self, *options, code):
        running = self.start_child(*options, code=code)
        running.watchdog = watchdog_of(running)
        return running

    def all_are_gone(self, running):
        until(lambda: not members_of(running.child), "the command's group is gone", deadline=40)


class Killed(Watched):
    def kill(self, running):
        running.signal(signal.SIGKILL)
        running.wait()
        return self.expires_at()

    def test_all_of_the_group_have_their_term_at_once(self):
        running = self.watched("--ttl", "20s", code=POLITE)
        self.kill(running)
        self.all_are_gone(running)
        self.assertFalse(self.is_free(), "the lease still stands")
        until(lambda: not is_alive(running.watchdog), "the watchdog has nothing left to do")

    def test_who_ignores_it_is_dead_before_the_lease_ends(self):
        running = self.watched("--ttl", "10s", code=STUBBORN)
        expires_at = self.kill(running)
        self.all_are_gone(running)
        self.assertLess(last_alive(running), expires_at)
        until(lambda: not is_alive(running.watchdog), "the watchdog has nothing left to do")

    # A pipe's other end waits for all who could write.
    def test_the_reader_of_the_commands_output_sees_its_end_while_the_watchdog_still_waits(self):
        script = "echo up; (trap '' TERM; exec sleep 60) >/dev/null 2>&1 & exec sleep 60"
        running = subprocess.Popen([COMMAND, "run", "--ttl", "20s", self.lock, "--", "sh", "-c", script],
                                   env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(running.stdout.close)
        self.assertEqual(running.stdout.readline(), b"up\n")
        watchdog = watchdog_of(running)
        command = children_of(running.pid)[0]
        until(lambda: sorted(map(name_of, members_of(command))) == ["sleep", "sleep"], "both are asleep")
        running.kill()
        running.wait()
        self.assertEqual(running.stdout.read(), b"")
        self.assertTrue(is_alive(watchdog))
        os.killpg(command, signal.SIGKILL)
        until(lambda: not is_alive(watchdog), "the watchdog has nothing left to do")

    # The outer one's KILL reaches holdfast alone, and its lease is over.
    def test_under_another_lock_all_are_killed_at_once(self):
        for options in ([], ["--on-lost", "warn"]):
            with self.subTest(options):
                running = self.start_child("--ttl", "20s", *options, code=STUBBORN, HOLDFAST_HOLDS="outer,7",
                                           lock=self.lock + "".join(options))
                watchdog_of(running)
                killed_at = now()
                running.signal(signal.SIGKILL)
                running.wait()
                self.all_are_gone(running)
                self.assertLess(last_alive(running), killed_at + 1)

    def test_a_watchdog_that_was_killed_alone_has_a_successor(self):
        running = self.watched("--ttl", "20s", code=STUBBORN)
        os.kill(running.watchdog, signal.SIGKILL)
        until(lambda: watchdog_of(running) != running.watchdog, "there is another one")
        expires_at = self.kill(running)
        self.all_are_gone(running)
        self.assertLess(last_alive(running), expires_at)


class Stopped(Watched):
    def test_the_command_is_gone_before_the_lease_and_it_is_told_afterwards(self):
        running = self.watched("--ttl", "20s", code=STUBBORN)
        running.signal(signal.SIGSTOP)
        until(lambda: state_of(running.pid) == "T", "holdfast stands")
        expires_at = self.expires_at()
        self.all_are_gone(running)
        self.assertLess(last_alive(running), expires_at)
        running.signal(signal.SIGCONT)
        self.assertEqual(running.wait(), 79)
        self.assertRegex(running.err, rf"^holdfast: error\[E12\]: lost '{self.lock}' \(token \d+\): holdfast itself stood "
                                      rf"still for too long of a 20s lease; its watchdog has ended pid {running.child}\n"
                                      r"  why: this process was stopped \(SIGSTOP, a debugger\), or got no time to run\n")
        self.assertEqual(running.err.count("E12]"), 1)

    def test_a_command_that_ended_by_itself_meanwhile_has_its_own_status(self):
        running = self.watched("--ttl", "6s", code="ready()\n"
                               "while not os.path.exists(sys.argv[0] + '.go'): time.sleep(0.01)\nsys.exit(7)")
        running.signal(signal.SIGSTOP)
        open(running.process.args[-1] + ".go", "w", encoding="utf-8").close()
        until(lambda: self.server.ask("PTTL", "hf:{%s}" % self.lock) == -2, "the lock has expired")
        running.signal(signal.SIGCONT)
        self.assertEqual(running.wait(), 7)
        self.assertIn("had ended before it was given back", running.err)

    # Ctrl-Z: the command stands too, and is not to be killed for it.
    def test_with_its_command_by_tstp_it_is_left_alone(self):
        running = self.start_child("--ttl", "3s", code="ready()\nwhile True: time.sleep(0.01)", as_job=True)
        watchdog = watchdog_of(running)
        running.signal(signal.SIGTSTP)
        until(lambda: self.server.ask("PTTL", "hf:{%s}" % self.lock) == -2, "the lock has expired")
        expired_at = now()
        until(lambda: now() > expired_at + 0.5, "the watchdog had its time")
        self.assertEqual((state_of(running.child), state_of(running.pid)), ("T", "T"))
        running.signal(signal.SIGCONT)
        self.assertEqual(running.wait(), 79)
        self.assertIn("or this process suspended", running.err)
        self.assertFalse(is_alive(watchdog))


    # Whoever stopped it may have it go on and forget holdfast; by then the lock may be somebody else's.
    def test_a_suspended_command_that_goes_on_alone_behind_its_lease_is_made_to_stand_again(self):
        running = self.start_child("--ttl", "3s", code=POLITE, as_job=True)
        watchdog_of(running)
        running.signal(signal.SIGTSTP)
        until(lambda: self.server.ask("PTTL", "hf:{%s}" % self.lock) == -2, "the lock has expired")
        for _ in range(3):
            stood_at = last_alive(running)
            os.killpg(running.child, signal.SIGCONT)
            until(lambda: last_alive(running) > stood_at, "it goes on")
            until(lambda: {state_of(pid) for pid in members_of(running.child)} == {"T"}, "it stands again", deadline=10)
        self.assertEqual(state_of(running.pid), "T")
        running.signal(signal.SIGCONT)
        self.assertEqual(running.wait(), 79)
        self.assertIn("or this process suspended", running.err)

    def test_a_suspended_command_that_goes_on_alone_stands_again_when_the_lease_ends(self):
        running = self.start_child("--ttl", "20s", code=POLITE, as_job=True)  # Too soon for a watchdog, most often.
        running.signal(signal.SIGTSTP)
        until(lambda: state_of(running.pid) == "T", "both are suspended")
        expires_at = self.expires_at()
        os.killpg(running.child, signal.SIGCONT)
        until(lambda: now() > expires_at, "the lock has expired")
        self.assertLess(last_alive(running), expires_at)
        self.assertEqual({state_of(pid) for pid in members_of(running.child)}, {"T"})

    def test_goes_on_while_its_watchdog_has_only_said_term(self):
        running = self.watched("--ttl", "4s", code="""
signal.signal(signal.SIGTERM, lambda *_: open(sys.argv[0] + ".term", "w").close())
ready()
while True: time.sleep(0.01)
""")
        running.signal(signal.SIGSTOP)
        until(lambda: os.path.exists(running.process.args[-1] + ".term"), "the watchdog has said TERM")
        running.signal(signal.SIGCONT)
        self.assertEqual(running.wait(), 79)
        self.assertIn(f"; its watchdog is ending pid {running.child}\n", running.err)


class Well(Watched):
    def test_a_renewed_lease_is_none_of_its_business_and_it_ends_with_holdfast(self):
        began_at = now()
        running = self.watched("--ttl", "3s", code="ready()\n"
                               "while not os.path.exists(sys.argv[0] + '.go'): time.sleep(0.01)\nsys.exit(7)")
        until(lambda: now() > began_at + 7, "it was renewed a few times")
        open(running.process.args[-1] + ".go", "w", encoding="utf-8").close()
        self.assertEqual(running.wait(), 7)
        self.assertEqual(running.err, "")
        self.assertFalse(os.path.exists(f"/proc/{running.watchdog}"), "not even a zombie is left")

    def children_at_once_and_later(self, *options):
        """How many children holdfast has when the command begins, and when there could be a watchdog."""
        look = "cat /proc/$PPID/task/$PPID/children; echo; "
        running = self.finish("run", *options, self.lock, "--", "sh", "-c", look + "sleep 0.4; " + look)
        return [len(line.split()) for line in running.out.splitlines()]

    def test_a_short_command_has_none(self):
        # This machine may take its time to begin.
        until(lambda: self.children_at_once_and_later() == [1, 2], "none at once, one later")

    def test_with_on_lost_warn_there_is_none(self):
        self.assertEqual(self.children_at_once_and_later("--on-lost", "warn"), [1, 1])

    # Its lock may be lost, it may be suspended and go on: a loss is only told.
    def test_with_on_lost_warn_under_another_lock_it_ends_nothing_while_holdfast_lives(self):
        running = self.start_child("--ttl", "1s", "--on-lost", "warn", "--no-renew", code=POLITE,
                                   HOLDFAST_HOLDS="outer,7", as_job=True)
        watchdog = watchdog_of(running)
        until(lambda: "runs on without it" in running.err, "the lock is lost")
        lost_at = now()
        until(lambda: last_alive(running) > lost_at + 1, "the command runs on")
        running.signal(signal.SIGTSTP)
        until(lambda: state_of(running.pid) == "T", "it is suspended")
        running.signal(signal.SIGCONT)
        woken_at = now()
        until(lambda: last_alive(running) > woken_at + 1, "the command runs on")
        self.assertTrue(is_alive(watchdog))


if __name__ == "__main__":
    unittest.main()
