# SPDX-License-Identifier: MIT
"""A real redlockd that asks who is there: TLS, an auth file and, if wanted,
client certificates. It has one node."""
from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import signal
import ssl
import subprocess
import tempfile
from pathlib import Path

from certificates import Certificates
from ports import free_ports
from processes import end, spawn
from waiting import wait_until

WAIT_S = 60
REDLOCKD = os.environ.get("REDLOCKD", "build/release/redlockd")


def identity(name: str, token: str, rest: str = "lock,read") -> str:
    """A line of the auth file; for all resources, unless rest names some."""
    if "prefix=" not in rest:
        rest += " prefix=*"
    return f"{name} sha256:{hashlib.sha256(token.encode()).hexdigest()} {rest}"


class WithGuarded:
    """For test cases: certificates, and servers that end with the test."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = Path(tempfile.mkdtemp(prefix="guarded."))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.certificates = Certificates(cls.folder)

    def guarded(self, *identities, **how):
        folder = Path(tempfile.mkdtemp(dir=self.folder)) / "guarded"
        guard = Guarded(REDLOCKD, folder, self.certificates, *identities, **how)
        self.addCleanup(guard.__exit__)
        return guard.__enter__()


class Guarded:
    """Use it with `with`."""

    def __init__(self, redlockd: str, folder: Path, certificates: Certificates,
                 *identities: str, client_ca: str = "") -> None:
        self.redlockd, self.folder = redlockd, folder
        self.certificates, self.client_ca = certificates, client_ca
        folder.mkdir()
        self.port, self.node_port = free_ports(2)
        self.url = f"https://127.0.0.1:{self.port}"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.write_certificate("server")
        self.write_identities(*identities)

    def __enter__(self) -> Guarded:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            end(process)

    def spawn(self, *command: str) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            process = spawn(*command, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def start(self) -> None:
        at = str(self.folder)
        self.spawn("redis-server", "--bind", "127.0.0.1", "--port",
                   str(self.node_port), "--dir", at, "--save", "")
        asked = ("--tls-client-ca", self.certificates[self.client_ca]) \
            if self.client_ca else ()
        self.server = self.spawn(
            self.redlockd, "--listen", f"127.0.0.1:{self.port}", "--nodes",
            f"127.0.0.1:{self.node_port}", "--node-timeout-ms", "2000",
            "--first-start", "yes", "--tls-cert", f"{at}/cert.pem", "--tls-key",
            f"{at}/key.pem", "--auth-file", f"{at}/auth", *asked)
        wait_until(self.is_ready, "redlockd is ready", WAIT_S)

    def is_ready(self) -> bool:
        link = http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=10,
            context=ssl._create_unverified_context())
        try:
            link.request("GET", "/readyz")
            return link.getresponse().status == 200
        except OSError:
            return False
        finally:
            link.close()

    # ---- what changes while it runs -------------------------------------------

    def write(self, name: str, text: str) -> None:
        new = self.folder / "new"
        new.touch(0o600)
        new.write_text(text)
        new.rename(self.folder / name)

    def write_certificate(self, name: str) -> None:
        for file, kind in ("cert.pem", "pem"), ("key.pem", "key"):
            self.write(file, Path(self.certificates[f"{name}.{kind}"]).read_text())

    def write_identities(self, *lines: str) -> None:
        self.write("auth", "".join(f"{line}\n" for line in lines))

    def count(self, event: str) -> int:
        return (self.folder / "log").read_text().count(f"event={event}")

    def reload(self) -> None:
        """Both are read when it returns."""
        before = self.count("auth_file_read")
        self.server.send_signal(signal.SIGHUP)
        wait_until(lambda: self.count("auth_file_read") > before, "a reload",
                   WAIT_S)

    def serve(self, certificate: str) -> None:
        self.write_certificate(certificate)
        self.reload()

    def admit(self, *identities: str) -> None:
        self.write_identities(*identities)
        self.reload()
