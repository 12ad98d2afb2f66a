# SPDX-License-Identifier: Apache-2.0
"""What the machine itself can do, measured in the same run and in the same kind of file system.

Most of it is the other column of `volferry bench`, which runs plain calls beside the program's own; the rest
comes from openssl, from find, and from plain bytes over the relayed link.
"""

import json
import os
import shutil
import socket
import subprocess
import threading
import time

from . import data

# name -> (measurement of `volferry bench`, unit, how).
OF_BENCH = {
    "memcpy": ("memory copy, 1 thread", "B/s", "one thread"),
    "xxh3": ("hash xxh3", "B/s", "one thread"),
    "cached read": ("read, cached", "B/s", "pread from the page cache, one thread"),
    "cached write": ("write, buffered", "B/s", "pwrite into the page cache, one thread"),
    "disk read": ("read, direct", "B/s", "O_DIRECT"),
    "disk write": ("write, direct, durable", "B/s", "O_DIRECT and fsync"),
    "create": ("create 4 KiB files, 1 thread", "/s",
               "4 KiB files: create, write, set metadata, close; one thread"),
}
# The limits that stand beside a measurement of another kind than their own.
BESIDE_BENCH = {"loopback TCP": ("loopback TLS, 1 stream", "B/s", "one connection, both ends")}
STATTED_FILES = 10_000


def measure(program, directory, links, ports):
    """{name: {"rate", "unit", "how"}}; what cannot be measured here is left out. `directory` is emptied."""
    found = of_bench(subprocess.run([program, "bench", "--json", "--dir", directory], check=True,
                                    capture_output=True, text=True).stdout)
    found |= cipher_rate()
    if shutil.which("find"):
        found["stat"] = limit(stat_rate(os.path.join(directory, "statted")), "/s",
                              "find -size, cached, one thread")
    for link in links:
        name = f"link {link.bits_per_second / 1e6:g} Mbit/s, {link.round_trip_s * 1e3:g} ms"
        found[name] = limit(link_rate(link, ports), "B/s", "one connection through the relay")
    return found


def limit(rate, unit, how):
    return {"rate": rate, "unit": unit, "how": how}


def of_bench(lines):
    """The limits in the output of `volferry bench --json`."""
    events = [json.loads(line) for line in lines.splitlines()]
    measured = {event["name"]: event for event in events if event["event"] == "measurement"}
    found = {}
    for name, (source, unit, how) in OF_BENCH.items():
        event = measured.get(source)
        if event:
            found[name] = limit(max(event["rate"], _plain(event)), unit, how)
    for name, (source, unit, how) in BESIDE_BENCH.items():
        if measured.get(source, {}).get("limit"):
            found[name] = limit(measured[source]["limit"], unit, how)
    return found


def _plain(event):
    """The limit where it is the same work by plain calls, which may be the faster of the two."""
    plain = event["limit_name"].startswith(("plain pread", "plain pwrite"))
    return event["limit"] if event["limit"] and plain else 0


def cipher_rate():
    """AES-128-GCM of one core, as a limit, or nothing."""
    if not shutil.which("openssl"):
        return {}
    done = subprocess.run(["openssl", "speed", "-mr", "-seconds", "1", "-bytes", "16384", "-evp",
                           "aes-128-gcm"], capture_output=True, text=True, check=False)
    return of_openssl(done.stdout)


def of_openssl(lines):
    """From lines such as "+F:22:AES-128-GCM:6433000000.00"."""
    for line in lines.splitlines():
        if line.startswith("+F:"):
            return {"AES-128-GCM": limit(float(line.rpartition(":")[2]), "B/s",
                                         "openssl speed, 16 KiB, one thread")}
    return {}


def stat_rate(root):
    """Entries that find looks at in a second, without its own start."""
    os.mkdir(root)
    data.small_tree(root, STATTED_FILES, 184, "stat")
    facts = data.volume_facts(root)
    spent = _best_time(["find", root, "-size", "+1G"]) - _best_time(["find", "/dev/null", "-size", "+1G"])
    shutil.rmtree(root)
    return (facts["files"] + facts["directories"]) / spent


def _best_time(argv, tries=5):
    best = float("inf")
    for _ in range(tries):
        before = time.perf_counter()
        subprocess.run(argv, check=True, capture_output=True)
        best = min(best, time.perf_counter() - before)
    return best


def link_rate(link, ports, seconds=1.0):
    """Bytes a second that one connection gets through the relay in about that time."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        wire_port = ports.wire()
        relay = subprocess.Popen(link.relay_argv(wire_port, server.getsockname()[1]))
        try:
            return _send_through(server, wire_port, int(link.bits_per_second / 8 * seconds))
        finally:
            relay.kill()
            relay.wait()


def _send_through(server, wire_port, size):
    """Times `size` bytes at the far end, from the first on."""
    def send():
        with _connect(wire_port) as near:
            near.sendall(bytes(size))

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    with server.accept()[0] as far:
        first = len(far.recv(1 << 20))
        before, received = time.perf_counter(), 0
        while chunk := far.recv(1 << 20):
            received += len(chunk)
        spent = time.perf_counter() - before
    sender.join()
    if first + received != size:
        raise RuntimeError(f"the relay passed {first + received} of {size} bytes on")
    return received / spent


def _connect(port):
    """Waits until somebody listens there."""
    for _ in range(500):
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.01)
    raise RuntimeError("the relay does not listen")
