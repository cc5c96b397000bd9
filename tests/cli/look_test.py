# SPDX-License-Identifier: Apache-2.0
"""check, show, ls, break, doctor and hold: what people and programs get to see."""

import fcntl
import json
import os
import re
import shlex
import signal
import struct
import subprocess
import termios
import time
import unittest

from fixture import CommandTest, Server, has_terminals, now, until


class Hold(CommandTest):
    def test_prints_its_token_and_gives_the_lock_back_at_the_end_of_input(self):
        holder = self.hold()
        self.assertFalse(self.is_free())
        self.assertEqual(len(str(holder.token)), 16)
        holder.process.stdin.close()
        self.assertEqual(holder.wait(), 0)
        self.assertTrue(self.is_free())

    def test_drops_what_it_is_told_and_goes_on(self):
        holder = self.hold()
        holder.process.stdin.write(b"words\n" * 10000)
        holder.process.stdin.flush()
        self.assertFalse(self.is_free())
        self.assertIsNone(holder.process.poll())

    def test_gives_the_lock_back_at_a_signal_and_exits_128_and_its_number(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number):
                holder = self.hold()
                holder.signal(number)
                self.assertEqual(holder.wait(10), 128 + number)
                self.assertTrue(self.is_free())

    # Of a terminal that has a byte poll says that it can be read, and with VMIN and VTIME the read waits 25 s for more.
    # So does the read of whoever shares a pipe and was too late.
    @unittest.skipUnless(has_terminals(), "no pseudo-terminals here: mount /dev/pts to run this")
    def test_hears_signals_and_a_loss_while_its_read_waits(self):
        for end, status in ((lambda holder: holder.signal(signal.SIGTERM), 143),
                            (lambda holder: self.server.ask("DEL", "hf:{%s}" % self.lock), 79)):
            with self.subTest(status):
                terminal, inside = os.openpty()
                self.addCleanup(os.close, terminal)
                self.addCleanup(os.close, inside)
                mode = termios.tcgetattr(inside)
                mode[3] &= ~(termios.ICANON | termios.ECHO)
                mode[6][termios.VMIN] = mode[6][termios.VTIME] = 255
                termios.tcsetattr(inside, termios.TCSANOW, mode)
                unread = lambda: struct.unpack("i", fcntl.ioctl(inside, termios.FIONREAD, b"\0" * 4))[0]
                os.write(terminal, b"x")
                until(lambda: unread() == 1, "it can be read")
                holder = self.start("hold", "--ttl", "5s", self.lock, stdin=inside)
                until(lambda: unread() == 0, "the read has begun")
                end(holder)
                self.assertEqual(holder.wait(20), status)

    def test_exits_79_when_the_lock_is_lost(self):
        holder = self.hold("--ttl", "500ms")
        self.server.ask("DEL", "hf:{%s}" % self.lock)
        self.assertEqual(holder.wait(10), 79)
        self.assertIn("error[E12]: lost", holder.err)

    def test_exits_79_before_the_lease_ends_at_a_silent_server(self):
        holder = self.hold("--ttl", "1s")
        self.server.pause()
        self.addCleanup(self.server.resume)
        self.assertEqual(holder.wait(10), 79)

    def test_says_what_ended_it(self):
        for options, why in ((["--no-renew"], "its 4s are nearly over (--no-renew)"),
                             (["--max-hold", "6s"], "its 6s are nearly over (--max-hold)")):
            with self.subTest(why):
                holder = self.hold("--ttl", "4s", *options)
                self.assertEqual(holder.wait(30), 79)
                self.assertIn(f"error[E12]: lost '{self.lock}' (token {holder.token}): {why}\n", holder.err)
                self.assertNotIn("why:", holder.err)

    # A shell hands `exec 3>F` on to whatever it starts.
    def test_gives_the_lock_back_while_one_that_was_started_later_goes_on(self):
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        writing = os.open(fifo, os.O_WRONLY)
        first = self.start("hold", self.lock, stdin=reading)
        os.close(reading)
        until(lambda: not self.is_free(), "the lock is held")
        second = self.start("hold", "another", stdin=subprocess.PIPE,
                            prefix=("sh", "-c", f'exec 3>{fifo}; exec "$@"', "sh"))
        until(lambda: second.out.endswith("\n"), "the other one is held")
        os.close(writing)
        self.assertEqual(first.wait(10), 0)
        self.assertIsNone(second.process.poll())
        second.process.stdin.close()

    # `exec 3<>F` does not wait for a reader, as `exec 3>F` does.
    def test_ends_with_an_input_that_it_could_write_to(self):
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        both = os.open(fifo, os.O_RDWR)
        holder = self.start("hold", self.lock, stdin=both)
        until(lambda: holder.out.endswith("\n"), "the lock is held")
        os.close(both)
        self.assertEqual(holder.wait(10), 0)
        self.assertTrue(self.is_free())

    def test_waits_for_the_first_who_could_write_to_such_an_input(self):
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        both = os.open(fifo, os.O_RDWR)
        holder = self.start("hold", self.lock, stdin=both)
        os.close(both)
        until(lambda: holder.out.endswith("\n"), "the lock is held")
        renewed = self.server.scripts_run() + 2
        until(lambda: self.server.scripts_run() >= renewed, "it is renewed")
        os.close(os.open(fifo, os.O_WRONLY))
        self.assertEqual(holder.wait(10), 0)

    def test_n_is_75_when_it_is_held(self):
        self.hold()
        self.assertEqual(self.finish("hold", "-n", self.lock).status, 75)

    def test_renews_for_longer_than_its_ttl(self):
        holder = self.hold("--ttl", "1500ms")
        renewed = self.server.scripts_run() + 6
        until(lambda: self.server.scripts_run() >= renewed, "six renewals")
        self.assertIsNone(holder.process.poll())
        self.assertEqual(self.show()["token"], holder.token)


