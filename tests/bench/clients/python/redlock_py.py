# SPDX-License-Identifier: MIT
"""redlock-py; threads share one object, whose connections are pools."""
from redlock import MultipleRedlockException, Redlock

from tally import TTL_S, WHERE, Tally


def work(number):
    for name in tally.names(number):
        try:
            lock = manager.lock(name, TTL_S * 1000)
            if lock:
                manager.unlock(lock)
        except MultipleRedlockException:
            lock = False
        if not lock:
            tally.failures += 1


manager = Redlock([{"host": host, "port": int(port)} for host, _, port in
                   (node.rpartition(":") for node in WHERE)])
tally = Tally()
tally.threads(work)
tally.report()
