# SPDX-License-Identifier: Apache-2.0
"""What was typed, and what is said of it: the command that was named, the server that was meant, and no password where
there is none."""

import os
import re
import shlex
import unittest

from fixture import CommandTest

CANARY = "canary7f3a"


def fix_of(said):
    """What stands behind `fix:`."""
    return re.search(r"^  fix: (.*)$", said, re.M)[1]


class Early(CommandTest):
    """An option before the command."""

    def refused(self, *words):
        refused = self.finish(*words)
        self.assertEqual(refused.status, 64, refused.err)
        self.assertIn("comes too early: first the command, then its options", refused.err)
        return fix_of(refused.err)

    def test_proposes_the_command_that_was_named(self):
        socket = self.server.uri
        for words, proposed in ((["--json", "ls"], "holdfast ls --json"),
                                (["--uri", socket, "ls"], f"holdfast ls --uri {socket}"),
                                ([f"--uri={socket}", "ls", "a*"], f"holdfast ls --uri={socket} 'a*'"),
                                (["--prefix", "b:", "show", "x"], "holdfast show --prefix b: x"),
                                (["--prefix", "run", "show", "x"], "holdfast show --prefix run x"),
                                (["-q", "doctor"], "holdfast doctor -q"),
                                (["-qu", socket, "--json", "check", "--", "-x"],
                                 f"holdfast check -qu {socket} --json -- -x")):
            with self.subTest(words):
                fix = self.refused(*words)
                self.assertEqual(fix, proposed)
                followed = self.finish(*shlex.split(fix)[1:])
                self.assertEqual(followed.status, 0, followed.err)

    def test_of_run_has_its_options_and_not_the_command(self):
        self.assertEqual(self.refused("-n", "-w", "5", "run", "x", "--", "mysql", f"-p{CANARY}"),
                         "holdfast run -n -w 5 NAME -- CMD")

    def test_without_a_command_proposes_one_that_takes_it(self):
        self.assertEqual(self.refused("-n", "x", "true"), "holdfast run [options] NAME -- CMD")
        self.assertEqual(self.refused("--json"), "holdfast help")
        self.assertEqual(self.refused("--uri"), "holdfast run [options] NAME -- CMD")

    def test_shows_no_password(self):
        for words, fix in ((["-u", f"redis://:{CANARY}@h", "ls"], "holdfast ls -u URI"),
                           (["-qu", f"default:{CANARY}", "ls"], "holdfast ls -qu URI"),
                           ([f"-uredis://:{CANARY}@h", "ls"], "holdfast ls -u URI"),
                           ([f"--uri=redis://default:{CANARY}", "ls"], "holdfast ls --uri=URI"),
                           (["-q", "ls", "-u", f"redis://default:{CANARY}"], "holdfast ls -q -u URI"),
                           (["-q", "doctor", f"redis://:{CANARY}@h"], "holdfast doctor -q URI"),
                           ([f"--url=redis://:{CANARY}@h", "ls"], "holdfast ls --url=URI")):
            with self.subTest(fix):
                said = self.finish(*words)
                self.assertNotIn(CANARY, said.err)
                self.assertEqual(fix_of(said.err), fix)

    def test_help_is_that_of_the_command_behind_it(self):
        for word in ("--help", "-h"):
            for command in ("run", "E17", "loss"):
                with self.subTest(word, command=command):
                    self.assertEqual(self.finish(word, command).out, self.finish("help", command).out)
            self.assertEqual(self.finish(word).out, self.finish("help").out)


