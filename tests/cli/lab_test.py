# SPDX-License-Identifier: Apache-2.0
"""holdfast lab: each topology is what it says, and its end is the end of its processes and of nobody else's."""

import glob
import json
import os
import re
import signal
import subprocess
import time
import unittest

from fixture import COMMAND, CommandTest, Connection, FullPipe, content, is_alive, now, until

SERVER = "/usr/bin/redis-server"


def ask(address, *words):
    host, port = address.rsplit(":", 1)
    connection = Connection((host, int(port)))
    try:
        return connection.ask(*words)
    finally:
        connection.close()


def pairs(flat):
    return dict(zip(flat[::2], flat[1::2]))


def fields(info):
    return dict(line.split(":", 1) for line in info.splitlines() if ":" in line)


def listeners_of(pid):
    """The addresses on which a process listens, from /proc."""
    inodes = set()
    for link in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(link)))
        except FileNotFoundError:
            pass
    found = set()
    for table in ("tcp", "tcp6"):
        with open(f"/proc/net/{table}", encoding="ascii") as lines:
            for words in (line.split() for line in list(lines)[1:]):
                if words[3] == "0A" and words[9] in inodes:
                    found.add(words[1].split(":")[0])
    return found


class Lab(CommandTest):
    def setUp(self):
        super().setUp()
        del self.environment["HOLDFAST_URI"]
        self.environment["TMPDIR"] = self.path("run")
        os.mkdir(self.path("run"), 0o700)
        self.made = []
        self.addCleanup(self.stop_all)  # Runs before the directory is removed.

    def stop_all(self):
        for directory in self.made:
            self.finish("lab", "stop", directory)

    def lab(self, *words):
        started = self.finish("lab", *words, "--json")
        self.assertEqual(started.status, 0, started.err)
        lab = json.loads(started.out)
        self.made.append(lab["directory"])
        for node in lab["nodes"]:
            self.assertTrue(is_alive(node["pid"]), node)
            self.assertEqual(fields(ask(node["address"], "INFO", "server"))["process_id"], str(node["pid"]))
            self.assertEqual(listeners_of(node["pid"]), {"0100007F"}, "127.0.0.1 and nothing else")
        return lab

    @staticmethod
    def of(lab, role):
        return [node["address"] for node in lab["nodes"] if node["role"] == role]

    def assert_replicates(self, replica, primary):
        role = ask(replica, "ROLE")
        self.assertEqual((role[0], f"{role[1]}:{role[2]}", role[3]), ("slave", primary, "connected"))
        self.assertEqual(fields(ask(replica, "INFO", "replication"))["master_link_status"], "up")

    def assert_ended(self, lab):
        for node in lab["nodes"]:
            self.assertFalse(is_alive(node["pid"]), node)
        self.assertFalse(os.path.exists(lab["directory"]))

    def logs_in_use(self):
        """Those of servers, also when they have been removed."""
        logs = []
        for path in glob.glob("/proc/[0-9]*/fd/1"):
            try:
                logs.append(os.readlink(path))
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                pass
        return [log for log in logs if self.path("run") in log]

    def assert_nothing_is_left(self):
        self.assertEqual(os.listdir(self.path("run")), [])
        self.assertEqual(self.logs_in_use(), [])

    def refused(self, *words, status, **environment):
        refused = self.finish("lab", *words, **environment)
        self.assertEqual(refused.status, status, refused.out + refused.err)
        self.assertEqual(refused.out, "")
        return refused.err


