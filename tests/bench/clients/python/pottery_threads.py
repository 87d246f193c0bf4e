# SPDX-License-Identifier: MIT
"""pottery; threads share the connections to the nodes, which are pools. A lock
is an object of its own, as its documentation shows."""
from pottery import Redlock
from redis import Redis

from tally import TTL_S, WHERE, Tally


def work(number):
    for name in tally.names(number):
        lock = Redlock(key=name, masters=masters, auto_release_time=TTL_S)
        if lock.acquire(timeout=TTL_S):
            lock.release()
        else:
            tally.failures += 1


masters = {Redis(host=host, port=int(port)) for host, _, port in
           (node.rpartition(":") for node in WHERE)}
tally = Tally()
tally.threads(work)
tally.report()
