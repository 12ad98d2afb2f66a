# SPDX-License-Identifier: Apache-2.0
"""Who may connect: pre-shared keys, certificates, key files that others can read, versions that
differ.
"""

import os
import socket
import ssl
import struct
import threading

from support import compare, keys, trees
from support.case import ScratchCase, TLS_PULL, TLS_PUSH, over, shared_psk


class AuthCase(ScratchCase):
    def setUp(self):
        super().setUp()
        trees.small_tree(self.src, files=5)
        os.makedirs(self.dst)

    def push(self, server, *auth, expect):
        return self.volferry(
            "sync", *auth, "--retries", "0", self.src, server.url(), expect=expect, timeout=60
        )

    def assert_nothing_arrived(self):
        self.assertEqual([], os.listdir(self.dst))


class PreSharedKeys(AuthCase):
    def test_wrong_key(self):
        server = self.serve(self.dst)
        other = keys.make_psk(self.path("other"))
        self.assert_error(self.push(server, "--psk-file", other, expect=11), 11, "key")
        self.assert_nothing_arrived()
        self.assert_exit(self.push(server, "--psk-file", shared_psk(), expect=0), 0)

    def test_right_identity_with_wrong_key(self):
        with open(shared_psk(), encoding="ascii") as stream:
            identity, key = stream.read().strip().split(":")
        wrong = ("0" if key[0] != "0" else "1") + key[1:]
        trees.write(self.path("wrong"), f"{identity}:{wrong}\n".encode(), 0o600)
        self.assert_error(
            self.push(self.serve(self.dst), "--psk-file", self.path("wrong"), expect=11), 11
        )

    def test_right_key_with_wrong_identity(self):
        with open(shared_psk(), encoding="ascii") as stream:
            key = stream.read().strip().split(":")[1]
        trees.write(self.path("wrong"), f"someone-else:{key}\n".encode(), 0o600)
        self.assert_error(
            self.push(self.serve(self.dst), "--psk-file", self.path("wrong"), expect=11), 11
        )

    def test_several_identities_at_the_server(self):
        names = [keys.make_psk(self.path(name)) for name in ("k1", "k2")]
        lines = b"# both\n\n"
        for number, name in enumerate(names):
            with open(name, "rb") as stream:
                key = stream.read().strip().split(b":")[1]
            trees.write(name, b"client-%d:%s\n" % (number, key), 0o600)
            lines += b"client-%d:%s\n" % (number, key)
        trees.write(self.path("all"), lines, 0o600)
        server = self.serve(self.dst, auth=["--psk-file", self.path("all")])
        for name in names:
            self.push(server, "--psk-file", name, expect=0)

    def test_file_that_others_can_read(self):
        server = self.serve(self.dst)
        for mode in (0o644, 0o640, 0o604):
            with self.subTest(oct(mode)):
                name = keys.make_psk(self.path(f"psk-{mode:o}"), mode)
                self.assert_error(self.push(server, "--psk-file", name, expect=2), 2, name, "chmod")
                result = self.volferry(
                    "serve",
                    "--listen",
                    "127.0.0.1:0",
                    "--root",
                    self.dst,
                    "--psk-file",
                    name,
                    expect=2,
                    timeout=20,
                )
                self.assert_error(result, 2, name)

    def test_kubernetes_secret_mount_is_accepted(self):
        """Secrets are mounted 0644 behind a ..data link that kubelet swaps."""
        with open(shared_psk(), "rb") as stream:
            trees.write(self.path("keys/..2024_01_01/psk"), stream.read(), 0o644)
        os.symlink("..2024_01_01", self.path("keys/..data"))
        os.symlink("..data/psk", self.path("keys/psk"))
        self.push(self.serve(self.dst), "--psk-file", self.path("keys/psk"), expect=0)

    def test_unusable_files(self):
        server = self.serve(self.dst)
        for name, content in (
            ("empty", b""),
            ("no-colon", b"abcdef\n"),
            ("not-hex", b"id:xyz\n"),
            ("odd", b"id:" + b"a" * 33 + b"\n"),
            ("short", b"id:abcd\n"),
        ):
            with self.subTest(name):
                trees.write(self.path(name), content, 0o600)
                self.assert_error(
                    self.push(server, "--psk-file", self.path(name), expect=2), 2, name
                )
        self.assert_error(
            self.push(server, "--psk-file", self.path("missing"), expect=2), 2, "missing"
        )

    def test_client_without_any_key(self):
        self.assert_error(self.push(self.serve(self.dst), expect=(2, 11)), (2, 11), "psk")

    def test_server_without_any_key_does_not_start(self):
        result = self.volferry(
            "serve", "--listen", "127.0.0.1:0", "--root", self.dst, expect=2, timeout=20
        )
        self.assert_error(result, 2, "psk")

    def test_server_on_all_addresses_without_a_key_does_not_start(self):
        result = self.volferry(
            "serve", "--listen", "0.0.0.0:0", "--root", self.dst, expect=2, timeout=20
        )
        self.assert_error(result, 2)

    def test_key_is_never_shown(self):
        with open(shared_psk(), encoding="ascii") as stream:
            secret = stream.read().strip().split(":")[1]
        server = self.serve(self.dst, "-v")
        run = self.push(server, "-v", "--psk-file", shared_psk(), expect=0)
        with open(f"/proc/{server.process.pid}/cmdline", "rb") as stream:
            shown = stream.read().decode() + run.stderr + server.stop().stderr
        self.assertNotIn(secret, shown.lower())


