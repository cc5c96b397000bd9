# SPDX-License-Identifier: Apache-2.0
"""Ways out are followed here as they are printed: the option is left out, the command is pasted, and then it works."""

import os
import re
import shlex
import shutil
import tempfile
import unittest

from fixture import CommandTest, Server, content
from tls_test import EC, listen, openssl


class Files(CommandTest):
    """Commands that are printed to be pasted have the files without which the server lets nobody in."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.files = tempfile.mkdtemp(prefix="hf-")
        cls.addClassCleanup(shutil.rmtree, cls.files)
        path = lambda name: os.path.join(cls.files, name)
        openssl(cls.files, "req", "-x509", *EC, "-days", "2", "-subj", "/CN=ca", "-addext",
                "subjectAltName=IP:127.0.0.1", "-keyout", "ca.key", "-out", "ca.pem")
        openssl(cls.files, "pkey", "-in", "ca.key", "-aes128", "-passout", "pass:canary7f3a", "-out", "locked.key")
        with open(path("both.pem"), "w", encoding="ascii") as both:
            both.write(content(path("ca.pem")) + content(path("locked.key")))
        with open(path("my password"), "w", encoding="ascii") as file:
            file.write("canary7f3a\n")
        os.chmod(path("my password"), 0o600)
        cls.wary = Server("--bind", "127.0.0.1", "--requirepass", "canary7f3a", "--tls-cert-file", path("ca.pem"),
                          "--tls-key-file", path("ca.key"), "--tls-ca-cert-file", path("ca.pem"))
        cls.addClassCleanup(cls.wary.stop)
        cls.uri = f"rediss://127.0.0.1:{listen(cls.wary, 'tls-port')}"
        cls.plain_uri = f"redis://127.0.0.1:{listen(cls.server, 'port')}"
        cls.tls = ["--cacert", path("ca.pem"), "--cert", path("ca.pem"), "--key", path("ca.key")]
        cls.given = ["--password-file", path("my password"), *cls.tls]
        cls.words = ["-u", cls.uri, *cls.given]

    def path_of(self, name):
        return os.path.join(self.files, name)

    def paste(self, said, command):
        """Types the command as it was printed; its last word may stand for a number."""
        typed = re.search(rf"holdfast ({command}[^`\n]*)", said)[1]
        self.assertNotIn("canary7f3a", typed)
        # In another shell, which knows no HOLDFAST_URI.
        return self.finish(*["3" if word == "N" else word for word in shlex.split(typed)], HOLDFAST_URI="")

    def test_of_a_command_that_was_refused_are_in_the_one_that_is_proposed(self):
        self.assertEqual(self.finish("run", *self.words, "-l", "2", self.lock, "true").status, 0)
        other = self.finish("run", *self.words, "-l", "3", self.lock, "true")
        self.assertEqual(other.status, 78, other.err)
        self.assertRegex(self.paste(other.err, "show").out, "permits +0 of 2 taken")
        self.assertIn("has 3 permits now", self.paste(other.err, "resize").out)
        self.assertEqual(self.finish("run", *self.words, "-l", "3", self.lock, "true").status, 0)

    def test_end_a_quarantine(self):
        new = ["--prefix", "b:"]
        for proposing, status in (("run", 69), ("check", 75), ("show", 0), ("doctor", 0)):
            with self.subTest(proposing):
                self.wary.ask("DEL", "b:epoch")
                words = [proposing, *self.words, *new]
                words += {"doctor": [], "run": ["-n", self.lock, "true"]}.get(proposing, [self.lock])
                shut = self.finish(*words)
                self.assertEqual(shut.status, status, shut.err)
                self.assertEqual(self.paste(re.sub(r"\)+$", "", shut.err + shut.out, flags=re.M), "init").status, 0)
                opened = self.finish("run", *self.words, *new, "-n", self.lock, "true")
                self.assertEqual(opened.status, 0, opened.err)

    def test_are_in_what_the_command_line_proposes_itself(self):
        untold = self.finish("break", *self.words, self.lock)
        self.assertEqual(self.paste(untold.err, "show").status, 0)
        self.assertEqual(self.paste(self.finish("break", *self.words, "--token", "x", self.lock).err, "show").status, 0)
        commandless = self.finish("run", *self.words, self.lock)
        self.assertEqual(self.paste(commandless.err.replace("CMD;", "true\n"), "run").status, 0)


if __name__ == "__main__":
    unittest.main()
