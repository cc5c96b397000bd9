# SPDX-License-Identifier: Apache-2.0
"""redis-py's Lock as a neighbour of holdfast: `redis_py_peer.py SOCKET KEY WITNESS try|contend [SECONDS]`."""
import os
import struct
import sys
import time

import redis

ENTER, EXIT = 1, 2


def main():
    socket, key, witness, verb = sys.argv[1:5]
    client = redis.Redis(unix_socket_path=socket)
    lock = client.lock(key, timeout=5, sleep=0.005)
    if verb == "try":
        print("acquired" if lock.acquire(blocking=False) else "busy", flush=True)
        sys.stdin.readline()
        return
    out = os.open(witness, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def record(kind):
        # The layout of `sighting` in support/witness.hpp.
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        os.write(out, struct.pack("<iiQq", kind, os.getpid(), 0, now))

    count = 0
    until = time.monotonic() + float(sys.argv[5])
    while time.monotonic() < until:
        if not lock.acquire(blocking_timeout=1):
            continue
        record(ENTER)
        time.sleep(0.001)
        record(EXIT)
        lock.release()
        count += 1
        time.sleep(0.002)
    print("done", count, flush=True)


main()
