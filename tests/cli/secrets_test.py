# SPDX-License-Identifier: Apache-2.0
"""H78, hazards 9.5: a password that we were given is nowhere to be read but where it was given."""

import fcntl
import os
import signal
import struct
import subprocess
import termios
import unittest

from fixture import COMMAND, CommandTest, content, state_of, until

CANARY = "canary7f3a"


class Password(CommandTest):
    server_options = ("--requirepass", CANARY)

    def setUp(self):
        super().setUp()
        self.with_password = f"redis+unix://:{CANARY}@{self.server.socket}"

    def start_and_look(self, *options, **environment):
        """A run in mid-hold: itself and the environment of its command."""
        running = self.start("run", "--verbose", *options, self.lock, "--", "sh", "-c",
                             f"cat /proc/$$/environ >{self.path('env~')}; mv {self.path('env~')} {self.path('env')}; sleep 60",
                             **environment)
        until(lambda: os.path.exists(self.path("env")) or running.process.poll() is not None, "the command is up")
        self.assertIsNone(running.process.poll(), running.err)
        return running, content(self.path("env"))

    def test_of_the_environment_is_not_in_the_commands(self):
        running, environment = self.start_and_look(HOLDFAST_URI=self.with_password)
        self.assertNotIn(CANARY, environment)
        self.assertIn(f"HOLDFAST_URI={self.server.uri}\0", environment)
        self.assertNotIn(CANARY, running.err)

    def test_of_the_environment_is_not_in_the_commands_and_its_own_holdfast_says_so(self):
        inner = (COMMAND, "run", self.lock + "2", "--", "true")
        refused = self.finish("run", self.lock, "--", *inner, HOLDFAST_URI=self.with_password)
        self.assertEqual(refused.status, 77, refused.err)
        self.assertIn("--keep-password", refused.err)
        kept = self.finish("run", "--keep-password", self.lock, "--", *inner, HOLDFAST_URI=self.with_password)
        self.assertEqual(kept.status, 0, kept.err)

    def test_of_a_uri_where_no_word_belongs_is_not_in_the_complaint(self):
        for words in ("", "doctor", "init", "help", "help run", "version", "local", "lab", "lab single", "lab single 2",
                      "quorum", "quorum replace", f"resize {self.lock}", f"break {self.lock} --token"):
            with self.subTest(words):
                refused = self.finish(*words.split(), self.with_password)
                self.assertEqual(refused.status, 64, refused.err)
                self.assertNotIn(CANARY, refused.err)

    # `-u` was forgotten, or the name. A name may be anything, so nothing refuses it.
    def test_of_a_uri_that_is_taken_for_the_name_is_in_no_message(self):
        for name in (f"redis://:{CANARY}@h", f"redis://default:{CANARY}"):
            holder = self.start("hold", name, stdin=subprocess.PIPE, HOLDFAST_URI=self.with_password)
            self.addCleanup(holder.process.stdin.close)
            until(lambda: holder.out.endswith("\n"), "it is held")
            for words in (["run", name], ["run", "-n", name, "true"], ["run", "-w", "600ms", name, "true"],
                          ["hold", "-n", name], ["check", name], ["wait", "-n", name], ["run", "x", name],
                          ["run", "-n", "-s", name, "true"], ["run", "--", name + "4", "x"],
                          ["run", name + "\n", "true"], ["run", name + "x" * 600, "true"],
                          ["run", "--plain", "hf:" + name, "true"], ["run", "-n", "--verbose", name + "2", "true"],
                          ["resize", name], ["resize", name, "3"], ["break", name], ["break", name, "--token", "7"],
                          ["break", name, "--token", str(int(holder.out))]):
                with self.subTest(words):
                    done = self.finish(*words, HOLDFAST_URI=self.with_password)
                    self.assertNotEqual(done.out + done.err, "")
                    self.assertNotIn(CANARY, done.out + done.err)
            ended = self.finish("run", "-t", "1s", "--max-hold", "1s", name + "3", "sleep", "5",
                                HOLDFAST_URI=self.with_password)
            self.assertEqual(ended.status, 79, ended.err)
            self.assertNotIn(CANARY, ended.err)

    def test_of_a_uri_that_is_taken_for_a_directory_is_in_no_message(self):
        for name in (f"redis://:{CANARY}@h", f"redis://default:{CANARY}"):
            for words in (["local", "start"], ["local", "status"], ["local", "stop"], ["lab", "single", "--directory"],
                          ["lab", "stop"]):
                with self.subTest(words):
                    done = self.finish(*words, name)
                    self.assertNotEqual(done.out + done.err, "")
                    self.assertNotIn(CANARY, done.out + done.err)

    def test_of_redis_cli_is_used_and_not_passed_on(self):
        running, environment = self.start_and_look(REDISCLI_AUTH=CANARY)
        self.assertNotIn("REDISCLI_AUTH", environment)
        self.assertNotIn(CANARY, running.err)

    def test_is_passed_on_when_that_is_asked_for(self):
        _, environment = self.start_and_look("--keep-password", REDISCLI_AUTH=CANARY)
        self.assertIn(f"REDISCLI_AUTH={CANARY}\0", environment)

    # As under `2>&1 | head -1`.
    def test_in_a_file_that_others_can_read_is_warned_about_though_nobody_reads_it(self):
        file = self.path("password")
        with open(file, "w", encoding="ascii") as out:
            out.write(CANARY)
        os.chmod(file, 0o644)
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([COMMAND, "run", "--password-file", file, self.lock, "--", "touch", self.path("ran")],
                              env=self.environment, stderr=write, timeout=30, check=False)
        os.close(write)
        self.assertEqual(done.returncode, 0)
        self.assertTrue(os.path.exists(self.path("ran")))

    def test_in_an_argument_is_overwritten_there_and_warned_about(self):
        running, environment = self.start_and_look("--uri", self.with_password)
        self.assertNotIn(CANARY, content(f"/proc/{running.pid}/cmdline"))
        self.assertNotIn(CANARY, environment)
        self.assertNotIn(CANARY, running.err)
        self.assertIn("the password in --uri could be read by everybody", running.err)

    def test_in_an_argument_is_in_no_way_out(self):
        for uri in (self.with_password, f"redis://h?password={CANARY}", f"default:{CANARY}"):
            for command in ("break", "run"):
                with self.subTest(command, uri=uri.partition(CANARY)[0]):
                    refused = self.finish(command, "-u", uri, self.lock)
                    self.assertEqual(refused.status, 64, refused.err)
                    self.assertIn(f" --uri URI {self.lock}", refused.err)
                    self.assertNotIn(CANARY, refused.err)

    def test_of_a_file_is_used_and_its_mode_is_checked(self):
        with open(self.path("password"), "w", encoding="utf-8") as file:
            file.write(CANARY + "\n")
        for mode, warns in ((0o600, False), (0o644, True)):
            with self.subTest(oct(mode)):
                os.chmod(self.path("password"), mode)
                done = self.finish("run", "--password-file", self.path("password"), self.lock, "true")
                self.assertEqual(done.status, 0, done.err)
                self.assertEqual("others can read the password file" in done.err, warns)
                self.assertNotIn(CANARY, done.err)

    def test_of_a_pipe_that_delivers_it_in_pieces_is_read_to_its_end(self):
        os.mkfifo(self.path("password"))
        running = self.start("run", "--password-file", self.path("password"), self.lock, "true")
        with open(self.path("password"), "wb", buffering=0) as file:
            file.write(CANARY[:3].encode())
            unread = lambda: struct.unpack("i", fcntl.ioctl(file, termios.FIONREAD, b"\0" * 4))[0]
            until(lambda: unread() == 0, "the first piece is read")
            file.write(CANARY[3:].encode() + b"\n")
            self.assertEqual(running.wait(), 0, running.err)

    def test_of_a_pipe_that_nobody_writes_to_can_be_waited_for_and_given_up(self):
        os.mkfifo(self.path("password"))
        running = self.start("run", "--password-file", self.path("password"), self.lock, "true")
        until(lambda: content(f"/proc/{running.pid}/comm") == "holdfast\n" and state_of(running.pid) == "S", "it waits")
        running.signal(signal.SIGTERM)
        self.assertEqual(running.wait(10), -signal.SIGTERM)

    def test_that_is_missing_or_wrong_is_77_and_not_shown(self):
        missing = self.finish("run", "-n", self.lock, "true")
        self.assertEqual(missing.status, 77, missing.err)
        self.assertIn("error[E02]", missing.err)
        wrong = self.finish("run", "-n", self.lock, "true",
                            HOLDFAST_URI=f"redis+unix://:x{CANARY}@{self.server.socket}")
        self.assertEqual(wrong.status, 77, wrong.err)
        self.assertNotIn(CANARY, wrong.err)

    def test_is_in_no_message_about_a_server_that_is_not_there(self):
        for uri in (f"redis+unix://:{CANARY}@{self.path('nobody')}", f"redis://:{CANARY}@127.0.0.1:1",
                    f"redis://:{CANARY}@[", f"http://:{CANARY}@h", f"redis://:{CANARY}@h:notaport",
                    f"redis://h?password={CANARY}^", f"redis://default:{CANARY}", f"default:{CANARY}"):
            with self.subTest(uri.partition(":")[0]):
                gone = self.finish("show", "--json", self.lock, "--server-timeout", "200ms", HOLDFAST_URI=uri)
                self.assertIn(gone.status, (64, 69))
                self.assertNotIn(CANARY, gone.err)
                self.assertNotIn(CANARY, gone.out)

    # Nobody is reached with such a URI, but everybody could have read it.
    def test_where_none_belongs_in_an_argument_is_warned_about(self):
        for uri in (f"redis://h?password={CANARY}", f"redis://default:{CANARY}"):
            with self.subTest(uri.partition(CANARY)[0]):
                refused = self.finish("show", "--uri", uri, self.lock)
                self.assertEqual(refused.status, 64)
                self.assertIn("the password in --uri could be read by everybody", refused.err)
                self.assertNotIn(CANARY, refused.err)


if __name__ == "__main__":
    unittest.main()
