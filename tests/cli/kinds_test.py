# SPDX-License-Identifier: Apache-2.0
"""run -s, -x and -l, and wait: what is shared, what is limited, and until it is free."""

import signal
import time
import unittest

from fixture import CommandTest, until


class Kinds(CommandTest):
    def holders(self):
        return len(self.show()["holders"])

    def two(self, *options):
        """Two holds with `options`, both inside."""
        both = [self.hold(*options), self.hold(*options)]
        self.assertEqual(self.holders(), 2)
        return both

    def let_go(self, *all):
        for one in all:
            one.process.stdin.close()
            self.assertEqual(one.wait(), 0)


class Shared(Kinds):
    def test_readers_hold_it_together_and_a_writer_alone(self):
        readers = self.two("-s")
        self.assertEqual(self.finish("run", "-n", "-x", self.lock, "--", "true").status, 75)
        self.let_go(*readers)
        writer = self.hold("-x")
        self.assertEqual(self.finish("run", "-n", "-s", self.lock, "--", "true").status, 75)
        self.let_go(writer)

    def test_how_many_readers_have_it_is_told_in_words(self):
        self.two("-s")
        self.assertRegex(self.finish("run", "-n", "-x", self.lock, "--", "true").err, ", and by 1 other\n$")
        self.hold("-s")
        self.assertRegex(self.finish("run", "-n", "-x", self.lock, "--", "true").err, ", and by 2 others\n$")

    def test_a_waiting_writer_is_not_overtaken(self):
        reader = self.hold("-s")
        writer = self.start("run", "-x", self.lock, "--", "true")
        self.wait_for_a_waiter()
        self.assertEqual(self.finish("run", "-n", "-s", self.lock, "--", "true").status, 75)
        self.let_go(reader)
        self.assertEqual(writer.wait(), 0)

    def test_without_a_letter_it_is_taken_alone_on_a_shared_name_too(self):
        self.let_go(self.hold("-s"))
        writer = self.hold()
        self.assertEqual(self.show()["holders"][0]["mode"], "exclusive")
        self.assertEqual(self.finish("run", "-n", "-s", self.lock, "--", "true").status, 75)
        self.let_go(writer)

    def test_x_takes_a_plain_lock_too(self):
        self.let_go(self.hold())
        self.let_go(self.hold("-x"))

    def test_s_on_a_plain_lock_is_78_and_says_which_letters_go_together(self):
        self.let_go(self.hold())
        refused = self.finish("run", "-s", self.lock, "--", "true")
        self.assertEqual(refused.status, 78)
        self.assertIn("error[E14]", refused.err)
        helped = self.finish("help", "E14").out
        self.assertIn("used as another kind of lock", helped)
        self.assertIn("some other program's", helped)
        self.assertNotIn("is no lock", helped)
        self.assertIn("-s and -x for readers and writers", refused.err)

    def test_show_says_who_reads(self):
        reader = self.hold("-s", "--owner", "ann")
        self.assertRegex(self.finish("show", self.lock).out, r"holder +ann \(to read\) for ")
        self.assertEqual(self.show()["kind"], "shared")
        self.let_go(reader)


class Limit(Kinds):
    def test_lets_so_many_in(self):
        both = self.two("-l", "2")
        busy = self.finish("run", "-n", "-l", "2", self.lock, "--", "true")
        self.assertEqual(busy.status, 75)
        self.assertIn("has 2 of 2 permits taken", busy.err)
        waiter = self.start("run", "-l", "2", self.lock, "--", "true")
        self.wait_for_a_waiter()
        self.let_go(both[0])
        self.assertEqual(waiter.wait(), 0)
        self.let_go(both[1])

    def test_of_another_number_is_78_and_names_both(self):
        self.let_go(self.hold("-l", "2"))
        refused = self.finish("run", "-l", "3", self.lock, "--", "true")
        self.assertEqual(refused.status, 78)
        self.assertIn("error[E22]", refused.err)
        self.assertIn("it has 2 permits on the server, and you say 3", refused.err)

    def test_a_killed_holder_gives_its_place_back_after_its_ttl(self):
        first = self.hold("-l", "2", "--ttl", "500ms")
        second = self.hold("-l", "2")
        first.signal(signal.SIGKILL)
        self.assertEqual(self.finish("run", "-w", "5", "-l", "2", self.lock, "--", "true").status, 0)
        self.let_go(second)

    def test_check_is_0_while_there_is_a_permit(self):
        first = self.hold("-l", "2")
        self.assertEqual(self.finish("check", self.lock).status, 0)
        second = self.hold("-l", "2")
        self.assertEqual(self.finish("check", self.lock).status, 75)
        self.let_go(first, second)

    def test_break_ends_one_hold(self):
        both = self.two("-l", "2", "--ttl", "6s")
        token = str(both[0].token)
        self.assertEqual(self.finish("break", "--now", "--token", token, self.lock).status, 0)
        self.assertEqual(both[0].wait(), 79)
        self.let_go(both[1])


    def test_break_of_an_old_token_says_that_others_hold_it(self):
        for options in (("-l", "2"), ("-s",)):
            with self.subTest(options):
                lock = self.lock + options[0]
                holder = self.hold(*options, lock=lock)
                wrong = self.finish("break", "--token", "1", lock)
                self.assertEqual(wrong.status, 75)
                self.assertIn("is not held under that token any more; nothing was broken", wrong.err)
                self.let_go(holder)
                self.assertIn("nobody holds", self.finish("break", "--token", "1", lock).err)


class Wait(Kinds):
    def test_is_0_at_once_when_it_is_free(self):
        self.assertEqual(self.finish("wait", self.lock).status, 0)

    def test_ends_soon_after_the_release_and_takes_nothing(self):
        holder = self.hold()
        waiter = self.start("wait", self.lock)
        looked = self.server.scripts_run() + 1
        until(lambda: self.server.scripts_run() >= looked, "a look")
        self.assertIsNone(waiter.process.poll())
        self.let_go(holder)
        before = time.monotonic()
        self.assertEqual(waiter.wait(), 0)
        self.assertLess(time.monotonic() - before, 3)
        self.assertTrue(self.is_free())

    def test_looks_twice_a_second_and_says_so(self):
        self.assertIn("it looks twice a second", self.finish("help", "wait").out)
        holder = self.hold("--ttl", "60s")
        before = self.server.scripts_run()
        self.assertEqual(self.finish("wait", "-w", "2200ms", self.lock).status, 75)
        # Six looks at most, and what a connection asks when it is made.
        self.assertIn(self.server.scripts_run() - before, range(4, 12))
        self.let_go(holder)

    def test_is_75_when_its_time_is_over_and_names_the_holder(self):
        holder = self.hold("--owner", "ann")
        over = self.finish("wait", "-w", "2s", self.lock)
        self.assertEqual(over.status, 75)
        self.assertIn("is held by ann", over.err)
        self.assertEqual(self.finish("wait", "-n", "-E", "9", self.lock).status, 9)
        self.let_go(holder)

    def test_ends_when_the_lease_ends_by_itself(self):
        holder = self.hold("--ttl", "400ms", "--no-renew")
        holder.signal(signal.SIGKILL)
        self.assertEqual(self.finish("wait", "-w", "5", self.lock).status, 0)


if __name__ == "__main__":
    unittest.main()
