#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `holdfast run x -- true` costs over `true`: both as whole processes, in turn, the server running.

usage: run_overhead.py PATH-TO-HOLDFAST URI [RUNS]
"""

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
    print(f"holdfast run x -- true, {runs} runs in turn with true; median (min to max)")
    for name, values in (("true", sorted(bare)), ("holdfast run x -- true", sorted(locked)), ("extra", extra)):
        print(f"  {name:24}{statistics.median(values):6.2f} ({values[0]:.2f} to {values[-1]:.2f}) ms")


if __name__ == "__main__":
    main()
