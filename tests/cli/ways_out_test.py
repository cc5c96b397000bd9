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


    def test_of_a_quorum_of_two_counts_them(self):
        refused = self.finish("ls", "-u", "redis+quorum://127.0.0.1:1,127.0.0.1:2")
        self.assertEqual(refused.status, 64)
        self.assertIn("error[E17]: 2 servers are no quorum\n  why: their votes can come out even", refused.err)
        self.assertEqual(fix_of(refused.err), "redis+quorum:// with 1, 3, 5, 7 or 9 servers, each named once")

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


class Mistakes(CommandTest):
    """Each command, and whatever can be wrong: the message has a value, and a way out."""

    COMMANDS = (["run", "x", "true"], ["hold", "x"], ["check", "x"], ["show", "x"], ["wait", "x"], ["ls"],
                ["break", "x", "--token", "5"], ["resize", "x", "3"], ["doctor"], ["init"])
    NAMED = [words for words in COMMANDS if "x" in words]

    def has_a_way_out(self, refused, status):
        self.assertEqual(refused.status, status, refused.err)
        self.assertRegex(refused.err, r"\Aholdfast: error(\[E\d\d\])?: [^\n]+\n(  why: [^\n]+\n)?  fix: [^\n]+\n")
        self.assertNotIn("E21", refused.err)

    def try_all(self, commands, status, *given, **environment):
        for words in commands:
            with self.subTest(words[0], given=given, **environment):
                self.has_a_way_out(self.finish(words[0], *given, *words[1:], **environment), status)

    def test_in_the_uri(self):
        for uri in ("http://h", "127.0.0.1:6379", "redis://", "redis://h:99999", "redis://h/x", "redis://h?x=1",
                    "local:rel", "redis+unix://h/s", "redis+sentinel://h", "redis+cluster://h/3", "redis+quorum://a,b",
                    ""):
            self.try_all(self.COMMANDS, 64, HOLDFAST_URI=uri)
        for uri in ("", "h", "/tmp/s"):
            self.try_all(self.COMMANDS, 64, "--uri", uri)

    def test_in_an_option(self):
        for given in (["--server-timeout", "abc"], ["--server-timeout", ""], ["--server-timeout", "0"],
                      ["--server-timeout", "-1"], ["--max-ttl", "48h"], ["--prefix", ""], ["--prefix", "a*"],
                      ["--no-such"], ["--serv", "3"], ["-Z"], ["--password-file", self.path("none")],
                      ["--password-file", self.directory], ["--password-file", "/dev/null"],
                      ["--cacert", self.path("none")], ["--cacert", ""]):
            self.try_all(self.COMMANDS, 64, *given)

    def test_in_the_name(self):
        for name in ("", "a\nb", "n" * 513):
            self.try_all([[words[0], name, *words[2:]] for words in self.NAMED], 64)
        self.try_all([[words[0]] for words in self.NAMED], 64)
        self.try_all([[*words, "more"] for words in self.COMMANDS if words[0] not in ("run", "ls")], 64)
        self.try_all([[words[0], "--plain", "hf:x", *words[2:]] for words in self.NAMED if words[0] != "resize"], 64)

    def test_about_the_server(self):
        locked = Server("--requirepass", "canary7f3a")
        self.addCleanup(locked.stop)
        port = listen(locked, "port")
        here = f"127.0.0.1:{listen(self.server, 'port')}"
        for uri, status in (("redis://127.0.0.1:1", 69), (f"redis+unix://{self.path('none')}", 69),
                            (locked.uri, 77), (f"redis://:wrong@127.0.0.1:{port}", 77), (f"redis://{here}/99", 78),
                            (f"redis+sentinel://{here}/m", 78), (f"redis+cluster://{here}", 78)):
            self.try_all(self.COMMANDS, status, HOLDFAST_URI=uri)
        # Nobody answers, and that takes its time.
        bounded = [[words[0], *(["-w", "1s"] if words[0] in ("run", "hold") else []), *words[1:]]
                   for words in self.COMMANDS]
        self.try_all(bounded, 69, "--server-timeout", "100ms", HOLDFAST_URI=f"rediss://{here}")

    def test_of_those_that_take_no_uri_proposes_none(self):
        file = self.path("file")
        with open(file, "w", encoding="ascii"):
            pass
        for words, status in ((["local", "start", file], 69), (["lab", "single", "--directory", file], 69),
                              (["lab", "single", "--directory", self.directory], 69),
                              (["lab", "stop", self.path("none")], 69), (["local"], 64), (["local", "x"], 64),
                              (["lab"], 64), (["lab", "quorum", "4"], 64), (["quorum"], 64),
                              (["quorum", "replace"], 64),
                              (["quorum", "replace", "--with", "x"], 64), (["top"], 64), (["help", "x"], 64)):
            with self.subTest(words):
                refused = self.finish(*words)
                self.has_a_way_out(refused, status)
                self.assertNotIn("HOLDFAST_URI=", refused.err)

    def test_of_a_lease_that_ended_by_itself(self):
        for given, fix in ((["--no-renew"], "leave --no-renew out, or a longer --ttl"),
                           (["--max-hold", "1s"], "a longer --max-hold, if it may take so long")):
            with self.subTest(given):
                # Where the machine had no time between the grant and the command, silence is told for the reason.
                for _ in range(8):
                    lost = self.finish("run", "-t", "1s", *given, self.lock, "sleep", "60")
                    if f"{given[0]} allows" in lost.err or f"({given[0]})" in lost.err:
                        break
                self.has_a_way_out(lost, 79)
                self.assertEqual(fix_of(lost.err), fix)


if __name__ == "__main__":
    unittest.main()
