# SPDX-License-Identifier: Apache-2.0
"""The local: server, as a newcomer meets it: nothing set up, nothing named."""

import fcntl
import json
import os
import re
import shutil
import signal
import threading
import unittest

from fixture import CommandTest, Connection, is_alive, now, signals_of, until


class Local(CommandTest):
    def setUp(self):
        super().setUp()
        del self.environment["HOLDFAST_URI"]
        self.environment["HOLDFAST_LOCAL_DIR"] = self.path("local")
        self.addCleanup(lambda: self.finish("local", "stop"))
        self.addCleanup(self.end_all)  # Before that: who needs the server starts it again.

    def status(self):
        return json.loads(self.finish("local", "status", "--json").out)

    def test_first_command_works_and_says_whose_locks_these_are(self):
        first = self.finish("run", self.lock, "--", "sh", "-c", "exit 7")
        self.assertEqual(first.status, 7, first.err)
        self.assertEqual(first.err, "holdfast: no server named: these locks are yours on this machine alone; "
                                    "for a shared one: export HOLDFAST_URI=redis://HOST\n")

    def test_notice_is_left_out_when_local_is_named_or_with_q(self):
        self.assertEqual(self.finish("run", "-u", "local:", self.lock, "true").err, "")
        self.assertEqual(self.finish("run", self.lock, "true", HOLDFAST_URI="local:").err, "")
        self.assertEqual(self.finish("run", "-q", self.lock, "true").err, "")

    # `-u "$LOCKS"` of a crontab without LOCKS: locks of this machine alone would look like the shared ones.
    def test_is_not_taken_for_a_server_whose_name_is_empty(self):
        for options, environment, said in (
                (["-u", ""], {"HOLDFAST_URI": "redis://127.0.0.1:1"}, "--uri: its value is empty"),
                (["--uri="], {}, "--uri: its value is empty"),
                ([], {"HOLDFAST_URI": ""}, "HOLDFAST_URI is set and empty")):
            with self.subTest(said):
                for command in (["run", "-q", self.lock, "--", "echo", "in"], ["show", self.lock], ["ls"], ["init"]):
                    refused = self.finish(command[0], *options, *command[1:], **environment)
                    self.assertEqual((refused.status, refused.out), (64, ""))
                    self.assertIn(f"error[E17]: {said}", refused.err)
        self.assertFalse(self.status()["running"])

    def test_is_not_started_for_an_option_that_is_out_of_range(self):
        long = "x" * 300
        for words in (["run", "--ttl", "0", self.lock, "true"], ["hold", "--ttl", "2m", self.lock],
                      ["run", "-w", "400d", self.lock, "true"], ["wait", "-w", "400d", self.lock],
                      ["hold", "--max-hold", "400d", self.lock], ["run", "--max-ttl", "0", self.lock, "true"],
                      ["run", "--server-timeout", "2h", self.lock, "true"], ["run", "-l", "0", self.lock, "true"],
                      ["run", "-w", "1", "--server-timeout", "2h", self.lock, "true"],
                      ["run", "--replicas", "1", "-t", "200ms", self.lock, "true"],
                      ["run", "-w", "1", "--replicas", "101", self.lock, "true"],
                      ["run", "-w", "1", "--replicas", "1", "--replicas-timeout", "4s", "-t", "60s", self.lock, "true"],
                      ["run", "--replicas", "1", "--replicas-timeout", "4s", "-t", "60s", self.lock, "true"],
                      ["run", "--min-fence", str(2**53 - 1), self.lock, "true"],
                      ["run", "--prefix", "a b", self.lock, "true"], ["run", "--owner", long, self.lock, "true"],
                      ["run", "--why", long, self.lock, "true"], ["hold", "--why", long, self.lock],
                      ["break", "--token", "1", "--why", long, self.lock], ["resize", self.lock, "0"],
                      ["run", "a\nb", "true"], ["show", "a\nb"]):
            with self.subTest(words):
                refused = self.finish(*words)
                self.assertEqual((refused.status, refused.out), (64, ""), refused.err)
                self.assertRegex(refused.err, r"^holdfast: error\[E(07|08|17)\]: ")
                self.assertFalse(os.path.exists(self.path("local")))

    def test_start_status_stop_tell_the_truth(self):
        self.assertEqual(self.finish("local", "status").status, 69)
        self.assertEqual(self.finish("local", "start").status, 0)
        running = self.status()
        self.assertTrue(running["running"] and is_alive(running["pid"]))
        for said in ("stopped; its directory is ", "not running; its directory is "):
            stopped = self.finish("local", "stop")
            self.assertEqual((stopped.status, stopped.out), (0, said + self.path("local") + "\n"), stopped.err)
        until(lambda: not is_alive(running["pid"]), "redis-server is gone")
        self.assertIs(self.status()["running"], False)

    # It was done; but a script goes on with the document.
    def test_start_and_stop_that_cannot_be_printed_are_a_warning_that_has_it(self):
        done = "holdfast: warning: cannot write: No space left on device; it was done all the same: "
        status, err = self.into_full_disk("local", "start")
        self.assertEqual((status, err), (0, f"{done}started, pid {self.status()['pid']}, socket {self.path('local')}"
                                            "/redis.sock\n"))
        for what, runs in (("stop", False), ("start", True)):
            status, err = self.into_full_disk("local", what, "--json")
            self.assertEqual(status, 70)
            self.assertTrue(err.startswith(done), err)
            self.assertIs(json.loads(err[len(done):])["running"], runs)
            self.assertIs(self.status()["running"], runs)
        status, err = self.into_full_disk("local", "status", "--json")
        self.assertEqual(status, 70)
        self.assertIn("error[E21]: cannot write", err)

    def test_that_is_silent_delays_no_signal(self):
        self.finish("local", "start")
        server = self.status()["pid"]
        self.addCleanup(os.kill, server, signal.SIGCONT)
        os.kill(server, signal.SIGSTOP)
        for words in (["run", self.lock, "--", "true"], ["hold", self.lock]):
            with self.subTest(words[0]):
                running = self.start(*words)
                until(lambda: signals_of(running.pid, "SigBlk") & 1 << signal.SIGTERM - 1, "its signals are blocked")
                began_at = now()
                running.signal(signal.SIGTERM)
                self.assertEqual(running.wait(), 143, running.err)
                self.assertLess(now() - began_at, 4)  # It would be silent for 5 s.

    # As of any other server: what was said to be the bound is for all of it.
    BOUNDED = (["run", "-w", "300ms"], ["hold", "-w", "300ms"], ["wait", "-w", "300ms"],
               ["run", "-n", "--server-timeout", "300ms"], ["show", "--server-timeout", "300ms"])

    def is_given_up(self, words, **environment):
        began_at = now()
        words = [*words, self.lock, *(["true"] if words[0] == "run" else [])]
        refused = self.finish(*words, **environment)
        took = now() - began_at
        self.assertEqual(refused.status, 69, refused.err)
        self.assertRegex(refused.err, r"error\[E18\]: .*\n  why: .*; `kill -9 \d+` ends it")
        self.assertLess(took, 4)  # It was 6 s, and 15 s.
        return refused.err

    def test_that_is_silent_is_given_up_when_the_time_is_over(self):
        self.finish("local", "start")
        server = self.status()["pid"]
        self.addCleanup(os.kill, server, signal.SIGCONT)
        os.kill(server, signal.SIGSTOP)
        for words in self.BOUNDED:
            with self.subTest(words):
                self.is_given_up(words)
        with open(self.path("local/lock"), "rb") as lock:  # As of others who ask it at the same time.
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.is_given_up(self.BOUNDED[0])

    # What the server takes to be there again is not added to the wait for the lock.
    def test_that_comes_back_leaves_what_is_left_of_the_wait(self):
        self.hold("-t", "30s")
        server = self.status()["pid"]
        wake = threading.Timer(2, os.kill, (server, signal.SIGCONT))
        self.addCleanup(wake.join)
        began_at = now()
        os.kill(server, signal.SIGSTOP)
        wake.start()
        waiting = [self.start("run", "-w", "3", self.lock, "true"), self.start("hold", "-w", "3", self.lock),
                   self.start("wait", "-w", "3", self.lock)]
        for one in waiting:
            self.assertEqual(one.wait(), 75, one.err)
        self.assertLess(now() - began_at, 4.5)  # It was 5 s.

    def path_with_server(self, script):
        os.mkdir(self.path("bin"))
        with open(self.path("bin/redis-server"), "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(self.path("bin/redis-server"), 0o755)
        return self.path("bin") + ":" + os.environ["PATH"]

    def test_whose_start_hangs_is_given_up_when_the_time_is_over(self):
        path = self.path_with_server("exec sleep 60")
        for words in self.BOUNDED:
            with self.subTest(words):
                said = self.is_given_up(words, PATH=path)
                server = int(re.search(r"`kill -9 (\d+)`", said)[1])
                os.kill(server, signal.SIGKILL)
                until(lambda: not is_alive(server), "it is gone")

    # The bound is for the start alone: what must fit into the client's timeout still does.
    def test_is_not_refused_for_a_short_wait(self):
        granted = self.finish("run", "-w", "300ms", "--replicas", "1", "--replicas-timeout", "2s", self.lock, "true")
        self.assertIn(granted.status, (69, 75), granted.err)
        self.assertNotIn("out of its range", granted.err)

    # A try does not wait for who has the lock. The server is nobody's yet.
    def test_whose_start_takes_its_time_is_waited_for(self):
        path = self.path_with_server('sleep 0.2; PATH=/usr/bin:/bin exec redis-server "$@"')
        for words in (["run", "-n"], ["run", "-w", "0"], ["run", "-w", "50ms"], ["run"]):
            with self.subTest(words):
                granted = self.finish(*words, self.lock, "true", PATH=path)
                if "50ms" in words:  # The start has more, and on a busy machine the lock then takes longer than that.
                    self.assertNotIn("E18", granted.err)
                else:
                    self.assertEqual(granted.status, 0, granted.err)
                self.finish("local", "stop")
                shutil.rmtree(self.path("local"))

    def test_that_was_started_again_may_have_forgotten_locks_until_somebody_says_that_it_has_not(self):
        self.assertEqual(self.finish("run", self.lock, "true").status, 0)  # Its first start: nothing to wait for.
        self.finish("local", "stop")
        refused = self.finish("run", "-n", self.lock, "true")
        self.assertEqual(refused.status, 69)
        self.assertIn("error[E23]", refused.err)
        self.assertIn("holdfast init", refused.err)
        self.assertGreater(self.show()["quarantine_ms"], 50_000)
        self.assertIn("; if this is its first start: holdfast init\n", self.finish("show", self.lock).out)
        self.assertIn("E23", self.finish("doctor").out)
        looked = self.finish("check", self.lock)
        self.assertEqual(looked.status, 75)
        self.assertIn("somebody whom the server has forgotten", looked.out)
        self.assertEqual(self.finish("wait", "-n", self.lock).status, 75)
        waiter = self.start("run", self.lock, "true")
        until(lambda: "waiting" in waiter.err, "it says what it waits for")
        self.assertIn(f"waiting: '{self.lock}' may be held by somebody whom the server has forgotten, for ", waiter.err)
        self.assertIn(" more (if this is its first start: holdfast init); nobody ahead", waiter.err)
        waiter.signal(signal.SIGTERM)
        waiter.wait()
        trusting = self.finish("run", "-n", "--trust-every-write-is-synced", self.lock, "true")
        self.assertEqual(trusting.status, 0, trusting.err)
        self.assertEqual(self.finish("init").status, 0)
        self.assertEqual(self.finish("run", "-n", self.lock, "true").status, 0)
        self.assertEqual(self.show()["quarantine_ms"], 0)
        self.assertEqual(self.finish("check", self.lock).status, 0)

    # systemd-tmpfiles deletes what was not touched for a month in /var/tmp.
    def test_whose_old_files_were_deleted_may_have_forgotten_locks(self):
        self.hold("-t", "60")
        os.unlink(self.path("local/starts"))
        for name in os.listdir(self.path("local/appendonlydir")):
            if ".incr." not in name:
                os.unlink(self.path("local/appendonlydir/" + name))
        self.finish("local", "stop")
        refused = self.finish("run", "-n", self.lock, "true")
        self.assertEqual(refused.status, 69, refused.err)
        self.assertIn("error[E23]", refused.err)

    # Between the look and the stop it may have come up: who is told that nothing ran looks for the locks elsewhere.
    def test_stop_says_that_it_has_ended_a_server_that_was_just_being_started(self):
        path = self.path_with_server(
            f"touch '{self.path('begun')}'\nsleep 1\nPATH=/usr/bin:/bin exec redis-server \"$@\"")
        for words, said in (([], "stopped; "), (["--json"], '"was_stopped":true')):
            with self.subTest(words):
                starting = self.start("local", "start", PATH=path)
                until(lambda: os.path.exists(self.path("begun")), "it was run and does not listen")
                stopped = self.finish("local", "stop", *words)
                self.assertEqual(stopped.status, 0, stopped.err)
                self.assertIn(said, stopped.out)
                self.assertIn(starting.wait(), (0, 69), starting.err)
                self.assertIs(self.status()["running"], False)
                os.unlink(self.path("begun"))
        self.assertIs(json.loads(self.finish("local", "stop", "--json").out)["was_stopped"], False)

    def test_stop_of_nothing_is_no_error(self):
        self.assertEqual(self.finish("local", "stop").status, 0)

    def test_another_word_is_usage(self):
        self.assertEqual(self.finish("local", "strat").status, 64)

    # holdfast local stop "$UNSET" would end the user's own server.
    def test_an_empty_directory_is_usage(self):
        self.finish("local", "start")
        for what in ("stop", "start", "status"):
            empty = self.finish("local", what, "")
            self.assertEqual(empty.status, 64, empty.err)
            self.assertIn("was a variable not set?", empty.err)
        self.assertEqual(self.finish("local", "status").status, 0)

    def test_that_cannot_be_used_says_why_and_what_else(self):
        os.symlink("/tmp", self.path("link"))
        wrong = self.finish("run", self.lock, "true", HOLDFAST_LOCAL_DIR=self.path("link"))
        self.assertEqual(wrong.status, 69)
        self.assertIn("error[E18]", wrong.err)
        self.assertIn("HOLDFAST_URI=redis://HOST:PORT", wrong.err)

    # chmod 0700 of a system directory breaks the machine, and root may do it.
    def test_never_advises_to_change_the_mode_of_a_system_directory(self):
        os.symlink("/", self.path("root"))
        for words, why in ((("run", "-u", "local:/etc", self.lock, "true"), "Its mode is 0755"),
                           (("local", "start", self.path("root/etc")), "Its mode is 0755"),
                           (("lab", "single", "--directory", "/tmp"), "Others may write into it")):
            with self.subTest(words):
                wrong = self.finish(*words, HOME="/root")
                self.assertEqual(wrong.status, 69)
                self.assertIn("error[E18]", wrong.err)
                self.assertNotIn("chmod", wrong.err)
                if os.geteuid() == 0:
                    self.assertIn(f"why: {why}", wrong.err)
                    self.assertIn("Name a directory of your own", wrong.err)

    # Without its directory it would end another one's server: that of the user, with all locks of theirs.
    def test_that_cannot_answer_is_ended_by_the_way_out_and_no_other(self):
        self.finish("local", "start")
        mine = self.status()["pid"]
        for trouble, make, words in (("busy with a script", self.keep_busy, ["run", self.lock, "true"]),
                                     ("as many clients as it takes", self.crowd, ["ls"])):
            with self.subTest(trouble):
                named = self.path(make.__name__)
                self.assertEqual(self.finish("local", "start", named).status, 0)
                self.addCleanup(self.finish, "local", "stop", named)
                theirs = json.loads(self.finish("local", "status", named, "--json").out)
                kept = make(theirs["socket"])
                self.addCleanup(kept.close)

                def refusal():  # In its script, on a busy machine, it may say nothing for a second.
                    said = self.finish(words[0], "-u", "local:" + named, *words[1:])
                    self.assertEqual(said.status, 69, said.err)
                    return said if "does not answer" not in said.err else None
                refused = until(refusal, "an answer, and not silence", 60)
                self.assertIn(trouble, refused.err)
                ways_out = re.findall(r"`holdfast ([^`]*)`", refused.err)
                self.assertEqual(ways_out, ["local stop " + named], refused.err)
                self.assertEqual(self.finish(*ways_out[0].split()).status, 0)
                until(lambda: not is_alive(theirs["pid"]), "the one that was named has ended")
                self.assertEqual(self.status()["pid"], mine)

    def keep_busy(self, socket):
        kept = Connection(socket)
        kept.ask("CONFIG", "SET", "lua-time-limit", "100")
        kept.send("EVAL", "while true do end", "0")

        def is_busy():
            another = Connection(socket)
            try:
                another.ask("PING")
            except RuntimeError as said:
                return str(said).startswith("BUSY ")
            finally:
                another.close()
        until(is_busy, "the server is busy")
        return kept

    def crowd(self, socket):
        kept = Connection(socket)
        kept.ask("CONFIG", "SET", "maxclients", "1")
        return kept

    def answers(self):
        try:
            another = Connection(self.path("local/redis.sock"))
        except OSError:
            return False
        try:
            return another.ask("PING") == "PONG"
        except RuntimeError:  # It reads its file.
            return False
        finally:
            another.close()

    # A unit of systemd's takes the server along that it started, and nothing starts another: a wait would have no end,
    # though nobody holds the lock.
    def test_that_has_ended_is_started_again_by_who_waits(self):
        short = ("--max-ttl", "2s", "-t", "1s")
        holder = self.hold(*short)
        waiter = self.start("run", *short, self.lock, "--", "echo", "in")
        until(lambda: "waiting" in waiter.err, "it is in line")
        self.finish("local", "stop")
        holder.process.kill()
        self.assertEqual(waiter.wait(), 0, waiter.err)
        self.assertEqual(waiter.out, "in\n")

    # Its lease is in the file of the server: without one it would be lost, and the command ended with it.
    def test_that_has_ended_is_started_again_by_who_holds(self):
        holder = self.hold("-t", "20s")
        self.finish("local", "stop")
        until(self.answers, "it is there again, and no command was run")
        self.assertEqual(self.show()["token"], holder.token)
        self.assertIsNone(holder.process.poll(), holder.err)

    def test_outlives_the_command_that_started_it(self):
        self.finish("run", self.lock, "true")
        first = self.status()
        self.finish("run", self.lock, "true")
        self.assertEqual(self.status()["pid"], first["pid"])


if __name__ == "__main__":
    unittest.main()
