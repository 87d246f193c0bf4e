# SPDX-License-Identifier: MIT
"""Ports of loopback that nobody listens on."""
from __future__ import annotations

import random
import socket

FIRST, LAST = 15000, 32000
given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Below the range from which the kernel takes those of connections: so that
    a port is still free when its process is started again. Given only once."""
    ports: list[int] = []
    while len(ports) < count:
        port = random.randrange(FIRST, LAST)
        if port in given:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        given.add(port)
        ports.append(port)
    return ports
