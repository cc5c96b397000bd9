# SPDX-License-Identifier: Apache-2.0
"""At a terminal, with a command of which a part is another user's (sudo): we may not signal that."""

import os
import re
import signal
import subprocess
import unittest

from fixture import COMMAND, CommandTest, content, has_terminals, is_alive, state_of, until
from shell import Shell

# Root that may signal nobody but its own, and somebody else.
WE = f"setpriv --bounding-set=-kill --inh-caps=-kill {COMMAND}"
OTHER = "setpriv --reuid=65534 --clear-groups"
CAN_BECOME_OTHERS = os.geteuid() == 0 and subprocess.run(
    [*WE.split()[:-1], *OTHER.split(), "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def wake_ups(pid):
    return re.findall(r"ctxt_switches:\s*(\d+)", content(f"/proc/{pid}/status"))


@unittest.skipUnless(has_terminals(), "no pseudo-terminals here: mount /dev/pts to run these")
@unittest.skipUnless(CAN_BECOME_OTHERS, "NOT TESTED: only root has somebody whom others may not signal")
class OtherUser(CommandTest):
    def shell(self):
        shell = Shell(self.environment)
        self.addCleanup(shell.end)
        return shell

    def pid_on(self, shell, pattern):
        """Of a process that nobody else here can end."""
        pid = int(shell.shows(pattern)[1])
        self.addCleanup(lambda: is_alive(pid) and os.kill(pid, signal.SIGKILL))
        return pid

    def expect_renewals(self):
        renewed = self.server.scripts_run() + 2
        until(lambda: self.server.scripts_run() >= renewed, "it is renewed")
        self.assertFalse(self.is_free())

    # The terminal's foreground is the script's, so TSTP comes from us and not from the kernel.
    def test_ctrl_z_of_a_script_suspends_nothing_that_would_leave_them_running(self):
        shell = self.shell()
        with open(self.path("script"), "w", encoding="utf-8") as file:
            file.write(f"{WE} run --ttl 3s {self.lock} -- sh -c "
                       f"'echo holder $PPID.; {OTHER} sh -c \"echo other \\$\\$.; exec sleep 60\"; echo over.'\n")
        shell.type(f"sh {self.path('script')}\n")
        holder = int(shell.shows(r"holder (\d+)\.")[1])
        other = self.pid_on(shell, r"other (\d+)\.")
        until(lambda: content(f"/proc/{other}/comm") == "sleep\n", "it sleeps")
        shell.type("\x1a")
        shell.shows(rf"not suspended: sleep \({other}\) cannot be stopped: another user's")
        self.expect_renewals()
        self.assertEqual((state_of(holder), state_of(other)), ("S", "S"))
        os.kill(other, signal.SIGKILL)
        shell.shows("over")  # What was stopped goes on.

    # The inner one would be stopped while a process runs that it cannot stop, and that is not of its group.
    def test_tstp_of_a_run_in_a_run_suspends_nothing_either(self):
        shell = self.shell()
        shell.type(f"{WE} run --ttl 3s {self.lock} -- sh -c 'echo holder $PPID.; exec {COMMAND} run --ttl 3s "
                   f"{self.lock}.inner -- {OTHER} sh -c \"trap : TSTP; echo other \\$\\$ of \\$PPID.; "
                   f"while :; do sleep 0.1; done\"'\n")
        holder = int(shell.shows(r"holder (\d+)\.")[1])
        other = self.pid_on(shell, r"other (\d+) of")
        inner = int(content(f"/proc/{other}/stat").rpartition(")")[2].split()[1])
        os.kill(holder, signal.SIGTSTP)
        shell.shows(r"not suspended: .*cannot be stopped: another user's")
        until(lambda: "T" not in map(state_of, (holder, inner, other)), "all go on")
        self.expect_renewals()
        self.assertNotIn("T", map(state_of, (holder, inner, other)))

    # CONT is let through, and would have it want the terminal again at once, and so on without end.
    def test_left_behind_it_stands_before_a_terminal_that_nobody_can_give_it(self):
        shell = self.shell()
        shell.type(f"( {WE} run --ttl 3s {self.lock} -- {OTHER} sh -c 'echo other $$.; read line </dev/tty' & ) &\n")
        other = self.pid_on(shell, r"other (\d+)\.")
        shell.shows(rf"the command under '{self.lock}' wants the terminal, which nobody can give it; pid {other} cannot "
                    r"be stopped")
        self.assertEqual(state_of(other), "T")
        before = wake_ups(other)
        self.expect_renewals()
        self.assertEqual(wake_ups(other), before)
        self.assertNotIn("hung up", shell.all)


if __name__ == "__main__":
    unittest.main()