class Certificates(AuthCase):
    def setUp(self):
        super().setUp()
        self.need_tool("openssl")
        self.authority = keys.Authority(self.path("ca"))

    def test_mutual(self):
        server = self.serve(self.dst, auth=self.authority.options("server"))
        self.push(server, *self.authority.options("client"), expect=0)
        self.assertEqual([], compare.compare(self.src, self.dst))

    def test_client_of_another_authority(self):
        server = self.serve(self.dst, auth=self.authority.options("server"))
        other = keys.Authority(self.path("other"))
        cert, key = other.issue("client")
        options = ["--cert", cert, "--key", key, "--ca", self.authority.cert]
        self.assert_error(self.push(server, *options, expect=11), 11)
        self.assert_nothing_arrived()

    def test_server_of_another_authority(self):
        other = keys.Authority(self.path("other"))
        server = self.serve(self.dst, auth=other.options("server"))
        cert, key = other.issue("client")
        options = ["--cert", cert, "--key", key, "--ca", self.authority.cert]
        self.assert_error(self.push(server, *options, expect=11), 11, "cert")
        self.assert_nothing_arrived()

    def test_server_of_another_name(self):
        server = self.serve(
            self.dst, auth=self.authority.options("server", subject_names="DNS:elsewhere.example")
        )
        self.assert_error(self.push(server, *self.authority.options("client"), expect=11), 11)
        self.assert_nothing_arrived()

    def test_psk_client_to_certificate_server_and_back(self):
        server = self.serve(self.dst, auth=self.authority.options("server"))
        self.push(server, "--psk-file", shared_psk(), expect=(11, 12))
        server = self.serve(self.path("dst"))
        self.push(server, *self.authority.options("client"), expect=(11, 12))
        self.assert_nothing_arrived()

    def test_readable_private_key(self):
        cert, key = self.authority.issue("client")
        os.chmod(key, 0o644)
        server = self.serve(self.dst, auth=self.authority.options("server"))
        options = ["--cert", cert, "--key", key, "--ca", self.authority.cert]
        self.assert_error(self.push(server, *options, expect=2), 2, key)

    def test_incomplete_options(self):
        cert, key = self.authority.issue("client")
        server = self.serve(self.dst, auth=self.authority.options("server"))
        for options in (
            ["--cert", cert],
            ["--cert", cert, "--key", key],
            ["--key", key, "--ca", self.authority.cert],
        ):
            with self.subTest(options[::2]):
                self.assert_error(self.push(server, *options, expect=2), 2)

    def test_both_kinds_at_once(self):
        server = self.serve(self.dst, auth=self.authority.options("server"))
        options = [*self.authority.options("client"), "--psk-file", shared_psk()]
        self.assert_error(self.push(server, *options, expect=2), 2)

    def test_tls_1_2_is_refused(self):
        server = self.serve(self.dst, auth=self.authority.options("server"))
        context = self.client_context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with self.assertRaises((ssl.SSLError, OSError)):
            with socket.create_connection(("127.0.0.1", server.port), 20) as plain:
                with context.wrap_socket(plain, server_hostname="localhost") as end:
                    end.recv(1)

    def client_context(self) -> ssl.SSLContext:
        cert, key = self.authority.issue("python-client")
        context = ssl.create_default_context(cafile=self.authority.cert)
        context.load_cert_chain(cert, key)
        return context


