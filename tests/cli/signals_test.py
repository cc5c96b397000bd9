# SPDX-License-Identifier: Apache-2.0
"""Signals, from both ends: while waiting and while the command runs; as PID 1. At a terminal: terminal_test.py."""

import os
import pty
import signal
import subprocess
import sys
import unittest

from fixture import COMMAND, CommandTest, content, has_terminals, is_alive, now, signals_of, state_of, until

REPORTS = """
def stop(number, frame):
  open(sys.argv[0] + "." + signal.Signals(number).name, "w").close()
  if number != signal.SIGWINCH and number != signal.SIGUSR1: sys.exit(40)
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2,
               signal.SIGWINCH):
  signal.signal(number, stop)
ready()
while True: time.sleep(0.01)  # pause() would miss one that came just before it.
"""


IGNORES_TSTP = """
signal.signal(signal.SIGTSTP, signal.SIG_IGN)
ready()
while True: time.sleep(0.01)
"""


def got(running, number):
    return os.path.exists(f"{running.process.args[-1]}.{signal.Signals(number).name}")


def catches_tstp(pid):
    return signals_of(pid, "SigBlk") & 1 << signal.SIGTSTP - 1


def is_pending(pid, number):
    return signals_of(pid, "ShdPnd") & 1 << number - 1


class WhileWaiting(CommandTest):
    def test_each_that_asks_to_end_stops_the_wait_with_128_and_its_number(self):
        self.hold()
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
            with self.subTest(number):
                waiter = self.start("run", self.lock, "--", "touch", self.path("ran"))
                self.wait_for_a_waiter()
                waiter.signal(number)
                self.assertEqual(waiter.wait(10), 128 + number)
                self.assertFalse(os.path.exists(self.path("ran")))

    # At the head of a session nobody could wake it.
    def test_tstp_is_ignored_when_nobody_could_wake_us(self):
        self.hold()
        for words in (["run", self.lock, "--", "true"], ["run", "other", "--", "sleep", "60"], ["hold", "third"]):
            with self.subTest(words[0]):
                running = self.start(*words, stdin=subprocess.PIPE, prefix=("setsid",))
                self.addCleanup(running.process.stdin.close)
                until(lambda: catches_tstp(running.pid), "its signals are blocked")
                running.signal(signal.SIGTSTP)
                until(lambda: not is_pending(running.pid, signal.SIGTSTP), "it has seen the signal")
                running.signal(signal.SIGTERM)
                self.assertEqual(running.wait(10), 143)

    def test_a_stopped_wait_leaves_the_lock_to_others(self):
        holder = self.hold()
        waiter = self.start("run", self.lock, "--", "true")
        self.wait_for_a_waiter()
        waiter.signal(signal.SIGTERM)
        waiter.wait(10)
        holder.process.stdin.close()
        self.assertEqual(holder.wait(), 0)
        self.assertEqual(self.finish("run", "-n", self.lock, "true").status, 0)

    def test_a_signal_that_our_parent_ignores_does_not_stop_the_wait(self):
        holder = self.hold()
        waiter = self.start("run", self.lock, "--", "true", prefix=("nohup",))
        self.wait_for_a_waiter()
        waiter.signal(signal.SIGHUP)
        self.wait_for_a_waiter()
        holder.process.stdin.close()
        self.assertEqual(waiter.wait(), 0)


class Help(CommandTest):
    # Else systemd sends TERM to the command, too, which has ours as a second one.
    def test_names_the_kill_mode_of_a_systemd_unit(self):
        for word in ("KillMode=mixed", "SuccessExitStatus=143"):
            self.assertIn(word, self.finish("help", "signals").out)