class Check(CommandTest):
    def test_is_0_and_says_free(self):
        free = self.finish("check", self.lock)
        self.assertEqual((free.status, free.out), (0, f"'{self.lock}' is free\n"))

    def test_is_75_and_names_the_holder(self):
        self.hold("--owner", "me@here")
        held = self.finish("check", self.lock)
        self.assertEqual(held.status, 75)
        self.assertRegex(held.out, rf"^'{self.lock}' is held by me@here for [0-9.]+m?s\n$")

    def test_json_says_the_same(self):
        self.assertIs(json.loads(self.finish("check", "--json", self.lock).out)["held"], False)


class Show(CommandTest):
    def test_json_has_the_fields_of_the_issue(self):
        holder = self.hold("--ttl", "5s", "--owner", "me@here")
        shown = self.show()
        self.assertEqual(shown["version"], 1)
        self.assertEqual((shown["name"], shown["held"], shown["owner"]), (self.lock, True, "me@here"))
        self.assertEqual((shown["token"], shown["ttl_ms"]), (holder.token, 5000))
        self.assertTrue(0 < shown["remaining_ms"] <= 5000)
        self.assertGreaterEqual(shown["held_ms"], 0)
        self.assertIsInstance(shown["waiters"], list)
        self.assertRegex(shown["at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")

    def test_the_default_owner_names_user_host_pid_and_command_but_no_arguments(self):
        running = self.start("run", self.lock, "--", "sleep", "60.125")
        until(lambda: not self.is_free(), "the lock is held")
        self.assertRegex(self.show()["owner"], rf"^\S+@\S+:{running.pid} sleep$")

    def test_of_a_free_lock_is_no_error(self):
        free = self.finish("show", self.lock)
        self.assertEqual(free.status, 0)
        self.assertRegex(free.out, r"held +no\n")

    def test_text_has_owner_token_and_times(self):
        holder = self.hold("--owner", "me@here")
        text = self.finish("show", self.lock).out
        for part in (r"owner +me@here\n", rf"token +{holder.token}\n", r"ttl +10s\n", r"remaining +[0-9.]+s\n"):
            self.assertRegex(text, part)

    def test_of_a_fault_with_json_is_a_document_too(self):
        gone = self.finish("show", "--json", self.lock, HOLDFAST_URI=f"redis+unix://{self.path('nobody')}")
        self.assertEqual(gone.status, 69)
        self.assertEqual(json.loads(gone.out)["error"]["code"], "E01")


    def test_of_a_mistake_with_json_is_a_document_too(self):
        for code, words in (("E07", ("show", "--json", "")), ("E07", ("show", "", "--json")),
                            ("E17", ("ls", "--json", "--plain")), ("E17", ("doctor", "--json", "x"))):
            wrong = self.finish(*words)
            self.assertEqual(wrong.status, 64)
            self.assertEqual(json.loads(wrong.out)["error"]["code"], code, words)


class Ls(CommandTest):
    def test_lists_what_matches_and_is_held(self):
        self.hold(lock="job:a")
        self.hold(lock="job:b")
        self.hold(lock="other")
        names = [lock["name"] for lock in json.loads(self.finish("ls", "job:*", "--json").out)["locks"]]
        self.assertEqual(names, ["job:a", "job:b"])
        self.assertEqual(self.finish("ls").out.count("\n"), 4)

    def test_takes_a_brace_in_a_glob_for_one_byte(self):
        self.hold(lock="odd{1}")
        self.hold(lock="odd71}")
        names = [lock["name"] for lock in json.loads(self.finish("ls", "odd[{]??", "--json").out)["locks"]]
        self.assertEqual(names, ["odd{1}"])

    # Whatever else lies under our prefix: the list of the locks is what an operator needs then.
    def test_shows_what_is_not_ours_and_all_the_rest(self):
        self.hold(lock="odd:lock")
        foreign = {"odd:list": "RPUSH", "odd:set": "SADD", "odd:string": "APPEND"}
        for name, command in foreign.items():
            self.server.ask(command, "hf:{%s}" % name, "theirs")
            self.addCleanup(self.server.ask, "DEL", "hf:{%s}" % name)
        self.server.ask("HSET", "hf:{odd:hash}", "f", "v")
        self.server.ask("PEXPIRE", "hf:{odd:hash}", "60000")
        for key in (b"hf:{odd:\xff}", b"hf:{odd:\n}"):
            self.server.ask("SET", key, "no name", "PX", "60000")
        locks = json.loads(self.finish("ls", "odd:*", "--json").out)["locks"]
        self.assertEqual([lock["name"] for lock in locks], sorted([*foreign, "odd:hash", "odd:lock"]))
        for lock in locks:
            self.assertEqual(lock["foreign"], lock["name"] != "odd:lock")
            self.assertEqual(lock["remaining_ms"] is None, lock["name"] in foreign)
        shown = self.finish("ls", "odd:*")
        self.assertEqual(shown.status, 0, shown.err)
        self.assertRegex(shown.out, r"(?m)^odd:list +- +- +- +- +- +not holdfast$")
        self.assertRegex(shown.out, r"(?m)^odd:hash +- +- +\S+s +- +- +not holdfast$")

    def test_shows_how_much_is_taken_and_how_many_wait(self):
        self.hold(lock="mode:lock")
        self.hold("-s", lock="mode:read")
        self.hold("-x", lock="mode:written")
        self.hold("-l", "5", lock="mode:some")
        self.hold("-l", "5", lock="mode:some")
        self.start("run", "mode:lock", "--", "true")
        until(lambda: self.server.ask("ZCARD", "hf:{mode:lock}:line") == 1, "it waits")
        shown = self.finish("ls", "mode:*").out
        rows = [line.split()[:6] for line in shown.splitlines()]
        self.assertEqual([[row[0], *row[4:]] for row in rows], [
            ["NAME", "MODE", "WAITING"], ["mode:lock", "exclusive", "1"], ["mode:read", "shared", "0"],
            ["mode:some", "permits:2/5", "0"], ["mode:written", "exclusive", "0"]])
        locks = {lock["name"]: lock for lock in json.loads(self.finish("ls", "mode:*", "--json").out)["locks"]}
        self.assertEqual({name: (lock["kind"], lock["waiting"]) for name, lock in locks.items()}, {
            "mode:lock": ("exclusive", 1), "mode:read": ("shared", 0), "mode:some": ("semaphore", 0),
            "mode:written": ("shared", 0)})

    def test_of_nothing_is_a_head_line(self):
        self.assertRegex(self.finish("ls", "nothing:*").out, r"^NAME .*\n$")


class Foreign(CommandTest):
    """Another library's lock under --plain."""

    def texts(self):
        held = self.finish("check", "--plain", self.lock)
        self.assertEqual(held.status, 75)
        return held.out, self.finish("show", "--plain", self.lock).out

    def test_that_ends_is_shown_with_its_time(self):
        self.server.ask("SET", self.lock, "theirs", "PX", "60000")
        check, show = self.texts()
        self.assertRegex(check, r"is held by something that is not holdfast, for \S+s more without a renewal")
        self.assertRegex(show, r"remaining +\S+s\n")

    def test_that_has_no_expiry_is_not_shown_as_ending_now(self):
        self.server.ask("SET", self.lock, "theirs")
        self.addCleanup(self.server.ask, "DEL", self.lock)
        check, show = self.texts()
        self.assertIn("is held by something that is not holdfast, and never expires", check)
        self.assertIn("for ever: the key has no expiry", show)
        looked = self.server.scripts_run()
        self.assertEqual(self.finish("wait", "-w", "1s", "--plain", self.lock).status, 75)
        self.assertLess(self.server.scripts_run() - looked, 20, "it looks twice a second")


class WaitTooLong(CommandTest):
    def test_of_more_than_a_year_is_refused(self):
        self.hold()
        refused = self.finish("wait", "-w", "120000d", self.lock)
        self.assertEqual(refused.status, 64)
        self.assertIn("error[E08]: --wait 120000d00h is out of its range\n  why: it must be 0ms to 366d00h\n", refused.err)


class WaitOnASilentServer(CommandTest):
    def test_ends_when_its_time_is_over(self):
        self.hold("--ttl", "60s")
        waiter = self.start("wait", "-w", "3s", "--server-timeout", "60s", self.lock)
        looked = self.server.scripts_run()
        until(lambda: self.server.scripts_run() > looked, "it has looked")
        for running in (waiter, None):
            self.server.pause()
            self.addCleanup(self.server.resume)
            began_at = now()
            running = running or self.start("wait", "-w", "1s", "--server-timeout", "60s", self.lock)
            self.assertEqual(running.wait(20), 69, running.err)
            self.assertLess(now() - began_at, 5)
            self.assertRegex(running.err, r"error\[E(01|20)\]: ")
            self.server.resume()

    def test_goes_on_when_it_talks_again(self):
        holder = self.hold("--ttl", "60s")
        waiters = []
        for bound in ((), ("-w", "60s")):
            looked = self.server.scripts_run()
            waiters.append(self.start("wait", *bound, "--server-timeout", "500ms", self.lock))
            until(lambda looked=looked: self.server.scripts_run() > looked, "it has looked")
        self.server.pause()
        self.addCleanup(self.server.resume)
        time.sleep(1.5)  # A look comes twice a second, and is given up after half a second.
        self.server.resume()
        looked = self.server.scripts_run() + 4
        until(lambda: self.server.scripts_run() >= looked, "they look again")
        for waiter in waiters:
            self.assertIsNone(waiter.process.poll(), waiter.err)
            self.assertRegex(waiter.err, f"^holdfast: nobody can say whether '{self.lock}' is free: .*; looking again\n$")
        holder.process.stdin.close()
        for waiter in waiters:
            self.assertEqual(waiter.wait(10), 0, waiter.err)

    def test_still_has_all_words_about_a_server_that_talks_or_is_not_there(self):
        gone = self.finish("wait", "-w", "1s", self.lock, HOLDFAST_URI=f"redis+unix://{self.path('nobody')}")
        self.assertIn("error[E01]: cannot reach ", gone.err)
        self.assertIn(": No such file or directory (", gone.err)
        wrong = self.finish("wait", "-w", "1s", self.lock, HOLDFAST_URI=self.server.uri + "?db=99")
        self.assertEqual(wrong.status, 78)
        self.assertIn("error[E03]: database 99 does not exist on ", wrong.err)


class Break(CommandTest):
    def test_of_an_old_token_leaves_the_new_holder_alone(self):
        holder = self.hold()
        wrong = self.finish("break", "--now", "--token", str(holder.token - 1), self.lock)
        self.assertEqual(wrong.status, 75)
        self.assertIn("error[E19]", wrong.err)
        self.assertEqual(self.show()["token"], holder.token)

    def test_of_what_is_not_holdfasts_names_the_key_and_who_can_end_it(self):
        for lock, command in (("foreign string", "SET"), ("foreign list", "RPUSH")):
            with self.subTest(lock):
                key = "hf:{%s}" % lock
                self.server.ask(command, key, "theirs")
                self.addCleanup(self.server.ask, "DEL", key)
                refused = self.finish("break", "--token", "5", lock)
                self.assertEqual(refused.status, 78)
                self.assertIn(f"error[E14]: key '{key}' exists on", refused.err)
                self.assertIn("why: some other program uses that key\n  fix: end it with the means of", refused.err)

    def test_of_a_free_lock_breaks_nothing(self):
        free = self.finish("break", "--token", "17", self.lock)
        self.assertEqual(free.status, 75)
        self.assertIn("nobody holds", free.err)

    def test_says_how_to_look_at_a_name_that_looks_like_an_option(self):
        refused = self.finish("break", "--", "-x")
        self.assertEqual(refused.status, 64)
        way_out = re.search(r"^  fix: holdfast (.*)$", refused.err, re.M)[1]
        shown = self.finish(*shlex.split(way_out))
        self.assertEqual((shown.status, shown.out.splitlines()[:1]), (0, ["name        -x"]), shown.err)

    # Without them it would be another lock that is looked at, and a free one.
    def test_says_how_to_look_at_a_lock_under_plain_or_another_prefix(self):
        self.server.declare_nothing_forgotten("b$c:")
        for naming in (["--plain"], ["--prefix", "b$c:"]):
            self.hold(*naming)
            for token in ([], ["--token", "x"]):
                with self.subTest(naming, token=token):
                    refused = self.finish("break", *naming, *token, self.lock)
                    way_out = re.search(r"^  fix: holdfast (.*)$", refused.err, re.M)
                    self.assertTrue(way_out, refused.err)
                    shown = self.finish(*shlex.split(way_out[1]))
                    self.assertEqual(shown.status, 0, shown.err)
                    self.assertRegex(shown.out, r"held +yes\n")

    def test_of_no_number_is_usage(self):
        self.assertEqual(self.finish("break", "--token", "x", self.lock).status, 64)

    def test_now_frees_it_at_once_and_the_next_token_is_larger(self):
        holder = self.hold("--ttl", "60s")
        self.assertEqual(self.finish("break", "--now", "--token", str(holder.token), self.lock).status, 0)
        following = self.finish("run", "-n", self.lock, "--", "sh", "-c", "echo $HOLDFAST_TOKEN")
        self.assertGreater(int(following.out), holder.token)

    # Of several that hold it together the others still do.
    def test_says_free_only_of_what_will_be(self):
        first, second = self.hold("-s", "--ttl", "60s"), self.hold("-s", "--ttl", "60s")
        broken = lambda holder, *how: self.finish("break", *how, "--token", str(holder.token), self.lock).out
        self.assertIn("that hold is renewed no more, and ends with its ttl", broken(first))
        self.assertIn("that hold is ended now; until its holder", broken(first, "--now"))
        self.assertIn("free when its ttl is over", broken(second))
        self.assertIn("free now", broken(second, "--now"))

    def test_says_that_it_is_the_next_ones_where_somebody_waits(self):
        holder = self.hold("--ttl", "60s")
        self.start("run", self.lock, "--", "sleep", "60")
        self.wait_for_a_waiter()
        broken = self.finish("break", "--now", "--token", str(holder.token), self.lock)
        self.assertIn("it is the next one's", broken.out)

    def test_names_a_person_as_run_does(self):
        person = {"LOGNAME": "ann", "USER": "bob"}
        holder = self.start("hold", self.lock, stdin=subprocess.PIPE, **person)
        self.addCleanup(holder.process.stdin.close)
        until(lambda: holder.out.endswith("\n"), "the lock is held")
        shown = self.show()
        self.assertTrue(shown["owner"].startswith("ann@"), shown["owner"])
        self.finish("break", "--why", "stuck", "--token", str(shown["token"]), self.lock, **person)
        record = self.show()["last_break"]
        self.assertRegex(record["by"], r"^ann@[^:]+:\d+ break$")
        self.assertEqual(record["by"].split(":")[0], shown["owner"].split(":")[0])
        self.assertEqual(record["why"], "stuck")

    def test_is_recorded_with_who_and_why(self):
        holder = self.hold("--ttl", "60s")
        self.finish("break", "--owner", "ops@here", "--why", "stuck", "--token", str(holder.token), self.lock)
        record = self.show()["last_break"]
        self.assertEqual((record["token"], record["by"], record["why"]), (holder.token, "ops@here", "stuck"))
        self.assertRegex(self.finish("show", self.lock).out, r"last break +.* by ops@here: stuck\n")


class WaysOut(CommandTest):
    """Commands that are printed to be typed next: without the server and the prefix that were named they would ask, or
    change, those of HOLDFAST_URI, or start a local: server."""

    def setUp(self):
        super().setUp()
        del self.environment["HOLDFAST_URI"]
        self.environment["HOLDFAST_LOCAL_DIR"] = self.path("local")
        self.addCleanup(self.finish, "local", "stop")
        self.at = ("-u", self.server.uri)

    def tearDown(self):
        self.assertFalse(os.path.exists(self.path("local")), "local: was started")

    def printed(self, text):
        """Its words; it stands in brackets or at the end of a line."""
        found = re.search(r"holdfast ((?:show|ls|init) [^()\n]*)", text)
        self.assertTrue(found, text)
        return shlex.split(found[1])

    def test_of_a_break_show_the_lock_that_was_meant(self):
        self.server.declare_nothing_forgotten("b$c:")
        for naming in ([], ["--plain"], ["--prefix", "b$c:"]):
            self.hold(*self.at, *naming)
            for token in ([], ["--token", "x"], ["--token", "1"]):
                with self.subTest(naming=naming, token=token):
                    refused = self.finish("break", *self.at, *naming, *token, self.lock)
                    shown = self.finish(*self.printed(refused.err))
                    self.assertEqual(shown.status, 0, shown.err)
                    self.assertRegex(shown.out, r"held +yes\n")

    def test_of_a_break_of_nothing_list_the_locks_that_were_meant(self):
        self.server.declare_nothing_forgotten("b$c:")
        for naming in ([], ["--prefix", "b$c:"]):
            with self.subTest(naming):
                self.hold(*self.at, *naming, lock="another")
                free = self.finish("break", *self.at, *naming, "--token", "5", self.lock)
                self.assertEqual(free.status, 75, free.err)
                listed = self.finish(*self.printed(free.err))
                self.assertEqual(listed.status, 0, listed.err)
                self.assertRegex(listed.out, "(?m)^another ")

    def test_of_a_break_of_nothing_under_plain_look_at_that_key(self):
        free = self.finish("break", *self.at, "--plain", "--token", "5", self.lock)
        self.assertEqual(free.status, 75, free.err)
        self.assertEqual(self.printed(free.err), ["show", "--plain", "--uri", self.server.uri, self.lock])

    def test_of_a_quarantine_end_that_one(self):
        run = lambda: self.finish("run", "-n", *self.at, "--prefix", "d$e:", "--max-ttl", "1h", self.lock, "true")
        refused = run()
        self.assertEqual(refused.status, 69, refused.err)
        self.assertIn("error[E23]", refused.err)
        ended = self.finish(*self.printed(refused.err))
        self.assertEqual((ended.status, ended.out), (
            0, f"{self.server.uri} is told that it has forgotten no lock under 'd$e:': it grants at once\n"), ended.err)
        granted = run()
        self.assertEqual(granted.status, 0, granted.err)

    def test_of_who_looks_name_the_quarantine_that_was_seen(self):
        for words in (["check", self.lock], ["show", self.lock], ["wait", "-n", self.lock], ["doctor"]):
            with self.subTest(words[0]):
                looked = self.finish(*words, *self.at, "--prefix", "f:", "--max-ttl", "1h")
                self.assertEqual(self.printed(looked.out + looked.err),
                                 ["init", "--uri", self.server.uri, "--prefix", "f:", "--max-ttl", "3600s"])
        printed = self.printed(self.finish("doctor", *self.at, "--prefix", "f:").out)
        self.assertEqual(printed, ["init", "--uri", self.server.uri, "--prefix", "f:"])

    def test_of_a_quarantine_say_for_how_long_a_lease_may_live(self):
        server = Server()  # That has just started.
        self.addCleanup(server.stop)
        refused = self.finish("run", "-n", "-u", server.uri, "--prefix", "g:", "--max-ttl", "30s", self.lock, "true")
        self.assertEqual(self.finish(*self.printed(refused.err)).status, 0)
        self.assertRegex(server.ask("GET", "g:epoch"), r"\|30\d{3}$")  # The default would write 60.

    # A quarantine lasts for the longest lease that may be forgotten. Who has none must not make it longer (P18).
    def test_of_who_only_looks_need_no_max_ttl(self):
        at = (*self.at, "--prefix", "h:")
        self.server.declare_nothing_forgotten("h:")
        self.assertEqual(self.finish("run", *at, "--max-ttl", "4s", "--ttl", "2s", self.lock, "--", "true").status, 0)
        for words in (["show", self.lock], ["ls"], ["check", self.lock], ["wait", self.lock], ["doctor"], ["init"],
                      ["break", "--token", "5", self.lock]):
            self.finish(*words, *at)
            self.assertRegex(self.server.ask("GET", "h:epoch"), r"\|40\d{2}$", words[0])
        self.assertEqual(self.finish("run", *at, self.lock, "--", "true").status, 0)
        self.assertRegex(self.server.ask("GET", "h:epoch"), r"\|60\d{3}$")
        said = self.finish("doctor", *at, "--max-ttl", "4s").out
        self.assertRegex(said, r"\nwarning  a quarantine lasts for 61 s, and not for 5: .*\(E23\)\n")
        self.assertIn("redis-cli DEL h:epoch", said)

    def test_of_a_run_without_a_command_have_its_options(self):
        named = f"--uri {self.server.uri} {self.lock}"
        self.assertIn(f"holdfast run {named} -- CMD; to hold the lock without one: holdfast hold {named}\n",
                      self.finish("run", *self.at, self.lock).err)

    # A name is of one kind for a week: as another one it is refused, or has become that one.
    def test_of_a_lock_to_be_taken_have_its_kind(self):
        for kind in (["-s"], ["-x"], ["-l", "2"]):
            with self.subTest(kind):
                name = self.lock + "".join(kind)
                for given in (["run", *self.at, *kind, name], ["hold", *self.at, *kind, name]):
                    self.assertIn(f"holdfast hold {' '.join(kind)} --uri {self.server.uri} {name}",
                                  self.finish(*given).err)

    def test_of_a_server_that_is_not_there_set_what_has_an_effect(self):
        nobody = f"redis+unix://{self.path('nobody')}"
        self.assertIn("or point elsewhere: --uri redis://HOST:PORT\n", self.finish("show", "-u", nobody, self.lock).err)
        self.assertIn("or point elsewhere: export HOLDFAST_URI=redis://HOST:PORT\n",
                      self.finish("show", self.lock, HOLDFAST_URI=nobody).err)


class Doctor(CommandTest):
    def test_of_a_good_server_is_0(self):
        good = self.finish("doctor")
        self.assertEqual(good.status, 0, good.out + good.err)
        self.assertTrue(good.out.endswith("fit for locks\n"))

    def test_says_when_a_quarantine_is_over(self):
        found = self.finish("doctor", "--prefix", "q:", "--max-ttl", "10h")
        self.assertEqual(found.status, 0, found.out + found.err)
        granted = re.search(r"nothing is granted for (\d+) s more \(E23\)", found.out)
        fit = re.search(r"\nfit for locks when the quarantine is over, in (\d+) s\n$", found.out)
        self.assertTrue(granted and fit, found.out)
        self.assertEqual(granted[1], fit[1])
        self.assertTrue(self.finish("doctor").out.endswith("\nfit for locks\n"))

    def test_of_servers_of_which_none_answers_does_not_say_which_they_are(self):
        found = self.finish("doctor", "-u", "redis+quorum://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3")
        self.assertEqual(found.status, 78, found.out + found.err)
        self.assertIn("127.0.0.1:3: quorum of 3, no answer\n", found.out)

    def test_leaves_the_same_key_each_time(self):  # One that asks every minute would leave 10,000 in a week.
        self.finish("doctor")
        before = self.server.ask("DBSIZE")
        self.finish("doctor")
        self.assertEqual(self.server.ask("DBSIZE"), before)

    def test_json_has_findings_with_level_and_fix(self):
        found = json.loads(self.finish("doctor", "--json").out)
        self.assertIn(found["worst"], ("ok", "warning"))
        self.assertEqual(found["role"], "master")
        for finding in found["findings"]:
            self.assertEqual(set(finding), {"level", "code", "what", "fix"})

    def test_names_a_policy_that_throws_locks_away(self):
        self.server.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        self.addCleanup(self.server.ask, "CONFIG", "SET", "maxmemory-policy", "noeviction")
        found = json.loads(self.finish("doctor", "--json").out)
        self.assertIn("E05", [finding["code"] for finding in found["findings"]])

    def test_names_the_option_for_replicas_as_it_is_typed(self):
        few = self.finish("doctor", "--replicas", "2")
        self.assertIn("or --replicas 0 at most\n", few.out)
        self.assertNotIn("durability", few.out + self.finish("doctor", "--json", "--replicas", "2").out)

    def test_of_no_server_is_69(self):
        self.assertEqual(self.finish("doctor", HOLDFAST_URI=f"redis+unix://{self.path('nobody')}").status, 69)


if __name__ == "__main__":
    unittest.main()
