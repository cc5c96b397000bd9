# SPDX-License-Identifier: Apache-2.0
"""redis-py's Lock; ../README.md has the protocol.

timeout: the ttl, as given; by default a lock is held for ever. Default: a try every 100 ms, without end.
"""
import json
import os
import sys
import time

import redis

USUAL_S, LONG_S = 10, 600


def ready():
    print("ready", flush=True)
    sys.stdin.readline()


def pairs(server, name, seconds):
    took = []
    end = time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end:
        lock = server.lock(name, timeout=USUAL_S)
        lock.acquire()
        lock.release()
        took.append((time.perf_counter() - begin) * 1e6)
    return took


def percentiles(values):
    values.sort()
    return {f"{p:g}": values[min(int(len(values) * p / 100), len(values) - 1)]
            for p in (1, 10, 25, 50, 75, 90, 99, 99.9, 100)}


def contend(server, seconds, worker, witness):
    file = os.open(witness, os.O_APPEND | os.O_WRONLY)
    ready()
    holds, longest = 0, 0
    end = time.perf_counter() + seconds
    while True:
        begin = time.perf_counter()
        lock = server.lock("bench:contended", timeout=USUAL_S)
        lock.acquire()
        now = time.perf_counter()
        longest = max(longest, now - begin)
        if now < end:
            os.write(file, worker.encode())
            holds += 1
        lock.release()
        if now >= end:
            return {"holds": holds, "longest_wait_ms": longest * 1000}


def main(_peer, address, scenario, seconds, worker, witness):
    host, port = address.split(":")
    server = redis.Redis(host=host, port=int(port))
    pairs(server, f"bench:warm:{worker}", 0.3)
    said = {}
    if scenario == "pairs":
        ready()
        took = pairs(server, "bench:free", float(seconds))
        said = {"pairs": len(took), "seconds": float(seconds), "latency_us": percentiles(took)}
    elif scenario == "contend":
        said = contend(server, float(seconds), worker, witness)
    elif scenario == "hold":
        with server.lock("bench:held", timeout=LONG_S):
            print("ready", flush=True)
            sys.stdin.read()
    elif scenario == "wait":
        ready()
        server.lock("bench:held", timeout=LONG_S).acquire()
    print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
