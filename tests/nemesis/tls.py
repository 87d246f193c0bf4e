# SPDX-License-Identifier: MIT
"""Certificates for a run whose nodes and servers speak TLS and nothing else."""
from __future__ import annotations

import socket
import ssl
import subprocess
from pathlib import Path

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


class Tls:
    """A CA, and one certificate for 127.0.0.1 that all nodes and servers have:
    the proxy passes bytes on, so nodes are known by its address."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        self.ca, self.ca_key = directory / "ca.pem", directory / "ca.key"
        self.cert, self.key = directory / "cert.pem", directory / "key.pem"
        self.bundle = directory / "bundle.pem"  # as HAProxy wants it
        self.request, self.names = directory / "cert.csr", directory / "names"
        self.names.write_text(NAMES)
        openssl("req", "-x509", *KEY, "-days", "2", "-subj", "/CN=nemesis",
                "-keyout", str(self.ca_key), "-out", str(self.ca))
        openssl("req", *KEY, "-subj", "/CN=nemesis", "-keyout", str(self.key),
                "-out", str(self.request))
        self.renew()
        self.bundle.touch(0o600)
        self.bundle.write_text(self.cert.read_text() + self.key.read_text())
        self.context = ssl.create_default_context(cafile=str(self.ca))
        self.old_context = ssl.create_default_context(cafile=str(self.ca))
        self.old_context.maximum_version = ssl.TLSVersion.TLSv1_2

    def renew(self) -> None:
        """Another certificate for the same key, which is in its place at
        once."""
        fresh = self.cert.with_suffix(".new")
        openssl("x509", "-req", "-in", str(self.request), "-CA", str(self.ca),
                "-CAkey", str(self.ca_key), "-CAcreateserial", "-days", "2",
                "-extfile", str(self.names), "-out", str(fresh))
        fresh.replace(self.cert)

    def of_node(self, port: int) -> list[str]:
        """The options of a redis-server."""
        return ["--port", "0", "--tls-port", str(port),
                "--tls-cert-file", str(self.cert),
                "--tls-key-file", str(self.key),
                "--tls-ca-cert-file", str(self.ca),
                "--tls-auth-clients", "no", "--tls-replication", "yes"]

    def of_server(self) -> list[str]:
        """The options of a redlockd."""
        return ["--node-ca", str(self.ca), "--tls-cert", str(self.cert),
                "--tls-key", str(self.key)]

    def of_client(self, index: int) -> ssl.SSLContext:
        """TLS 1.3, or 1.2: in one of them a goodbye looks like data."""
        return self.old_context if index % 4 > 1 else self.context

    def listening(self) -> ssl.SSLContext:
        """To play a server. It sends nothing that is no answer."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, self.key)
        context.num_tickets = 0
        return context

    def wrap(self, plain: socket.socket) -> socket.socket:
        """The same connection, shaken hands."""
        return self.context.wrap_socket(plain, server_hostname="127.0.0.1")
