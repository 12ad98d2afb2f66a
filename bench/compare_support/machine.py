# SPDX-License-Identifier: Apache-2.0
"""The machine around a run: own namespaces, scratch file systems, byte counters, facts for the report.

Everything that could be left behind lives in the process's own mount and network namespace: mounts,
loop devices (they clear themselves with the last unmount) and packet counters go away with the
process, whatever ends it.
"""

import ctypes
import fcntl
import json
import os
import platform
import shutil
import socket
import struct
import subprocess

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 1

# Ports of connections that count as the wire; helpers' plaintext hops use the other range.
WIRE_PORTS = range(20000, 29000)
LOCAL_PORTS = range(30000, 39000)


def is_root():
    return os.geteuid() == 0


def enter_namespaces():
    """Moves this process into its own mount and network namespace. Returns why not, or None."""
    if not is_root():
        return "not root"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        return os.strerror(ctypes.get_errno())
    # Fails in a plain chroot, where / is no mount point; mounts are then undone at the end only.
    subprocess.run(["mount", "--make-rprivate", "/"], check=False, capture_output=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
    return None


class Ports:
    """Hands out ports that nobody uses, from a wire range and a local range."""

    def __init__(self):
        self._wire = iter(WIRE_PORTS)
        self._local = iter(LOCAL_PORTS)

    def wire(self):
        return self._free(self._wire)

    def local(self):
        return self._free(self._local)

    @staticmethod
    def _free(ports):
        for port in ports:
            with socket.socket() as probe:
                try:
                    probe.bind(("127.0.0.1", port))
                    return port
                except OSError:
                    continue
        raise RuntimeError("no free TCP port left")


class WireCounter:
    """Bytes over the wire ports, both directions, by nft counters in the own network namespace."""

    RULES = f"""
table inet bench {{
  counter up {{ }}
  counter down {{ }}
  chain out {{
    type filter hook output priority 0;
    tcp dport {WIRE_PORTS.start}-{WIRE_PORTS.stop - 1} counter name up
    tcp sport {WIRE_PORTS.start}-{WIRE_PORTS.stop - 1} counter name down
  }}
}}
"""

    def __init__(self, own_network):
        self.why_not = None
        if not own_network:
            self.why_not = "no network namespace of its own"
        elif not shutil.which("nft"):
            self.why_not = "nft is not installed"
        else:
            done = subprocess.run(["nft", "-f", "-"], input=self.RULES, text=True,
                                  capture_output=True, check=False)
            if done.returncode != 0:
                self.why_not = done.stderr.strip().splitlines()[-1]

    def reset(self):
        if not self.why_not:
            subprocess.run(["nft", "reset", "counters"], check=True, capture_output=True)

    def read(self):
        """Bytes to the server and back, TCP/IP headers included; None where nothing counts."""
        if self.why_not:
            return None
        done = subprocess.run(["nft", "-j", "list", "counters"], check=True, capture_output=True)
        counters = {item["counter"]["name"]: item["counter"]["bytes"]
                    for item in json.loads(done.stdout)["nftables"] if "counter" in item}
        return {"up": counters["up"], "down": counters["down"]}


class Scratch:
    """A file system for one workload's data: fresh journaled ext4 on a direct-I/O loop image where the
    process has a mount namespace, a plain directory elsewhere."""

    def __init__(self, base, name, size, on_loop):
        self.path = os.path.join(base, name)
        self._image = os.path.join(base, name + ".img") if on_loop else None
        os.makedirs(self.path, exist_ok=True)
        if on_loop:
            self._make(max(int(size), 384 << 20))

    def _make(self, size):
        allocate(self._image, size)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", "-i", "8192",
                        "-E", "lazy_itable_init=1,nodiscard", self._image],
                       check=True, capture_output=True)
        subprocess.run(["mount", "-o", "loop,noinit_itable,noatime", self._image, self.path],
                       check=True)
        device = subprocess.run(["findmnt", "-n", "-o", "SOURCE", self.path], check=True,
                                capture_output=True, text=True).stdout.strip()
        subprocess.run(["losetup", "--direct-io=on", device], check=False, capture_output=True)
        lost = os.path.join(self.path, "lost+found")
        if os.path.isdir(lost):
            os.rmdir(lost)

    def settle(self):
        """Waits until the data is on the device, so that it does not run into the next measurement."""
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            ctypes.CDLL(None).syncfs(fd)
        finally:
            os.close(fd)

    def close(self):
        if self._image:
            subprocess.run(["umount", self.path], check=False)
            os.unlink(self._image)
        shutil.rmtree(self.path, ignore_errors=True)


class Device:
    """A block device: an image behind a loop device with direct I/O. Holding it open keeps its cached pages,
    as they stay in a machine that uses its disk; once nobody does, the kernel takes it apart."""

    def __init__(self, base, name, size):
        self._image = os.path.join(base, name + ".img")
        allocate(self._image, size)
        self.path = subprocess.run(["losetup", "--find", "--show", "--direct-io=on", self._image],
                                   check=True, capture_output=True, text=True).stdout.strip()
        self._fd = os.open(self.path, os.O_RDWR)
        # In use, it is only marked to go with its last user, whatever ends that one.
        subprocess.run(["losetup", "--detach", self.path], check=True)

    def fill(self, image):
        """Writes an image of the device's size; holes as zeros."""
        subprocess.run(["dd", f"if={image}", f"of={self.path}", "bs=1M", "conv=fsync", "status=none"],
                       check=True)

    def settle(self):
        """Waits until the data is on the device, so that it does not run into the next measurement."""
        os.fsync(self._fd)

    def close(self):
        os.close(self._fd)
        os.unlink(self._image)


def allocate(path, size):
    """A new file whose space is taken already."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.posix_fallocate(fd, 0, size)
    finally:
        os.close(fd)


def available_memory():
    """MemAvailable in bytes."""
    with open("/proc/meminfo") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


def first_line(argv, word=""):
    """The first line of a program's output that has the word in it, or None."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return next((" ".join(line.split()) for line in (done.stdout + done.stderr).splitlines()
                 if line.strip() and word in line), None)


def facts(program):
    """What a reader needs to judge the figures; `program` is the one under test, or None."""
    cpu = "unknown"
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    return {
        "kernel": platform.release(),
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "volferry": first_line([program, "version"]) if program else None,
        "rsync": first_line(["rsync", "--version"]),
        "ssh": first_line(["ssh", "-V"]),
        "tar": first_line(["tar", "--version"]),
        "cp": first_line(["cp", "--version"]),
        "stunnel": first_line(["stunnel", "-version"], "stunnel "),
        "rclone": first_line(["rclone", "version"]),
        "dd": first_line(["dd", "--version"]),
        "openssl": first_line(["openssl", "version"]),
    }
