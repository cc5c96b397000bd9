# SPDX-License-Identifier: Apache-2.0
"""The part of docs/benchmarks.md that is measured; what stands around it is written by people."""
import datetime
import os
import re
import subprocess

from . import figures
from .servers import machine

BEGIN, END = "<!-- written by script/bench -->", "<!-- end of what script/bench writes -->"
PICTURES = {
    "latency": "Latency of a free pair by percentile",
    "threads": "Throughput against threads",
    "names": "A free pair against the number of names",
    "queue": "A hand-off against the length of the line",
    "peers_latency": "Latency of a free pair by percentile, peers",
    "waiting": "Commands a second of processes that wait",
}


def version_of(*words):
    try:
        said = subprocess.run(words, check=False, capture_output=True, text=True).stdout
    except FileNotFoundError:
        return None
    return next(iter(said.strip().splitlines()), None)


def redis_version():
    return re.search(r"v=(\S+)", version_of("redis-server", "--version")).group(1)


def conditions(load_before, way, how):
    """Date, machine, versions and method: what somebody needs to measure it again."""
    after = os.getloadavg()[0]
    return (f"{datetime.date.today()}, {machine()}; Redis {redis_version()} on the same machine, {way}; "
            f"g++ {version_of('g++', '-dumpfullversion')}, preset `bench`. Load average {load_before:.1f} before, "
            f"{after:.1f} after. {how}")


def peer_versions():
    known = {"go": ("go", "version"), "java": ("java", "--version"), "node": ("node", "--version"),
             "etcd": ("etcd", "--version"), "flock": ("flock", "--version")}
    return "; ".join(f"{name}: {said}" for name, words in known.items() if (said := version_of(*words)))


def missing(skipped):
    return "".join(f"\n- skipped: {name}: {why}" for name, why in skipped.items())


def measured(conditions_text, ours, peer_figures, skipped, points, is_drawn):
    """Markdown. Of the curves their pictures, or where they are not drawn, their points."""
    text = [conditions_text]
    if ours:
        text.append(figures.table(ours))
    if peer_figures or skipped:
        text += ["### Peers", figures.peers_table(peer_figures), peer_versions() + missing(skipped)]
    if is_drawn:
        curves = {point["curve"] for point in points}
        text += [f"![{PICTURES[name]}](bench/{name}.svg)" for name in PICTURES if name in curves]
    elif points:
        text.append(figures.points_table(points))
    return "\n\n".join(text) + "\n"


def replace(page, text):
    """Writes it between the marks of the page."""
    old = page.read_text()
    before, _, rest = old.partition(BEGIN + "\n")
    _, _, after = rest.partition(END)
    if not after:
        raise ValueError(f"{page.name} has no marks `{BEGIN}` and `{END}`")
    page.write_text(f"{before}{BEGIN}\n{text}{END}{after}")
