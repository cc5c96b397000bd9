#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the command says of those who stand in line, and of itself among them."""

import signal
import unittest

from fixture import CommandTest


class Line(CommandTest):
    def key(self, part=""):
        return "hf:{%s}%s" % (self.lock, part)


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


if __name__ == "__main__":
    unittest.main()
