# SPDX-License-Identifier: Apache-2.0
"""Servers of our own: on loopback, at a port that was free, ended with the block that started them."""
import contextlib
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time


EPOCH = pathlib.Path(__file__).resolve().parents[2] / "src/script/epoch.lua"


def say(text):
    """Progress, for somebody who waits."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def free_ports(count):
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


@contextlib.contextmanager
def running(words, is_up, **how):
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, **how)
    try:
        while not is_up():
            if server.poll() is not None:
                raise OSError(f"{words[0]} ended with {server.returncode}")
            time.sleep(0.01)
        yield
    finally:
        server.terminate()
        server.wait()


def declare_nothing_forgotten(port):
    """As `holdfast init`: this is its first start, so that there is no quarantine."""
    subprocess.run(["redis-cli", "-p", port, "--eval", str(EPOCH), "hf:epoch", ",", "0", "first"], check=True,
                   capture_output=True)


@contextlib.contextmanager
def redis_server():
    """The port and the path of a server's socket."""
    with tempfile.TemporaryDirectory(prefix="hf-") as directory:
        port = str(free_ports(1)[0])
        path = os.path.join(directory, "redis.sock")
        words = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--unixsocket", path, "--save", "", "--dir",
                 directory]
        with running(words, lambda: os.path.exists(path)):
            declare_nothing_forgotten(port)
            yield port, path


@contextlib.contextmanager
def etcd_server():
    """The environment in which etcdctl finds it."""
    with tempfile.TemporaryDirectory(prefix="hf-") as directory:
        ours, peers = (f"http://127.0.0.1:{port}" for port in free_ports(2))
        environment = {**os.environ, "ETCDCTL_API": "3", "ETCDCTL_ENDPOINTS": ours}

        def is_up():
            return subprocess.run(["etcdctl", "endpoint", "health"], env=environment, check=False,
                                  capture_output=True).returncode == 0

        words = ["etcd", "--data-dir", directory, "--listen-client-urls", ours, "--advertise-client-urls", ours,
                 "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster",
                 f"default={peers}"]
        with running(words, is_up, stderr=subprocess.DEVNULL):
            yield environment


def ask(port, *words):
    return subprocess.run(["redis-cli", "-p", port, *words], check=True, capture_output=True, text=True).stdout


def sent_commands(port, seconds, not_from):
    """How many commands clients send in so long, other than those at these addresses; what scripts call is no command."""
    with tempfile.TemporaryFile("w+") as seen:
        monitor = subprocess.Popen(["redis-cli", "-p", port, "MONITOR"], stdout=seen)
        try:
            time.sleep(seconds)
        finally:
            monitor.terminate()
            monitor.wait()
        seen.seek(0)
        senders = re.findall(r"^\d+\.\d+ \[\d+ (\S+)\]", seen.read(), re.M)
    return sum(1 for sender in senders if sender != "lua" and sender not in not_from)


def addresses(port):
    return set(re.findall(r"\baddr=(\S+)", ask(port, "CLIENT", "LIST")))


def machine():
    """What a figure depends on, without saying where it was measured."""
    with open("/proc/meminfo") as file:
        memory = int(re.search(r"MemTotal:\s+(\d+)", file.read()).group(1)) / 2**20
    model = re.search(r"^model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    kind = f" ({model.group(1)})" if model else ""
    return f"{os.cpu_count()} cores{kind}, {memory:.0f} GiB of memory, Linux {os.uname().release.split('-')[0]}"
