# SPDX-License-Identifier: Apache-2.0
"""A slow, far link made of real TCP: a relay that delays and paces every byte in each direction.

The relay ends TCP at both sides, so there is neither loss nor slow start over the whole distance:
it shows protocol round trips and bytes, not congestion control. Each connection gets its own
delay line; the rate is shared by all connections of one direction, as on a real link.

As a program: links.py LISTEN_PORT TARGET_PORT BITS_PER_SECOND ROUND_TRIP_SECONDS
"""

import asyncio
import os
import socket
import sys
from dataclasses import dataclass

CHUNK = 64 << 10


@dataclass(frozen=True)
class Link:
    """Bits per second one way, and the round-trip time in seconds."""

    bits_per_second: float
    round_trip_s: float

    def relay_argv(self, listen_port, target_port):
        return [sys.executable, "-I", os.path.abspath(__file__), str(listen_port), str(target_port),
                str(self.bits_per_second), str(self.round_trip_s)]


class Direction:
    """One way of the link: a shared rate and a one-way delay."""

    def __init__(self, bits_per_second, delay_s):
        self._bytes_per_second = bits_per_second / 8
        self._delay_s = delay_s
        self._free_at = 0.0
        # What fits on the link itself; a sender has to wait for more, as with a full send queue.
        self.capacity = int(self._bytes_per_second * delay_s) + 4 * CHUNK

    def departure(self, size, now):
        """Books `size` bytes on the link; returns when the last of them arrives at the far end."""
        self._free_at = max(self._free_at, now) + size / self._bytes_per_second
        return self._free_at + self._delay_s


async def carry(reader, writer, direction):
    """Moves one connection's bytes one way."""
    loop = asyncio.get_running_loop()
    line = asyncio.Queue()
    room = asyncio.Condition()
    held = 0

    async def deliver():
        nonlocal held
        while True:
            due, chunk = await line.get()
            wait = due - loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            if chunk:
                writer.write(chunk)
                await writer.drain()
            elif writer.can_write_eof():
                writer.write_eof()
            async with room:
                held -= len(chunk)
                room.notify()
            if not chunk:
                return

    delivery = asyncio.ensure_future(deliver())
    try:
        while True:
            async with room:
                await room.wait_for(lambda: held < direction.capacity)
            try:
                chunk = await reader.read(CHUNK)
            except ConnectionError:
                chunk = b""
            held += len(chunk)
            line.put_nowait((direction.departure(len(chunk), loop.time()), chunk))
            if not chunk:
                break
        await delivery
    except ConnectionError:
        pass
    finally:
        delivery.cancel()


async def serve(listen_port, target_port, bits_per_second, round_trip_s):
    up = Direction(bits_per_second, round_trip_s / 2)
    down = Direction(bits_per_second, round_trip_s / 2)

    async def accept(reader, writer):
        try:
            # Connecting costs a round trip as well.
            await asyncio.sleep(round_trip_s)
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target_port)
        except OSError:
            writer.close()
            return
        for end in (writer, far_writer):
            end.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.gather(carry(reader, far_writer, up), carry(far_reader, writer, down))
        writer.close()
        far_writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", listen_port)
    async with server:
        await server.serve_forever()


def main():
    listen_port, target_port = int(sys.argv[1]), int(sys.argv[2])
    asyncio.run(serve(listen_port, target_port, float(sys.argv[3]), float(sys.argv[4])))


if __name__ == "__main__":
    main()
