# SPDX-License-Identifier: MIT
"""A proxy that loses the answer to the first acquire."""
import select
from types import SimpleNamespace

from proxy import Proxy


class AnswerLost(Proxy):
    """The server's connection stays open: it takes its answer for read."""

    def __init__(self, address):
        self.lost = 0
        super().__init__(SimpleNamespace(port=int(address.rpartition(":")[2])))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _pump(self, client, node):
        while True:
            readable, _, _ = select.select([client, node], [], [])
            for side, other in ((client, node), (node, client)):
                if side not in readable:
                    continue
                piece = side.recv(65536)
                if not piece:
                    return False
                if side is node and not self.lost:
                    self.lost += 1
                    return True
                other.sendall(piece)
