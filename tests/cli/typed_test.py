# SPDX-License-Identifier: Apache-2.0
"""What was typed, and what is said of it: the command that was named, the server that was meant, and no password where
there is none."""

import re
import shlex
import unittest

from fixture import CommandTest

CANARY = "canary7f3a"


def fix_of(said):
    """What stands behind `fix:`."""
    return re.search(r"^  fix: (.*)$", said, re.M)[1]


class Early(CommandTest):
    """An option before the command."""

    def refused(self, *words):
        refused = self.finish(*words)
        self.assertEqual(refused.status, 64, refused.err)
        self.assertIn("comes too early: first the command, then its options", refused.err)
        return fix_of(refused.err)

    def test_proposes_the_command_that_was_named(self):
        socket = self.server.uri
        for words, proposed in ((["--json", "ls"], "holdfast ls --json"),
                                (["--uri", socket, "ls"], f"holdfast ls --uri {socket}"),
                                ([f"--uri={socket}", "ls", "a*"], f"holdfast ls --uri={socket} 'a*'"),
                                (["--prefix", "b:", "show", "x"], "holdfast show --prefix b: x"),
                                (["--prefix", "run", "show", "x"], "holdfast show --prefix run x"),
                                (["-q", "doctor"], "holdfast doctor -q"),
                                (["-qu", socket, "--json", "check", "--", "-x"],
                                 f"holdfast check -qu {socket} --json -- -x")):
            with self.subTest(words):
                fix = self.refused(*words)
                self.assertEqual(fix, proposed)
                followed = self.finish(*shlex.split(fix)[1:])
                self.assertEqual(followed.status, 0, followed.err)

    def test_of_run_has_its_options_and_not_the_command(self):
        self.assertEqual(self.refused("-n", "-w", "5", "run", "x", "--", "mysql", f"-p{CANARY}"),
                         "holdfast run -n -w 5 NAME -- CMD")

    def test_without_a_command_proposes_one_that_takes_it(self):
        self.assertEqual(self.refused("-n", "x", "true"), "holdfast run [options] NAME -- CMD")
        self.assertEqual(self.refused("--json"), "holdfast help")
        self.assertEqual(self.refused("--uri"), "holdfast run [options] NAME -- CMD")

    def test_shows_no_password(self):
        for words, fix in ((["-u", f"redis://:{CANARY}@h", "ls"], "holdfast ls -u URI"),
                           (["-qu", f"default:{CANARY}", "ls"], "holdfast ls -qu URI"),
                           ([f"-uredis://:{CANARY}@h", "ls"], "holdfast ls -u URI"),
                           ([f"--uri=redis://default:{CANARY}", "ls"], "holdfast ls --uri=URI"),
                           (["-q", "ls", "-u", f"redis://default:{CANARY}"], "holdfast ls -q -u URI"),
                           (["-q", "doctor", f"redis://:{CANARY}@h"], "holdfast doctor -q URI"),
                           ([f"--url=redis://:{CANARY}@h", "ls"], "holdfast ls --url=URI")):
            with self.subTest(fix):
                said = self.finish(*words)
                self.assertNotIn(CANARY, said.err)
                self.assertEqual(fix_of(said.err), fix)

    def test_help_is_that_of_the_command_behind_it(self):
        for word in ("--help", "-h"):
            for command in ("run", "E17", "loss"):
                with self.subTest(word, command=command):
                    self.assertEqual(self.finish(word, command).out, self.finish("help", command).out)
            self.assertEqual(self.finish(word).out, self.finish("help").out)


if __name__ == "__main__":
    unittest.main()
