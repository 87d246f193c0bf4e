"""The clock that validity is counted on."""

import time

# It goes on while the machine sleeps, as TTLs on the nodes do. Where there is
# none (macOS, Windows), the monotonic clock must do.
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)

# Timers stop while the machine sleeps. So nobody who waits for a moment may
# sleep longer than this before looking at the clock again.
LONGEST_SLEEP_S = 1.0


def now() -> float:
    """Seconds since an arbitrary moment; never steps back."""
    if _BOOTTIME is None:
        return time.monotonic()
    return time.clock_gettime(_BOOTTIME)
