#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `holdfast run x -- true` costs over `true`: both as whole processes, in turn, the server running. Prints a line
of JSON, as bench/figure.cpp does.

usage: run_overhead.py PATH-TO-HOLDFAST URI [RUNS]
"""

import json
import os
import statistics
import subprocess
import sys
import time


def timed(words, environment):
    begin = time.perf_counter()
    subprocess.run(words, env=environment, check=True, stdin=subprocess.DEVNULL)
    return (time.perf_counter() - begin) * 1000


def main():
    command, uri = sys.argv[1:3]
    runs = int(sys.argv[3]) if len(sys.argv) > 3 else 50
    environment = {**os.environ, "HOLDFAST_URI": uri}
    bare, locked = [], []
    for i in range(runs + 1):
        pair = (timed(["true"], environment), timed([command, "run", "x", "--", "true"], environment))
        if i > 0:  # The first pair warms up.
            bare.append(pair[0])
            locked.append(pair[1])
    extra = sorted(b - a for a, b in zip(bare, locked))
    value = statistics.median(extra)
    print(json.dumps({"id": "run_overhead", "what": "holdfast run x -- true, over true", "unit": "ms",
                      "value": round(value, 3), "yardstick": None, "yardstick_value": None, "ratio": round(value, 3),
                      "spread": [round(extra[0], 3), round(extra[-1], 3)], "rounds": runs, "goal": "<= 6",
                      "holds": value <= 6}))


if __name__ == "__main__":
    main()