class WhileRunning(CommandTest):
    def test_term_reaches_the_whole_group_and_exits_143(self):
        running = self.start("run", self.lock, "--", "sh", "-c", f"sleep 60 & echo $! >{self.path('pid~')}; "
                             f"mv {self.path('pid~')} {self.path('pid')}; wait; sleep 60")
        until(lambda: os.path.exists(self.path("pid")), "the grandchild is up")
        grandchild = int(content(self.path("pid")))
        running.signal(signal.SIGTERM)
        self.assertEqual(running.wait(10), 143)
        until(lambda: not is_alive(grandchild), "the grandchild is gone")
        self.assertTrue(self.is_free())

    def test_each_is_passed_on_and_the_status_is_the_commands(self):
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR2):
            with self.subTest(number):
                running = self.start_child(code=REPORTS)
                running.signal(number)
                self.assertEqual(running.wait(10), 40)
                self.assertTrue(got(running, number))

    def test_usr1_and_winch_are_passed_on_and_end_nothing(self):
        running = self.start_child(code=REPORTS)
        for number in (signal.SIGUSR1, signal.SIGWINCH):
            running.signal(number)
            until(lambda: got(running, number), "the signal is there")
        self.assertIsNone(running.process.poll())

    def test_the_command_starts_with_the_mask_it_would_have_without_us(self):
        mask = self.finish("run", self.lock, "--", "sh", "-c", "grep SigBlk /proc/self/status").out
        self.assertEqual(mask.split(), ["SigBlk:", "0000000000000000"])

    def test_foreground_leaves_the_command_in_our_group(self):
        running = self.start_child("--foreground", code=REPORTS)
        self.assertEqual(os.getpgid(running.child), os.getpgid(running.pid))
        running.signal(signal.SIGTERM)
        self.assertEqual(running.wait(10), 40)

    def test_tstp_suspends_us_with_the_command_and_cont_wakes_both(self):
        running = self.start_child("--ttl", "30s", code=REPORTS, as_job=True)
        running.signal(signal.SIGTSTP)
        until(lambda: state_of(running.child) == "T" and state_of(running.pid) == "T", "both are suspended")
        running.signal(signal.SIGCONT)
        until(lambda: state_of(running.child) != "T", "the command goes on")
        running.signal(signal.SIGTERM)
        self.assertEqual(running.wait(10), 40)

    # It would stay stopped for ever, and its lock be kept.
    def test_cont_wakes_both_also_where_our_parent_ignores_it(self):
        running = self.start_child("--ttl", "30s", code=REPORTS, as_job=True, prefix=("env", "--ignore-signal=CONT"))
        running.signal(signal.SIGTSTP)
        until(lambda: state_of(running.child) == "T" and state_of(running.pid) == "T", "both are suspended")
        running.signal(signal.SIGCONT)
        until(lambda: state_of(running.child) != "T", "the command goes on", deadline=10)
        running.signal(signal.SIGTERM)
        self.assertEqual(running.wait(10), 40)

    # It would go on without a lease that anybody renews.
    def test_a_command_that_ignores_tstp_is_stopped_before_we_are(self):
        for options in ([], ["--foreground"]):
            with self.subTest(options):
                running = self.start_child("--ttl", "30s", *options, code=IGNORES_TSTP, as_job=True)
                running.signal(signal.SIGTSTP)
                until(lambda: state_of(running.pid) == "T", "we are suspended")
                self.assertEqual(state_of(running.child), "T")
                running.signal(signal.SIGCONT)
                until(lambda: state_of(running.child) != "T", "the command goes on")
                running.signal(signal.SIGTERM)
                self.assertEqual(running.wait(10), 143)

    def nested(self, ttl, code):
        """A run of another lock that is the command of a run; the child is the command of that."""
        running = self.start_child("--ttl", ttl, self.lock, "--", COMMAND, "run", "--ttl", "30s",
                                   lock=self.lock + ".inner", code=code, as_job=True)
        running.inner = int(content(f"/proc/{running.child}/stat").rpartition(")")[2].split()[1])
        return running

    # STOP to the inner one alone would leave its command running, on behind the outer lease (H54).
    def test_a_run_in_a_run_stops_its_command_before_it_is_stopped_itself(self):
        running = self.nested("3s", IGNORES_TSTP)
        running.signal(signal.SIGTSTP)
        until(lambda: state_of(running.pid) == "T", "the outer one is suspended")
        self.assertEqual((state_of(running.inner), state_of(running.child)), ("T", "T"))
        until(lambda: self.server.ask("PTTL", "hf:{%s}" % self.lock) == -2, "the outer lock has expired")
        expired_at = now()
        until(lambda: now() > expired_at + 0.5, "it is somebody else's")
        self.assertEqual((state_of(running.inner), state_of(running.child)), ("T", "T"))
        running.signal(signal.SIGCONT)
        self.assertEqual(running.wait(10), 79)
        until(lambda: not is_alive(running.inner) and not is_alive(running.child), "the others are gone")

    def test_cont_wakes_a_run_in_a_run_with_its_command(self):
        running = self.nested("30s", IGNORES_TSTP)
        running.signal(signal.SIGTSTP)
        until(lambda: state_of(running.pid) == "T", "the outer one is suspended")
        running.signal(signal.SIGCONT)
        until(lambda: "T" not in map(state_of, (running.pid, running.inner, running.child)), "all three go on")
        running.signal(signal.SIGTERM)
        self.assertEqual(running.wait(10), 143)

    # It would keep the lock for ever, deaf to Ctrl-C.
    def test_each_that_ends_a_command_ends_one_that_is_stopped(self):
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
            with self.subTest(number):
                running = self.start_child(code="ready()\nos.kill(os.getpid(), signal.SIGSTOP)\n")
                until(lambda: state_of(running.child) == "T", "the command is stopped")
                running.signal(number)
                self.assertEqual(running.wait(10), 128 + number)
                self.assertTrue(self.is_free())

    def test_a_lock_that_ended_while_suspended_ends_the_command(self):
        running = self.start_child("--ttl", "3s", code=REPORTS, as_job=True)
        running.signal(signal.SIGTSTP)
        until(lambda: self.server.ask("PTTL", "hf:{%s}" % self.lock) == -2, "the lock has expired")
        running.signal(signal.SIGCONT)
        self.assertEqual(running.wait(10), 79)
        self.assertFalse(is_alive(running.child))
        self.assertIn("or this process suspended", running.err)


