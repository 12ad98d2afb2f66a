# SPDX-License-Identifier: Apache-2.0
"""Links that are cut, stall or are slow; retries, timeouts, streams."""

import os
import signal
import socket
import threading

from support import trees
from support.case import ScratchCase, TLS_PULL, TLS_PUSH, over, shared_psk
from support.sshd import free_port
from support.wait import wait_until

MIB = trees.MIB


class LinkCase:
    """`through(relay)` is `sync` with the relay between the two ends."""

    def setUp(self):
        super().setUp()
        trees.small_tree(self.src)
        trees.write_random(os.path.join(self.src, "large"), 8 * MIB, seed=1)
        os.makedirs(self.dst)

    def relay_for(self, **options):
        self.endpoints(self.src, self.dst)
        server = self._server(self.dst if self.transport == TLS_PUSH else self.src)
        return self.relay(server.port, **options)

    def through(self, relay, *options, expect=0, **kwargs):
        url = f"tls://127.0.0.1:{relay.port}"
        ends = [self.src, url] if self.transport == TLS_PUSH else [url, self.dst]
        return self.volferry(
            "sync", "--json", "--psk-file", shared_psk(), *options, *ends, expect=expect, **kwargs
        )


@over(TLS_PUSH, TLS_PULL)
class CutLinks(LinkCase):
    def test_one_cut_is_survived(self):
        relay = self.relay_for(cut_after=4 * MIB)
        self.through(relay, "--retries", "2")
        self.assertGreaterEqual(relay.connections, 2)
        self.assert_same()
        self.assert_no_temporaries()

    def test_no_retries_left(self):
        relay = self.relay_for(cut_after=4 * MIB)
        result = self.through(relay, "--retries", "0", expect=13)
        self.assert_error(result, 13, str(relay.port))
        self.assertEqual("failed", result.summary["result"])

    def test_always_cut(self):
        relay = self.relay_for(cut_after=20_000, cuts=1000)
        self.through(relay, "--retries", "1", expect=13)
        self.assertGreaterEqual(relay.connections, 2)

    def test_cut_at_every_early_moment(self):
        for after in (1, 100, 600, 1500, 3000, 6000, 20_000):
            with self.subTest(after):
                relay = self.relay_for(cut_after=after)
                self.through(relay, "--retries", "2")
                self.assert_same()


@over(TLS_PUSH, TLS_PULL)
class StalledLinks(LinkCase):
    def test_timeout_ends_the_wait(self):
        relay = self.relay_for(stall_after=3 * MIB)
        result = self.through(relay, "--timeout", "1", "--retries", "0", expect=13, timeout=60)
        self.assert_error(result, 13)

    def test_a_silent_peer_does_not_hold_the_connect(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"tls://127.0.0.1:{silent.getsockname()[1]}"
            ends = [self.src, url] if self.transport == TLS_PUSH else [url, self.dst]
            result = self.volferry(
                "sync",
                "--psk-file",
                shared_psk(),
                "--connect-timeout",
                "1",
                "--retries",
                "0",
                *ends,
                expect=10,
                timeout=60,
            )
            self.assert_error(result, 10, "127.0.0.1")


@over(TLS_PUSH, TLS_PULL)
class Streams(LinkCase):
    def test_number_of_connections(self):
        relay = self.relay_for()
        self.through(relay, "--streams", "1")
        self.assertEqual(1, relay.connections)
        self.assert_same()

    def test_four_streams(self):
        relay = self.relay_for()
        self.through(relay, "--streams", "4")
        self.assertEqual(4, relay.connections)
        self.assertEqual(4, relay.concurrent_peak)
        self.assert_same()
        self.assert_no_temporaries()

    def test_four_streams_cut(self):
        relay = self.relay_for(cut_after=4 * MIB)
        self.through(relay, "--streams", "4", "--retries", "2")
        self.assert_same()

    def test_wire_bytes_of_the_summary_are_those_of_the_link(self):
        relay = self.relay_for()
        result = self.through(relay, "--compress", "off")
        self.assertAlmostEqual(relay.passed, result.wire, delta=relay.passed * 0.03 + 8192)


@over(TLS_PUSH, TLS_PULL)
class RoundTrips(LinkCase):
    def test_a_delay_does_not_cost_a_round_trip_for_each_file(self):
        """600 files over 20 ms each way: one round trip for each would take 24 s, the process's
        limit is 20 s.
        """
        for number in range(600):
            trees.write(os.path.join(self.src, f"many/d{number % 60}/f{number}"), b"%d" % number)
        relay = self.relay_for(delay=0.02)
        self.through(relay, timeout=20)
        self.assert_same()


class Unreachable(ScratchCase):
    def setUp(self):
        super().setUp()
        trees.write(os.path.join(self.src, "f"), b"x")

    def push(self, url: str, *options, expect):
        return self.volferry(
            "sync",
            "--psk-file",
            shared_psk(),
            "--retries",
            "0",
            *options,
            self.src,
            url,
            expect=expect,
            timeout=60,
        )

    def test_closed_port(self):
        port = free_port()
        self.assert_error(
            self.push(f"tls://127.0.0.1:{port}", expect=10), 10, "127.0.0.1", str(port)
        )

    def test_unknown_host(self):
        self.assert_error(
            self.push("tls://no-such-host.invalid:8000", expect=10), 10, "no-such-host.invalid"
        )

    def test_port_that_speaks_something_else(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def answer():
                while True:
                    try:
                        end, _ = listener.accept()
                    except OSError:
                        return
                    with end:
                        end.recv(4096)
                        end.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

            threading.Thread(target=answer, daemon=True).start()
            port = listener.getsockname()[1]
            result = self.push(f"tls://127.0.0.1:{port}", expect=(10, 12))
            self.assert_error(result, (10, 12), str(port))
            listener.shutdown(socket.SHUT_RDWR)

    def test_port_that_closes_at_once(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def answer():
                while True:
                    try:
                        listener.accept()[0].close()
                    except OSError:
                        return

            threading.Thread(target=answer, daemon=True).start()
            result = self.push(
                f"tls://127.0.0.1:{listener.getsockname()[1]}", expect=(10, 11, 12, 13)
            )
            self.assert_error(result, (10, 11, 12, 13))
            listener.shutdown(socket.SHUT_RDWR)

    def test_bad_addresses(self):
        for url in ("tls://127.0.0.1:99999", "tls://127.0.0.1:x", "tls://:8000", "tls://[::1:8000"):
            with self.subTest(url):
                self.assert_error(self.push(url, expect=2), 2)

    def test_server_that_appears_between_retries(self):
        """Once a connection was lost, refused ones count as retries, not as the end."""
        os.makedirs(self.dst)
        with socket.create_server(("127.0.0.1", 0)) as first:
            port = first.getsockname()[1]
            process = self.start(
                "sync",
                "--psk-file",
                shared_psk(),
                "--retries",
                "10",
                self.src,
                f"tls://127.0.0.1:{port}",
            )
            first.settimeout(30)
            first.accept()[0].close()
        # Nobody listens now.
        wait_until(lambda: "reconnecting" in process.stderr_text(), "the loss to be noticed")
        server = self.serve(self.dst, address=f"127.0.0.1:{port}")
        run = process.wait(60)
        self.assert_exit(run, 0)
        self.assert_same()
        server.process.send(signal.SIGTERM)
