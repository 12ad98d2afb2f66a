# SPDX-License-Identifier: Apache-2.0
"""Pre-shared keys by `volferry keygen`, certificates by the openssl command."""

import os
import subprocess

from . import program


def make_psk(path: str, mode: int = 0o600) -> str:
    """Writes a fresh PSK line to `path`; returns the path."""
    line = program.run(["keygen"])
    if line.code != 0:
        raise AssertionError(f"keygen failed\n{line}")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(line.stdout)
    os.chmod(path, mode)
    return path


def _openssl(*args: str) -> None:
    subprocess.run(
        ["openssl", *args], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


class Authority:
    """A certificate authority in a directory of its own; `issue` makes a certificate for
    127.0.0.1, ::1 and localhost.
    """

    def __init__(self, directory: str):
        os.makedirs(directory)
        self._directory = directory
        self.cert = os.path.join(directory, "ca.crt")
        self._key = os.path.join(directory, "ca.key")
        _openssl(
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=test authority",
            "-keyout",
            self._key,
            "-out",
            self.cert,
        )

    def issue(
        self, name: str, subject_names: str = "IP:127.0.0.1,IP:::1,DNS:localhost"
    ) -> tuple[str, str]:
        """Returns the paths of certificate and key (mode 0600)."""
        stem = os.path.join(self._directory, name)
        _openssl(
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-subj",
            f"/CN={name}",
            "-keyout",
            stem + ".key",
            "-out",
            stem + ".csr",
        )
        with open(stem + ".ext", "w", encoding="ascii") as extensions:
            extensions.write(f"subjectAltName={subject_names}\n")
        _openssl(
            "x509",
            "-req",
            "-in",
            stem + ".csr",
            "-CA",
            self.cert,
            "-CAkey",
            self._key,
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            stem + ".ext",
            "-out",
            stem + ".crt",
        )
        os.chmod(stem + ".key", 0o600)
        return stem + ".crt", stem + ".key"

    def options(self, name: str, **kwargs) -> list[str]:
        """--cert, --key and --ca for a fresh certificate."""
        cert, key = self.issue(name, **kwargs)
        return ["--cert", cert, "--key", key, "--ca", self.cert]
