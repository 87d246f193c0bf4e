# SPDX-License-Identifier: MIT
"""Wall clocks that a test sets: see tests/nemesis/shim.c."""
from __future__ import annotations

import mmap
import os
import struct
import time
from pathlib import Path

SETTING = struct.Struct("=qqq")  # struct setting of the shim
SHIM = Path(os.environ.get("TOOLS", "build/release"), "nemesis-shim.so").resolve()


class Clock:
    """What a process takes for the wall clock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(bytes(8 + 2 * SETTING.size))
        with path.open("r+b") as file:
            self.page = mmap.mmap(file.fileno(), 0)
        self.base_ns, self.offset_ns, self.rate_ppb = 0, 0, 0

    def offset_s(self) -> float:
        since = time.time_ns() - self.base_ns
        return (self.offset_ns + since * self.rate_ppb / 1e9) / 1e9

    def set(self, offset_s: float, rate: float = 0) -> None:
        self.base_ns = time.time_ns()
        self.offset_ns, self.rate_ppb = int(offset_s * 1e9), int(rate * 1e9)
        index = 1 - self.page[0]
        SETTING.pack_into(self.page, 8 + index * SETTING.size, self.base_ns,
                          self.offset_ns, self.rate_ppb)
        self.page[0] = index  # one byte: seen as a whole

    def environment(self, shim: Path = SHIM) -> dict[str, str]:
        """Ours, for a process that this clock is for."""
        assert shim.exists(), f"{shim}: run make nemesis-tools"
        return {**os.environ, "LD_PRELOAD": str(shim),
                "NEMESIS_CLOCK": str(self.path)}