class Uri(CommandTest):
    """A server that cannot be understood, and has no password."""

    def refused(self, uri):
        refused = self.finish("run", "-n", "-u", uri, self.lock, "true")
        self.assertEqual(refused.status, 64, refused.err)
        self.assertNotIn("password", refused.err)
        self.assertIn(f"error[E17]: '{uri}' is not a server that we know how to reach", refused.err)
        return refused.err

    def test_of_an_ipv6_address_without_brackets_says_that_they_are_missing(self):
        for uri, meant in (("redis://::1:17411", "redis://[::1]:17411"), ("redis://[::1", "redis://[::1]"),
                           ("redis://[::1:6379/2", "redis://[::1]:6379/2"), ("redis://fe80::1", "redis://[fe80::1]"),
                           ("redis://::1:6379", "redis://[::1]:6379"), ("rediss://::", "rediss://[::]"),
                           ("redis://2001:db8:0:0:0:0:0:1:6379", "redis://[2001:db8:0:0:0:0:0:1]:6379"),
                           ("redis+quorum://::1:7001,b,[::2]:7003", "redis+quorum://[::1]:7001,b,[::2]:7003")):
            with self.subTest(uri):
                said = self.refused(uri)
                self.assertIn("\n  why: an IPv6 address stands in brackets\n", said)
                self.assertEqual(fix_of(said), meant)

    def test_of_an_ipv6_address_with_a_zone_says_that_it_is_of_one_machine(self):
        for uri in ("redis://fe80::1%eth0:1", "redis://fe80::1%eth0"):
            with self.subTest(uri):
                said = self.refused(uri)
                self.assertIn("stands in brackets, and one with a zone (%eth0) is of one machine alone", said)
                self.assertEqual(fix_of(said), "an address without a zone, in brackets, or a name")

    def test_with_a_blank_says_so(self):
        for uri, fix in (("redis://127.0.0.1:17411 ", "redis://127.0.0.1:17411"), (" redis://h:1", "redis://h:1"),
                         ("redis://h:1/0  ", "redis://h:1/0"),
                         ("redis+quorum://a:1, b:2,c", "leave it out"), ("redis://my host", "leave it out"),
                         ("redis+unix:///run/my s", "%20 in its place"), ("local:/my d", "%20 in its place"),
                         ("rediss://h?cacert=/my ca.pem", "%20 in its place")):
            with self.subTest(uri):
                said = self.refused(uri)
                self.assertIn("\n  why: there is a blank in it\n", said)
                self.assertEqual(fix_of(said), fix)
        # Of a file that was written on Windows.
        returned = self.finish("ls", HOLDFAST_URI="redis://h:1\r")
        self.assertIn(r"'redis://h:1\x0d' is not a server", returned.err)
        self.assertEqual(fix_of(returned.err), "redis://h:1")

    def test_of_several_servers_says_what_they_may_be(self):
        ways = "redis+quorum://a:1,b:2 (an odd number), redis+cluster://a:1,b:2 or redis+sentinel://a:1,b:2/NAME"
        for uri, fix in (("redis://a:1,b:2", ways), ("redis://a:1,b:2/3", ways), ("rediss://a:1,b:2",
                                                                               ways.replace("redis+", "rediss+"))):
            with self.subTest(uri):
                said = self.refused(uri)
                self.assertRegex(said, r"\n  why: it names several servers, and rediss?:// is one\n")
                self.assertEqual(fix_of(said), fix)
        hidden = self.finish("ls", HOLDFAST_URI=f"redis://:{CANARY}@a:1,b:2")
        self.assertNotIn(CANARY, hidden.err)
        self.assertIn("\n  why: it names several servers, and redis:// is one\n", hidden.err)
        self.assertEqual(fix_of(hidden.err), ways.replace("a:1,b:2", "A,B,C"))

    # An odd word behind a colon stays one that was to be a password.
    def test_that_may_have_a_password_is_not_shown(self):
        for uri in (f"redis://abc:{CANARY}", f"redis://::{CANARY}", "redis://dead:beef:cafe1", "redis://abc:def",
                    f"redis://default:{CANARY} ", "redis://:0123abcd", f"redis://::1:{CANARY}", "redis://ab:cd:1",
                    "redis://h:secret word", f"redis://:{CANARY}@::1:6379"):
            with self.subTest(uri):
                said = self.finish("ls", "-u", uri)
                self.assertEqual(said.status, 64)
                self.assertIn("the password in --uri could be read by everybody", said.err)
                for part in (uri, CANARY, "cafe1", "0123abcd", "secret word"):
                    self.assertNotIn(part, said.err)

    def test_of_blanks_alone_is_as_good_as_empty(self):
        for blank in (" ", "\t \n"):
            said = self.finish("ls", HOLDFAST_URI=blank)
            self.assertEqual(said.status, 64)
            self.assertIn("error[E17]: HOLDFAST_URI is set, and blank\n", said.err)
            self.assertEqual(fix_of(said.err), "redis://HOST:PORT, local:, or unset it")