class Topologies(Lab):
    def test_single_serves_locks(self):
        lab = self.lab("single")
        self.assertEqual(lab["uri"], "redis://" + lab["nodes"][0]["address"])
        self.assertEqual(ask(lab["nodes"][0]["address"], "ROLE")[0], "master")
        run = self.finish("run", "-u", lab["uri"], self.lock, "--", "sh", "-c", "exit 7")
        self.assertEqual(run.status, 7, run.err)

    def test_grants_at_once_and_under_another_prefix_when_it_is_told_that_it_is_new(self):
        uri = self.lab("single")["uri"]
        run = lambda *words: self.finish("run", "-n", "-u", uri, *words, self.lock, "true")
        self.assertEqual(run().status, 0)
        self.assertEqual(run("--prefix", "b:").status, 69)
        self.assertEqual(self.finish("init", "--uri", uri, "--prefix", "b:").status, 0)
        self.assertEqual(run("--prefix", "b:").status, 0)

    def test_keeps_nothing_on_disk_unless_asked(self):
        keeps = lambda lab: ask(lab["nodes"][0]["address"], "CONFIG", "GET", "appendonly")[1]
        self.assertEqual(keeps(self.lab("single")), "no")
        self.assertEqual(keeps(self.lab("single", "--persistent")), "yes")

    def test_replicas_are_in_sync(self):
        lab = self.lab("replicas", "3")
        [primary] = self.of(lab, "primary")
        self.assertEqual(lab["uri"], f"redis://{primary}")
        self.assertEqual(len(ask(primary, "ROLE")[2]), 3)
        for replica in self.of(lab, "replica"):
            self.assert_replicates(replica, primary)
        connection = Connection((primary.split(":")[0], int(primary.split(":")[1])))
        self.addCleanup(connection.close)
        connection.ask("SET", "x", "1", "PX", "60000")
        self.assertEqual(connection.ask("WAIT", "3", "5000"), 3)

    def test_replicas_must_have_a_lock_when_they_are_asked_for_it(self):
        lab = self.lab("replicas", "1")
        self.assertEqual(self.finish("init", "-u", lab["uri"]).status, 0)
        run = lambda *words: self.finish("run", "-n", "-u", lab["uri"], *words, self.lock, "true")
        one = run("--replicas", "1", "--replicas-timeout", "2s")
        self.assertEqual(one.status, 0, one.err)
        two = run("--replicas", "2", "--replicas-timeout", "2s")
        self.assertEqual(two.status, 69)
        self.assertIn("error[E24]", two.err)
        self.assertIn("1 of 2 replicas confirmed it within 2000 ms", two.err)
        doctor = self.finish("doctor", "-u", lab["uri"], "--replicas", "2")
        self.assertEqual(doctor.status, 78)
        self.assertIn("1 of 2 replicas are connected", doctor.out)
        self.assertEqual(run("--replicas", "101").status, 64)
        self.assertEqual(run("--replicas", "1", "--replicas-timeout", "1h").status, 64)

    def test_sentinels_agree_and_fail_over_when_the_primary_dies(self):
        lab = self.lab("sentinel")
        [primary], replicas, sentinels = (self.of(lab, role) for role in ("primary", "replica", "sentinel"))
        self.assertEqual((len(replicas), len(sentinels)), (2, 3))
        self.assertEqual(lab["uri"], f"redis+sentinel://{','.join(sentinels)}/mymaster")
        for replica in replicas:
            self.assert_replicates(replica, primary)
        named_by = lambda sentinel: ":".join(ask(sentinel, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"))
        for sentinel in sentinels:
            self.assertEqual(named_by(sentinel), primary)
            self.assertTrue(ask(sentinel, "SENTINEL", "CKQUORUM", "mymaster").startswith("OK 3 usable"))
            self.assertEqual({pairs(one)["flags"] for one in ask(sentinel, "SENTINEL", "REPLICAS", "mymaster")},
                             {"slave"})

        taken = self.finish("run", "-u", lab["uri"], "--max-ttl", "10s", "-n", "x", "--",
                            "sh", "-c", "echo $HOLDFAST_TOKEN")
        self.assertEqual(taken.status, 0, taken.err)
        self.assertIn(taken.out.strip(), ask(primary, "GET", "hf:{x}:fence"))
        unknown = self.finish("run", "-u", lab["uri"].replace("mymaster", "another"), "x", "true")
        self.assertEqual(unknown.status, 69)
        self.assertIn("error[E25]", unknown.err)
        self.assertIn("'another'", unknown.err)

        os.kill(lab["nodes"][0]["pid"], signal.SIGKILL)
        died_at = now()
        until(lambda: named_by(sentinels[0]) in replicas, "a sentinel names another primary")
        chosen = named_by(sentinels[0])
        until(lambda: ask(chosen, "ROLE")[0] == "master", "it is one")
        took = now() - died_at
        until(lambda: all(named_by(one) == chosen for one in sentinels), "all sentinels name it")
        [other] = set(replicas) - {chosen}
        port = chosen.split(":")[1]
        until(lambda: fields(ask(other, "INFO", "replication")).get("master_port") == port, "it is followed")
        print(f"failover after SIGKILL: {took:.2f} s; all agree after {now() - died_at:.2f} s", flush=True)
        self.assertLess(took, 20)

        stopped = self.finish("lab", "stop", lab["directory"])  # With one that is dead already.
        self.assertEqual(stopped.status, 0, stopped.err)
        self.assertEqual(stopped.out, f"ended 5 servers of {lab['directory']}\n")
        self.assert_ended(lab)

    def test_cluster_serves_all_slots_with_a_replica_for_each_primary(self):
        lab = self.lab("cluster")
        primaries, replicas = self.of(lab, "primary"), self.of(lab, "replica")
        self.assertEqual((len(primaries), len(replicas)), (3, 3))
        self.assertEqual(lab["uri"], "redis+cluster://" + ",".join(primaries + replicas))
        for node in primaries + replicas:
            info = fields(ask(node, "CLUSTER", "INFO"))
            self.assertEqual((info["cluster_state"], info["cluster_slots_ok"], info["cluster_known_nodes"],
                              info["cluster_size"]), ("ok", "16384", "6", "3"))
        # Before anything was written, when CLUSTER SLOTS does not name the replicas.
        self.assertNotIn("has no replica", self.finish("doctor", "-u", lab["uri"]).out)
        # Each primary has been told that this is its first start: there is nothing to wait for.
        for name in "abcdefgh":
            run = self.finish("run", "-n", "-u", lab["uri"], self.lock + name, "true")
            self.assertEqual(run.status, 0, run.err)
        doctor = json.loads(self.finish("doctor", "--json", "-u", lab["uri"]).out)
        found = [finding["what"] for finding in doctor["findings"]]
        self.assertEqual(len(found), len(set(found)), found)
        for primary in primaries:
            self.assertIn(f"{primary}: cut off from its replicas it goes on taking writes, which nobody will have", found)
        followed = set()
        for replica in replicas:
            role = ask(replica, "ROLE")
            self.assert_replicates(replica, f"{role[1]}:{role[2]}")
            followed.add(f"{role[1]}:{role[2]}")
        self.assertEqual(followed, set(primaries))
        served = 0
        for key in ("a", "b", "c", "d"):
            for primary in primaries:
                try:
                    self.assertEqual(ask(primary, "SET", key, "1", "PX", "60000"), "OK")
                    served += 1
                except RuntimeError as elsewhere:
                    self.assertTrue(str(elsewhere).startswith("MOVED"), elsewhere)
        self.assertEqual(served, 4)

    # What it proposes tells every node.
    def test_cluster_in_quarantine_is_asked_about_all_its_nodes(self):
        lab = self.lab("cluster")
        words = ["-u", lab["uri"], "--prefix", "b:", "--max-ttl", "1h"]
        way_out = f"if none of its nodes has forgotten a lock: holdfast init --uri {lab['uri']} --prefix b: --max-ttl 3600s"
        for command in (["run", "-n", *words, self.lock, "true"], ["check", *words, self.lock],
                        ["show", *words, self.lock], ["wait", "-n", *words, self.lock]):
            with self.subTest(command[0]):
                said = self.finish(*command)
                self.assertIn(way_out, said.err + said.out)
        doctor = self.finish("doctor", *words)
        for primary in self.of(lab, "primary"):
            self.assertRegex(doctor.out, rf"(?m)^warning  {primary}: the server started .* \(E23\)\n"
                                         rf" +fix: wait; or, {re.escape(way_out)}$")

    def test_quorum_is_of_servers_that_know_nothing_of_each_other(self):
        lab = self.lab("quorum", "5")
        nodes = self.of(lab, "primary")
        self.assertEqual(len(nodes), 5)
        self.assertEqual(lab["uri"], f"redis+quorum://{','.join(nodes)}")
        for node in nodes:
            self.assertEqual(ask(node, "ROLE"), ["master", 0, []])
        self.assertEqual(len({fields(ask(node, "INFO", "server"))["run_id"] for node in nodes}), 5)


class Ends(Lab):
    def test_stop_ends_exactly_these(self):
        kept, ended = self.lab("single"), self.lab("quorum", "3")
        stopped = self.finish("lab", "stop", ended["directory"], "--json")
        document = json.loads(stopped.out)
        self.assertEqual((stopped.status, document["nodes"], document["running"]), (0, ended["nodes"], False))
        self.assert_ended(ended)
        self.assertEqual(ask(kept["nodes"][0]["address"], "PING"), "PONG")

    # It was done; but a script goes on with the document.
    def test_stop_that_cannot_be_printed_is_a_warning_that_has_it(self):
        done = "holdfast: warning: cannot write: No space left on device; it was done all the same: "
        lab = self.lab("single")
        status, err = self.into_full_disk("lab", "stop", lab["directory"], "--json")
        self.assertEqual(status, 70)
        self.assertTrue(err.startswith(done), err)
        self.assertEqual(json.loads(err[len(done):])["nodes"], lab["nodes"])
        self.assert_ended(lab)
        lab = self.lab("single")
        self.assertEqual(self.into_full_disk("lab", "stop", lab["directory"]),
                         (0, f"{done}ended 1 server of {lab['directory']}\n"))
        self.assert_ended(lab)

    # Of a name that was mistyped the lab would run on.
    def test_stop_of_a_directory_that_is_missing_is_an_error_and_of_an_empty_one_is_not(self):
        err = self.refused("stop", self.path("no-such-lab"), status=69)
        self.assertIn(f"error[E18]: no lab in {self.path('no-such-lab')}\n  why: Nothing is there", err)
        self.assertIn("\n  fix: the directory that `holdfast lab` said when it began", err)
        os.mkdir(self.path("mine"), 0o700)
        lab = self.lab("single", "--directory", self.path("mine"))
        self.assertEqual(self.finish("lab", "stop", lab["directory"]).status, 0)
        again = self.finish("lab", "stop", lab["directory"])
        self.assertEqual((again.status, again.out), (0, f"no lab in {lab['directory']}: it is empty\n"))
        self.assertIn("an empty one is none", self.finish("help", "lab").out)

    # Its help has that option, and whoever started one with it has it in the history of the shell.
    def test_stop_takes_the_directory_of_its_option(self):
        lab = self.lab("single", "--directory", self.path("mine"))
        self.assertIn("named twice", self.refused("stop", lab["directory"], "--directory", "x", status=64))
        stopped = self.finish("lab", "stop", "--directory", lab["directory"])
        self.assertEqual((stopped.status, stopped.out), (0, f"ended 1 server of {lab['directory']}\n"))
        self.assert_ended(lab)

    def test_stop_refuses_what_is_for_a_start(self):
        lab = self.lab("single", "--directory", self.path("mine"))
        for given in (["--persistent"], ["--ready-within", "5s"]):
            with self.subTest(given):
                err = self.refused("stop", lab["directory"], *given, status=64)
                self.assertIn(f"lab stop takes no {given[0]}: it is for a start\n  fix: leave it out", err)
        self.assertEqual(ask(lab["nodes"][0]["address"], "PING"), "PONG")

    # The runtime directory goes with its user's last logout, and the servers live on.
    def test_directory_is_made_in_tmpdir_and_not_in_the_runtime_directory(self):
        os.mkdir(self.path("runtime"), 0o700)
        for environment, expected in (({}, self.path("run")), ({"TMPDIR": ""}, "/tmp")):
            with self.subTest(expected):
                made = self.finish("lab", "single", "--json", XDG_RUNTIME_DIR=self.path("runtime"), **environment)
                lab = json.loads(made.out)
                self.made.append(lab["directory"])
                self.assertEqual(os.path.dirname(lab["directory"]), expected)

    # Its servers would run without their configuration, open to all networks.
    def test_directory_that_redis_reads_as_a_pattern_is_refused(self):
        err = self.refused("single", "--directory", self.path("a[b]"), status=69)
        self.assertIn("a[b]\n  why: Its path has *, ? or [ in it, which redis-server reads as a pattern", err)
        self.assertFalse(os.path.exists(self.path("a[b]")))

    def test_stop_ends_a_stopped_process_too(self):
        lab = self.lab("single")
        os.kill(lab["nodes"][0]["pid"], signal.SIGSTOP)
        self.assertEqual(self.finish("lab", "stop", lab["directory"]).status, 0)
        self.assert_ended(lab)

    def test_stop_leaves_what_is_not_its_own(self):
        directory = self.path("mine")
        os.mkdir(directory, 0o700)
        lab = self.lab("single", "--directory", directory)
        self.assertEqual(lab["directory"], directory)
        with open(os.path.join(directory, "notes"), "w", encoding="ascii") as file:
            file.write("of the user")
        self.assertEqual(self.finish("lab", "stop", directory).status, 0)
        self.assertEqual(os.listdir(directory), ["notes"])

    def test_foreign_pid_in_the_record_is_not_signalled(self):
        lab = self.lab("quorum", "3")
        stranger = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(stranger.wait)
        self.addCleanup(stranger.kill)
        replaced = lab["nodes"][1]["pid"]
        os.kill(replaced, signal.SIGKILL)
        until(lambda: not is_alive(replaced), "it is dead")
        record = os.path.join(lab["directory"], "lab")
        with open(record, encoding="ascii") as file:
            text = file.read()
        self.assertIn(f" {replaced} ", text)
        with open(record, "w", encoding="ascii") as file:
            file.write(text.replace(f" {replaced} ", f" {stranger.pid} "))
        stopped = self.finish("lab", "stop", lab["directory"])
        self.assertEqual((stopped.status, stopped.out), (0, f"ended 2 servers of {lab['directory']}\n"))
        self.assertTrue(is_alive(stranger.pid))
        self.assert_ended(lab)

    def test_damaged_record_is_not_believed(self):
        lab = self.lab("single")
        record = os.path.join(lab["directory"], "lab")
        with open(record, "r+", encoding="ascii") as file:
            text = file.read()
            file.truncate(len(text) - 4)
        err = self.refused("stop", lab["directory"], status=69)
        self.assertIn("damaged", err)
        self.assertTrue(is_alive(lab["nodes"][0]["pid"]))
        with open(record, "w", encoding="ascii") as file:
            file.write(text)

    def quorum_begun(self, servers, directory, since):
        """A lab that has had servers to start for so many seconds."""
        starting = self.start("lab", "quorum", str(servers), "--directory", directory)
        until(lambda: glob.glob(directory + "/node-*") or not is_alive(starting.process.pid), "it has begun")
        time.sleep(since)
        return starting

    # Whoever starts a server may be killed before it has written down which. Which instant that is nobody knows: many
    # are tried, around the time that the first servers take.
    def test_stop_ends_what_a_start_that_was_killed_has_left(self):
        begun = 0
        for instant in range(30):
            directory = self.path(f"run/{instant}")
            starting = self.quorum_begun(5, directory, since=instant / 2000)
            starting.process.kill()
            starting.wait()
            stopped = self.finish("lab", "stop", directory)
            self.assertEqual(stopped.status, 0, stopped.err)
            begun += stopped.out.startswith("ended 5")
            # Who was forked, and had not locked its directory yet, finds none and ends by itself.
            until(lambda: not self.logs_in_use(), "no server is left")
            self.assert_nothing_is_left()
        self.assertLess(begun, 30, "all were complete: it was killed too late")

    def test_signal_before_it_is_ready_ends_it_all(self):
        starting = self.start("lab", "cluster")
        until(lambda: glob.glob(self.path("run") + "/*/node-*"), "it has begun")
        starting.signal(signal.SIGINT)
        self.assertEqual(starting.wait(), 130, starting.err)
        self.assertEqual(starting.out, "")
        self.assert_nothing_is_left()

    # Whoever has said TERM before there was a URI has no other way to end it. Here too many instants are tried, from
    # the begin of the servers to beyond their being ready.
    def test_signal_before_its_uri_ends_it_at_every_instant(self):
        ended = 0
        for instant in range(30):
            directory = self.path(f"run/{instant}")
            starting = self.quorum_begun(3, directory, since=instant / 250)
            starting.signal(signal.SIGTERM)
            status = starting.wait()
            if starting.out == "":
                self.assertEqual(status, 143, starting.err)
                ended += 1
            else:
                self.finish("lab", "stop", directory)
            self.assert_nothing_is_left()
        self.assertGreater(ended, 0, "all were complete: it was signalled too late")

    # Nobody knows its directory, so nobody could end it.
    def test_signal_while_nobody_reads_where_it_is_ends_it_all(self):
        pipe = FullPipe()
        starting = subprocess.Popen([COMMAND, "lab", "single"], env=self.environment, stdout=pipe.write,
                                    stderr=subprocess.DEVNULL)
        self.addCleanup(starting.wait)
        self.addCleanup(starting.kill)
        until(lambda: "pipe_write" in content(f"/proc/{starting.pid}/wchan"), "it waits for its reader")
        self.made += glob.glob(self.path("run") + "/*")
        starting.terminate()
        self.assertEqual(starting.wait(10), 143)
        self.assert_nothing_is_left()

    def test_signal_while_nobody_reads_how_to_end_it_leaves_it_as_it_is(self):
        pipe = FullPipe()
        starting = subprocess.Popen([COMMAND, "lab", "single", "--json"], env=self.environment, stdout=subprocess.PIPE,
                                    stderr=pipe.write)
        self.addCleanup(starting.wait)
        self.addCleanup(starting.kill)
        self.addCleanup(starting.stdout.close)
        lab = json.loads(starting.stdout.readline())
        self.made.append(lab["directory"])
        until(lambda: "pipe_write" in content(f"/proc/{starting.pid}/wchan"), "it waits for its reader")
        starting.terminate()
        self.assertEqual(starting.wait(10), -signal.SIGTERM)
        self.assertTrue(is_alive(lab["nodes"][0]["pid"]))


class Refusals(Lab):
    def test_uri_alone_goes_to_stdout(self):
        started = self.finish("lab", "single")
        self.made.append(re.search(r"holdfast lab stop (\S+)", started.err).group(1))
        self.assertRegex(started.out, r"^redis://127\.0\.0\.1:\d+\n$")

    # A lab has just started, so its servers are in quarantine until somebody says that they have forgotten nothing.
    def test_uri_of_a_quorum_is_understood(self):
        started = self.finish("lab", "quorum", "3")
        self.made.append(re.search(r"holdfast lab stop (\S+)", started.err).group(1))
        uri = started.out.strip()
        self.assertEqual(self.finish("init", "--uri", uri).status, 0)
        self.assertEqual(self.finish("run", "--uri", uri, "nightly", "--", "true").status, 0)
        shown = self.finish("show", "--uri", uri, "nightly").out
        self.assertEqual(shown.count("voted for nobody"), 3)

    def test_readers_and_permits_of_a_quorum_are_taken_and_shown(self):
        started = self.finish("lab", "quorum", "3")
        self.made.append(re.search(r"holdfast lab stop (\S+)", started.err).group(1))
        uri = started.out.strip()
        self.assertEqual(self.finish("init", "--uri", uri).status, 0)
        show = (COMMAND, "show", "--uri", uri)
        read = self.finish("run", "--uri", uri, "-s", "config", "--", *show, "config")
        self.assertRegex(read.out, r"kind +shared lock")
        self.assertEqual(read.out.count("(to read)"), 1)
        self.assertEqual(read.out.count("voted for "), 3)
        taken = self.finish("run", "--uri", uri, "-l", "2", "uploads", "--", *show, "uploads")
        self.assertRegex(taken.out, r"permits +1 of 2 taken")
        other = self.finish("run", "--uri", uri, "-l", "3", "uploads", "--", "true")
        self.assertEqual(other.status, 78)
        self.assertIn("2 permits", other.err)
        self.assertNotIn("holdfast resize", other.err)  # It would be refused.
        # Alone, whichever kind the name is.
        self.assertEqual(self.finish("run", "--uri", uri, "config", "--", "true").status, 0)

    def test_even_quorum_is_refused_with_the_reason(self):
        err = self.refused("quorum", "4", status=64)
        self.assertIn("neither is a majority", err)
        self.assertIn("quorum 5", err)

    def test_words_that_mean_nothing_are_refused_with_those_that_do(self):
        for words in ((), ("triangle",), ("quorum", "many"), ("replicas", "0"), ("replicas", "9"), ("sentinel", "3"),
                      ("single", "1", "2"), ("stop",), ("stop", "a", "b")):
            with self.subTest(words):
                self.assertIn("fix: holdfast lab", self.refused(*words, status=64))
        self.assert_nothing_is_left()

    def test_empty_directory_is_usage(self):
        self.assertIn("was a variable not set?", self.refused("stop", "", status=64))

    def test_directory_that_is_no_lab_is_not_touched(self):
        os.mkdir(self.path("home"), 0o700)
        with open(self.path("home") + "/thesis", "w", encoding="ascii") as file:
            file.write("!")
        self.assertIn("not the directory of a lab", self.refused("stop", self.path("home"), status=69))
        self.assertIn("not empty", self.refused("single", "--directory", self.path("home"), status=69))
        self.assertEqual(os.listdir(self.path("home")), ["thesis"])

    def test_directory_in_use_is_refused_with_the_way_out(self):
        lab = self.lab("single", "--directory", self.path("used"))
        err = self.refused("single", "--directory", lab["directory"], status=69)
        self.assertIn("holdfast lab stop", err)
        self.assertEqual(ask(lab["nodes"][0]["address"], "PING"), "PONG")

    def test_that_would_wait_for_more_than_a_year_is_refused(self):
        err = self.refused("single", "--ready-within", "120000d", status=64)
        self.assertIn("error[E08]: --ready-within 120000d00h is out of its range", err)
        self.assertIn("fix: --ready-within 1m, say; a plain number is seconds", err)

    def test_directory_that_others_may_write_is_refused(self):
        os.mkdir(self.path("open"))
        os.chmod(self.path("open"), 0o777)
        self.assertIn("Others may write", self.refused("single", "--directory", self.path("open"), status=69))
        os.symlink("/tmp", self.path("link"))
        self.assertIn("symbolic link", self.refused("single", "--directory", self.path("link") + "/", status=69))

    def fake_server(self, script):
        os.mkdir(self.path("bin"))
        with open(self.path("bin/redis-server"), "w", encoding="ascii") as file:
            file.write(script)
        os.chmod(self.path("bin/redis-server"), 0o755)
        return self.path("bin") + ":" + os.environ["PATH"]

    def test_start_without_a_program_that_runs_leaves_nothing(self):
        path = self.fake_server("#!/no/such/interpreter\n")
        self.assertIn("cannot be run", self.refused("single", status=69, PATH=path))
        self.assert_nothing_is_left()

    def test_start_of_which_the_fourth_server_fails_leaves_nothing(self):
        count = self.path("count")
        path = self.fake_server(f"#!/bin/sh\necho x >>{count}\n"
                                f"[ $(wc -l <{count}) -lt 4 ] || {{ echo no more; exit 1; }}\nexec {SERVER} \"$@\"\n")
        err = self.refused("quorum", "5", status=69, PATH=path)
        self.assertIn("no more", err)
        self.assert_nothing_is_left()


if __name__ == "__main__":
    unittest.main()
