# SPDX-License-Identifier: Apache-2.0
"""holdfast quorum replace: what it says, what it leaves on stdout, and what those with the old list hear (P26)."""

import json
import os
import signal
import time
import unittest

from fixture import CommandTest, Connection, FarServer, is_alive, signals_of, until

FEW = ("--max-ttl", "1s")  # A short wait.


class Replace(CommandTest):
    def setUp(self):
        super().setUp()
        del self.environment["HOLDFAST_URI"]
        self.environment["TMPDIR"] = self.path("run")
        os.mkdir(self.path("run"), 0o700)
        self.lab = lab = json.loads(self.finish("lab", "quorum", "5", "--json").out)
        self.addCleanup(self.finish, "lab", "stop", lab["directory"])
        self.nodes = sorted(node["address"] for node in lab["nodes"])
        self.old = self.list_of(0, 1, 2)
        self.new = self.list_of(0, 1, 3)
        self.assertEqual(self.finish("init", "-u", lab["uri"], *FEW).status, 0)
        self.assertEqual(self.run_true(self.old).status, 0)

    def list_of(self, *which):
        return "redis+quorum://" + ",".join(sorted(self.nodes[i] for i in which))

    def run_true(self, uri, *options):
        return self.finish("run", "-u", uri, *FEW, "-t", "1s", *options, self.lock, "--", "true")

    def replace(self, *options, **environment):
        return self.finish("quorum", "replace", *FEW, *options, **environment)

    def test_ls_shows_what_is_not_ours_beside_the_locks(self):
        for node in self.nodes[:3]:
            host, port = node.split(":")
            connection = Connection((host, int(port)))
            self.addCleanup(connection.close)
            connection.ask("RPUSH", "hf:{foreign}", "theirs")
        self.hold("-u", self.old, *FEW, "-t", "1s")
        listed = self.finish("ls", "-u", self.old, *FEW, "--json")
        self.assertEqual(listed.status, 0, listed.err)
        locks = {lock["name"]: lock["foreign"] for lock in json.loads(listed.out)["locks"]}
        self.assertEqual(locks, {"foreign": True, self.lock: False})
        # Its line is not asked, and nobody is not what that means.
        self.assertRegex(self.finish("ls", "-u", self.old, *FEW).out, rf"(?m)^{self.lock} .* exclusive +- ")

    def test_doctor_warns_of_a_minority_that_is_down_and_fails_for_a_majority(self):
        uri = self.list_of(0, 1, 2)
        processes = {node["address"]: node["pid"] for node in self.lab["nodes"]}
        for down, status, level, fix in (
                (0, 0, "warning", "start it: when one more is down, no lock is granted"),
                (1, 78, "error", "start it: no lock is granted while a majority of the 3 is down")):
            os.kill(processes[self.nodes[down]], signal.SIGKILL)
            until(lambda pid=processes[self.nodes[down]]: not is_alive(pid), "it is dead")
            if status == 0:
                self.assertEqual(self.run_true(uri).status, 0)
            found = self.finish("doctor", "-u", uri, *FEW, "--server-timeout", "2s")
            self.assertEqual(found.status, status, found.out + found.err)
            self.assertIn(f"{level:<8} {self.nodes[down]}: Connection refused (E10)\n{'':<8} fix: {fix}\n", found.out)
            self.assertTrue(found.out.endswith("fit for locks\n" if status == 0 else "not fit for locks\n"), found.out)
        said = json.loads(self.finish("doctor", "--json", "-u", uri, *FEW, "--server-timeout", "2s").out)
        self.assertEqual(said["worst"], "error")

    def test_the_new_uri_is_all_of_stdout_and_works(self):
        done = self.replace("--uri", self.old, "--with", self.new)
        self.assertEqual((done.status, done.out), (0, self.new + "?generation=2\n"), done.err)
        for said in ("is closed for the old list", "waiting 1", "is open for the new list", "give that URI"):
            self.assertIn(said, done.err)
        self.assertEqual(self.run_true(done.out.strip(), "-w", "30s").status, 0)
        old = self.run_true(self.old)
        self.assertEqual(old.status, 78)
        self.assertIn("error[E10]", old.err)
        self.assertIn("was replaced by " + self.new.partition("://")[2] + "?generation=2", old.err)

    def test_the_old_list_may_come_from_the_environment_and_the_document_has_all(self):
        done = self.replace("--with", self.new + "?generation=2", "--json", "-q", HOLDFAST_URI=self.old)
        self.assertEqual((done.status, done.err), (0, ""))
        said = json.loads(done.out)
        self.assertEqual((said["version"], said["uri"], said["generation"], said["away"]),
                         (1, self.new + "?generation=2", 2, []))
        self.assertEqual(sorted(said["closed"]), sorted(self.nodes[i] for i in (0, 1, 2)))
        self.assertEqual(sorted(said["opened"]), sorted(self.nodes[i] for i in (0, 1, 3)))
        self.assertGreaterEqual(said["waited_ms"], 1000)
        again = self.replace("--uri", self.old, "--with", self.new)
        self.assertEqual((again.status, again.out), (0, self.new + "?generation=2\n"))
        self.assertIn("had waited already", again.err)

    # A script goes on with what was printed; whoever reads the message has the URI.
    def test_a_uri_that_cannot_be_printed_is_on_stderr(self):
        self.assertEqual(self.into_full_disk("quorum", "replace", *FEW, "-q", "--uri", self.old, "--with", self.new),
                         (70, "holdfast: warning: cannot write: No space left on device; it was done all the same: "
                              f"{self.new}?generation=2\n"))

    def expect_other_list(self, *new):
        self.assertEqual(self.replace("--uri", self.old, "--with", self.list_of(*new)).status, 0)
        other = self.replace("--uri", self.old, "--with", self.list_of(0, 1, 4))
        self.assertEqual((other.status, other.out), (78, ""))
        self.assertIn("error[E10]", other.err)
        servers = self.list_of(*new).partition("://")[2]
        self.assertIn(f"fix: the old list is {servers}?generation=2 by now; if that replacement has not ended, finish it, "
                      f"with {servers} as the new list", other.err)
        by_now = self.replace("--uri", self.list_of(*new) + "?generation=2", "--with", self.list_of(0, 1, 4))
        self.assertEqual((by_now.status, by_now.out), (0, self.list_of(0, 1, 4) + "?generation=3\n"))

    def test_another_list_than_the_one_that_was_begun_is_refused(self):
        self.expect_other_list(0, 1, 3)

    def test_so_it_is_when_the_server_that_was_left_out_is_the_first(self):
        self.expect_other_list(1, 2, 3)  # That one is closed, and never open; what the others say is said.

    def test_a_signal_ends_the_wait_and_the_same_command_goes_on(self):
        running = self.start("quorum", "replace", "--max-ttl", "10s", "--uri", self.old, "--with", self.new)
        until(lambda: "waiting 10" in running.err, "it waits")
        running.signal(signal.SIGINT)
        self.assertEqual(running.wait(), 128 + signal.SIGINT)
        self.assertIn("the same command goes on", running.err)
        self.assertEqual(self.replace("--uri", self.old, "--with", self.new).status, 0)

    def test_a_signal_ends_it_at_once_while_a_server_is_silent(self):
        silent = next(node["pid"] for node in self.lab["nodes"] if node["address"] == self.nodes[1])
        os.kill(silent, signal.SIGSTOP)
        self.addCleanup(os.kill, silent, signal.SIGCONT)
        for number in (signal.SIGINT, signal.SIGTERM):
            running = self.start("quorum", "replace", "--server-timeout", "60s", "--uri", self.old, "--with", self.new)
            until(lambda: signals_of(running.pid, "SigBlk") & 1 << number - 1, "its signals are blocked")
            running.signal(number)
            self.assertEqual((running.wait(10), running.err), (128 + number, ""))

    def test_an_interruption_is_not_told_with_quiet(self):
        running = self.start("quorum", "replace", "-q", "--max-ttl", "10s", "--uri", self.old, "--with", self.new)
        host, port = self.nodes[0].split(":")
        connection = Connection((host, int(port)))
        self.addCleanup(connection.close)
        until(lambda: "closed" in str(connection.ask("GET", "hf:quorum")), "the old list is being closed")
        running.signal(signal.SIGINT)
        self.assertEqual((running.wait(10), running.err), (128 + signal.SIGINT, ""))

    def test_what_is_missing_or_makes_no_sense_is_said(self):
        for words, said in (
                ((), "quorum needs to know what"),
                (("swap",), "quorum has no 'swap'"),
                (("replace",), "needs the new list"),
                (("replace", "--with", self.new), "needs the old list"),
                (("replace", "x", "--uri", self.old, "--with", self.new), "one word too many"),
                (("replace", "--uri", self.old, "--with", self.old), "cannot be used here\n  why: the list has the same servers"),
                (("replace", "--uri", self.old, "--with", self.list_of(0, 1)), "2 servers")):
            refused = self.finish("quorum", *words)
            self.assertEqual((refused.status, refused.out), (64, ""), words)
            self.assertIn(said, refused.err)

    def test_a_list_that_is_not_open_says_how_it_is_opened(self):
        early = self.run_true(self.new + "?generation=2", "-n")
        self.assertEqual(early.status, 69, early.err)
        self.assertIn("is not open yet", early.err)
        self.assertIn("fix: holdfast quorum replace", early.err)
        self.assertIn("--reopen", early.err)
        for words in (("check", self.lock), ("wait", self.lock), ("show", self.lock), ("ls",),
                      ("break", "--token", "5", self.lock)):
            with self.subTest(words[0]):
                refused = self.finish(*words, "-u", self.new + "?generation=2")
                self.assertEqual(refused.status, 69, refused.err)
                self.assertIn(" cannot be told: the list of servers of ", refused.err)
                self.assertNotIn("(-w)", refused.err)
        doctor = self.finish("doctor", "-u", self.new + "?generation=2")
        self.assertEqual(doctor.status, 78, doctor.out)
        self.assertIn("E23", doctor.out)
        self.assertIn("is not open here yet", doctor.out)

    def test_a_list_that_its_servers_have_forgotten_is_opened_again_with_reopen(self):
        forgotten = self.new + "?generation=2"
        refused = self.replace("--uri", forgotten, "--with", self.new)
        self.assertEqual(refused.status, 64, refused.err)
        self.assertIn("--reopen", refused.err)
        refused = self.replace("--uri", forgotten, "--with", self.list_of(4))
        self.assertEqual(refused.status, 78, refused.err)
        self.assertIn("generation 2 of " + self.new + " is not open: finish the replacement that opens it", refused.err)
        for host, port in (self.nodes[i].split(":") for i in (0, 1)):
            connection = Connection((host, int(port)))
            self.addCleanup(connection.close)
            connection.ask("DEL", "hf:quorum")
        done = self.replace("--reopen", "--uri", forgotten, "--with", self.new)
        self.assertEqual((done.status, done.out), (0, self.new + "?generation=3\n"), done.err)
        self.assertEqual(self.run_true(done.out.strip(), "-w", "30s").status, 0)


