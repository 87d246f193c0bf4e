# SPDX-License-Identifier: MIT
"""HAProxy and nginx in front of servers, with a configuration of ours or their
own.
"""
from __future__ import annotations

import socket
import subprocess
from pathlib import Path

from ports import free_ports
from processes import end, spawn
from waiting import wait_until

HAPROXY, NGINX = "/usr/sbin/haproxy", "/usr/sbin/nginx"
# Debian's haproxy.cfg has these, and no `option abortonclose`.
STOCK = """\
global
    maxconn 500
defaults
    mode http
    option dontlognull
    timeout connect 5000
    timeout client  50000
    timeout server  50000
listen redlockd
    bind 127.0.0.1:{port}
"""


class Balancer:
    """Listens when this returns; it ends with this process."""

    def __init__(self, folder: Path, port: int, *command: object) -> None:
        self.url = f"http://127.0.0.1:{port}"
        with (folder / f"balancer{port}.log").open("ab") as log:
            self.child = spawn(*command, stdin=subprocess.DEVNULL, stdout=log,
                               stderr=log)

        def listens() -> bool:
            assert self.child.poll() is None, Path(log.name).read_text()
            with socket.socket() as it:
                return it.connect_ex(("127.0.0.1", port)) == 0
        wait_until(listens, f"{command[0]} listens")

    def __enter__(self) -> Balancer:
        return self

    def __exit__(self, *_: object) -> None:
        end(self.child)


def stock_haproxy(folder: Path, *servers: int) -> Balancer:
    """As it comes: it tells no server that a client has left."""
    port, = free_ports(1)
    file = folder / f"haproxy{port}.cfg"
    file.write_text(STOCK.format(port=port) + "".join(
        f"    server s{server} 127.0.0.1:{server}\n" for server in servers))
    return Balancer(folder, port, HAPROXY, "-db", "-f", file)
