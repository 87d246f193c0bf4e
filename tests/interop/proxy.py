# SPDX-License-Identifier: MIT
"""A TCP proxy in front of one node, that breaks connections as networks do."""
import select
import socket
import threading

from jobs import Job
from nodes import HOST
from ports import free_ports


class Break:
    """From the `nth` piece (counted from 1) that names `word` on, up to
    `count` of them: the connection breaks for the client, and what it had sent
    reaches the node when `deliver` is called, if ever."""

    def __init__(self, word, nth=1, count=1):
        self.word, self.nth, self.count = word.encode(), nth, count
        self.seen = 0
        self.broken = threading.Event()
        self.held = []  # (socket to the node, bytes)

    def takes(self, piece):
        if self.word not in piece:
            return False
        self.seen += 1
        return self.nth <= self.seen < self.nth + self.count

    def deliver(self):
        for node, piece in self.held:
            try:
                node.sendall(piece)
            except OSError:
                pass  # the node is gone meanwhile


class Proxy:
    """Every connection has a thread; `rule` is what is broken at present."""

    def __init__(self, node):
        self.node = node
        self.listener = None
        while not self.listener:
            try:
                self.listener = socket.create_server((HOST, *free_ports(1)))
            except OSError:
                pass  # somebody took the port first
        self.address = "%s:%d" % self.listener.getsockname()
        self.rule = None
        self.slow_replies_s = []  # delays of the next replies, one each
        self.closed = threading.Event()
        self.jobs = []
        self._begin(self._accept)

    def _begin(self, *work):
        self.jobs.append(Job(*work))
        self.jobs[-1].start()

    def break_at(self, word, nth=1, count=1):
        self.rule = Break(word, nth, count)
        return self.rule

    def close(self):
        self.closed.set()
        self.listener.close()
        for job in self.jobs:
            job.check()

    def _accept(self):
        while not self.closed.is_set():
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self._begin(self._serve, client)

    def _serve(self, client):
        try:
            node = socket.create_connection((HOST, self.node.port), timeout=5)
        except OSError:
            client.close()
            return
        for side in (client, node):
            side.settimeout(None)
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        kept = False
        try:
            kept = self._pump(client, node)
        except OSError:
            pass
        client.close()
        if not kept:
            node.close()

    def _pump(self, client, node):
        """Until a side hangs up, or the rule breaks it: then True."""
        while True:
            readable, _, _ = select.select([client, node], [], [])
            if node in readable:
                piece = node.recv(65536)
                if not piece:
                    return False
                if self.slow_replies_s:
                    self.closed.wait(self.slow_replies_s.pop())
                client.sendall(piece)
            if client in readable:
                piece = client.recv(65536)
                if not piece:
                    return False
                rule = self.rule
                if rule and rule.takes(piece):
                    rule.held.append((node, piece))
                    rule.broken.set()
                    return True
                node.sendall(piece)
