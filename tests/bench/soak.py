# SPDX-License-Identifier: MIT
"""A million acquire/release cycles (CYCLES) after a tenth of it as warm-up, in
runs of 5 s (SECONDS_RUN): the server's memory and descriptors must not grow.
"""
from __future__ import annotations

import time

from measure import Results, load, setting, output
from processes import descriptors, rss_kib
from stack import Stack, metric
from waiting import wait_until

CYCLES = int(setting("CYCLES", 1000000))
WARM_UP = 20_000  # cycles at least, until it has all that it keeps
LIMIT_KIB = 1024


def cycle(port: int, count: int) -> None:
    """Until so many cycles more are done; clients come and go with each round.
    What the last ones left behind is closed within a moment."""
    def answered() -> float:
        return metric(port, "redlockd_http_requests_answered_total ")
    begun = answered()
    while answered() - begun < 2 * count:
        run = output(*load(port, 64, setting("SECONDS_RUN", 5)))
        print(run, flush=True)
        if run["failures"]:
            raise RuntimeError("a cycle failed")
    wait_until(lambda: metric(port, "redlockd_connections ") == 1,
               "the clients have gone")


def fewest_descriptors(pid: int) -> int:
    """Within a second: the connection that asked last may still close."""
    found = []
    for _ in range(10):
        found.append(descriptors(pid))
        time.sleep(0.1)
    return min(found)


def soak(stack: Stack, results: Results, _: bool) -> None:
    port = stack.start_server(0, "--log-level", "warn")
    pid, sizes = stack.servers[0].pid, []
    for when, count in ("after the warm-up", max(CYCLES // 10, WARM_UP)), ("at the end", CYCLES):
        cycle(port, count)
        sizes.append((rss_kib(pid), fewest_descriptors(pid)))
        print(f"{when + ':':<18} RSS {sizes[-1][0]} KiB, {sizes[-1][1]} descriptors")
    (kib, count), (end_kib, end_count) = sizes
    results.check(f"{end_kib - kib} KiB more", end_kib - kib < LIMIT_KIB)
    results.check(f"{end_count - count} descriptors more", end_count <= count)


SCENES = {"soak": soak}
