# SPDX-License-Identifier: MIT
"""The clock by which validity is measured."""

import os
import time

# It runs on while the machine sleeps, as TTLs on the nodes do. macOS and
# Windows have no such clock: there it is the monotonic one.
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)

# Timers stop while the machine sleeps: code that waits for a moment must look
# at the clock again after this time at most.
LONGEST_SLEEP_S = 1.0


def now() -> float:
    """Seconds since an arbitrary moment; never steps back."""
    if _BOOTTIME is None:
        return time.monotonic()
    return time.clock_gettime(_BOOTTIME)


def uniform(shortest: float, longest: float) -> float:
    """A random time. The module random takes longer to load."""
    part = int.from_bytes(os.urandom(4), "big") / 2**32
    return shortest + (longest - shortest) * part
