# SPDX-License-Identifier: Apache-2.0
"""What each guard has to keep: C3 by the steps raise, read, write (hazards 8.7). The suites of this directory run these
claims for their guards; `self.guard` is a fresh one whose value is 100 and that has seen no token."""

import threading

from guards import Refused, Stale

OLDER, NEWER = 1795210575374471, 1795210575374472
LARGEST = 2**53 - 1
NO_TOKENS = (str(LARGEST + 1), str(LARGEST + 2), "99999999999999999999", "-1", "1e15", "1.5", "abc", "")


class Claims:
    def assert_refused_as_stale(self, current, what, *arguments):
        with self.assertRaises(Stale) as refused:
            what(*arguments)
        self.assertEqual(refused.exception.current, current)

    def test_an_older_holder_that_wakes_up_late_is_refused_R1(self):
        self.guard.raise_to(OLDER)
        seen = self.guard.read()
        self.guard.raise_to(NEWER)
        self.guard.write(NEWER, 70)
        self.assert_refused_as_stale(NEWER, self.guard.write, OLDER, seen - 80)
        self.assertEqual(self.guard.read(), 70)

    def test_with_the_raise_the_delayed_old_write_is_refused_H65(self):
        self.guard.raise_to(OLDER)
        self.guard.raise_to(NEWER)
        seen = self.guard.read()
        self.assert_refused_as_stale(NEWER, self.guard.write, OLDER, 20)  # It was sent long ago.
        self.guard.write(NEWER, seen - 30)
        self.assertEqual(self.guard.read(), 70)

    def test_without_the_raise_the_delayed_old_write_lands_H65(self):
        """Why the raise is a step: each write is compared, both are accepted, and the first is lost."""
        self.guard.raise_to(OLDER)
        seen = self.guard.read()
        self.guard.write(OLDER, 20)
        self.guard.write(NEWER, seen - 30)
        self.assertEqual(self.guard.read(), 70, "100 - 80 - 30 is not 70")

    def test_an_older_holder_cannot_raise(self):
        self.guard.raise_to(NEWER)
        self.assert_refused_as_stale(NEWER, self.guard.raise_to, OLDER)

    def test_a_write_raises_too(self):
        self.guard.write(NEWER, 70)
        self.assert_refused_as_stale(NEWER, self.guard.write, OLDER, 20)

    def test_a_holder_raises_and_writes_as_often_as_it_likes(self):
        for value in (90, 80, 70):
            self.guard.raise_to(NEWER)
            self.guard.write(NEWER, value)
            self.assertEqual(self.guard.read(), value)

    def test_tokens_are_compared_as_numbers_H64(self):
        for smaller, larger in ((9, 10), (99, 100), (999999999999999, 1000000000000000), (LARGEST - 1, LARGEST)):
            self.guard.write(smaller, 90)
            self.guard.write(larger, 70)
            self.assert_refused_as_stale(larger, self.guard.write, smaller, 20)

    def test_what_is_no_token_is_an_error_that_names_it_H64(self):
        self.guard.raise_to(OLDER)
        for text in NO_TOKENS:
            with self.subTest(token=text), self.assertRaises(Refused) as refused:
                self.guard.write(text, 20)
            self.assertNotIsInstance(refused.exception, Stale)
            self.assertIn(text or self.empty_is_named, str(refused.exception))
        self.assertRaises(Refused, self.guard.raise_to, NO_TOKENS[0])
        self.assertEqual(self.guard.read(), 100)
        self.guard.write(OLDER, 70)

    empty_is_named = "''"

    def test_of_concurrent_holders_the_largest_token_wins_and_the_value_never_goes_back(self):
        """Each writes its own token as the value, so a stale write that gets in is a value that goes back."""
        tokens = range(OLDER, OLDER + 5)
        failures, seen, ended = [], [], threading.Event()

        def hold(token):
            try:
                for _ in range(4):
                    self.guard.write(token, token)
            except Stale as e:
                if e.current <= token:
                    failures.append(e)
            except Exception as e:  # pylint: disable=broad-except
                failures.append(e)

        def watch():
            while not ended.is_set():
                seen.append(self.guard.read())

        watcher = threading.Thread(target=watch)
        holders = [threading.Thread(target=hold, args=(token,)) for token in tokens]
        for thread in (watcher, *holders):
            thread.start()
        for thread in holders:
            thread.join()
        ended.set()
        watcher.join()
        self.assertEqual(failures, [])
        self.assertEqual(self.guard.read(), max(tokens))
        self.assertEqual(seen, sorted(seen))
