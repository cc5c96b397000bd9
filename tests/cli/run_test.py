# SPDX-License-Identifier: Apache-2.0
"""holdfast run: statuses, the command's environment and input, busy, nesting, usage. Issue point 2, interface.md 1.4."""

import contextlib
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

from fixture import COMMAND, IS_SANITIZED, CommandTest, content, now, signals_of, state_of, until

# Modes bind root, too, without these.
WITHOUT_PRIVILEGES = () if os.geteuid() != 0 else (
    "setpriv", "--inh-caps=-dac_override,-dac_read_search", "--bounding-set=-dac_override,-dac_read_search")


class Status(CommandTest):
    def test_of_the_command_is_passed_on(self):
        self.assertEqual(self.finish("run", "-n", self.lock, "--", "sh", "-c", "exit 7").status, 7)

    def test_is_0_when_the_command_says_so(self):
        self.assertEqual(self.finish("run", self.lock, "true").status, 0)

    def test_is_128_and_the_signal_that_ended_the_command(self):
        self.assertEqual(self.finish("run", self.lock, "--", "sh", "-c", "kill -9 $$").status, 137)

    # It forks where flock(1) would have it exec, and its command would run without the lock.
    def test_is_64_for_a_setsid_that_would_leave_and_that_of_its_command_for_one_that_stays(self):
        gone = self.finish("run", self.lock, "--", "setsid", "sh", "-c", "exit 7")
        self.assertEqual(gone.status, 64)
        self.assertIn("setsid -w CMD", gone.err)
        for stays in (("--", "setsid", "-w"), ("--foreground", "--", "setsid")):
            self.assertEqual(self.finish("run", self.lock, *stays, "sh", "-c", "sleep 0.2; exit 7").status, 7)
        self.assertEqual(self.finish("run", self.lock, "--", "setsid", "--fork", "true").status, 0)

    def test_is_127_for_a_missing_command_and_the_lock_is_given_back(self):
        missing = self.finish("run", self.lock, "--", "/no/such/command")
        self.assertEqual(missing.status, 127)
        self.assertIn("cannot run '/no/such/command': No such file", missing.err)
        self.assertTrue(self.is_free())

    @unittest.skipIf(IS_SANITIZED, "a sanitizer makes threads of its own kind")
    def test_is_70_without_a_thread_and_names_the_limit_and_the_lock_was_not_asked_for(self):
        # A new thread's stack would be larger than the address space: EAGAIN.
        none = ("prlimit", f"--stack={1 << 47}:")
        for words in (("run", self.lock, "true"), ("hold", self.lock)):
            refused = self.finish(*words, prefix=none)
            self.assertEqual((refused.status, refused.out), (70, ""), refused.err)
            self.assertIn("error[E21]: the system gives this process no more threads or processes\n", refused.err)
            self.assertRegex(refused.err, r"\n  fix: raise it: ulimit -u, ")
            self.assertNotIn("defect", refused.err)
        self.assertIsNone(self.server.ask("GET", f"hf:{{{self.lock}}}:fence"), "never granted")

    @unittest.skipIf(IS_SANITIZED, "a sanitizer has descriptors of its own")
    def test_of_too_few_descriptors_names_the_limit_and_no_lock_is_left_behind(self):
        for words in (("run", self.lock, "true"), ("hold", self.lock)):
            succeeded = 0
            for count in range(5, 24):
                few = ("sh", "-c", f'ulimit -n {count}; exec "$@"', "sh")
                # Once more with time, where it was the machine that had none.
                for timeout in ("100ms", "3s"):
                    tried = self.finish(words[0], "-n", "-q", "--server-timeout", timeout, *words[1:], prefix=few)
                    if tried.status == 0 or "no descriptor left" in tried.err:
                        break
                with self.subTest(command=words[0], descriptors=count, said=tried.err):
                    succeeded += tried.status == 0
                    self.assertIn(tried.status, (0, 69, 70))
                    if tried.status != 0:
                        self.assertRegex(tried.err, r"no descriptor left[^\0]*\n  fix: raise the limit: ulimit -n ")
                    self.assertIsNone(self.server.ask("GET", f"hf:{{{self.lock}}}"), "nobody holds it")
            self.assertGreater(succeeded, 3)

    def test_of_a_forgotten_name_says_what_was_taken_for_it(self):
        for words in (("--", "make", "-j4"), ("make", "--", "-j4")):
            with self.subTest(words):
                forgotten = self.finish("run", *words)
                self.assertEqual(forgotten.status, 127)
                self.assertIn("cannot run '-j4'", forgotten.err)
                self.assertIn("\n  why: 'make' was taken for the lock's name, and '-j4' for the command\n"
                              "  fix: holdfast run NAME -- make ..\n", forgotten.err)

    def test_of_a_command_that_cannot_be_run_has_a_reason_and_a_way_out(self):
        with open(self.path("script"), "w", encoding="utf-8") as file:
            file.write("#! /no/such/python -u\n")
        os.chmod(self.path("script"), 0o755)
        os.mkdir(self.path("directory"))
        for program, status, why in (("/no/such", 127, "there is no such file"),
                                     ("no-such", 127, "no directory of PATH"),
                                     ("", 127, "the command is an empty word"),
                                     (self.path("directory"), 126, "it is a directory"),
                                     (".", 126, "it is a directory"),
                                     (self.path("script"), 127, "the interpreter '/no/such/python' that its first line")):
            with self.subTest(program):
                failed = self.finish("run", self.lock, program)
                self.assertEqual(failed.status, status)
                self.assertIn(f"\n  why: {why}" if program != self.path("script") else why, failed.err)
                self.assertIn("\n  fix: ", failed.err)

    # Of one directory that it may not search, exec says that it may not execute the program.
    def test_of_a_command_that_no_directory_of_path_has_does_not_speak_of_a_file(self):
        os.mkdir(self.path("forbidden"), 0)
        self.addCleanup(os.chmod, self.path("forbidden"), 0o700)
        if subprocess.run([*WITHOUT_PRIVILEGES, "sh", "-c", '! cd "$1"', "sh", self.path("forbidden")],
                          stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("NOT TESTED: everything may be searched, and setpriv is not permitted here")
        failed = self.finish("run", self.lock, "no-such", prefix=WITHOUT_PRIVILEGES,
                             PATH=f"{self.path('forbidden')}:{os.environ['PATH']}")
        self.assertEqual(failed.status, 126, failed.err)
        self.assertIn("\n  why: no directory of PATH that this user may search has it\n  fix: its whole path", failed.err)
        self.assertNotIn("chmod", failed.err)

    def test_is_126_for_a_command_that_is_no_program(self):
        with open(self.path("data"), "w", encoding="utf-8") as file:
            file.write("not a program\n")
        self.assertEqual(self.finish("run", self.lock, "--", self.path("data")).status, 126)

    def test_is_69_without_a_server(self):
        ran = self.path("ran")
        gone = self.finish("run", self.lock, "--", "touch", ran, HOLDFAST_URI=f"redis+unix://{self.path('nobody')}")
        self.assertEqual(gone.status, 69)
        self.assertFalse(os.path.exists(ran), "it ran without the lock (H67)")
        self.assertIn("error[E01]: cannot reach redis+unix://", gone.err)
        self.assertIn("\n  fix: ", gone.err)

    def test_of_an_unreachable_server_names_the_time_that_it_took(self):
        for command in (("run", self.lock, "true"), ("show", self.lock), ("ls",), ("check", self.lock)):
            gone = self.finish(*command, HOLDFAST_URI=f"redis+unix://{self.path('nobody')}")
            self.assertRegex(gone.err, r"\((tried \d+ times in|after) \d+ms\)\n")

    def test_is_78_for_a_database_that_is_not_there_and_names_it(self):
        for command in (("run", self.lock, "true"), ("show", self.lock)):
            wrong = self.finish(*command, HOLDFAST_URI=self.server.uri + "?db=99")
            self.assertEqual(wrong.status, 78)
            self.assertIn("error[E03]: database 99 does not exist on ", wrong.err)

    def test_is_64_for_a_bad_name_and_the_message_shows_it_harmless(self):
        bad = self.finish("run", "a\x1b[31mb", "true")
        self.assertEqual(bad.status, 64)
        self.assertIn("error[E07]", bad.err)
        self.assertIn("\\x1b", bad.err)
        self.assertNotIn("\x1b", bad.err)

    def test_is_64_for_a_name_that_is_empty(self):
        for words in (["run", "", "--", "true"], ["hold", ""], ["show", "--plain", ""], ["break", "--token", "1", ""]):
            bad = self.finish(*words)
            self.assertEqual((bad.status, bad.out), (64, ""))
            self.assertEqual(bad.err, "holdfast: error[E07]: the lock's name is empty\n  why: names are 1 to 512 bytes\n"
                                      "  fix: name one; was a variable not set?\n  see: holdfast help E07\n")
        said = json.loads(self.finish("show", "--json", "").out)["error"]
        self.assertEqual((said["code"], said["cause"], said["exit"]), ("E07", "invalid_name", 64))
        self.assertIn("error[E17]: the pattern is empty", self.finish("ls", "").err)

    def test_is_64_for_a_ttl_out_of_range(self):
        for ttl in ("0", "1ms", "2h"):
            with self.subTest(ttl):
                bad = self.finish("run", "--ttl", ttl, self.lock, "true")
                self.assertEqual(bad.status, 64, bad.err)
                self.assertIn("error[E08]", bad.err)

    def test_is_64_for_an_option_out_of_range_and_names_what_was_typed(self):
        for words, said in ((["--server-timeout", "0"],
                             "--server-timeout 0ms is out of its range\n  why: it must be 10ms to 1h00m\n"),
                            (["--max-ttl", "48h"],
                             "--max-ttl 2d00h is out of its range\n  why: it must be 100ms to 1d00h\n"),
                            (["--replicas", "1", "--replicas-timeout", "0"], "--replicas-timeout 0ms is out of its"),
                            (["--replicas", "1", "-t", "200ms"], "400ms or more, four times --replicas-timeout\n"),
                            (["--max-hold", "9999h"], "--max-hold 416d15h is out of its range"),
                            (["-w", "400d"], "--wait 400d00h is out of its range"),
                            (["--replicas", "1", "-u", "redis+quorum://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"],
                             "--replicas 1 cannot be had with a quorum\n")):
            with self.subTest(words):
                bad = self.finish("run", *words, self.lock, "true")
                self.assertEqual(bad.status, 64)
                self.assertIn("error[E08]: ", bad.err)
                self.assertIn(said, bad.err)
                self.assertNotIn("durability", bad.err)

    def test_is_64_for_a_uri_that_is_none(self):
        bad = self.finish("run", "-u", "http://h", self.lock, "true")
        self.assertEqual(bad.status, 64)
        self.assertIn("error[E17]", bad.err)

    # Who shares a pipe may have made it non-blocking for all.
    def test_is_0_when_a_full_pipe_that_does_not_block_is_read_late(self):
        read, write = os.pipe()
        os.set_blocking(write, False)
        filled = 0
        try:
            while True:
                filled += os.write(write, b"x" * 4096)
        except BlockingIOError:
            pass
        done = subprocess.Popen([COMMAND, "help", "exit"], env=self.environment, stdout=write, stderr=subprocess.PIPE)
        os.close(write)
        until(lambda: done.poll() is not None or state_of(done.pid) == "S", "it waits")
        with open(read, "rb") as file:
            said = file.read()[filled:]
        self.assertEqual((done.wait(), done.stderr.read()), (0, b""))
        done.stderr.close()
        self.assertIn(b"Exit status", said)

    def test_is_70_and_no_abort_when_stdout_is_full(self):
        for words in ((), ("help",), ("version",), ("show", self.lock)):
            status, err = self.into_full_disk(*words)
            self.assertEqual(status, 70, (words, err))
            self.assertIn("error[E21]: cannot write: No space left on device", err)

    # XFSZ (153) would say nothing of what was done, or went wrong.
    @unittest.skipIf(IS_SANITIZED, "a sanitizer writes a log of its own, on threads of its own")
    def test_is_not_that_of_a_signal_when_stdout_and_stderr_are_as_large_as_they_may_be(self):
        token = str(self.hold().token)
        dead = {"HOLDFAST_URI": f"redis+unix://{self.path('nobody')}"}
        for words, environment, exit in ((("show", self.lock), {}, 70), (("ls", "--json"), {}, 70),
                                         (("check", self.lock), dead, 69), (("run",), {}, 64), ((), {}, 70),
                                         (("break", "--now", "--token", token, self.lock), {}, 0)):
            with self.subTest(words):
                self.assertEqual(self.finish(*words, prefix=("prlimit", "--fsize=0"), **environment).status, exit)
        self.assertTrue(self.is_free())

    # Whoever reads that it failed says it again, or goes on as if it had not been done.
    def test_is_0_of_what_was_done_and_stderr_has_what_stdout_does_not_take(self):
        token = str(self.hold().token)
        free = self.finish("run", "-l", "1", "permits", "true")
        self.assertEqual(free.status, 0, free.err)
        for words, said in ((["break", "--now", "--token", token, self.lock], f"broke '{self.lock}': "),
                            (["resize", "permits", "2"], "'permits' has 2 permits now; "),
                            (["init"], "is told that it has forgotten no lock: ")):
            with self.subTest(words):
                status, err = self.into_full_disk(*words)
                self.assertEqual(status, 0, err)
                self.assertRegex(err, r"^holdfast: warning: cannot write: No space left on device; it was done all the "
                                      rf"same: [^\n]*{said}[^\n]*\n$")
                self.assertEqual(self.into_full_disk(*words, "-q")[1].count("warning"), 0)

    # 5s is half of the default ttl, which is refused.
    def test_of_a_grace_of_half_the_ttl_is_64_and_the_help_does_not_promise_it(self):
        self.assertEqual(self.finish("run", "-k", "5s", self.lock, "true").status, 64)
        self.assertIn("KILL it so long after that, a quarter of the ttl at the latest", self.finish("help", "run").out)

    def test_of_help_and_version_is_64_with_a_word_too_many(self):
        for words in (("help", "run", "extra"), ("version", "extra"), ("version", "--json")):
            with self.subTest(words):
                refused = self.finish(*words)
                self.assertEqual((refused.status, refused.out), (64, ""))
                self.assertIn(f"'{words[-1]}' is one word too many for {words[0]}", refused.err)
        for words in (("help", "--help"), ("help", "-h"), ("version", "--help")):
            with self.subTest(words):
                helped = self.finish(*words)
                self.assertEqual((helped.status, helped.err), (0, ""))
                self.assertTrue(helped.out.startswith(f"holdfast {words[0]}"), helped.out)

    def with_closed(self, number, *words):
        return self.finish(*words, prefix=("sh", "-c", f'exec "$@" {number}>&-', "sh"))

    def test_is_70_when_stdout_is_closed(self):
        for words in ((), ("help",), ("version",), ("show", self.lock), ("ls", "--json"), ("check", self.lock),
                      ("hold", self.lock)):
            with self.subTest(words):
                closed = self.with_closed(1, *words)
                self.assertEqual(closed.status, 70, closed.err)
                self.assertIn("error[E21]: cannot write: Bad file descriptor", closed.err)
        self.assertTrue(self.is_free())

    def test_is_not_changed_by_a_closed_stream_that_is_not_used(self):
        for number in (0, 1, 2):
            with self.subTest(number):
                command = f"test ! -e /proc/self/fd/{number} || exit 9; exit 7"
                self.assertEqual(self.with_closed(number, "run", self.lock, "--", "sh", "-c", command).status, 7)
        self.assertEqual(self.with_closed(0, "hold", self.lock).status, 0)
        self.assertEqual(self.with_closed(2, "check", self.lock).status, 0)

    def test_is_0_and_says_so_when_hold_has_no_input_to_hold_it_by(self):
        """`hold NAME &` in a script: whoever has the token would work on without the lock."""
        held = self.finish("hold", self.lock, stdin=subprocess.DEVNULL)
        self.assertEqual(held.status, 0)
        self.assertIn(f"warning: the input was at its end: '{self.lock}' was held for ", held.err)
        self.assertEqual(self.finish("hold", "-q", self.lock, stdin=subprocess.DEVNULL).err, "")

    def test_is_that_of_the_error_when_its_document_has_no_place(self):
        dead = {"HOLDFAST_URI": f"redis+unix://{self.path('nobody')}"}
        for words, environment, code, exit in ((("show", "--json", self.lock), dead, "E01", 69),
                                               (("show", "--json", "--tll", self.lock), {}, "E17", 64)):
            status, err = self.into_full_disk(*words, **environment)
            self.assertEqual(status, exit, err)
            self.assertIn(f"error[{code}]", err)
            self.assertIn("the --json document of this error is not on stdout", err)
            self.assertNotIn("E21", err)

    def test_is_78_when_the_key_is_somebody_elses(self):
        self.server.ask("RPUSH", "hf:{%s}" % self.lock, "a list")
        self.server.ask("PEXPIRE", "hf:{%s}" % self.lock, 60000)
        foreign = self.finish("run", "-n", self.lock, "true")
        self.assertEqual(foreign.status, 78, foreign.err)
        self.assertIn("error[E14]", foreign.err)


class Usage(CommandTest):
    def test_mistakes_exit_64_and_say_what_was_meant(self):
        for words, said in ((["rum"], "unknown command 'rum' \u2014 did you mean 'run'?"),
                            (["run", "--tll", "3s", "x", "true"], "did you mean '--ttl'?"),
                            (["run", "x", "-y"], "command '-y' looks like an option"),
                            (["run", "-s", "-l", "2", "x", "true"], "exclude each other"),
                            (["serve"], "'serve' is not there yet"),
                            (["run", "-F", "x", "true"], "-F cannot be had"), (["run", "x"], "run needs a command")):
            with self.subTest(words):
                wrong = self.finish(*words)
                self.assertEqual(wrong.status, 64)
                self.assertIn("holdfast: error[E17]: ", wrong.err)
                self.assertIn(said, wrong.err)

    def test_mistakes_have_a_way_out(self):
        for words in (("run", "x", "--ttl"), ("run", "--ttl", "3x", "x", "true"), ("run", "-E", "999", "x", "true"),
                      ("run", "--password-file", "/no/such", "x", "true"), ("show", "a", "b"),
                      ("break", "--token", "x", "x"), ("run", "--on-lost", "y", "x", "true"),
                      ("break", "--token", "1", "nobody-has-it")):
            with self.subTest(words):
                self.assertRegex(self.finish(*words).err, "error\\[E1[79]\\]: [^\\n]*\\n(  why: .*\\n)?  fix: .")

    def test_of_a_uri_without_a_scheme_shows_it_and_says_what_is_missing(self):
        wrong = self.finish("ls", "-u", "127.0.0.1:7701")
        self.assertEqual(wrong.status, 64)
        self.assertIn("error[E17]: '127.0.0.1:7701' is not a server that we know how to reach\n"
                      "  why: it does not say what is spoken there: redis:// is missing before it\n"
                      "  fix: redis://127.0.0.1:7701, or ", wrong.err)
        self.assertNotIn("secret", self.finish("ls", "-u", "u:secret@127.0.0.1:7701").err)

    def test_of_a_web_servers_port_is_told_and_not_waited_for(self):
        class Quiet(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Quiet) as web:
            threading.Thread(target=web.serve_forever).start()
            uri = f"redis://127.0.0.1:{web.server_port}"
            wrong = self.finish("run", "-u", uri, "-w", "20s", self.lock, "true")
            web.shutdown()
        self.assertEqual(wrong.status, 78)
        self.assertIn("it speaks HTTP, not Redis", wrong.err)
        self.assertIn("\n  fix: the port of a Redis", wrong.err)

    def test_of_another_protocols_port_is_told_and_nothing_was_asked_C5(self):
        def greet():
            for _ in range(2):  # Who acquires has two connections, and the first one that fails may end it.
                with contextlib.suppress(OSError), listener.accept()[0] as one:
                    one.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
                    one.recv(4096)

        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(5)
            threading.Thread(target=greet, daemon=True).start()
            wrong = self.finish("run", "-u", f"redis://127.0.0.1:{listener.getsockname()[1]}", "-w", "20s", self.lock,
                                "true")
        self.assertEqual(wrong.status, 78, wrong.err)
        self.assertIn("error[E15]", wrong.err)
        self.assertIn('got "S" as reply type byte', wrong.err)
        self.assertNotIn("nobody knows", wrong.err)

    def test_help_of_wait_says_what_ends_it_sooner(self):
        self.assertIn("has refused three connections, ends it sooner", self.finish("help", "run").out)

    def test_init_says_what_it_did(self):
        done = self.finish("init")
        self.assertEqual((done.status, done.err), (0, ""))
        self.assertEqual(done.out, f"{self.server.uri} is told that it has forgotten no lock: it grants at once\n")
        self.assertEqual(self.finish("init", "-q").out, "")

    def test_without_arguments_shows_six_examples(self):
        bare = self.finish()
        self.assertEqual(len(re.findall(r"^  holdfast ", bare.out, re.M)), 6)

    def test_help_has_the_exit_statuses_and_every_error_code(self):
        self.assertIn("79", self.finish("run", "--help").out)
        for number in range(1, 22):
            self.assertEqual(self.finish("help", f"E{number:02}").status, 0)

    def test_help_of_uri_has_every_kind_of_server_that_the_topic_has(self):
        kinds = set(re.findall(r"rediss?[+a-z]*://|local:", self.finish("help", "servers").out))
        kinds -= {kind for kind in kinds if kind.startswith("rediss+")}  # The same over TLS.
        self.assertIn("redis+quorum://", kinds)
        shown = self.finish("help", "run").out
        for kind in kinds:
            self.assertIn(kind, shown)

    def test_version_is_printed(self):
        self.assertRegex(self.finish("version").out, r"^holdfast \d+\.\d+\.\d+\n$")


    def test_of_a_long_reason_does_not_blame_the_owner(self):
        long = self.finish("run", "--owner", "me", "--why", "w" * 256, "x", "true")
        self.assertEqual(long.status, 64)
        self.assertIn("error[E17]: --why: 256 bytes are too many: with the owner 'me' the label may have 256", long.err)
        self.assertEqual(self.finish("run", "--owner", "me", "--why", "w" * 251, "x", "true").status, 0)

    def test_of_a_listing_under_plain_names_is_refused_where_the_option_is(self):
        self.assertIn("'ls' has no option '--plain'", self.finish("ls", "--plain").err)
        self.assertNotIn("--plain", self.finish("help", "ls").out)


class Resize(CommandTest):
    def test_changes_the_size_for_everybody(self):
        self.assertEqual(self.finish("run", "-l", "2", self.lock, "true").status, 0)
        refused = self.finish("run", "-l", "3", self.lock, "true")
        self.assertIn(f"holdfast resize --uri {self.server.uri} {self.lock} N\n", refused.err)
        resized = self.finish("resize", self.lock, "3")
        self.assertEqual((resized.status, resized.err), (0, ""))
        self.assertIn(f"'{self.lock}' has 3 permits now", resized.out)
        self.assertEqual(self.finish("run", "-l", "3", self.lock, "true").status, 0)
        self.assertEqual(self.finish("run", "-l", "2", self.lock, "true").status, 78)

    def test_refuses_what_is_no_size(self):
        for words in (("resize", "x"), ("resize", "x", "0"), ("resize", "x", "2", "3"), ("resize", "x", "1000001")):
            with self.subTest(words):
                refused = self.finish(*words)
                self.assertEqual(refused.status, 64)
                self.assertRegex(refused.err, "error\\[E17\\]: [^\\n]*\\n  fix: ")

    def test_of_a_quorum_says_why_not(self):
        refused = self.finish("resize", "x", "2", "-u", "redis+quorum://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3")
        self.assertEqual(refused.status, 64, refused.err)
        self.assertIn("error[E08]: no resize of 'x' to 2 on a quorum\n  why: ", refused.err)


class AtLeast(CommandTest):
    def ended_command(self, *options):
        running = self.start("run", "--verbose", *options, self.lock, "--", "sh", "-c", "exit 7")
        until(lambda: "is kept for" in running.err or running.process.poll() is not None, "the command has ended")
        self.assertIn(f"the command has ended; '{self.lock}' is kept for ", running.err)
        return running

    def test_the_lock_is_kept_and_renewed_when_the_command_ends_sooner(self):
        began = now()
        running = self.ended_command("--at-least", "9s", "--ttl", "2s")
        time.sleep(max(0, began + 5 - now()))  # Its ttl is over twice.
        self.assertEqual(self.finish("run", "-n", "-q", self.lock, "true").status, 75)
        self.assertEqual(running.wait(), 7)
        self.assertGreaterEqual(now() - began, 9)
        self.assertTrue(self.is_free())

    def test_is_over_when_the_command_takes_longer(self):
        self.assertEqual(self.finish("run", "--at-least", "1ms", self.lock, "--", "sh", "-c", "exit 7").status, 7)

    def test_a_signal_ends_the_rest_of_it_and_the_status_stays(self):
        running = self.ended_command("--at-least", "1h")
        running.signal(signal.SIGTERM)
        self.assertEqual(running.wait(), 7)
        self.assertTrue(self.is_free())

    # A service that is stopped: there is no second signal, but KILL.
    def test_a_signal_that_ends_the_command_ends_it_too(self):
        runs_on = "echo up; while :; do sleep 0.1; done"
        for how, status in (("echo up; sleep 60", 143), ("trap 'exit 143' TERM; " + runs_on, 143),
                            ("trap 'exit 0' TERM; " + runs_on, 0), ("trap 'exit 3' TERM; " + runs_on, 3)):
            with self.subTest(how):
                running = self.start("run", "--at-least", "1h", self.lock, "--", "sh", "-c", how)
                until(lambda: "up" in running.out or running.process.poll() is not None, "the command runs")
                running.signal(signal.SIGTERM)
                self.assertEqual(running.wait(), status)
                self.assertTrue(self.is_free())

    def test_a_signal_that_does_not_end_the_command_leaves_it(self):
        running = self.start("run", "--verbose", "--at-least", "1h", self.lock, "--", "sh", "-c",
                             "trap 'echo heard' HUP; sleep 60 & echo up; wait; exit 7")
        until(lambda: "up" in running.out or running.process.poll() is not None, "the command runs")
        running.signal(signal.SIGHUP)
        until(lambda: "is kept for" in running.err or running.process.poll() is not None, "the command has ended")
        self.assertIn("is kept for", running.err)
        running.signal(signal.SIGTERM)
        self.assertEqual(running.wait(), 7)

    # The TERM is for what --wait-group waits for, and for the rest that comes behind it.
    def test_a_signal_that_comes_when_only_the_group_is_left_ends_it_too(self):
        running = self.start("run", "--wait-group", "--at-least", "1h", self.lock, "--", "sh", "-c",
                             "echo $$; sleep 600 & exit 0")
        until(lambda: running.out.endswith("\n") or running.process.poll() is not None, "the command runs")
        command = running.out.strip()
        until(lambda: not os.path.exists(f"/proc/{command}"), "the command is gone")
        self.assertIsNone(running.process.poll(), running.err)
        running.signal(signal.SIGTERM)
        self.assertEqual(running.wait(), 0)
        self.assertTrue(self.is_free())

    # Of signals that wait, TERM is handed out before CHLD.
    def test_a_signal_that_comes_when_the_command_has_just_ended_ends_it_too(self):
        running = self.start_child("--at-least", "1h", "--ttl", "30s", code="ready()\n"
                                   "while not os.path.exists(sys.argv[0] + '.go'): time.sleep(0.01)\nsys.exit(7)")
        running.signal(signal.SIGSTOP)
        until(lambda: state_of(running.pid) == "T", "holdfast stands")
        open(running.process.args[-1] + ".go", "w", encoding="utf-8").close()
        until(lambda: state_of(running.child) == "Z", "the command has ended")
        running.signal(signal.SIGTERM)
        running.signal(signal.SIGCONT)
        self.assertEqual(running.wait(), 7)
        self.assertTrue(self.is_free())

    def test_who_ends_in_the_rest_of_it_is_not_warned_about(self):
        kept = self.finish("run", "--at-least", "4s", self.lock, "--", "sh", "-c", "sleep 1 >/dev/null 2>&1 &")
        self.assertEqual(kept.status, 0, kept.err)
        self.assertNotIn("still run", kept.err)

    def test_who_outlives_the_rest_of_it_is_warned_about(self):
        left = self.finish("run", "--at-least", "1s", self.lock, "--", "sh", "-c",
                           f"sleep 60 >/dev/null 2>&1 & echo $! >{self.path('pid')}")
        os.kill(int(content(self.path("pid"))), 9)
        self.assertEqual(left.status, 0)
        self.assertIn("of its group 1 still runs", left.err)

    def break_now(self):
        broken = self.finish("break", "--now", "--token", str(self.show()["token"]), self.lock)
        self.assertEqual(broken.status, 0, broken.err)

    # The command was done in time.
    def test_the_loss_ends_the_rest_of_it_and_is_a_warning(self):
        running = self.ended_command("--at-least", "1h", "--ttl", "2s")
        self.break_now()
        self.assertEqual(running.wait(), 7)
        self.assertRegex(running.err, rf"warning\[E12\]: lost '{self.lock}' \(token \d+\): somebody broke it on purpose; "
                                      r"the command had ended by itself, with 7, before that; it was not kept for all "
                                      r"of --at-least\n")
        self.assertNotIn("error[", running.err)

    def test_a_silent_server_ends_the_rest_of_it_and_is_a_warning(self):
        running = self.ended_command("--at-least", "1h", "--ttl", "500ms")
        self.server.pause()
        try:
            self.assertEqual(running.wait(), 7)
        finally:
            self.server.resume()
        self.assertIn("warning[E12]: ", running.err)
        self.assertNotIn("error[", running.err)

    # Its next renewal is seconds away, and would not say when the lock went.
    def test_a_loss_while_the_command_ran_is_one_with_it_too(self):
        running = self.start_child("--at-least", "1h", "--ttl", "30s", code="ready()\n"
                                   "while not os.path.exists(sys.argv[0] + '.go'): time.sleep(0.01)\nsys.exit(7)")
        self.break_now()
        open(running.process.args[-1] + ".go", "w", encoding="utf-8").close()
        self.assertEqual(running.wait(8), 79)
        self.assertIn(f"error[E12]: lost '{self.lock}'", running.err)

    def test_a_command_that_cannot_be_run_keeps_nothing(self):
        self.assertEqual(self.finish("run", "--at-least", "1h", self.lock, "/no/such").status, 127)
        self.assertTrue(self.is_free())

    def test_what_cannot_be_kept_is_refused(self):
        for words in (("--at-least", "1h", "--max-hold", "1h"), ("--at-least", "10s", "--no-renew"),
                      ("--at-least", "58s", "--max-hold", "60s", "--ttl", "60s"),
                      ("--at-least", "58s", "--no-renew", "--ttl", "60s"), ("--at-least", "400d")):
            refused = self.finish("run", *words, self.lock, "true")
            self.assertEqual(refused.status, 64)
            self.assertRegex(refused.err, r"error\[E17\]: --at-least [^\n]*\n  fix: ")


class Busy(CommandTest):
    def test_exits_75_and_names_the_holder(self):
        self.hold("--owner", "deploy@web3", "--why", "weekly full")
        busy = self.finish("run", "-n", self.lock, "true")
        self.assertEqual(busy.status, 75)
        self.assertRegex(busy.err, f"^holdfast: '{self.lock}' is held by deploy@web3 \"weekly full\" for [0-9.]+m?s\n$")

    def test_exits_as_E_says(self):
        self.hold()
        self.assertEqual(self.finish("run", "-n", "-E", "9", self.lock, "true").status, 9)

    def test_is_silent_and_0_with_quiet_busy(self):
        self.hold()
        busy = self.finish("run", "-n", "--quiet-busy", self.lock, "true")
        self.assertEqual((busy.status, busy.out, busy.err), (0, "", ""))

    def test_exits_75_when_the_wait_is_over_and_not_before(self):
        self.hold()
        began = now()
        busy = self.finish("run", "-w", "2", self.lock, "true")
        self.assertEqual(busy.status, 75)
        self.assertGreaterEqual(now() - began, 2)
        self.assertIn("gave up after 2s", busy.err)

    def test_shows_a_holders_label_without_control_characters(self):
        self.hold("--owner", "a\x1b[31m\nb")
        busy = self.finish("run", "-n", self.lock, "true")
        self.assertNotIn("\x1b", busy.err)
        self.assertEqual(busy.err.count("\n"), 1)

    def test_a_waiter_runs_soon_after_the_release_with_a_larger_token(self):
        holder = self.hold()
        waiter = self.start("run", self.lock, "--", "sh", "-c", "echo $HOLDFAST_TOKEN")
        self.wait_for_a_waiter()
        holder.process.stdin.close()
        self.assertEqual(waiter.wait(), 0)
        self.assertGreater(int(waiter.out), holder.token)


class Waiting(CommandTest):
    def test_says_after_400_ms_who_holds_the_lock_and_how_many_are_ahead(self):
        holder = self.hold("--owner", "the holder")
        first = self.start("run", self.lock, "--", "true")
        self.wait_for_a_waiter()
        second = self.start("run", self.lock, "--", "true")
        until(lambda: second.err, "the second says something")
        self.assertRegex(second.err, rf"^holdfast: waiting: '{self.lock}' is held by the holder for \S+; 1 ahead of us in line\n$")
        until(lambda: first.err, "the first says something")
        self.assertIn("; nobody ahead of us in line", first.err)
        holder.process.stdin.close()
        self.assertEqual((first.wait(), second.wait()), (0, 0))
        self.assertEqual(second.err.count("waiting"), 1)

    def test_says_nothing_when_the_lock_comes_sooner_or_when_told_to_be_quiet(self):
        holder = self.hold()
        quiet = self.start("run", "-q", self.lock, "--", "true")
        self.wait_for_a_waiter()
        time.sleep(0.6)  # Past the 400 ms after which it would have spoken.
        holder.process.stdin.close()
        self.assertEqual((quiet.wait(), quiet.err), (0, ""))

        def says():
            holder = self.hold()
            quick = self.start("run", self.lock, "--", "true")
            self.wait_for_a_waiter()
            holder.process.stdin.close()
            self.assertEqual(quick.wait(), 0)
            return quick.err

        self.assertIn("", [says() for _ in range(8)])  # A busy machine takes 400 ms at times, not each time.

    def test_says_that_it_waits_for_replicas_and_not_for_somebody_else(self):
        for _ in range(3):  # Whether the look finds the lock granted or given back is chance.
            waiter = self.start("run", "--replicas", "2", self.lock, "--", "true")
            until(lambda: waiter.err, "it says something")
            self.assertEqual(waiter.err, f"holdfast: waiting: nobody else has '{self.lock}', and it is ours when 2 replicas "
                                         "have confirmed it within 100ms (--replicas); whether so many are connected: "
                                         "holdfast doctor --replicas 2\n")
            waiter.signal(signal.SIGTERM)
            self.assertEqual(waiter.wait(), 128 + signal.SIGTERM)
        self.hold("--owner", "the holder")
        second = self.start("run", "--replicas", "2", self.lock, "--", "true")
        until(lambda: second.err, "it says something")
        self.assertIn("is held by the holder", second.err)

    # What asks who has the lock gets no answer, either.
    def test_ends_in_time_when_the_server_falls_silent(self):
        self.hold()
        self.server.pause()
        self.addCleanup(self.server.resume)
        waiter = self.start("run", "--server-timeout", "60s", "-w", "1s", self.lock, "--", "true")
        self.assertEqual(waiter.wait(30), 69)

    # Its look is refused, and so is the question that goes before it, which ends the connection.
    def test_says_that_the_primary_was_demoted_while_it_waited(self):
        self.hold()
        self.addCleanup(self.server.declare_nothing_forgotten)
        self.addCleanup(self.server.ask, "REPLICAOF", "NO", "ONE")
        waiter = self.start("run", "-w", "30s", self.lock, "--", "true")
        self.wait_for_a_waiter()
        self.server.ask("REPLICAOF", "127.0.0.1", "1")
        self.assertEqual(waiter.wait(30), 78, waiter.err)
        self.assertRegex(waiter.err, r"error\[E06\]: .* is a replica")

    def test_is_stopped_by_a_signal_when_the_server_falls_silent(self):
        self.hold()
        self.server.pause()
        self.addCleanup(self.server.resume)
        waiter = self.start("run", "--server-timeout", "60s", self.lock, "--", "true")
        until(lambda: signals_of(waiter.pid, "SigBlk") & 1 << signal.SIGTERM - 1, "it takes signals itself")
        time.sleep(0.6)  # It asks who has the lock.
        waiter.signal(signal.SIGTERM)
        self.assertEqual(waiter.wait(30), 128 + signal.SIGTERM)

    # XFSZ would end the lease's only keeper.
    @unittest.skipIf(IS_SANITIZED, "a sanitizer writes a log of its own, on threads of its own")
    def test_outlives_a_log_that_is_as_large_as_it_may_be(self):
        done = self.finish("run", "--verbose", self.lock, "--", "true", prefix=("prlimit", "--fsize=0"))
        self.assertEqual(done.status, 0)
        self.assertTrue(self.is_free())

    def test_q_leaves_out_the_warning_of_a_request_that_a_signal_left_unanswered(self):
        for quiet, said in (((), "warning[E20]: stopped while a request for "), (("-q",), "")):
            waiter = self.start("run", *quiet, "--replicas", "1", "--replicas-timeout", "2s", self.lock, "--", "true")
            until(lambda: self.server.ask("EXISTS", "hf:{%s}" % self.lock), "it is granted, and waits for the replica")
            waiter.signal(signal.SIGTERM)
            self.assertEqual(waiter.wait(30), 128 + signal.SIGTERM)
            self.assertIn(said, waiter.err)
            self.assertTrue(said or not waiter.err, waiter.err)
            until(self.is_free, "what was granted is given back, or has ended")

    def test_show_lists_the_line_in_order(self):
        holder = self.hold()
        for count in (1, 2):
            self.start("run", "--owner", f"waiter {count}", self.lock, "--", "true")
            self.wait_for_a_waiter(count)
        shown = self.show()
        self.assertEqual([one["owner"] for one in shown["waiters"]], ["waiter 1", "waiter 2"])
        self.assertGreaterEqual(shown["waiters"][0]["waiting_ms"], shown["waiters"][1]["waiting_ms"])
        self.assertRegex(self.finish("show", self.lock).out, r"(?s)waiting +waiter 1 for .*waiting +waiter 2 for ")
        holder.process.stdin.close()


class Command(CommandTest):
    def test_gets_its_lock_in_the_environment(self):
        shown = self.finish("run", "--ttl", "5s", "--owner", "me", self.lock, "--", "sh", "-c",
                            "echo $HOLDFAST_HELD $HOLDFAST_NAME $HOLDFAST_OWNER $HOLDFAST_MODE $HOLDFAST_TTL_MS $HOLDFAST_TOKEN")
        self.assertRegex(shown.out, rf"^1 {self.lock} me exclusive 5000 \d{{16}}\n$")

    def test_gets_a_token_above_the_one_that_a_resource_has_seen(self):
        ahead = int(time.time() * 1e6) + 3_600_000_000
        shown = self.finish("run", "--min-fence", str(ahead), self.lock, "--", "sh", "-c", "echo $HOLDFAST_TOKEN")
        self.assertEqual(int(shown.out), ahead + 1)
        beyond = self.finish("run", "--min-fence", str(ahead + 366 * 86_400_000_000), self.lock, "--", "true")
        self.assertEqual(beyond.status, 64)
        self.assertIn("E08", beyond.err)

    def test_never_sees_a_stale_token(self):
        shown = self.finish("run", self.lock, "--", "sh", "-c", "echo $HOLDFAST_TOKEN $HOLDFAST_NAME",
                            HOLDFAST_TOKEN="17",
                            HOLDFAST_NAME="stale")
        self.assertRegex(shown.out, rf"^\d{{16}} {self.lock}\n$")

    def test_gets_our_standard_input(self):
        running = self.start("run", self.lock, "cat", stdin=subprocess.PIPE)
        running.process.stdin.write(b"through\n")
        running.process.stdin.close()
        self.assertEqual(running.wait(), 0)
        self.assertEqual(running.out, "through\n")

    def test_of_c_is_a_shell_line(self):
        shown = self.finish("run", self.lock, "-c", "echo one && echo two")
        self.assertEqual(shown.out, "one\ntwo\n")

    def test_keeps_its_own_options(self):
        seen = self.finish("run", self.lock, "sh", "-c", "printf '%s,' \"$@\"", "sh", "-n", "--ttl").out
        self.assertEqual(seen, "-n,--ttl,")

    def test_has_no_descriptor_of_ours(self):
        # Its own three, and the directory that ls reads.
        self.assertEqual(self.finish("run", self.lock, "ls", "/proc/self/fd").out, "0\n1\n2\n3\n")

    def test_that_leaves_somebody_behind_is_warned_about(self):
        # Between its fork and its exec the one left behind is still called sh.
        left = self.finish("run", self.lock, "--", "sh", "-c",
                           f"sleep 60 >/dev/null 2>&1 & echo $! >{self.path('pid')}; "
                           "until grep -q sleep /proc/$!/comm; do :; done")
        os.kill(int(content(self.path("pid"))), 9)
        self.assertEqual(left.status, 0)
        self.assertRegex(left.err, r"warning: the command ended, but of its group 1 still runs: sleep \(\d+\)")

    def test_with_wait_group_holds_the_lock_for_the_grandchildren(self):
        running = self.start("run", "--wait-group", self.lock, "--", "sh", "-c",
                             f"(until test -e {self.path('go')}; do sleep 0.01; done) & touch {self.path('left')}")
        until(lambda: os.path.exists(self.path("left")), "the command ended")
        self.assertFalse(self.is_free())
        self.assertIsNone(running.process.poll())
        open(self.path("go"), "w", encoding="utf-8").close()
        self.assertEqual(running.wait(), 0)
        self.assertTrue(self.is_free())


    # Each look at the group reads the stat of every process.
    def test_with_wait_group_looks_at_the_group_a_few_times_a_second(self):
        running = self.start("run", "--wait-group", self.lock, "--", "sh", "-c",
                             f"(until test -e {self.path('go')}; do sleep 0.1; done) & touch {self.path('left')}")
        until(lambda: os.path.exists(self.path("left")), "the command ended")
        reads = lambda: int(re.search(r"syscr: (\d+)", content(f"/proc/{running.pid}/io"))[1])
        processes = sum(name.isdigit() for name in os.listdir("/proc"))
        before, began_at = reads(), now()
        until(lambda: now() >= began_at + 1, "a second is over")
        looks = (reads() - before) / processes / (now() - began_at)
        open(self.path("go"), "w", encoding="utf-8").close()
        self.assertEqual(running.wait(), 0)
        self.assertLess(looks, 30)  # Two reads for each process.


class Nesting(CommandTest):
    def test_of_the_same_lock_is_refused_at_once(self):
        nested = self.finish("run", self.lock, "--", COMMAND, "run", self.lock, "--", "echo", "inner")
        self.assertEqual(nested.status, 64)
        self.assertIn(f"error[E16]: this command already runs under '{self.lock}'", nested.err)
        self.assertNotIn("inner", nested.out)

    def test_of_the_same_lock_two_levels_up_is_refused(self):
        nested = self.finish("run", self.lock, "--", COMMAND, "run", "between", "--",
                             COMMAND, "run", self.lock, "--", "true")
        self.assertEqual(nested.status, 64)

    # Behind somebody who waits for it alone, or for a permit while all others do the same.
    def test_of_what_several_may_have_is_refused_when_it_could_wait_for_ever(self):
        for mode in (("-s",), ("-l", "2")):
            with self.subTest(mode):
                lock = self.lock + mode[0]
                nested = self.finish("run", *mode, lock, "--", COMMAND, "run", *mode, lock, "--", "true")
                self.assertEqual(nested.status, 64)
                self.assertIn("and might wait for itself for ever\n", nested.err)
                for bound in (("-n",), ("-w", "5s")):
                    nested = self.finish("run", *mode, lock, "--", COMMAND, "run", *bound, *mode, lock, "--",
                                         "echo", "inner")
                    self.assertEqual((nested.status, nested.out), (0, "inner\n"), nested.err)

    def test_of_hold_and_wait_is_refused_too(self):
        for inner in ("hold", "wait"):
            for options in ((), ("-w", "1h")):
                with self.subTest(inner, options=options):
                    nested = self.start("run", self.lock, "--", COMMAND, inner, *options, self.lock)
                    self.assertEqual(nested.wait(10), 64)
                    self.assertIn(f"error[E16]: this command already runs under '{self.lock}'", nested.err)

    def test_of_a_wait_that_does_not_wait_only_looks(self):
        nested = self.finish("run", self.lock, "--", COMMAND, "wait", "-n", self.lock)
        self.assertEqual(nested.status, 75)

    def test_of_a_wait_for_another_permit_is_fine(self):
        other = [self.hold("-l", "2")]
        nested = self.start("run", "-l", "2", self.lock, "--", COMMAND, "wait", self.lock)
        until(lambda: len(self.show()["holders"]) == 2, "both permits are taken")
        other[0].process.stdin.close()
        self.assertEqual(nested.wait(10), 0, nested.err)

    # Whoever outlives the outer run keeps its environment, in which the lock is listed still.
    def test_of_a_lock_that_has_been_given_back_is_fine(self):
        for inner, said in (("run", "late\n"), ("wait", "")):
            with self.subTest(inner):
                command = [inner, self.lock] + (["--", "echo", "late"] if inner == "run" else [])
                go, done = self.path(inner + ".go"), self.path(inner + ".done")
                late = f"while ! test -e {go}; do sleep 0.01; done; {COMMAND} {' '.join(command)} >{done}~ 2>&1; " \
                       f"echo $? >>{done}~; mv {done}~ {done}"
                outer = self.finish("run", self.lock, "--", "sh", "-c", f"({late}) >/dev/null 2>&1 &")
                self.assertEqual(outer.status, 0, outer.err)
                open(go, "w", encoding="utf-8").close()
                until(lambda: os.path.exists(done), "the late one has ended")
                self.assertEqual(content(done), said + "0\n")

    # Then it is a lock as any other: somebody else's.
    def test_of_a_lock_that_somebody_else_has_by_now_waits_as_anybody_does(self):
        other = self.hold()
        stale = f"{self.server.uri},hf:,holdfast,{self.lock},{other.token - 1}"
        busy = self.finish("run", "-n", self.lock, "true", HOLDFAST_HOLDS=stale)
        self.assertEqual(busy.status, 75, busy.err)
        self.assertNotIn("E16", busy.err)
        ours = stale.rpartition(",")[0]
        for held in (f"{ours},{other.token}", ours):  # The second as an older holdfast wrote it.
            refused = self.finish("run", "-n", self.lock, "true", HOLDFAST_HOLDS=f"x,y,z,x,1 {stale} {held}")
            self.assertEqual(refused.status, 64, refused.err)
            self.assertIn("E16", refused.err)

    def test_of_another_readers_lock_is_known_by_one_of_its_holders(self):
        readers = [self.hold("-s"), self.hold("-s")]
        for reader in readers:
            held = f"{self.server.uri},hf:,holdfast,{self.lock},{reader.token}"
            self.assertEqual(self.finish("run", "-x", self.lock, "true", HOLDFAST_HOLDS=held).status, 64)
        gone = f"{self.server.uri},hf:,holdfast,{self.lock},{readers[0].token - 1}"
        self.assertEqual(self.finish("run", "-s", self.lock, "true", HOLDFAST_HOLDS=gone).status, 0)

    def test_of_a_server_that_is_not_there_says_that(self):
        nobody = f"redis+unix://{self.path('nobody')}"
        gone = self.finish("run", "-n", "-u", nobody, self.lock, "true",
                           HOLDFAST_HOLDS=f"{nobody},hf:,holdfast,{self.lock},1")
        self.assertEqual(gone.status, 69, gone.err)

    def test_of_another_lock_is_fine(self):
        nested = self.finish("run", self.lock, "--", COMMAND, "run", self.lock + ".inner", "--", "sh", "-c",
                             "echo $HOLDFAST_NAME")
        self.assertEqual((nested.status, nested.out), (0, f"{self.lock}.inner\n"))

    def test_of_the_same_name_under_another_prefix_is_another_lock(self):
        self.server.declare_nothing_forgotten("b:")
        other = self.finish("run", self.lock, "--", COMMAND, "run", "--prefix", "b:", self.lock, "true")
        self.assertEqual(other.status, 0)


if __name__ == "__main__":
    unittest.main()
