# SPDX-License-Identifier: Apache-2.0
"""A figure: {id, what, value, unit, yardstick, yardstick_value, ratio, spread, rounds, goal, holds}, as
bench/figure.cpp prints it; those of the peers are made here."""
import statistics


def jain(counts):
    """1: all have the same. 1/len(counts): one has everything."""
    squares = sum(count * count for count in counts)
    return sum(counts) ** 2 / (len(counts) * squares) if squares else 0.0


def beside(name, what, unit, yardstick, ours, theirs, *, more_is_better):
    """Ours beside a peer's, a value for each round; the goal is to be ahead. Without a ratio where theirs is nothing."""
    value, theirs_value = statistics.median(ours), statistics.median(theirs)
    ratios = sorted(a / b for a, b in zip(ours, theirs) if b > 0)
    ratio = statistics.median(ratios) if ratios and theirs_value > 0 else None
    return {"id": name, "what": what, "value": round(value, 4), "unit": unit, "yardstick": yardstick,
            "yardstick_value": round(theirs_value, 4), "ratio": ratio and round(ratio, 4),
            "spread": [round(ratios[0], 4), round(ratios[-1], 4)] if ratio else None, "rounds": len(ours),
            "goal": ">= 1" if more_is_better else "<= 1",
            "holds": value >= theirs_value if more_is_better else value <= theirs_value}


def ratio_text(figure):
    if figure["ratio"] is None:
        return "-"
    low, high = figure["spread"]
    return f"{figure['ratio']:.3g} ({low:.3g} to {high:.3g})"


# What a file of figures always has.
IDS = ("free_pair", "threads_64", "in_flight_1000", "handoff_processes", "handover_threads", "waiting_commands",
       "waiter_bytes", "leases_100k", "quorum_5", "run_overhead", "names_growth", "queue_growth")


def with_what_is_missing(figures, reason):
    """For a reader who looks an id up: null where nothing was measured, and why."""
    there = {figure["id"] for figure in figures}
    nothing = dict.fromkeys(("value", "unit", "yardstick", "ratio", "goal", "holds", "spread"))
    return figures + [{"id": name, **nothing, "skipped": reason} for name in IDS if name not in there]


HEAD = "| what | beside it | holdfast | ratio, median (min to max) | goal | holds |\n|---|---|---|---|---|---|"


def line(figure):
    value = f"{figure['value']:.4g} {figure['unit']}"
    yardstick = "" if figure["yardstick"] is None else f"{figure['yardstick_value']:.4g} ({figure['yardstick']})"
    ratio = "" if figure["yardstick"] is None and figure["rounds"] == 1 else ratio_text(figure)
    holds = {True: "yes", False: "**no**", None: ""}[figure["holds"]]
    return f"| {figure['what']} | {yardstick} | {value} | {ratio} | {figure['goal'] or ''} | {holds} |"


def table(figures):
    return "\n".join([HEAD, *map(line, figures)])


def points_table(points):
    """What a curve is drawn of."""
    lines = (f"| {p['curve']} | {p['series']} | {p['x']:g} | {p['y']:.4g} ({p['low']:.4g} to {p['high']:.4g}) |"
             for p in points)
    return "\n".join(["| curve | of | at | median (min to max) |\n|---|---|---|---|", *lines])


PEERS_HEAD = """| peer | free pairs/s | ours/theirs | hand-offs/s | ours/theirs | longest wait | Jain | \
commands/s of waiters | ours/theirs |
|---|---|---|---|---|---|---|---|---|"""
COMMANDS_HEAD = """| command | over `true` | ours/theirs | hand-offs/s | ours/theirs | longest wait | Jain |
|---|---|---|---|---|---|---|"""


def of_peer(figures, peer, scenario):
    return next((f for f in figures if f["id"] == f"peer/{peer}/{scenario}"), None)


def side(figure, whose):
    """The cells of one side in a figure of contention."""
    return [f"{figure['longest_wait_ms'][whose]:.4g} ms", f"{figure['jain'][whose]:.3f}"]


def cells(figures, peer, scenarios, is_ours):
    found = []
    for scenario in scenarios:
        figure = of_peer(figures, peer, scenario)
        wide = scenario in ("contention", "run_contention")
        if figure is None:
            found += [""] * (4 if wide else 2)
            continue
        unit = " ms" if figure["unit"] == "ms" else ""
        found.append(f"{figure['value' if is_ours else 'yardstick_value']:.4g}{unit}")
        found.append("1" if is_ours else ratio_text(figure))
        if wide:
            found += side(figure, "ours" if is_ours else "theirs")
    return found


def peers_table(figures):
    """One line for each peer, after ours; nothing where nothing was measured."""
    text = []
    for head, scenarios, ours in ((PEERS_HEAD, ("free_pair", "contention", "waiting_commands"), "holdfast"),
                                  (COMMANDS_HEAD, ("run_overhead", "run_contention"), "holdfast run")):
        names = list(dict.fromkeys(f["id"].split("/")[1] for f in figures
                                   if f["id"].startswith("peer/") and f["id"].split("/")[2] in scenarios))
        if not names:
            continue
        lines = [head, f"| **{ours}** | " + " | ".join(cells(figures, names[0], scenarios, True)) + " |"]
        lines += [f"| {name} | " + " | ".join(cells(figures, name, scenarios, False)) + " |" for name in names]
        text.append("\n".join(lines))
    return "\n\n".join(text)
