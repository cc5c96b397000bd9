# SPDX-License-Identifier: Apache-2.0
"""examples/fencing/file_store.py on a directory."""

import fcntl
import importlib.util
import os
import shlex
import shutil
import signal
import sys
import tempfile
import unittest

from guards import FileGuard, Refused, Stale, guard_file
from claims import NEWER, OLDER, Claims
from fixture import content, until


def waits_for_a_flock(path):
    """/proc/locks marks with -> who waits, and names the file by its inode."""
    inode = os.stat(path).st_ino
    return any("->" in line and f":{inode} " in line for line in content("/proc/locks").splitlines())


class StandIn:
    """A module with some functions of its own."""

    def __init__(self, module, **instead):
        self.__dict__.update(vars(module), **instead)


class FileStoreTest(Claims, unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="hf-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.guard = FileGuard(self.directory)

    def path(self, name):
        return os.path.join(self.directory, name)

    def test_a_raise_between_comparison_and_rename_is_not_possible(self):
        """Somebody is at it: the write waits for the directory, and compares only then."""
        other = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, other)
        fcntl.flock(other, fcntl.LOCK_EX)
        late = self.guard.start("write", OLDER, 20)
        until(lambda: waits_for_a_flock(self.directory), "the write waits")
        with open(self.path(".fence"), "w", encoding="ascii") as file:
            file.write(f"{NEWER}\n")
        fcntl.flock(other, fcntl.LOCK_UN)
        self.assertRaises(Stale, self.guard.end, late)
        self.assertEqual(self.guard.read(), 100)

    def test_stale_is_exit_3_and_no_token_is_exit_2(self):
        self.guard.raise_to(NEWER)
        for token, status in ((OLDER, 3), ("abc", 2)):
            refused = self.guard.start("raise", token)
            refused.communicate()
            self.assertEqual(refused.returncode, status)

    def module(self):
        spec = importlib.util.spec_from_file_location("file_store", guard_file("file_store.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def test_a_program_that_imports_it_is_refused_a_token_that_no_fence_can_hold(self):
        store = self.module().FileStore(self.directory)
        for token in (2**53, 0, -1):
            self.assertRaises(ValueError, store.raise_to, token)
        store.raise_to(2**53 - 1)

    def test_what_is_refused_leaves_no_file_behind(self):
        self.guard.raise_to(NEWER)
        self.assertRaises(Stale, self.guard.write, OLDER, 20)
        self.assertEqual(sorted(os.listdir(self.directory)), [".fence", "balance"])

    def limited(self, verb, most):
        """The command where no file may have more bytes than `most`: the write behind it fails, as on a full disk."""
        limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))"
        guard = shlex.quote(guard_file("file_store.py"))
        run = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
        call = f"{shlex.quote(sys.executable)} -ISBc {shlex.quote(f'{limit}; {run}')} {guard} {self.directory}"
        return {"raise": f'{call} raise "$HOLDFAST_TOKEN"',
                "write": f'echo "$VALUE" | {call} write "$HOLDFAST_TOKEN" balance'}[verb]

    def test_what_does_not_fit_on_the_disk_leaves_no_file_behind(self):
        self.guard.raise_to(OLDER)
        for verb in ("write", "raise"):
            self.guard.commands["full"] = self.limited(verb, 4)
            with self.subTest(verb=verb), self.assertRaisesRegex(Refused, "File too large"):
                self.guard.end(self.guard.start("full", NEWER, "12345678"))
            self.assertEqual(sorted(os.listdir(self.directory)), [".fence", "balance"])
        self.guard.write(OLDER, 70)
        self.assertEqual(self.guard.read(), 70)

    def test_a_fence_that_cannot_be_moved_to_its_place_leaves_no_file_behind(self):
        os.mkdir(self.path(".fence"))
        store = self.module().FileStore(self.directory)
        store._largest = lambda: 0  # pylint: disable=protected-access
        self.assertRaises(IsADirectoryError, store.raise_to, NEWER)
        self.assertEqual(sorted(os.listdir(self.directory)), [".fence", "balance"])

    def test_a_child_that_was_forked_meanwhile_does_not_keep_others_out(self):
        """A pool of workers that begins while a thread raises: its processes have the directory open, too."""
        module = self.module()
        children = []

        def rename_and_fork(*names):
            os.replace(*names)
            children.append(os.fork())
            if children[-1] == 0:
                signal.pause()

        module.os = StandIn(os, rename=rename_and_fork)
        module.FileStore(self.directory).raise_to(OLDER)
        try:
            other = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
            self.addCleanup(os.close, other)
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.kill(children[0], signal.SIGKILL)
            os.waitpid(children[0], 0)

    def test_a_fence_that_somebody_died_writing_is_on_the_disk_when_a_raise_to_it_returns(self):
        module = self.module()
        synced = []
        module.os = StandIn(os, fsync=lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
        for _ in range(2):
            synced.clear()
            module.FileStore(self.directory).raise_to(NEWER)
            self.assertIn(self.directory, synced)

    def test_a_damaged_fence_is_an_error_and_not_the_beginning(self):
        for text in ("", "hello\n", "1.7e+15\n"):
            with open(self.path(".fence"), "w", encoding="ascii") as file:
                file.write(text)
            with self.subTest(fence=text), self.assertRaisesRegex(Refused, "fence is damaged"):
                self.guard.write(NEWER, 70)
        self.assertEqual(self.guard.read(), 100)

    def test_only_files_of_the_directory_are_written(self):
        for name in ("../x", ".fence", "", "a/b"):
            command = self.guard.commands["write"].replace(" balance", f" '{name}'")
            self.guard.commands["elsewhere"] = command
            with self.subTest(name=name), self.assertRaisesRegex(Refused, "not a file's name here"):
                self.guard.end(self.guard.start("elsewhere", NEWER, 70))

    def test_a_reader_sees_a_whole_file(self):
        big = {letter: letter * 300_000 for letter in "ab"}
        writer = self.guard.commands["write"].replace('echo "$VALUE"', 'yes "$VALUE" | tr -d "\\n" | head -c 300000')
        self.guard.commands["big"] = writer
        self.guard.end(self.guard.start("big", NEWER, "a"))
        for letter in "bab":
            writing = self.guard.start("big", NEWER, letter)
            while writing.poll() is None:
                self.assertIn(content(self.path("balance")), big.values())
            self.guard.end(writing)
            self.assertEqual(content(self.path("balance")), big[letter])


if __name__ == "__main__":
    unittest.main()
