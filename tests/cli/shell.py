# SPDX-License-Identifier: Apache-2.0
"""A shell with job control, for what a command does as its job."""

import os
import pty
import re
import signal

from fixture import until


class Shell:
    """An interactive bash on a terminal of its own, and what has been seen there."""

    def __init__(self, environment):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"], environment)
        os.set_blocking(self.terminal, False)
        self.seen = ""
        self.all = ""
        self.type("PS1=\n")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def ctrl_c(self):
        """Returns when the shell reads again: what is typed before would be somebody else's."""
        self.type("\x03")
        until(lambda: os.tcgetpgrp(self.terminal) == self.pid, "the job has ended", deadline=15)

    def shows(self, pattern):
        """Waits until `pattern` is on the terminal, behind what was waited for before; gives the match."""
        def look():
            try:
                more = os.read(self.terminal, 65536).decode(errors="replace")
                self.seen += more
                self.all += more
            except (BlockingIOError, OSError):
                pass
            return re.search(pattern, self.seen, re.M)
        try:
            found = until(look, f"{pattern!r} on the terminal", deadline=15)
        except AssertionError as e:
            raise AssertionError(f"{e}; seen: {self.seen!r}") from e
        self.seen = self.seen[found.end():]
        return found

    def end(self):
        os.close(self.terminal)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
