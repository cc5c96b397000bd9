# SPDX-License-Identifier: Apache-2.0
"""interface.md 5.3, E04: who is denied something is sent to a rule, and with that rule everything works."""

import json
import re
import unittest

from fixture import IS_SANITIZED, CommandTest, Connection

WELL = "taken, renewed, waited for and released"


class Rule(CommandTest):
    """Of `holdfast help acl`, as it is printed."""

    def setUp(self):
        super().setUp()
        self.environment["HOLDFAST_URI"] = f"redis+unix://app-lock:SECRET@{self.server.socket}"
        shown = self.finish("help", "acl")
        self.assertEqual((shown.status, shown.err), (0, ""))
        self.help = shown.out
        self.rule = re.search(r"^ACL SETUSER app-lock .*$", self.help, re.M)[0].split()
        self.permit(*self.rule[3:])

    def permit(self, *words):
        self.server.ask("ACL", "SETUSER", "app-lock", *words)

    def besides(self, purpose):
        """What the help says somebody needs more: its words, which stand before the purpose."""
        return re.search(rf"^  (\+.*?)\s+{purpose}", self.help, re.M)[1].split()

    def succeeds(self, *words):
        done = self.finish(*words)
        self.assertEqual(done.status, 0, done.err)
        return done.out

    def is_well(self, *options):
        """A busy machine's round trips are a warning, and then nothing is said to be well."""
        for _ in range(20):
            said = self.succeeds("doctor", *options)
            if "round trips take" not in said:
                break
        self.assertIn(WELL, said)

    def is_denied(self, *words):
        done = self.finish(*words)
        self.assertEqual(done.status, 77, done.err)
        self.assertRegex(done.err, r"error\[E04\]: .*\n(  why: .*\n)?  fix: .*`holdfast help acl` has the one ACL rule")

    def test_is_enough_for_every_kind_of_lock_and_for_who_looks(self):
        for options in ((), ("-s",), ("-l", "2")):
            with self.subTest(options=options):
                name = self.lock + "".join(options)
                self.succeeds("run", *options, name, "true")
                self.succeeds("show", name)
                self.succeeds("check", name)
        self.succeeds("resize", self.lock + "-l2", "3")
        self.is_well()
        holder = self.hold()
        self.succeeds("break", "--token", str(holder.token), self.lock)

    def test_without_any_word_of_it_nobody_waits_for_a_free_lock(self):
        """A missing one is said to be denied, or costs time: never as if somebody held the lock (docs/acl.md)."""
        words = [word for word in self.rule if word.startswith("+")]
        self.assertGreater(len(words), 20)
        if IS_SANITIZED:  # Each is a process.
            words = words[::6] + ["+zrange"]
        waiters = {}
        for number, word in enumerate(words):
            user = f"without-{number}"
            self.server.ask("ACL", "SETUSER", user, *self.rule[3:], "-" + word[1:])
            self.addCleanup(self.server.ask, "ACL", "DELUSER", user)
            self.server.ask("SET", "hf:{%s-%d}" % (self.lock, number), "theirs", "PX", "1500")
            uri = self.environment["HOLDFAST_URI"].replace("app-lock:", user + ":")
            waiters[word] = self.start("run", "-w", "10s", f"{self.lock}-{number}", "--", "true", HOLDFAST_URI=uri)
        ended = {word: waiter.wait() for word, waiter in waiters.items()}
        self.assertEqual({word: status for word, status in ended.items() if status not in (0, 77)}, {})

    def test_names_what_a_listing_and_replicas_need_besides(self):
        denied = self.finish("ls")  # Not of the rule, on purpose; so it is no way out.
        self.assertEqual(denied.status, 77, denied.err)
        self.assertRegex(denied.err, r"error\[E04\]: .* does not permit SCAN: .*\n  fix: ACL SETUSER USER \+scan, .*: "
                                     r"it shows the names of all keys, other people's too\n")
        self.permit(*self.besides("holdfast ls"))
        self.succeeds("ls")
        self.is_denied("run", "--replicas", "1", self.lock, "true")
        self.permit(*self.besides("--replicas"))
        few = self.finish("run", "-n", "--replicas", "1", self.lock, "true")
        self.assertIn("error[E24]", few.err)  # It has none, and is asked.

    def test_names_what_a_cluster_needs_besides(self):
        made = self.finish("lab", "cluster", "--json", TMPDIR=self.directory)
        self.assertEqual(made.status, 0, made.err)
        lab = json.loads(made.out)
        self.addCleanup(self.finish, "lab", "stop", lab["directory"])
        uri = lab["uri"].replace("://", "://app-lock:SECRET@")

        def permit(*words):
            for node in lab["nodes"]:
                host, port = node["address"].rsplit(":", 1)
                connection = Connection((host, int(port)))
                self.addCleanup(connection.close)
                connection.ask(*words)

        permit(*self.rule)
        self.is_denied("run", "--uri", uri, self.lock, "true")
        permit("ACL", "SETUSER", "app-lock", *self.besides("redis\\+cluster://"))
        self.succeeds("run", "--uri", uri, self.lock, "true")
        self.assertNotIn("holdfast help acl", self.succeeds("doctor", "--uri", uri))  # Who waits is told, too.

    def test_names_what_the_sentinels_own_user_needs(self):
        made = self.finish("lab", "sentinel", "--json", TMPDIR=self.directory)
        self.assertEqual(made.status, 0, made.err)
        lab = json.loads(made.out)
        self.addCleanup(self.finish, "lab", "stop", lab["directory"])
        own = {"HOLDFAST_URI": lab["uri"], "HOLDFAST_SENTINEL_USER": "asks", "HOLDFAST_SENTINEL_PASSWORD": "SECRET"}

        def permit(*words):
            for node in lab["nodes"]:
                if node["role"] == "sentinel":
                    host, port = node["address"].rsplit(":", 1)
                    connection = Connection((host, int(port)))
                    self.addCleanup(connection.close)
                    connection.ask("ACL", "SETUSER", "asks", *words)

        permit("reset", "on", ">SECRET", "-@all", *self.besides("redis\\+sentinel://"))
        granted = self.finish("run", "-n", self.lock, "true", **own)
        self.assertEqual(granted.status, 0, granted.err)
        self.assertIn("no permissions", self.finish("doctor", **own).out)
        permit(*self.besides("holdfast doctor besides"))
        looked = self.finish("doctor", **own)
        self.assertNotIn("no permissions", looked.out + looked.err)
        permit("-sentinel|myid", "-sentinel|get-master-addr-by-name")
        self.assertEqual(self.finish("run", "-n", self.lock, "true", **own).status, 77)

    def test_needs_the_prefix_where_that_is_another(self):
        self.is_denied("run", "--prefix", "b:", self.lock, "true")
        self.assertIn("~b:* and &b:* in place of ~hf:* and &hf:*", self.help)
        self.permit("resetkeys", "resetchannels", "~b:*", "&b:*")
        self.server.declare_nothing_forgotten("b:")
        self.succeeds("run", "--prefix", "b:", self.lock, "true")
        self.is_well("--prefix", "b:")
        self.is_denied("run", self.lock, "true")

    def test_needs_the_name_where_that_is_plain(self):
        self.is_denied("run", "--plain", self.lock, "true")
        self.assertIn("~NAME besides, and ~hf:* stays", self.help)
        self.permit("~" + self.lock)
        self.succeeds("run", "--plain", self.lock, "true")

    def test_needs_a_plain_name_as_a_pattern_of_that_name_alone(self):
        self.assertRegex(self.help, r"a \\ before each \\ \* \? \[ \]\s+of NAME, and \? for a space")
        for name, others in (("a[1]*", ("a1", "a[1]b")), ("a b\\", ("ab\\", "a b"))):
            with self.subTest(name):
                self.permit("~" + re.sub(r"[\\*?\[\]]", r"\\\g<0>", name).replace(" ", "?"))
                self.succeeds("run", "--plain", name, "true")
                for other in others:
                    self.is_denied("run", "--plain", other, "true")


if __name__ == "__main__":
    unittest.main()
