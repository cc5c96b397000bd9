# SPDX-License-Identifier: Apache-2.0
"""`holdfast run` beside the commands that people use instead: flock(1), which knows one machine only, and `etcdctl
lock`, with an etcd of one node. What each costs over `true`; and loops of short commands that contend for one lock."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

from . import peers
from .servers import etcd_server

OURS = "holdfast run"


def timed(words, environment):
    begin = time.perf_counter()
    ended = subprocess.run(words, env=environment, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    if ended.returncode != 0:
        raise peers.Skipped(f"{pathlib.Path(words[0]).name} ended with {ended.returncode}")
    return (time.perf_counter() - begin) * 1000


def overhead(words, environment, how):
    """The median of what the command costs over `true`, in ms; the two in turns, the first pair to warm up."""
    extra = []
    for _ in range(how.runs + 1):
        bare = timed(["true"], environment)
        extra.append(timed([*words, "true"], environment) - bare)
    return {"value": sorted(extra[1:])[how.runs // 2]}


def contention(words, environment, how):
    workers = how.workers // 2  # Each is two processes or more.
    longest, failures = [0.0] * workers, []
    with tempfile.NamedTemporaryFile("r", prefix="hf-") as witness:
        end = time.monotonic() + how.contend_seconds

        def work(number):
            inside = f"printf {chr(ord('A') + number)} >>{witness.name}"
            try:
                while time.monotonic() < end:
                    longest[number] = max(longest[number], timed([*words, "sh", "-c", inside], environment))
            except peers.Skipped as why:
                failures.append(why)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        order = witness.read()
    if failures:
        raise failures[0]
    return peers.tell_contention(order, workers, how.contend_seconds, max(longest))


SCENARIOS = {
    "run_overhead": ("a command under a free lock, over `true`", "ms", False, overhead),
    "run_contention": ("{workers} loops of short commands, one lock", "hand-offs/s", True, contention),
}


def compare_all(port, holdfast, how):
    """(figures, {command: why it is not there})."""
    told, skipped = [], {}
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hf-")))
        ours = {**os.environ, "HOLDFAST_URI": f"redis://127.0.0.1:{port}"}
        commands = {OURS: ([str(holdfast), "run", "bench", "--"], ours)}
        if shutil.which("flock"):
            commands["flock"] = (["flock", directory / "lock"], ours)
        else:
            skipped["flock"] = "no `flock` here"
        if shutil.which("etcd") and shutil.which("etcdctl"):
            commands["etcdctl lock"] = (["etcdctl", "lock", "bench", "--"], stack.enter_context(etcd_server()))
        else:
            skipped["etcdctl lock"] = "no `etcd` or no `etcdctl` here (script/setup peers)"
        for scenario, (what, unit, more_is_better, measure) in SCENARIOS.items():
            found, failed = peers.in_turns(list(commands), how.rounds,
                                           lambda name, m=measure: m(*commands[name], how), scenario)
            skipped |= {f"{name}, {scenario}": why for name, why in failed.items()}
            told += peers.compare(found, OURS, scenario, what.format(workers=how.workers // 2), unit, more_is_better)
    return told, skipped
