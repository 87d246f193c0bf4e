# SPDX-License-Identifier: MIT
"""HAProxy between clients and servers: of each server a port for each way in
which HAProxy may use its connections to the server.
"""
from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
from pathlib import Path

from nodes import Address
from ports import free_ports
from processes import end, spawn
from tls import Tls
from waiting import wait_until

MODES = ("option http-keep-alive\n    http-reuse always",
         "option http-server-close",
         "option http-keep-alive\n    http-reuse never")
HEAD = """\
global
    maxconn 1000
defaults
    mode http
    retries 0
    timeout connect 60s
    timeout client 60s
    timeout server 60s
"""
LISTEN = """\
listen {port}
    bind 127.0.0.1:{port} {front}
    {mode}
    server redlockd {host}:{server} {back}
"""
# TLS 1.2 for its clients: in 1.3 it sends tickets, which look like answers
FRONT = "ssl crt {bundle} ssl-max-ver TLSv1.2 no-tls-tickets"
BACK = "ssl verify required ca-file {ca}"


def program() -> str:
    """Where Debian has it is seldom in the path."""
    return shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin") \
        or "haproxy"


class Balancer:
    def __init__(self, directory: Path, servers: list[Address],
                 tls: Tls | None) -> None:
        """Listens when this returns. It ends TLS, and begins it anew: so it
        does with connections what it does without."""
        self.tls = tls
        ports = iter(free_ports(len(MODES) * len(servers)))
        # of each mode those to all servers
        self.addresses: list[list[Address]] = [
            [("127.0.0.1", next(ports)) for _ in servers] for _ in MODES]
        front = FRONT.format(bundle=tls.bundle) if tls else ""
        back = BACK.format(ca=tls.ca) if tls else ""
        text = HEAD
        for mode, addresses in zip(MODES, self.addresses):
            for (_, port), (host, server) in zip(addresses, servers):
                text += LISTEN.format(port=port, mode=mode, host=host,
                                      server=server, front=front, back=back)
        file = directory / "haproxy.cfg"
        file.write_text(text)
        with (directory / "haproxy.log").open("ab") as log:
            self.child = spawn(program(), "-db", "-f", str(file),
                               stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self._listens, "HAProxy listens", 30)

    def _listens(self) -> bool:
        assert self.died() is None, "HAProxy has ended: see haproxy.log"
        for address in itertools.chain(*self.addresses):
            with socket.socket() as it:
                if it.connect_ex(address) != 0:
                    return False
        return True

    def died(self) -> int | None:
        return self.child.poll()

    def close(self) -> None:
        end(self.child)
