# SPDX-License-Identifier: Apache-2.0
"""examples/fencing/redis.lua on a real redis-server, through redis-cli."""

import unittest

from guards import RedisGuard, Refused
from claims import NEWER, OLDER, Claims
from fixture import Server


class RedisTest(Claims, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        self.guard = RedisGuard(self.server)
        self.addCleanup(self.guard.forget)

    def test_the_raise_answers_the_value(self):
        self.assertEqual(self.guard.end(self.guard.start("raise", NEWER)), "100")

    def test_the_fence_is_kept_as_digits_H64(self):
        self.guard.raise_to(NEWER)
        self.assertEqual(self.server.ask("GET", self.guard.fence), str(NEWER))

    def test_a_key_that_holds_no_token_is_not_overwritten(self):
        for text in ("hello", "1.7e+15", "-5", ""):
            self.server.ask("SET", self.guard.fence, text)
            with self.subTest(fence=text), self.assertRaisesRegex(Refused, "the fence .* holds no token"):
                self.guard.write(NEWER, 70)
            self.assertEqual(self.server.ask("GET", self.guard.fence), text)
        self.assertEqual(self.guard.read(), 100)

    def test_a_write_that_finds_no_memory_changes_nothing(self):
        self.guard.raise_to(OLDER)
        self.addCleanup(self.server.ask, "CONFIG", "SET", "maxmemory", "0")
        self.server.ask("CONFIG", "SET", "maxmemory", "1")
        with self.assertRaisesRegex(Refused, "OOM"):
            self.guard.write(NEWER, 70)
        self.server.ask("CONFIG", "SET", "maxmemory", "0")
        self.assertEqual(self.server.ask("GET", self.guard.fence), str(OLDER))
        self.assertEqual(self.guard.read(), 100)


if __name__ == "__main__":
    unittest.main()
