# SPDX-License-Identifier: Apache-2.0
"""At a terminal: as a job of a shell, alone in its foreground, and inside a script."""

import os
import pty
import signal
import sys
import termios
import unittest

from fixture import COMMAND, CommandTest, content, has_terminals, is_alive, signals_of, state_of, until
from shell import Shell


# Writes down how often it was hung up on. It is sooner to look than who is above it.
COUNTS_HUPS = """
import os, signal, sys
os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
print("up.", flush=True)
signal.sigwaitinfo({signal.SIGHUP})
again = signal.sigtimedwait({signal.SIGHUP}, 0.5)
open(sys.argv[1], "w").write("twice" if again else "once")
"""


def children_of(pid):
    return content(f"/proc/{pid}/task/{pid}/children").split()


def has_children(pid):
    return bool(children_of(pid))


def is_pending(pid, number):
    """It was sent to the process, which has not read it yet."""
    return signals_of(pid, "ShdPnd") >> (number - 1) & 1


@unittest.skipUnless(has_terminals(), "no pseudo-terminals here: mount /dev/pts to run these")
class Job(CommandTest):
    """Started with & by a shell that has job control."""

    def shell(self):
        shell = Shell(self.environment)
        self.addCleanup(shell.end)
        return shell

    # The terminal's input wakes all that poll it, and stops those in the background that read it.
    def test_hold_keeps_its_lock_while_other_commands_are_typed(self):
        shell = self.shell()
        shell.type(f"{COMMAND} hold --ttl 4s {self.lock} &\n")
        shell.shows(r"^\d{16}")
        shell.type("echo pid $!.\n")
        holder = int(shell.shows(r"^pid (\d+)\.")[1])
        for count in range(20):
            shell.type(f"echo line {count}.\n")
            shell.shows(f"^line {count}\\.")
            self.assertNotEqual(state_of(holder), "T")
        renewed = self.server.scripts_run() + 2
        until(lambda: self.server.scripts_run() >= renewed or not is_alive(holder), "it is renewed")
        self.assertFalse(self.is_free())
        shell.type("fg\n")
        until(lambda: os.tcgetpgrp(shell.terminal) == os.getpgid(holder), "it is in the foreground")
        shell.type("\x04")
        until(lambda: not is_alive(holder), "the end of its input ends it")
        self.assertTrue(self.is_free())

    # It is stopped by its first read; the job itself runs, so that fg sends nothing.
    def test_a_command_that_reads_the_terminal_goes_on_after_fg(self):
        shell = self.shell()
        shell.type(f"{COMMAND} run --ttl 4s {self.lock} -- sh -c 'read line; echo got $line.; exit 7' &\n")
        shell.shows(f"the command under '{self.lock}' waits for the terminal")
        renewed = self.server.scripts_run() + 2
        until(lambda: self.server.scripts_run() >= renewed, "it is renewed meanwhile")
        shell.type("fg\n")
        shell.shows(f"run --ttl 4s {self.lock}")
        shell.type("something\n")
        shell.shows(r"^got something\.")
        shell.type("echo status $?.\n")
        shell.shows(r"^status 7\.")

    # A script has left it behind, or the shell has ended: no fg can give it the terminal any more. With a second &,
    # since the group of a ( ) has the terminal until the shell reads again.
    def test_a_command_that_nobody_can_give_the_terminal_ends(self):
        shell = self.shell()
        shell.type(f"( {COMMAND} run --ttl 4s {self.lock} -- sh -c 'read line </dev/tty' & ) &\n")
        shell.shows(f"the command under '{self.lock}' wants the terminal, and nobody is there to give it one: hung up")
        until(self.is_free, "it has ended")

    def test_a_command_behind_nohup_that_nobody_can_give_the_terminal_ends(self):
        shell = self.shell()
        log = self.path("log")
        open(log, "w", encoding="utf-8").close()
        code = "trap '' HUP TERM; read line </dev/tty; read line </dev/tty"
        shell.type(f"( nohup {COMMAND} run --ttl 4s {self.lock} -- sh -c \"{code}\" >{log} 2>&1 & ) &\n")
        until(lambda: "hung up" in content(log), "it is told")
        until(self.is_free, "it has ended")

    # The inner one's parent is the outer one, which could wake it and is left behind itself.
    def test_a_run_in_a_run_that_is_left_behind_ends(self):
        shell = self.shell()
        inner = f"{COMMAND} run --ttl 4s {self.lock}.inner -- sh -c 'read line </dev/tty'"
        shell.type(f"( {COMMAND} run --ttl 4s {self.lock} -- {inner} & ) &\n")
        shell.shows(f"the command under '{self.lock}.inner' wants the terminal, and nobody is there")
        until(lambda: self.is_free() and self.is_free(self.lock + ".inner"), "both have ended")

    def test_a_run_in_a_run_is_not_hung_up_on_where_a_shell_is_above_them(self):
        shell = self.shell()
        inner = f"{COMMAND} run --ttl 4s {self.lock}.inner -- sh -c 'read line </dev/tty'"
        shell.type(f"{COMMAND} run --ttl 4s {self.lock} -- {inner} &\n")
        shell.shows(f"the command under '{self.lock}.inner' waits for the terminal")
        renewed = self.server.scripts_run() + 4
        until(lambda: self.server.scripts_run() >= renewed, "both are renewed meanwhile")
        shell.type("fg\n")
        shell.shows(f"run --ttl 4s {self.lock}")
        shell.ctrl_c()
        self.assertNotIn("hung up", shell.all)
        until(lambda: self.is_free() and self.is_free(self.lock + ".inner"), "both have ended")

    # The kernel tells all of the foreground then, and a second HUP kills many a command while it cleans up. Several at
    # once, because two that come before one of them looks are one.
    def test_the_end_of_the_shell_hangs_up_on_a_command_once(self):
        program = self.path("counts.py")
        with open(program, "w", encoding="utf-8") as file:
            file.write(COUNTS_HUPS)
        for options in ("", "--foreground"):
            said = [self.path(f"said{options}{number}") for number in range(10)]
            with self.subTest(options):
                shell = self.shell()
                shell.type(f"( for said in {' '.join(said)}; do {COMMAND} run {options} -l {len(said)} {self.lock} -- "
                           f"{sys.executable} -S -E {program} $said & done; wait )\n")
                shell.shows(r"(?s)(up\..*){%d}" % len(said))
                os.kill(shell.pid, signal.SIGKILL)
                until(lambda: all(os.path.exists(path) and content(path) for path in said), "all were hung up on")
                self.assertEqual({content(path) for path in said}, {"once"})

    # Whoever stops us with STOP takes us by surprise; the shell takes the terminal, and with bg it keeps it.
    def test_of_which_only_holdfast_was_stopped_leaves_the_shell_its_terminal(self):
        shell = self.shell()
        go = self.path("go")
        shell.type(f"{COMMAND} run --ttl 30s {self.lock} -- sh -c 'echo up $PPID.; until test -e {go}; do sleep 0.01; done'\n")
        holder = int(shell.shows(r"up (\d+)\.")[1])
        os.kill(holder, signal.SIGSTOP)
        shell.shows("Stopped")
        shell.type("bg\n")
        until(lambda: state_of(holder) != "T", "it goes on")
        open(go, "w", encoding="utf-8").close()
        until(lambda: not is_alive(holder), "it has ended")
        shell.type("echo still here.\n")
        shell.shows(r"^still here\.")

    # So soon that its watchdog is made for that; on one processor who has just been forked waits for who stops it.
    def test_a_command_that_is_suspended_at_once_has_a_watchdog_that_is_not(self):
        shell = self.shell()
        os.sched_setaffinity(shell.pid, {min(os.sched_getaffinity(0))})
        for count in range(3):
            shell.type(f"{COMMAND} run --ttl 30s {self.lock}{count} -- "
                       "sh -c 'echo pid $$ of $PPID.; kill -TSTP $$; echo on.'\n")
            command, holder = shell.shows(r"pid (\d+) of (\d+)\.").groups()
            shell.shows("Stopped")
            self.assertEqual(state_of(command), "T")
            until(lambda: [state_of(child) for child in children_of(holder) if child != command] == ["S"],
                  "its watchdog sleeps", deadline=5)
            shell.type("fg\n")
            shell.shows(r"^on\.")

    def test_ctrl_z_stops_also_those_of_the_group_that_ignore_it(self):
        shell = self.shell()
        shell.type(f"{COMMAND} run --ttl 30s {self.lock} -- sh -c '(trap \"\" TSTP; exec sleep 60) & echo pid $!.; wait'\n")
        member = int(shell.shows(r"pid (\d+)\.")[1])
        until(lambda: content(f"/proc/{member}/comm") == "sleep\n", "it ignores TSTP")
        shell.type("\x1a")
        shell.shows("Stopped")
        self.assertEqual(state_of(member), "T")
        shell.type("fg\n")
        until(lambda: state_of(member) != "T", "it goes on")
        shell.type("\x03")
        shell.type("echo still here.\n")
        shell.shows(r"^still here\.")

    def test_ctrl_z_and_fg_and_bg_work_on_a_command_that_began_in_the_background(self):
        shell = self.shell()
        shell.type(f"{COMMAND} run --ttl 30s {self.lock} -- sh -c 'read line; echo got $line.; read line' &\n")
        shell.shows("waits for the terminal")
        shell.type("fg\none\n")
        shell.shows(r"^got one\.")
        shell.type("\x1a")
        shell.shows("Stopped")
        shell.type("bg\n")
        shell.type("echo still here.\n")
        shell.shows(r"^still here\.")
        shell.type("fg\ntwo\n")
        shell.type("echo status $?.\n")
        shell.shows(r"^status 0\.")