def lab_of_three(test):
    """The document of `lab quorum 3`, which ends with the test."""
    del test.environment["HOLDFAST_URI"]
    test.environment["TMPDIR"] = test.directory
    lab = json.loads(test.finish("lab", "quorum", "3", "--json").out)
    test.addCleanup(test.finish, "lab", "stop", lab["directory"])
    return lab


class Wait(CommandTest):
    def test_whose_time_is_over_before_the_last_answers_says_what_was_seen(self):
        lab = lab_of_three(self)
        near, *others = (node["address"] for node in lab["nodes"])
        far = [FarServer(self, address, 0.15).address for address in others]
        self.environment["HOLDFAST_URI"] = "redis+quorum://" + ",".join([near, *far])
        self.assertEqual(self.finish("init").status, 0)
        self.hold("--ttl", "60s")
        waited = self.finish("wait", "-w", "3s", self.lock)
        self.assertEqual(waited.status, 75, waited.err)
        self.assertIn("is held by", waited.err)


class AtLeast(CommandTest):
    # What is seen then is a grant of ours on one and another's on one, and either could have the third.
    def test_keeps_what_a_contender_and_a_silent_server_hide(self):
        lab = lab_of_three(self)
        self.environment["HOLDFAST_URI"] = lab["uri"]
        self.assertEqual(self.finish("init").status, 0)
        silent, other = lab["nodes"][1:]
        self.leave_a_vote(other["address"])
        running = self.start_child("--verbose", "--at-least", "1h", "--ttl", "30s", code="ready()\n"
                                   "while not os.path.exists(sys.argv[0] + '.go'): time.sleep(0.01)\nsys.exit(7)")
        os.kill(silent["pid"], signal.SIGSTOP)
        self.addCleanup(os.kill, silent["pid"], signal.SIGCONT)
        open(running.process.args[-1] + ".go", "w", encoding="utf-8").close()
        until(lambda: "is kept for" in running.err or running.process.poll() is not None, "the command has ended")
        self.assertIsNone(running.process.poll(), running.err)
        os.kill(silent["pid"], signal.SIGCONT)
        running.signal(signal.SIGTERM)
        self.assertEqual(running.wait(), 7)
        self.assertNotIn("E12", running.err)

    def leave_a_vote(self, address):
        """As a contender leaves it that was killed. Of several grants the one with the largest id is shown."""
        host, port = address.split(":")
        server = Connection((host, int(port)))
        self.addCleanup(server.close)
        holder = self.hold()
        key = "hf:{%s}" % self.lock
        until(lambda: server.ask("EXISTS", key), "it has its vote there")
        value = server.ask("GET", key)
        holder.process.stdin.close()
        holder.wait()
        server.ask("SET", key, value[:3] + "f" * 32 + value[35:], "PX", "60000")


if __name__ == "__main__":
    unittest.main()
