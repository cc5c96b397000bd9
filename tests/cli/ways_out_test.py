# SPDX-License-Identifier: Apache-2.0
"""Ways out are followed here as they are printed: the option is left out, the command is pasted, and then it works."""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

from fixture import CommandTest, Server, content
from tls_test import EC, listen, openssl


def fix_of(said):
    """What stands behind `fix:`."""
    return re.search(r"^  fix: (.*)$", said, re.M)[1]


def without(words, *options):
    """The words without these options and the values that follow them."""
    kept = list(words)
    for option, has_value in options:
        at = kept.index(option)
        del kept[at:at + (2 if has_value else 1)]
    return kept


class Exclusion(CommandTest):
    """E08: what makes no sense together."""

    def refused(self, *words):
        refused = self.finish(*words)
        self.assertEqual(refused.status, 64, refused.err)
        self.assertIn("error[E08]: ", refused.err)
        self.assertRegex(refused.err, r"\n  why: .")
        self.assertNotIn("range", refused.err)
        return fix_of(refused.err)

    def test_of_plain_names_with_what_only_holdfast_knows(self):
        for option in (["-l", "2"], ["-s"], ["-x"]):
            with self.subTest(option):
                words = ["run", "--plain", *option, self.lock + option[0], "true"]
                self.assertEqual(self.refused(*words), f"leave --plain out, or {option[0]}")
                for way in (without(words, ("--plain", False)), without(words, (option[0], len(option) == 2))):
                    followed = self.finish(*way)
                    self.assertEqual(followed.status, 0, followed.err)

    # It would run on, for a command that was refused.
    def test_of_plain_names_starts_no_local_server(self):
        self.refused("run", "-u", f"local:{self.path('home')}", "--plain", "-s", self.lock, "true")
        self.assertFalse(os.path.exists(self.path("home")))

    def test_of_a_quorum(self):
        servers = [Server() for _ in range(3)]
        for one in servers:
            self.addCleanup(one.stop)
        quorum = "redis+quorum://" + ",".join(f"127.0.0.1:{listen(one, 'port')}" for one in servers)
        for options in ([("--plain", False)], [("--trust-every-write-is-synced", False)],
                        [("--replicas", True), ("--replicas-timeout", True)]):
            with self.subTest(options):
                given = [word for name, has_value in options for word in ([name, "100ms"] if "timeout" in name else
                                                                          [name, "1"] if has_value else [name])]
                words = ["run", "-u", quorum, *given, self.lock, "true"]
                self.assertEqual(self.refused(*words), "leave " + " out, and ".join(
                    name for name, _ in options) + (" out" if len(options) == 1 else ""))
                followed = self.finish(*without(words, *options))
                self.assertEqual(followed.status, 0, followed.err)

    def test_of_replicas_timeout_alone_leaves_it_out(self):
        words = ["run", "--replicas-timeout", "50ms", self.lock, "true"]
        refused = self.finish(*words)
        self.assertEqual((refused.status, fix_of(refused.err)), (64, "--replicas 1, say; or leave it out"))
        self.assertEqual(self.finish(*without(words, ("--replicas-timeout", True))).status, 0)


    def test_of_a_resize_of_a_quorum_is_one_of_each_server(self):
        servers = [Server() for _ in range(3)]
        for one in servers:
            self.addCleanup(one.stop)
        ports = [listen(one, "port") for one in servers]
        quorum = ["-u", "redis+quorum://" + ",".join(f"127.0.0.1:{port}" for port in ports)]
        self.assertEqual(self.finish("run", *quorum, "-l", "2", self.lock, "true").status, 0)
        said = self.refused("resize", *quorum, self.lock, "3")
        self.assertEqual(said, "let all give it back, and resize it on each server alone: --uri redis://HOST:PORT for each")
        for port in ports:
            done = self.finish("resize", "-u", f"redis://127.0.0.1:{port}", self.lock, "3")
            self.assertEqual(done.status, 0, done.err)
        followed = self.finish("run", *quorum, "-l", "3", self.lock, "true")
        self.assertEqual(followed.status, 0, followed.err)


class Range(CommandTest):
    # The ttl that nobody typed is 10s, and the time for replicas 100ms.
    def test_is_that_of_the_other_options(self):
        for given, proposed in ((["--max-ttl", "5s"], "--ttl 5s or less"),
                                (["--max-ttl", "1s", "-t", "9m"], "--ttl 1s or less"),
                                (["--max-ttl", "5s", "-t", "1ms"], "--ttl 100ms or more")):
            with self.subTest(given):
                refused = self.finish("run", *given, self.lock, "true")
                self.assertEqual(refused.status, 64)
                self.assertIn(f"  fix: {proposed}; a plain number is seconds", refused.err)
                followed = self.finish("run", *given, *proposed.split()[:2], self.lock, "true")
                self.assertEqual(followed.status, 0, followed.err)
        slow = ["run", "-n", "--server-timeout", "150ms", "--replicas", "1", self.lock, "true"]
        self.assertIn("  fix: --replicas-timeout 75ms or less; ", self.finish(*slow).err)
        self.assertEqual(self.finish(*slow[:-2], "--replicas-timeout", "75ms", *slow[-2:]).status, 69)  # There is none.

    def test_of_a_leases_memory_is_said_in_options(self):
        found = self.finish("doctor", "--max-ttl", "2h")
        self.assertIn("or a smaller --max-ttl, the same on every client\n", found.out)
        self.assertNotIn("max-ttl", self.finish("doctor").out)


