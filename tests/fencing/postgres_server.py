# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL of our own: Debian's binaries, a scratch directory, a Unix socket and no port; ended by its pid."""

import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile

from fixture import content, until


def binary(name):
    """Debian keeps the server's programs out of PATH, a directory for each version. The newest, or who is in PATH."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), key=lambda path: int(path.split("/")[4]))
    path = found[-1] if found else shutil.which(name)
    if not path:
        raise FileNotFoundError(f"no {name}: this test needs Debian's package postgresql; script/setup test installs it")
    return path


def as_somebody():
    """PostgreSQL refuses to run as root. Then it runs as the user that its package has made; else as who we are."""
    if os.geteuid() != 0:
        return None, ["setpriv", "--pdeathsig", "INT"]
    user = pwd.getpwnam("postgres")
    return user, ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--pdeathsig", "INT"]


class PostgresServer:
    def __init__(self):
        user, prefix = as_somebody()
        self.directory = tempfile.mkdtemp(prefix="hf-pg-")  # Its socket's path has 107 bytes at most.
        if user:
            os.chown(self.directory, user.pw_uid, user.pw_gid)
        self.log = os.path.join(self.directory, "log")
        self.schemas = 0
        self.data = os.path.join(self.directory, "data")
        # Nothing here outlives the test, so that nothing needs to reach the disk.
        made = subprocess.run([*prefix, binary("initdb"), "-D", self.data, "-U", "holdfast", "-A", "trust",
                               "-E", "UTF8", "--locale=C", "--no-sync"],
                              cwd=self.directory, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            shutil.rmtree(self.directory)
            raise RuntimeError(f"initdb: {made.stdout}{made.stderr}")
        self.start()

    def start(self):
        _, prefix = as_somebody()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*prefix, binary("postgres"), "-D", self.data, "-k", self.directory, "-c", "listen_addresses=",
                 "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=50",
                 "-c", "wal_writer_delay=10s"],  # What is committed asynchronously stays in memory for so long.
                cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            until(self.answers, "postgres answers")
        except AssertionError:
            said = content(self.log)
            self.stop()
            raise RuntimeError(f"postgres does not start: {said}") from None

    def crash(self):
        """It loses what is in its memory, and is there again."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(timeout=60)
        self.start()

    def environment(self, schema="public"):
        """What psql finds the server by, and a directory for files."""
        # Debian's psql in PATH is a Perl program that looks for one of these; it takes longer than most of our tests.
        path = f"{os.path.dirname(binary('psql'))}:{os.environ['PATH']}"
        return {"PGHOST": self.directory, "PGUSER": "holdfast", "PGDATABASE": "postgres", "PGCONNECT_TIMEOUT": "20",
                "PGOPTIONS": f"-c search_path={schema}", "HOLDFAST_SCRATCH": self.directory, "PATH": path}

    def psql(self, statement):
        return subprocess.run([binary("psql"), "-XqAt", "-c", statement], env={**os.environ, **self.environment()},
                              capture_output=True, text=True, check=False)

    def answers(self):
        assert self.process.poll() is None, "postgres has ended"
        return self.psql("select 1").stdout == "1\n"

    def new_schema(self):
        """An empty one for each test; a database for each would take far longer."""
        self.schemas += 1
        made = self.psql(f"create schema test{self.schemas}")
        assert made.returncode == 0, made.stderr
        return f"test{self.schemas}"

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # "Fast": it ends the sessions.
            self.process.wait(30)
        shutil.rmtree(self.directory)
