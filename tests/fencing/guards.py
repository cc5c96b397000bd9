# SPDX-License-Identifier: Apache-2.0
"""The guards of examples/fencing as a shell uses them, one class each: three command lines, raise, read and write.

What runs here is what docs/fencing.md shows: the files themselves, and the statements of the .sql files between their
`-- 1.`, `-- 2.` and `-- 3.`.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))

HERE = os.path.dirname(os.path.abspath(__file__))
GUARDS = os.path.normpath(os.path.join(HERE, "../../examples/fencing"))


def guard_file(name):
    return os.path.join(GUARDS, name)


class Refused(Exception):
    """The guard said no, with these words."""


class Stale(Refused):
    """And the reason is a larger token, `current`."""

    def __init__(self, words, current):
        super().__init__(words)
        self.current = current


class Guard:
    """`commands`: verb to a shell command, which finds the token in $HOLDFAST_TOKEN and the value in $VALUE."""

    commands = {}
    environment = {}

    def start(self, verb, token="", value=""):
        return subprocess.Popen(["sh", "-c", self.commands[verb]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=self.full_environment(token, value))

    def full_environment(self, token="", value=""):
        return {**os.environ, **self.environment, "HOLDFAST_TOKEN": str(token), "VALUE": str(value),
                "LC_ALL": "C.UTF-8"}

    def end(self, process):
        """Its output; Stale or Refused when it was."""
        out, err = process.communicate(timeout=60)
        self.judge(process.returncode, out, err)
        return out.strip()

    def judge(self, status, out, err):
        if status == 0:
            return
        stale = re.search(r"stale fencing token \d+, current (\d+)", out + err)
        if stale:
            raise Stale(out + err, int(stale.group(1)))
        raise Refused(out + err)

    def raise_to(self, token):
        self.end(self.start("raise", token))

    def read(self):
        return int(self.end(self.start("read")))

    def write(self, token, value):
        self.end(self.start("write", token, value))


class RedisGuard(Guard):
    """`server` is of cli/fixture.py. The value's and the fence's key are in one slot."""

    fence, value = "{account:7}:fence", "{account:7}:balance"

    def __init__(self, server):
        script = shlex.quote(guard_file("redis.lua"))
        call = f"redis-cli -e -s {server.socket} --eval {script} '{self.fence}' '{self.value}'"
        self.commands = {"raise": f'{call} , "$HOLDFAST_TOKEN"',
                         "read": f"redis-cli -e -s {server.socket} GET '{self.value}'",
                         "write": f'{call} , "$HOLDFAST_TOKEN" "$VALUE"'}
        self.server = server
        self.server.ask("DEL", self.fence)
        self.server.ask("SET", self.value, "100")

    def forget(self):
        self.server.ask("DEL", self.fence, self.value)


class FileGuard(Guard):
    def __init__(self, directory):
        self.directory = directory
        with open(os.path.join(directory, "balance"), "w", encoding="ascii") as file:
            file.write("100\n")
        call = f"{shlex.quote(sys.executable)} -ISB {shlex.quote(guard_file('file_store.py'))} {directory}"
        self.commands = {"raise": f'{call} raise "$HOLDFAST_TOKEN"',
                         "read": f"cat {directory}/balance",
                         "write": f'echo "$VALUE" | {call} write "$HOLDFAST_TOKEN" balance'}


def steps_of(file):
    """The text behind `-- 1.`, `-- 2.` and `-- 3.`, each to the next one."""
    with open(guard_file(file), encoding="utf-8") as opened:
        parts = re.split(r"^-- [123]\. .*\n", opened.read(), flags=re.M)
    assert len(parts) == 4, f"{file} has not the three steps"
    return parts[1:]


class SqlGuard(Guard):
    """A table `account` in a fresh schema of `server`, guarded by the steps of an .sql file of the examples."""

    psql = 'psql -XqAt -v ON_ERROR_STOP=1 -v token="$HOLDFAST_TOKEN" -v balance="$VALUE"'

    def __init__(self, server, *definitions):
        self.environment = server.environment(server.new_schema())
        self.sql("create table account (id int primary key, balance bigint not null);",
                 "insert into account values (7, 100);", *definitions)

    def sql(self, *statements, check=True):
        """What one psql prints for these, each a command or several."""
        done = subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1"], input="\n".join(statements), text=True,
                              capture_output=True, env=self.full_environment(), check=False)
        if check and done.returncode != 0:
            raise Refused(done.stderr)
        return done.stdout.strip()

    def step(self, text, psql=None):
        """A shell command that runs these statements."""
        with tempfile.NamedTemporaryFile("w", dir=self.environment["HOLDFAST_SCRATCH"], suffix=".sql",
                                         delete=False) as file:
            file.write(text)
        return f"{psql or self.psql} -f {file.name}"


class PostgresGuard(SqlGuard):
    """The function fence_raise, as postgresql_use.sql uses it: the write there takes 30 away."""

    def __init__(self, server):
        with open(guard_file("postgresql.sql"), encoding="utf-8") as file:
            super().__init__(server, file.read())
        first, second, third = steps_of("postgresql_use.sql")
        self.commands = {"raise": self.step(first), "read": self.step(second + "\n\\echo :balance\n"),
                         "write": self.step(third)}

    def start(self, verb, token="", value=""):
        return super().start(verb, token, value if value == "" else int(value) + 30)


class ColumnGuard(SqlGuard):
    """The statements of column.sql. An UPDATE says by its count of rows that it was refused; then one reads the fence."""

    column = ("alter table account add column fence bigint not null default 0 "
              "check (fence between 0 and 9007199254740991);")

    def __init__(self, server):
        with open(guard_file("column.sql"), encoding="utf-8") as file:
            assert self.column in file.read()
        super().__init__(server, self.column)
        psql = self.psql.replace("-XqAt", "-XAt")  # It prints "UPDATE 1".
        first, second, third = steps_of("column.sql")
        self.commands = {"raise": self.step(first, psql), "read": self.step(second), "write": self.step(third, psql)}

    def judge(self, status, out, err):
        if status == 0 and "UPDATE 0" in out:
            raise Stale(out, int(self.sql("select fence from account where id = 7")))
        super().judge(status, out, err)