class Socket(CommandTest):
    def test_with_a_database_behind_a_slash_says_where_that_stands(self):
        bounded = ["ls", "--server-timeout", "200ms", "-u"]
        for behind, database in (("/0", "0"), ("/3", "3"), ("/", "0"), ("/x/y", "N")):
            with self.subTest(behind):
                said = self.finish(*bounded, self.server.uri + behind)
                self.assertEqual(said.status, 69, said.err)
                self.assertIn(f"\n  why: '{self.server.socket}' is a socket and no directory; the database is "
                              f"?db={database}\n", said.err)
                self.assertEqual(fix_of(said.err), f"{self.server.uri}?db={database}")
        self.assertEqual(self.finish("ls", "-u", f"{self.server.uri}?db=3").status, 0)

    def test_whose_path_has_odd_bytes_is_typed_as_a_uri(self):
        os.mkdir(self.path("a b"))
        os.symlink(self.server.socket, self.path("a b/s"))
        said = self.finish("ls", "--server-timeout", "200ms", "-u", f"redis+unix://{self.path('a%20b/s')}/1")
        self.assertIn(f"why: '{self.path('a b/s')}' is a socket and no directory; the database is ?db=1", said.err)
        self.assertEqual(self.finish("ls", "-u", fix_of(said.err)).status, 0)

    def test_below_a_file_is_no_socket(self):
        with open(self.path("file"), "w", encoding="ascii"):
            pass
        said = self.finish("ls", "--server-timeout", "200ms", "-u", f"redis+unix://{self.path('file')}/s")
        self.assertIn(f"\n  why: '{self.path('file')}' is no directory\n", said.err)


class User(CommandTest):
    server_options = ("--requirepass", CANARY)

    def test_without_a_password_is_asked_for_one(self):
        uri = f"redis+unix://someone@{self.server.socket}"
        for given in ({"HOLDFAST_URI": uri}, {"HOLDFAST_URI": uri.replace("@", ":@")}, {"HOLDFAST_URI": uri,
                                                                                       "REDISCLI_AUTH": ""}):
            with self.subTest(given):
                none = self.finish("run", "-n", self.lock, "true", **given)
                self.assertEqual(none.status, 77, none.err)
                self.assertIn(f"error[E02]: {self.server.uri} wants a password for user 'someone' and none was given\n",
                              none.err)
                self.assertIn("REDISCLI_AUTH or a file (--password-file)", fix_of(none.err))
        self.assertEqual(self.finish("run", "-n", "-u", uri, self.lock, "true").status, 77)

    def test_with_a_wrong_one_is_told_so(self):
        uri = f"redis+unix://someone@{self.server.socket}"
        with open(self.path("password"), "w", encoding="ascii") as file:
            file.write("wrong\n")
        os.chmod(self.path("password"), 0o600)
        for given, environment in ((["-u", uri], {"REDISCLI_AUTH": "wrong"}),
                                   (["-u", uri, "--password-file", self.path("password")], {}),
                                   ([], {"HOLDFAST_URI": uri.replace("@", ":wrong@")})):
            with self.subTest(given):
                wrong = self.finish("run", "-n", *given, self.lock, "true", **environment)
                self.assertEqual(wrong.status, 77, wrong.err)
                self.assertIn("does not accept this password for user 'someone'", wrong.err)


if __name__ == "__main__":
    unittest.main()
