"""The clock by which validity is measured."""

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
