# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/, where they meet trouble: they are copied, and so is what they do then."""

import os
import subprocess
import unittest

from fixture import CommandTest

EXAMPLES = os.environ.get("HOLDFAST_EXAMPLES", os.path.join(os.path.dirname(__file__), "../../build/examples"))


class Cache(CommandTest):
    def run_it(self, file):
        return subprocess.run([os.path.join(EXAMPLES, "cache"), file, "60"], env=self.environment, text=True,
                              capture_output=True, timeout=30, check=False)

    def test_rebuilds_what_is_stale_and_prints_it(self):
        first = self.run_it(self.path("page"))
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertRegex(first.stdout, r"^rebuilt\nbuilt under token \d{16}\n$")
        self.assertEqual(os.listdir(self.directory), ["page"])
        self.assertRegex(self.run_it(self.path("page")).stdout, r"^built under token ")

    def test_of_a_file_that_cannot_be_written_says_so_and_gives_the_lock_back(self):
        bad = self.run_it(self.path("missing/page"))
        self.assertEqual(bad.returncode, 1, bad.stderr)
        self.assertIn("cannot write", bad.stderr)
        self.assertIn("No such file or directory", bad.stderr)
        self.assertTrue(self.is_free("cache:page"))

    def test_of_a_file_that_cannot_be_replaced_leaves_no_draft(self):
        os.makedirs(self.path("page/full"))
        os.utime(self.path("page"), (1, 1))
        bad = self.run_it(self.path("page"))
        self.assertEqual(bad.returncode, 1, bad.stderr)
        self.assertIn("cannot read", bad.stderr)
        self.assertEqual(os.listdir(self.directory), ["page"])
        self.assertTrue(self.is_free("cache:page"))


class Async(CommandTest):
    def run_it(self, environment):
        ran = subprocess.run([os.path.join(EXAMPLES, "async"), "one", "two"], env=environment, text=True,
                             capture_output=True, timeout=30, check=False)
        if "has no coroutines" in ran.stderr:
            self.skipTest(ran.stderr.strip())
        return ran

    def test_bills_each(self):
        good = self.run_it(self.environment)
        self.assertEqual(good.returncode, 0, good.stderr)
        self.assertIn("one: billed\n", good.stdout)
        self.assertIn("two: billed\n", good.stdout)

    def test_that_could_not_bill_says_so_and_fails(self):
        bad = self.run_it({**self.environment, "HOLDFAST_URI": "redis+unix://" + self.path("none")})
        self.assertEqual(bad.returncode, 1, bad.stderr)
        self.assertIn("one: ", bad.stderr)


if __name__ == "__main__":
    unittest.main()