CAN_UNSHARE = subprocess.run(["unshare", "--pid", "--fork", "true"], stderr=subprocess.DEVNULL,
                             check=False).returncode == 0

# Leaves an orphan that ends at once, and exits 0 as soon as somebody has collected it.
ORPHAN = """
read, write = os.pipe()
if os.fork() == 0:
  if os.fork() == 0:
    os.write(write, str(os.getpid()).encode())
  os._exit(0)
os.wait()
orphan = int(os.read(read, 20))
give_up_at = time.monotonic() + 20
while time.monotonic() < give_up_at:
  try: os.kill(orphan, 0)
  except ProcessLookupError: os._exit(0)
  time.sleep(0.005)
os._exit(1)
"""


@unittest.skipUnless(CAN_UNSHARE, "NOT TESTED: unshare --pid is not permitted here")
class AsPidOne(CommandTest):
    def test_collects_orphans(self):
        program = self.path("orphan.py")
        with open(program, "w", encoding="utf-8") as file:
            file.write("import os, time\n" + ORPHAN)
        running = self.finish("run", self.lock, "--", sys.executable, "-S", "-E", program,
                              prefix=("unshare", "--pid", "--fork"))
        self.assertEqual(running.status, 0, running.err)

    def on_terminal(self, *arguments):
        """Runs it as PID 1 at the head of a session on a terminal of its own; gives a function of its end, and the
        terminal."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvpe("unshare", ["unshare", "--pid", "--kill-child", "--mount-proc", "setsid", "--ctty", COMMAND,
                                   *arguments], self.environment)
        self.addCleanup(os.close, terminal)
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        seen = b""
        while b"up" not in seen:
            seen += os.read(terminal, 100)
        return lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT), terminal

    @unittest.skipUnless(has_terminals(), "no pseudo-terminals here: mount /dev/pts to run these")
    def test_ctrl_z_is_ignored(self):
        status, terminal = self.on_terminal("run", "-q", self.lock, "--", "sh", "-c",
                                            "echo up; read line; exit ${#line}")
        os.write(terminal, b"\x1afour\n")
        self.assertEqual(until(status, "it has ended", deadline=10).si_status, 4)

    # Elsewhere the kernel ignores it for a group that nobody looks after. We do, and the shell that could is no more.
    @unittest.skipUnless(has_terminals(), "no pseudo-terminals here: mount /dev/pts to run these")
    def test_ctrl_z_is_ignored_by_what_is_left_of_a_group(self):
        start = "import subprocess; subprocess.Popen(['sh', '-c', 'sleep 0.5; echo up; read line']); print('begun')"
        status, terminal = self.on_terminal("run", "-q", "--wait-group", self.lock, "--", sys.executable, "-c", start)
        os.write(terminal, b"\x1aline\n")
        self.assertEqual(until(status, "it has ended", deadline=10).si_status, 0)

    def test_passes_term_on_and_exits_with_the_commands_status(self):
        up = self.path("up")
        running = self.start("run", self.lock, "--", "sh", "-c", f"trap 'exit 41' TERM; touch {up}; while :; do sleep 0.01; done",
                             prefix=("unshare", "--pid", "--fork"))
        until(lambda: os.path.exists(up), "the command is up")
        os.kill(int(content(f"/proc/{running.pid}/task/{running.pid}/children").split()[0]), signal.SIGTERM)
        self.assertEqual(running.wait(10), 41)


if __name__ == "__main__":
    unittest.main()
