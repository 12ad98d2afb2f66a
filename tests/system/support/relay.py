# SPDX-License-Identifier: Apache-2.0
"""A small TCP relay on loopback that counts, slows, delays, stalls or cuts what passes."""

import socket
import struct
import threading
import time

_PIECE = 16 * 1024


class Relay:
    """Forwards to `port`. Limits hold for each direction of each connection, `cut_after` for all of them together.

    rate: bytes a second. delay: seconds one way. cut_after: after so many bytes every connection is reset; `cuts` times in
    all. stall_after: after so many bytes nothing more passes, and nothing is closed.
    """

    def __init__(self, port: int, *, rate=0, delay=0.0, cut_after=0, cuts=1, stall_after=0):
        self._target = ("127.0.0.1", port)
        self._rate, self._delay = rate, delay
        self._cut_after, self._cuts_left, self._stall_after = cut_after, cuts, stall_after
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._closed = threading.Event()
        self._since_cut = 0
        self.passed = 0
        self.connections = 0
        self.concurrent_peak = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._target, 5)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self.connections += 1
                self._open |= {near, far}
                self.concurrent_peak = max(self.concurrent_peak, len(self._open) // 2)
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        budget_start = time.monotonic()
        sent = 0
        pause = threading.Event()
        try:
            while data := source.recv(_PIECE):
                if self._delay:
                    pause.wait(self._delay)
                with self._lock:
                    self.passed += len(data)
                    self._since_cut += len(data)
                    cut = bool(
                        self._cut_after and self._cuts_left and self._since_cut >= self._cut_after
                    )
                    stall = bool(self._stall_after and self.passed >= self._stall_after)
                if stall:
                    self._closed.wait()
                    return
                if cut:
                    self.cut()
                    return
                sink.sendall(data)
                sent += len(data)
                if self._rate:
                    pause.wait(max(0.0, sent / self._rate - (time.monotonic() - budget_start)))
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            # A reset end ends the other one too.
            for end in (source, sink):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        finally:
            with self._lock:
                self._open -= {source}

    def cut(self) -> None:
        """Resets every connection now."""
        with self._lock:
            ends, self._open = self._open, set()
            self._since_cut = 0
            self._cuts_left -= 1
        for end in ends:
            try:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    def close(self) -> None:
        self._closed.set()
        self._listener.close()
        self.cut()
