# SPDX-License-Identifier: Apache-2.0
"""E13: whoever gets no TLS is told the way out of what failed. The words are those of the OpenSSL that is there."""

import os
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest

from fixture import CommandTest, Server

NAMES = {"good": "DNS:localhost,IP:127.0.0.1", "expired": "DNS:localhost,IP:127.0.0.1", "other": "DNS:elsewhere.test"}
EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def openssl(directory, *words):
    subprocess.run(["openssl", *words], cwd=directory, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def listen(server, what):
    """Has it listen on a port that is free: `what` is port or tls-port. Another program may take one before it does."""
    for _ in range(20):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        try:
            server.ask("CONFIG", "SET", what, port)
            return port
        except RuntimeError as refused:
            last = refused
    raise last


class Tls(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.files = tempfile.mkdtemp(prefix="hf-")
        cls.addClassCleanup(shutil.rmtree, cls.files)
        for authority in ("ca", "stranger"):
            openssl(cls.files, "req", "-x509", *EC, "-days", "2", "-subj", f"/CN={authority}", "-keyout",
                    f"{authority}.key", "-out", f"{authority}.pem")
        for who, names in NAMES.items():
            with open(cls.file("names"), "w", encoding="ascii") as file:
                file.write(f"subjectAltName={names}\n")
            openssl(cls.files, "req", *EC, "-subj", f"/CN={who}", "-keyout", f"{who}.key", "-out", f"{who}.csr")
            openssl(cls.files, "x509", "-req", "-in", f"{who}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                    "-CAcreateserial", "-extfile", "names", "-days", "-1" if who == "expired" else "2", "-out",
                    f"{who}.pem")

    @classmethod
    def file(cls, name):
        return os.path.join(cls.files, name)

    def serve(self, certificate, *options):
        """A server with that certificate; gives its port."""
        server = Server("--bind", "127.0.0.1", "--tls-cert-file", self.file(certificate + ".pem"), "--tls-key-file",
                        self.file(certificate + ".key"), "--tls-ca-cert-file", self.file("ca.pem"), *options)
        self.addCleanup(server.stop)
        return listen(server, "tls-port")

    def failure(self, where, *options, authority="ca"):
        """What is said of no TLS: the sentence, and what to do."""
        trusted = ("--cacert", self.file(authority + ".pem")) if authority else ()
        failed = self.finish("ls", "-u", f"rediss://{where}", "--server-timeout", "2s", *trusted, *options)
        self.assertEqual(failed.status, 69, failed.out + failed.err)
        self.assertIn(f"error[E13]: no TLS with rediss://{where}", failed.err)
        return failed.err, failed.err.partition("\n  fix: ")[2]

    def ours(self, certificate):
        return "--cert", self.file(certificate + ".pem"), "--key", self.file(certificate + ".key")

    def test_of_an_unknown_authority_asks_for_it(self):
        port = self.serve("good", "--tls-auth-clients", "no")
        for authority in (None, "stranger", "other"):
            with self.subTest(authority):
                said, fix = self.failure(f"localhost:{port}", authority=authority)
                self.assertIn("whoever signed the server's certificate", said)
                self.assertTrue(fix.startswith("--cacert FILE"), fix)

    def test_of_a_certificate_that_has_expired_asks_for_another_one(self):
        said, fix = self.failure(f"localhost:{self.serve('expired', '--tls-auth-clients', 'no')}")
        self.assertIn("certificate has expired", said)
        self.assertTrue(fix.startswith("a new one there"), fix)

    def test_of_another_hosts_certificate_says_how_to_see_its_names(self):
        port = self.serve("other", "--tls-auth-clients", "no")
        for host in ("localhost", "127.0.0.1"):
            with self.subTest(host):
                _, fix = self.failure(f"{host}:{port}")
                self.assertTrue(fix.startswith("name the host as it does: openssl s_client"), fix)

    def test_of_a_server_that_wants_a_certificate_of_ours_says_how_to_name_it(self):
        for version in ("TLSv1.2", "TLSv1.3"):
            port = self.serve("good", "--tls-auth-clients", "yes", "--tls-protocols", version)
            for ours, why in (((), "the server wants a certificate of ours"),
                              (self.ours("stranger"), "the server does not trust whoever signed our certificate"),
                              (self.ours("expired"), "our certificate has expired")):
                with self.subTest(f"{version} {ours}"):
                    said, fix = self.failure(f"localhost:{port}", *ours)
                    self.assertIn(f"\n  why: {why}", said)
                    self.assertIn("--cert FILE --key FILE", fix)

    def test_of_a_key_that_is_not_the_certificates_names_both_options(self):
        port = self.serve("good", "--tls-auth-clients", "no")
        _, fix = self.failure(f"localhost:{port}", "--cert", self.file("good.pem"), "--key", self.file("other.key"))
        self.assertTrue(fix.startswith("--cert FILE and --key FILE"), fix)

    # A PEM file may have both.
    def test_of_a_certificate_without_its_key_says_which_option_is_missing(self):
        port = self.serve("good", "--tls-auth-clients", "no")
        said, fix = self.failure(f"localhost:{port}", "--cert", self.file("good.pem"))
        self.assertIn("\n  why: no key was named, so it was looked for beside the certificate", said)
        self.assertTrue(fix.startswith("--key FILE, with the certificate's key"), fix)
        by_uri = self.finish("ls", "--cacert", self.file("ca.pem"), "-u",
                             f"rediss://localhost:{port}?cert={self.file('good.pem')}")
        self.assertEqual(by_uri.status, 69)
        self.assertIn("\n  fix: &key=FILE in the URI, with the certificate's key in PEM\n", by_uri.err)
        with open(self.file("both.pem"), "w", encoding="ascii") as both:
            for name in ("good.pem", "good.key"):
                with open(self.file(name), encoding="ascii") as part:
                    both.write(part.read())
        words = ["ls", "-u", f"rediss://localhost:{port}", "--cacert", self.file("ca.pem"), "--cert"]
        self.assertEqual(self.finish(*words, self.file("both.pem")).status, 0)
        self.assertEqual(self.finish(*words, self.file("good.pem"), "--key", self.file("good.key")).status, 0)

    def test_of_a_key_without_its_certificate_is_refused_before_anybody_is_asked(self):
        port = self.serve("good", "--tls-auth-clients", "no")
        words = ["ls", "--cacert", self.file("ca.pem"), "--key", self.file("good.key")]
        uri = f"rediss://localhost:{port}"
        for given, variable in ((["-u", uri], ""), ([], uri)):
            refused = self.finish(*words, *given, HOLDFAST_URI=variable)
            self.assertEqual(refused.status, 64, refused.err)
            self.assertIn("error[E17]: --key says nothing without --cert: it is the key of a certificate\n"
                          "  fix: --cert FILE; or leave --key out\n", refused.err)
        self.assertEqual(self.finish(*words, "-u", uri, "--cert", self.file("good.pem")).status, 0)
        self.assertEqual(self.finish(*words, "-u", f"{uri}?cert={self.file('good.pem')}").status, 0)

    def test_of_a_port_without_it_says_redis(self):
        plain = Server("--bind", "127.0.0.1")
        self.addCleanup(plain.stop)
        silent = listen(plain, "port")
        talking = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(talking.close)

        def talk():
            try:
                while True:
                    with talking.accept()[0] as one:
                        one.recv(4096)
                        one.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            except OSError:  # It was closed.
                pass

        threading.Thread(target=talk, daemon=True).start()
        for port in (silent, talking.getsockname()[1]):
            with self.subTest(port == silent):
                _, fix = self.failure(f"127.0.0.1:{port}")
                self.assertTrue(fix.startswith("redis:// if that port is plain"), fix)
                self.assertNotIn("cacert", fix)


if __name__ == "__main__":
    unittest.main()
