#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A guard for the files of one directory: whoever writes under a fencing token that is not the newest is refused.

    file_store.py DIRECTORY raise TOKEN               first of all; then read the files as you like: cat DIRECTORY/NAME
    file_store.py DIRECTORY write TOKEN NAME <FILE    replaces the file NAME, wholly or not at all

Exit 0: done. 3: stale, nothing was changed, stderr names the current token. 2: bad arguments. 1: anything else.

The largest token seen stands in DIRECTORY/.fence; comparing and renaming are one step under flock(2) of the directory.
So this is for a file system that one kernel decides about. Over a network file system it is not: a client that was cut
off loses its flock without knowing and renames all the same. There, run this on the file server.
"""
import contextlib
import fcntl
import os
import re
import secrets
import sys

LARGEST_TOKEN = 2**53 - 1  # Of those that every program on the way counts exactly.


class Stale(Exception):
    """A newer holder has been here. `current` is for acquire_options::min_fence."""

    def __init__(self, token, current):
        super().__init__(f"stale fencing token {token}, current {current}")
        self.current = current


def token_of(text):
    """The number. Compare numbers: as text "9" is above "10"."""
    if not re.fullmatch("[1-9][0-9]{0,15}", text) or int(text) > LARGEST_TOKEN:
        raise ValueError(f"not a fencing token: {text!r}; pass HOLDFAST_TOKEN or lease.token() as it is")
    return int(text)


@contextlib.contextmanager
def _gone_unless_done(path):
    """On a full disk what was begun would keep the room that everybody needs, the next raise, too."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        raise


class FileStore:
    def __init__(self, directory):
        self.directory = directory

    def raise_to(self, token):
        """From now on nothing below `token` is written. Before you read anything."""
        with self._not_stale(token):
            pass

    def read(self, name):
        with open(self._path(name), "rb") as file:
            return file.read()

    def write(self, token, name, content):
        """Replaces the file; on the disk when this returns."""
        target = self._path(name)
        staged = self._stage(content)  # Before the lock: it is slow, and a newer holder's raise need not wait for it.
        with _gone_unless_done(staged), self._not_stale(token) as directory:
            os.rename(staged, target)
            os.fsync(directory)

    @contextlib.contextmanager
    def _not_stale(self, token):
        directory = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            largest = self._largest()
            if not 0 < token <= LARGEST_TOKEN:
                raise ValueError(f"not a fencing token: {token!r}")
            if token < largest:
                raise Stale(token, largest)
            if token > largest:
                staged = self._stage(f"{token}\n".encode())
                with _gone_unless_done(staged):
                    os.rename(staged, os.path.join(self.directory, ".fence"))
            os.fsync(directory)  # Also of a token that is there: who raised to it may have died before this.
            yield directory
        finally:
            fcntl.flock(directory, fcntl.LOCK_UN)  # Closing does not end it while a child that was forked has a copy.
            os.close(directory)

    def _largest(self):
        path = os.path.join(self.directory, ".fence")
        try:
            with open(path, encoding="ascii", errors="replace") as file:
                return token_of(file.read().rstrip("\n"))
        except FileNotFoundError:
            return 0
        except ValueError as e:
            raise OSError(f"{path} is damaged: {e}") from e

    def _stage(self, content):
        """A file of this directory with the content, on the disk. What a crash leaves of these may be deleted."""
        path = os.path.join(self.directory, f".staged-{secrets.token_hex(8)}")
        with open(path, "xb") as file, _gone_unless_done(path):
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return path

    def _path(self, name):
        if not name or name.startswith(".") or "/" in name:
            raise ValueError(f"not a file's name here: {name!r}; it has no '/' and does not begin with '.'")
        return os.path.join(self.directory, name)


def main(arguments):
    verb = arguments[1] if len(arguments) > 1 else ""
    if (verb, len(arguments)) not in (("raise", 3), ("write", 4)):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        store, token = FileStore(arguments[0]), token_of(arguments[2])
        if verb == "raise":
            store.raise_to(token)
        else:
            store.write(token, arguments[3], sys.stdin.buffer.read())
    except Stale as e:
        print(f"file_store: {e}", file=sys.stderr)
        return 3
    except ValueError as e:
        print(f"file_store: {e}", file=sys.stderr)
        return 2
    except OSError as e:
        print(f"file_store: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
