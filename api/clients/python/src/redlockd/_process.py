# SPDX-License-Identifier: MIT
"""Which process this is. os.getpid() asks the system each time."""

from __future__ import annotations

import os
import sys

_generation = 0


def generation() -> int:
    """Another one in a forked child than in its parent."""
    return _generation


def _forked() -> None:
    global _generation  # noqa: PLW0603
    _generation += 1


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forked)