@unittest.skipUnless(has_terminals(), "no pseudo-terminals here: mount /dev/pts to run these")
class Terminal(CommandTest):
    def run_on_terminal(self, *arguments):
        """A shell-like parent: a session with a terminal of its own, and the command in its foreground."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvpe(COMMAND, [COMMAND, *arguments], self.environment)
        self.addCleanup(os.close, terminal)
        return pid, terminal

    def wait_for_text(self, terminal, text):
        seen = b""
        while text not in seen:
            seen += os.read(terminal, 100)

    def status_of(self, pid):
        """Of a process that should end by itself."""
        ended = []
        try:
            until(lambda: ended.extend(os.waitpid(pid, os.WNOHANG)) or ended[-2], "it has ended", deadline=10)
        except AssertionError:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        return os.waitstatus_to_exitcode(ended[-1])

    def test_the_command_has_its_foreground_and_can_read_from_it(self):
        pid, terminal = self.run_on_terminal("run", "-q", self.lock, "--", "sh", "-c", "read line; exit ${#line}")
        os.write(terminal, b"seven..\n")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 7)

    def test_ctrl_c_ends_the_command_and_the_lock_is_free(self):
        pid, terminal = self.run_on_terminal("run", "-q", self.lock, "--", "sh", "-c", "echo up; exec sleep 60")
        seen = b""
        while b"up" not in seen:
            seen += os.read(terminal, 100)
        os.write(terminal, b"\x03")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 130)
        self.assertTrue(self.is_free())

    # As under `ssh -t HOST` and `xterm -e`.
    def test_ctrl_z_is_ignored_at_the_head_of_a_session(self):
        for options in (["--foreground"], []):
            with self.subTest(options):
                pid, terminal = self.run_on_terminal("run", "-q", *options, self.lock, "--",
                                                     "sh", "-c", "echo up; read line; sleep 0.3; exit ${#line}")
                self.wait_for_text(terminal, b"up")
                os.write(terminal, b"\x1afour\n")
                self.assertEqual(self.status_of(pid), 4)

    def test_a_hang_up_ends_the_command(self):
        for options in ([], ["--foreground"]):
            with self.subTest(options):
                pid, terminal = pty.fork()
                if pid == 0:
                    os.execvpe(COMMAND, [COMMAND, "run", "-q", *options, self.lock, "--", "sh", "-c",
                                         "echo up; exec sleep 60"], self.environment)
                self.wait_for_text(terminal, b"up")
                os.close(terminal)
                self.assertEqual(self.status_of(pid), 128 + signal.SIGHUP)

    # The head is of their group, as under `ssh -t HOST script`: who has the terminal gives it back to all of them.
    def test_two_commands_of_a_script_at_the_head_have_it_one_after_the_other(self):
        def line(lock, word):
            return f"{COMMAND} run {lock} -- sh -c 'echo up {word}.; read line </dev/tty; test $line = {word}'"
        script = f"{line(self.lock, 'one')} & sleep 0.5; {line(self.lock + '-2', 'two')} & wait -n && wait -n"
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvpe("bash", ["bash", "-c", script], self.environment)
        self.addCleanup(os.close, terminal)
        self.wait_for_text(terminal, b"up two.")
        self.wait_for_text(terminal, b"waits for the terminal")
        os.write(terminal, b"one\ntwo\n")
        self.assertEqual(self.status_of(pid), 0)

    def test_foreground_is_ours_again_afterwards(self):
        script = f"{COMMAND} run -q {self.lock} true; read line; exit ${{#line}}"
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvpe("bash", ["bash", "-c", script], self.environment)
        self.addCleanup(os.close, terminal)
        os.write(terminal, b"four\n")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 4)


@unittest.skipUnless(has_terminals(), "no pseudo-terminals here: mount /dev/pts to run these")
class Script(CommandTest):
    """A script's shell, make or a pager shares our process group: the terminal is theirs as well."""

    def script(self, *lines, typed="sh {}"):
        """Types `typed` with the path of such a script into a shell."""
        path = self.path("script")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        shell = Shell(self.environment)
        self.addCleanup(shell.end)
        shell.type(typed.format(path) + "\n")
        return shell

    def run_line(self, command, *options):
        return " ".join([COMMAND, "run", "--ttl", "30s", *options, self.lock, "--", command])

    def test_a_command_that_reads_the_terminal_gets_it_and_gives_it_back(self):
        shell = self.script(self.run_line("sh -c 'echo up.; read line; echo got $line.'"),
                            "read line; echo then $line.")
        shell.shows(r"up\.")
        shell.type("one\n")
        shell.shows(r"got one\.")
        shell.type("two\n")
        shell.shows(r"then two\.")

    # A shell ends its script only when its child has died of the signal.
    def test_ctrl_c_ends_the_script_too_whoever_has_the_terminal(self):
        for program in ("sh", "bash"):
            for command in ("sh -c 'echo up.; exec sleep 60'", "sh -c 'echo up.; read line; echo asleep.; read line'"):
                with self.subTest(program=program, command=command):
                    shell = self.script(self.run_line(command), "echo the script goes on.", typed=program + " {}")
                    shell.shows(r"up\.")
                    if "asleep" in command:
                        shell.type("line\n")
                        shell.shows(r"asleep\.")
                    shell.ctrl_c()
                    shell.type("echo status $?.\n")
                    shell.shows(r"status 130\.")
                    self.assertNotIn("goes on", shell.all)
                    self.assertTrue(self.is_free())

    def test_ctrl_c_ends_a_loop_of_the_shell(self):
        line = self.run_line("sh -c 'echo up $0.; exec sleep 60' $i")
        shell = self.script(typed=f"for i in 1 2; do {line}; done")
        shell.shows(r"up 1\.")
        shell.ctrl_c()
        shell.type("echo status $?.\n")
        shell.shows(r"status 130\.")
        self.assertNotIn("up 2", shell.all)

    # That it exits as if it had died of one is its own business, as it is bash's rule.
    def test_a_command_that_exits_with_130_or_131_by_itself_ends_no_script(self):
        for status in (130, 131):
            with self.subTest(status):
                shell = self.script(self.run_line(f"sh -c 'echo up.; read line; exit {status}'"), "echo status $?.")
                shell.shows(r"up\.")
                shell.type("line\n")
                shell.shows(rf"status {status}\.")

    # Nor does one that was typed, and that the command has caught.
    def test_a_command_that_catches_ctrl_c_and_exits_with_130_ends_no_script(self):
        shell = self.script(self.run_line("""bash -c 'trap "exit 130" INT; echo up.; while :; do sleep 0.1; done'"""),
                            "echo the script goes on with $?.", typed="bash {}")
        shell.shows(r"up\.")
        shell.type("\x03")
        shell.shows(r"goes on with 130\.")

    def test_ctrl_c_in_the_rest_of_at_least_ends_the_script(self):
        for options in (["--at-least", "1h"], ["-q", "--at-least", "1h"]):
            with self.subTest(options):
                shell = self.script(self.run_line("sh -c 'echo pid $PPID.'", *options), "echo the script goes on.",
                                    typed="bash {}")
                holder = shell.shows(r"pid (\d+)\.")[1]
                until(lambda: not has_children(holder), "the command has ended")
                shell.ctrl_c()
                shell.type("echo status $?.\n")
                shell.shows(r"status 130\.")
                self.assertNotIn("goes on", shell.all)
                self.assertTrue(self.is_free())

    def test_ctrl_c_while_the_lock_is_given_back_ends_the_script(self):
        shell = self.script(self.run_line("sh -c 'echo pid $PPID.; read line'", "--server-timeout", "30s"),
                            "echo the script goes on.", typed="bash {}")
        holder = int(shell.shows(r"pid (\d+)\.")[1])
        self.server.pause()
        try:
            shell.type("line\n")
            until(lambda: not has_children(holder), "the command has ended")
            until(lambda: os.tcgetpgrp(shell.terminal) == os.getpgid(holder), "the terminal is given back")
            shell.type("\x03")
            until(lambda: is_pending(holder, signal.SIGINT), "it has come")
        finally:
            self.server.resume()
        until(lambda: os.tcgetpgrp(shell.terminal) == shell.pid, "the job has ended")
        shell.type("echo status $?.\n")
        shell.shows(r"status 130\.")
        self.assertNotIn("goes on", shell.all)
        self.assertTrue(self.is_free())

    # (Not of a sh: what that starts in the background ignores it.)
    def test_ctrl_c_at_what_is_left_of_a_group_ends_the_script(self):
        start = "import os, subprocess; subprocess.Popen(['sleep', '60']); print('pid %d.' % os.getpid())"
        shell = self.script(self.run_line(f'{sys.executable} -c "{start}"', "--wait-group"),
                            "echo the script goes on.", typed="bash {}")
        command = int(shell.shows(r"pid (\d+)\.")[1])
        until(lambda: not is_alive(command), "the command has ended")
        shell.ctrl_c()
        shell.type("echo status $?.\n")
        shell.shows(r"status 130\.")
        self.assertNotIn("goes on", shell.all)
        self.assertTrue(self.is_free())

    # A shell has it as before only behind a job that it has seen die of a signal.
    def test_a_command_that_is_killed_leaves_the_terminal_as_it_was(self):
        shell = self.script(typed="echo rea''dy.")
        shell.shows(r"ready\.")
        before = termios.tcgetattr(shell.terminal)
        shell.type(self.run_line("sh -c 'stty -echo -icanon; echo changed.; kill -9 $$'") + "\n")
        shell.shows(r"changed\.")
        shell.type("echo status $?.\n")
        shell.shows(r"status 137\.")
        self.assertEqual(termios.tcgetattr(shell.terminal)[3] & (termios.ECHO | termios.ICANON),
                         before[3] & (termios.ECHO | termios.ICANON))
        self.assertNotEqual(before[3] & termios.ECHO, 0, "or this tests nothing")

    def test_ctrl_c_while_waiting_ends_the_script(self):
        self.hold()
        shell = self.script(self.run_line("true"), "echo the script goes on.", typed="bash {}")
        self.wait_for_a_waiter()
        shell.ctrl_c()
        shell.type("echo status $?.\n")
        shell.shows(r"status 130\.")
        self.assertNotIn("goes on", shell.all)

    def test_ctrl_z_suspends_the_script_while_the_command_has_the_terminal(self):
        shell = self.script(self.run_line("sh -c 'echo up.; read line; echo got $line.; read line; echo got $line.'"),
                            "echo status $?.")
        shell.shows(r"up\.")
        shell.type("one\n")
        shell.shows(r"got one\.")
        shell.type("\x1a")
        shell.shows("Stopped")
        shell.type("echo still here.\n")
        shell.shows(r"still here\.")
        shell.type("fg\ntwo\n")
        shell.shows(r"got two\.")
        shell.shows(r"status 0\.")

    # Whoever of our group reads the terminal while the command has it gets us all stopped by the kernel.
    def test_a_neighbour_that_reads_the_terminal_too_does_not_stop_the_renewals(self):
        command = "sh -c 'echo pid $PPID. >&2; read line </dev/tty; echo; read line </dev/tty'"
        shell = self.script(f"{self.run_line(command)} | sh -c 'read first; read line </dev/tty'", typed="bash {}")
        holder = int(shell.shows(r"pid (\d+)\.")[1])
        shell.type("one\n")
        shell.shows("Stopped")
        self.assertNotEqual(state_of(holder), "T")

    def test_the_hint_is_said_with_quiet_too(self):
        shell = self.script(self.run_line("sh -c 'read line'", "-q"), typed="sh {} &")
        shell.shows(f"the command under '{self.lock}' waits for the terminal")


if __name__ == "__main__":
    unittest.main()
