# SPDX-License-Identifier: Apache-2.0
"""Draws the curves with gnuplot, whose script goes to its stdin."""
import subprocess

from .servers import say

# What is drawn: file, title, axes, what else gnuplot is told.
PLOTS = {
    "latency": ("latency of a free pair, one thread", "percentile", "us", "set logscale y"),
    "peers_latency": ("latency of a free pair, peers", "percentile", "us", "set logscale y; set key outside right"),
    "threads": ("throughput, each thread with a lock of its own", "threads", "pairs/s",
                "set logscale x 2; set yrange [0:]"),
    "names": ("a free pair on a server that knows many names", "names", "us", "set logscale x; set yrange [0:]"),
    "queue": ("a hand-off in a long line", "waiters in line", "us of server CPU", "set logscale x; set yrange [0:]"),
}
COMMON = """set terminal svg size 720,420 font 'sans-serif,13' background rgb 'white' noenhanced
set border 3
set grid ytics lc rgb '#dddddd'
set tics nomirror
set key top left
"""


def gnuplot(script):
    subprocess.run(["gnuplot"], input=script, check=True, text=True)


def block(number, lines):
    return f"$d{number} << END\n" + "\n".join(lines) + "\nEND\n"


def lines_plot(curve, points, path):
    title, x, y, more = PLOTS[curve]
    series = {}
    for point in sorted(points, key=lambda point: point["x"]):
        series.setdefault(point["series"], []).append(
            "{x:g} {y:g} {low:g} {high:g}".format_map(point))
    data = "".join(block(i, lines) for i, lines in enumerate(series.values()))
    has_spread = any(point["low"] != point["high"] for point in points)
    drawn = []
    for i, name in enumerate(series):
        drawn.append(f"$d{i} using 1:2 with linespoints lt {i + 1} pt 7 ps 0.5 title '{name}'")
        if has_spread:
            drawn.append(f"$d{i} using 1:2:3:4 with yerrorbars lt {i + 1} pt 7 ps 0.1 notitle")
    gnuplot(f"{COMMON}set output '{path}'\nset title '{title}'\nset xlabel '{x}'\nset ylabel '{y}'\n{more}\n{data}"
            f"plot {', '.join(drawn)}\n")


def waiting_plot(points, path):
    """Bars, from nothing up: a logarithm would have no place for a peer that sends nothing."""
    lines = [f'"{point["series"]}" {point["y"]:g}' for point in sorted(points, key=lambda point: point["y"])]
    gnuplot(f"{COMMON}set output '{path}'\nset title 'commands a second of processes that wait for a held lock'\n"
            "set style fill solid 0.7\nset boxwidth 0.6\nset yrange [0:]\nset xtics rotate by -30\nunset key\n"
            f"{block(0, lines)}plot $d0 using 0:2:xtic(1) with boxes lt 1, "
            "$d0 using 0:2:2 with labels offset 0,0.7\n")


def draw(points, directory):
    """A file for each curve that was measured."""
    directory.mkdir(parents=True, exist_ok=True)
    for curve in dict.fromkeys(point["curve"] for point in points):
        path = directory / f"{curve}.svg"
        say(f"draws {path.name}")
        mine = [point for point in points if point["curve"] == curve]
        if curve == "waiting":
            waiting_plot(mine, path)
        else:
            lines_plot(curve, mine, path)
        # gnuplot writes tabs and blanks at the ends of lines, which tools/tidy does not take.
        path.write_text("".join(f"{line.expandtabs(2).rstrip()}\n" for line in path.read_text().splitlines()))
