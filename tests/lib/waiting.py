# SPDX-License-Identifier: MIT
"""Waits for what comes."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def wait_until(is_so: Callable[[], Any], what: str, limit_s: float = 20) -> None:
    """Asks a hundred times a second. Raises TimeoutError if it was in vain."""
    until = time.monotonic() + limit_s
    while not is_so():
        if time.monotonic() > until:
            raise TimeoutError(f"in vain for {limit_s:g} s: {what}")
        time.sleep(0.01)
