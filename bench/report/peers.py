# SPDX-License-Identifier: Apache-2.0
"""The peers of bench/peers/: fetched and built, and run in turns with holdfast. bench/peers/README.md has the protocol."""
import contextlib
import json
import os
import pathlib
import re
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from . import figures
from .servers import addresses, ask, declare_nothing_forgotten, say, sent_commands

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "bench" / "peers"
BUILD = ROOT / "build" / "peers"
OURS = "holdfast"


class Skipped(Exception):
    """Why a peer cannot be had."""


def run(*words, cwd=None):
    ran = subprocess.run(words, cwd=cwd, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ran.returncode != 0:
        said = ran.stdout.strip().splitlines() or ["it said nothing"]
        # Registries, mirrors and directories have names that are nobody's business in a report.
        said = re.sub(r"\w+://\S+", "(address)", said[-1]).replace(f"{ROOT}/", "")
        raise Skipped(f"{pathlib.Path(words[0]).name} failed: {said}")


def need(*commands, hint=" (script/setup peers)"):
    for command in commands:
        if not shutil.which(command):
            raise Skipped(f"no `{command}` here{hint}")


def get_go(build):
    need("go", hint=", of the version that go.mod asks for")
    run("go", "build", "-o", build / "peers", ".", cwd=SOURCE / "go")
    return [build / "peers"]


def get_java(build):
    need("mvn", "javac", "java")
    run("mvn", "--quiet", "--batch-mode", "dependency:copy-dependencies", f"-DoutputDirectory={build / 'lib'}",
        cwd=SOURCE / "java")
    classes = f"{build / 'lib'}/*"
    run("javac", "-cp", classes, "-d", build, SOURCE / "java" / "Main.java")
    return ["java", "-Xmx128m", "-cp", f"{build}:{classes}", "Main"]


def get_node(build):
    need("node", "npm")
    for name in ("package.json", "main.js"):
        shutil.copy(SOURCE / "node" / name, build)
    run("npm", "install", "--no-package-lock", "--no-audit", "--no-fund", cwd=build)
    return ["node", build / "main.js"]


def get_python(build):
    run(sys.executable, "-m", "venv", build)
    run(build / "bin" / "pip", "install", "--quiet", "--requirement", SOURCE / "python" / "requirements.txt")
    return [build / "bin" / "python", SOURCE / "python" / "main.py"]


TOOLCHAINS = {  # What gets the adapter, and its peers.
    "go": (get_go, ("redsync", "redislock", "rueidislock")),
    "java": (get_java, ("redisson", "redisson-fair")),
    "node": (get_node, ("redlock", "redis-semaphore")),
    "python": (get_python, ("redis-py",)),
}


def get_all(ours):
    """The words that start each peer's adapter, ours first, and why others are not there."""
    found, skipped = {OURS: [ours]}, {}
    for toolchain, (get, names) in TOOLCHAINS.items():
        say(f"peers: {toolchain}")
        build = BUILD / toolchain
        build.mkdir(parents=True, exist_ok=True)
        try:
            found |= dict.fromkeys(names, get(build))
        except Skipped as why:
            skipped |= dict.fromkeys(names, str(why))
    return found, skipped


PATIENCE_S = 60  # For a word of an adapter, beyond what it measures.


class Adapter:
    """A process of a peer. The one who asks waits for its words; not for ever, since there are locks that hang."""

    def __init__(self, words, peer, port, scenario, seconds=0.0, worker="h", witness="-"):
        self.patience = seconds + PATIENCE_S
        self.process = subprocess.Popen([*words, peer, f"127.0.0.1:{port}", scenario, str(seconds), worker, witness],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def wait_ready(self):
        is_there, _, _ = select.select([self.process.stdout], [], [], self.patience)
        if not is_there:
            raise Skipped(f"not ready after {self.patience:.0f} s: a free lock, and nobody got it")
        if self.process.stdout.readline() != "ready\n":
            raise Skipped(f"its adapter ended with {self.process.wait()}")

    def go(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def answer(self):
        try:
            said = self.process.communicate(timeout=self.patience)[0]
        except subprocess.TimeoutExpired as late:
            raise Skipped(f"a worker had not come back after {self.patience:.0f} s") from late
        if self.process.returncode != 0:
            raise Skipped(f"its adapter ended with {self.process.returncode}")
        return json.loads(said)

    def end(self):
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def adapters(words, peer, port, count, scenario, **how):
    """So many processes, ready; ended with the block."""
    everybody = [Adapter(words, peer, port, scenario, worker=chr(ord("A") + i), **how) for i in range(count)]
    try:
        for one in everybody:
            one.wait_ready()
        yield everybody
    finally:
        for one in everybody:
            one.end()


# ---- the scenarios: each measures one peer once ----


def free_pair(words, peer, port, how):
    with adapters(words, peer, port, 1, "pairs", seconds=how.pair_seconds) as (one,):
        one.go()
        said = one.answer()
    return {"value": said["pairs"] / said["seconds"], "latency_us": said["latency_us"]}


def tell_contention(order, workers, seconds, longest_wait_ms):
    """From who held it in turn: hand-offs are what counts, and how evenly the holds were shared."""
    counts = [order.count(chr(ord("A") + i)) for i in range(workers)]
    return {"value": sum(a != b for a, b in zip(order, order[1:])) / seconds, "holds_per_second": len(order) / seconds,
            "longest_wait_ms": longest_wait_ms, "jain": figures.jain(counts)}


def contention(words, peer, port, how):
    with tempfile.NamedTemporaryFile("r", prefix="hf-") as witness, adapters(
            words, peer, port, how.workers, "contend", seconds=how.contend_seconds, witness=witness.name) as everybody:
        for one in everybody:
            one.go()
        said = [one.answer() for one in everybody]
        order = witness.read()
    return tell_contention(order, how.workers, how.contend_seconds, max(one["longest_wait_ms"] for one in said))


def waiting_commands(words, peer, port, how):
    with adapters(words, peer, port, 1, "hold"):
        holders = addresses(port)
        with adapters(words, peer, port, how.workers, "wait") as waiters:
            for one in waiters:
                one.go()
            time.sleep(3)  # Until all of them wait.
            sent = sent_commands(port, how.wait_seconds, holders)
            if any(one.process.poll() is not None for one in waiters):
                raise Skipped("a waiter did not wait")
    return {"value": sent / how.wait_seconds}


SCENARIOS = {  # What it is, its unit, whether more is better, and what measures it.
    "free_pair": ("one process, acquire + release, free lock", "pairs/s", True, free_pair),
    "contention": ("{workers} processes, one lock", "hand-offs/s", True, contention),
    "waiting_commands": ("commands of {workers} processes that wait", "commands/s", False, waiting_commands),
}


def in_turns(names, rounds, measure, title):
    """{name: [what was measured, one for each round]}, and why some have none."""
    found, skipped = {name: [] for name in names}, {}
    for i in range(rounds):
        for name in names:
            if name in skipped:
                continue
            say(f"{title}, round {i + 1} of {rounds}: {name}")
            try:
                found[name].append(measure(name))
            except Skipped as why:
                skipped[name] = str(why)
    for name in skipped:
        del found[name]
    return found, skipped


def compare(found, ours, scenario, what, unit, more_is_better):
    """The figures of all peers in one scenario; none where there is nothing of ours to compare with."""
    told = []
    if ours not in found:
        return told
    for name, rounds in found.items():
        if name == ours:
            continue
        figure = figures.beside(f"peer/{name}/{scenario}", what, unit, name, [one["value"] for one in found[ours]],
                                [one["value"] for one in rounds], more_is_better=more_is_better)
        for extra in ("longest_wait_ms", "jain", "holds_per_second"):
            if extra in rounds[0]:
                worst = max if extra == "longest_wait_ms" else statistics.median
                figure[extra] = {"ours": round(worst(one[extra] for one in found[ours]), 4),
                                 "theirs": round(worst(one[extra] for one in rounds), 4)}
        told.append(figure)
    return told


def points(curve, found, key):
    """The first of the rounds is as good as any for the shape of a distribution."""
    return [{"curve": curve, "series": name, "x": float(x), "y": y, "low": y, "high": y}
            for name, rounds in found.items() for x, y in rounds[0].get(key, {}).items()]


def compare_all(port, ours, how):
    """(figures, points of curves, {peer: why it is not there})."""
    words, skipped = get_all(ours)
    told, curves = [], []
    for scenario, (what, unit, more_is_better, measure) in SCENARIOS.items():
        def once(name, measure=measure):
            ask(port, "FLUSHALL")
            declare_nothing_forgotten(port)
            return measure(words[name], name, port, how)

        rounds = how.wait_rounds if scenario == "waiting_commands" else how.rounds
        found, failed = in_turns(list(words), rounds, once, scenario)
        skipped |= {f"{name}, {scenario}": why for name, why in failed.items()}
        told += compare(found, OURS, scenario, what.format(workers=how.workers), unit, more_is_better)
        curves += points("peers_latency", found, "latency_us")
        if scenario == "waiting_commands":
            curves += [{"curve": "waiting", "series": name, "x": 0.0, "low": min(all_of), "high": max(all_of),
                        "y": statistics.median(all_of)}
                       for name, all_of in ((name, [one["value"] for one in rounds]) for name, rounds in found.items())]
    return told, curves, skipped
