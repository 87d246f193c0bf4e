# SPDX-License-Identifier: MIT
"""What the programs of this folder share: cycles of acquire and release, counted
as ../../load.c does. Each is called as

  PROGRAM CLIENTS SECONDS WHERE…
"""
import os
import resource
import sys
import time
from threading import Thread

TTL_S = 30
WARM_UP_S = 0.5

PID = os.getpid()
CLIENTS, SECONDS, WHERE = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]


def cpu_us():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return int((used.ru_utime + used.ru_stime) * 1e6)


class Tally:
    """Of all clients; cycles that end from `begin` to `end` count."""

    def __init__(self):
        self.began_us = cpu_us()  # imports are no part of a cycle
        self.begin = time.monotonic() + WARM_UP_S
        self.end = self.begin + SECONDS
        self.each = [[] for _ in range(CLIENTS)]
        self.cycles = [0] * CLIENTS
        self.failures = 0

    def names(self, number):
        """Of a client's locks, until the time is up; counts its cycles."""
        while (start := time.monotonic()) < self.end:
            yield f"bench:{PID:x}:{number}:{self.cycles[number]}"
            self.cycles[number] += 1
            now = time.monotonic()
            if self.begin <= now < self.end:
                self.each[number].append(int((now - start) * 1e6))

    @staticmethod
    def threads(work):
        """One for each client, which gets its number; until all have ended."""
        threads = [Thread(target=work, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def report(self, **more):
        """As sample_report in ../../sample.c."""
        us = sorted(us for each in self.each for us in each)

        def percentile(percent):
            rank = len(us) * percent // 100
            return us[rank] if us else 0
        found = {"cycles_per_s": f"{len(us) / (self.end - self.begin):.0f}",
                 "cycles": sum(self.cycles), "failures": self.failures,
                 "p50_us": percentile(50), "p99_us": percentile(99),
                 "client_cpu_us": cpu_us() - self.began_us, **more}
        print(*(f"{name} {value}" for name, value in found.items()))