_HELLO, _HELLO_ACK = 1, 2
_MAGIC = 0x59524656


def frame(kind: int, head: bytes) -> bytes:
    """One frame as docs/protocol.md has it: type, flags, stream, lengths of head and body,
    checksum.
    """
    return struct.pack("<BBHIII", kind, 0, 0, len(head), 0, 0) + head


def greeting(major: int) -> bytes:
    return struct.pack("<IHH", _MAGIC, major, 0) + bytes(200)


class Versions(AuthCase):
    """A peer of another major version, played with certificates since Python's ssl has no pre-
    shared keys here.
    """

    def setUp(self):
        super().setUp()
        self.need_tool("openssl")
        self.authority = keys.Authority(self.path("ca"))

    def fake_server(self, answer: bytes) -> str:
        cert, key = self.authority.issue("server")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        context.load_verify_locations(self.authority.cert)
        context.verify_mode = ssl.CERT_REQUIRED
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def work():
            while True:
                try:
                    plain, _ = listener.accept()
                except OSError:
                    return
                try:
                    with context.wrap_socket(plain, server_side=True) as end:
                        end.settimeout(20)
                        end.recv(4096)
                        end.sendall(answer)
                        while end.recv(4096):
                            pass
                except OSError:
                    pass

        threading.Thread(target=work, daemon=True).start()
        return f"tls://127.0.0.1:{listener.getsockname()[1]}"

    def push_to(self, url: str, expect):
        options = self.authority.options("client")
        return self.volferry(
            "sync", *options, "--retries", "0", self.src, url, expect=expect, timeout=60
        )

    def test_server_of_another_major_version(self):
        result = self.push_to(self.fake_server(frame(_HELLO_ACK, greeting(99))), expect=12)
        self.assert_error(result, 12, "version", "99")

    def test_server_that_talks_nonsense(self):
        for name, answer in (
            ("text", b"220 mail.example ESMTP ready\r\n" * 10),
            ("zeros", bytes(100)),
            ("huge length", struct.pack("<BBHIII", _HELLO_ACK, 0, 0, 0xFFFFFFFF, 0xFFFFFFFF, 0)),
            ("unknown message", frame(250, b"x")),
        ):
            with self.subTest(name):
                self.assert_error(self.push_to(self.fake_server(answer), expect=12), 12)

    def test_client_of_another_major_version(self):
        server = self.serve(self.dst, auth=self.authority.options("server"))
        cert, key = self.authority.issue("python-client")
        context = ssl.create_default_context(cafile=self.authority.cert)
        context.load_cert_chain(cert, key)
        with socket.create_connection(("127.0.0.1", server.port), 20) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as end:
                end.sendall(frame(_HELLO, greeting(99)))
                answer = b""
                try:
                    while piece := end.recv(4096):
                        answer += piece
                except OSError:
                    pass
        self.assertIn(b"version", answer.lower())
        self.assertNotEqual(_HELLO_ACK, answer[0])
        self.push(server, *self.authority.options("client"), expect=0)

    def test_floods_before_authentication_do_not_stop_the_server(self):
        server = self.serve(self.dst, auth=self.authority.options("server"))
        idle = [socket.create_connection(("127.0.0.1", server.port), 20) for _ in range(30)]
        for end in idle[:10]:
            end.sendall(os.urandom(2000))
        self.push(server, *self.authority.options("client"), expect=0)
        for end in idle:
            end.close()


@over(TLS_PUSH, TLS_PULL)
class Ipv6:
    def test_loopback(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError as error:
            self.skipTest(f"no IPv6 loopback: {error}")
        trees.small_tree(self.src)
        os.makedirs(self.dst)
        push = self.transport == TLS_PUSH
        server = self.serve(self.dst if push else self.src, address="[::1]:0")
        self.assertTrue(server.url().startswith("tls://[::1]:"))
        ends = [self.src, server.url()] if push else [server.url(), self.dst]
        self.volferry("sync", "--psk-file", shared_psk(), *ends)
        self.assert_same()
