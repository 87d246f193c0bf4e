# SPDX-License-Identifier: MIT
"""Lock of our package; threads share one client."""
from tally import TTL_S, WHERE, Tally, cpu_us

# what the first lock of a process costs, with what it loads
before_us = cpu_us()
from redlockd import Lock  # noqa: E402
with Lock("bench:first", urls=WHERE):
    first_us = cpu_us() - before_us

from redlockd import Client, RedlockdError  # noqa: E402


def work(number):
    for name in tally.names(number):
        try:
            with Lock(name, ttl=TTL_S, client=client):
                pass
        except RedlockdError:
            tally.failures += 1


with Client(WHERE) as client:
    tally = Tally()
    tally.threads(work)
    tally.report(first_cpu_us=first_us)