class Files(CommandTest):
    """Commands that are printed to be pasted have the files without which the server lets nobody in."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.files = tempfile.mkdtemp(prefix="hf-")
        cls.addClassCleanup(shutil.rmtree, cls.files)
        path = lambda name: os.path.join(cls.files, name)
        openssl(cls.files, "req", "-x509", *EC, "-days", "2", "-subj", "/CN=ca", "-addext",
                "subjectAltName=IP:127.0.0.1", "-keyout", "ca.key", "-out", "ca.pem")
        openssl(cls.files, "pkey", "-in", "ca.key", "-aes128", "-passout", "pass:canary7f3a", "-out", "locked.key")
        with open(path("both.pem"), "w", encoding="ascii") as both:
            both.write(content(path("ca.pem")) + content(path("locked.key")))
        with open(path("my password"), "w", encoding="ascii") as file:
            file.write("canary7f3a\n")
        os.chmod(path("my password"), 0o600)
        cls.wary = Server("--bind", "127.0.0.1", "--requirepass", "canary7f3a", "--tls-cert-file", path("ca.pem"),
                          "--tls-key-file", path("ca.key"), "--tls-ca-cert-file", path("ca.pem"))
        cls.addClassCleanup(cls.wary.stop)
        cls.uri = f"rediss://127.0.0.1:{listen(cls.wary, 'tls-port')}"
        cls.plain_uri = f"redis://127.0.0.1:{listen(cls.server, 'port')}"
        cls.tls = ["--cacert", path("ca.pem"), "--cert", path("ca.pem"), "--key", path("ca.key")]
        cls.given = ["--password-file", path("my password"), *cls.tls]
        cls.words = ["-u", cls.uri, *cls.given]

    def path_of(self, name):
        return os.path.join(self.files, name)

    def paste(self, said, command):
        """Types the command as it was printed; its last word may stand for a number."""
        typed = re.search(rf"holdfast ({command}[^`\n]*)", said)[1]
        self.assertNotIn("canary7f3a", typed)
        # In another shell, which knows no HOLDFAST_URI.
        return self.finish(*["3" if word == "N" else word for word in shlex.split(typed)], HOLDFAST_URI="")

    def test_of_a_command_that_was_refused_are_in_the_one_that_is_proposed(self):
        self.assertEqual(self.finish("run", *self.words, "-l", "2", self.lock, "true").status, 0)
        other = self.finish("run", *self.words, "-l", "3", self.lock, "true")
        self.assertEqual(other.status, 78, other.err)
        self.assertRegex(self.paste(other.err, "show").out, "permits +0 of 2 taken")
        self.assertIn("has 3 permits now", self.paste(other.err, "resize").out)
        self.assertEqual(self.finish("run", *self.words, "-l", "3", self.lock, "true").status, 0)

    def test_end_a_quarantine(self):
        new = ["--prefix", "b:"]
        for proposing, status in (("run", 69), ("check", 75), ("show", 0), ("doctor", 0)):
            with self.subTest(proposing):
                self.wary.ask("DEL", "b:epoch")
                words = [proposing, *self.words, *new]
                words += {"doctor": [], "run": ["-n", self.lock, "true"]}.get(proposing, [self.lock])
                shut = self.finish(*words)
                self.assertEqual(shut.status, status, shut.err)
                self.assertEqual(self.paste(re.sub(r"\)+$", "", shut.err + shut.out, flags=re.M), "init").status, 0)
                opened = self.finish("run", *self.words, *new, "-n", self.lock, "true")
                self.assertEqual(opened.status, 0, opened.err)

    def test_are_in_what_the_command_line_proposes_itself(self):
        untold = self.finish("break", *self.words, self.lock)
        self.assertEqual(self.paste(untold.err, "show").status, 0)
        self.assertEqual(self.paste(self.finish("break", *self.words, "--token", "x", self.lock).err, "show").status, 0)
        commandless = self.finish("run", *self.words, self.lock)
        self.assertEqual(self.paste(commandless.err.replace("CMD;", "true\n"), "run").status, 0)

    def test_for_tls_are_left_out_where_there_is_none(self):
        words = ["ls", "-u", self.plain_uri, *self.tls]
        refused = self.finish(*words)
        self.assertEqual(refused.status, 64)
        self.assertIn("error[E08]: --cacert ", refused.err)
        self.assertEqual(fix_of(refused.err), "leave --cacert, --cert, --key out; or, if that port speaks TLS, write "
                                              "rediss: for redis: in the URI")
        self.assertEqual(self.finish("ls", "-u", self.plain_uri).status, 0)
        wrong = self.finish("ls", "-u", self.uri.replace("rediss:", "redis:"), *self.given)
        self.assertEqual(wrong.status, 64)
        self.assertEqual(self.finish("ls", *self.words).status, 0)
        for uri in ("local:", self.server.uri):
            with self.subTest(uri):
                self.assertEqual(fix_of(self.finish("ls", "-u", uri, *self.tls[:2]).err), "leave --cacert out")

    def test_of_a_key_with_a_pass_phrase_is_decrypted(self):
        for words in (["--cert", self.path_of("ca.pem"), "--key", self.path_of("locked.key")],
                      ["--cert", self.path_of("both.pem")]):
            with self.subTest(words):
                given = [*self.given[:4], *words]
                refused = self.finish("ls", "-u", self.uri, *given)
                self.assertEqual(refused.status, 64)
                self.assertNotIn("canary7f3a", refused.err)
                command, _, option = fix_of(refused.err).partition("; and ")
                new = self.path("new.key")
                subprocess.run([*shlex.split(command.replace("NEW", new)), "-passin", "pass:canary7f3a"], check=True)
                followed = self.finish("ls", "-u", self.uri, *given, *shlex.split(option.replace("NEW", new)))
                self.assertEqual(followed.status, 0, followed.err)


if __name__ == "__main__":
    unittest.main()
