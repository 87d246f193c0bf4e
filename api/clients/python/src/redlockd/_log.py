# SPDX-License-Identifier: MIT
"""The logger "redlockd". Loading logging takes as long as all of the rest."""

from __future__ import annotations

import sys


def warning(text: str, *words: object) -> None:
    import logging  # noqa: PLC0415

    logging.getLogger("redlockd").warning(text, *words)


def info(text: str, *words: object) -> None:
    """Not shown if nobody has loaded logging, and so set its level."""
    if "logging" in sys.modules:
        import logging  # noqa: PLC0415

        logging.getLogger("redlockd").info(text, *words)


def debug(text: str, *words: object) -> None:
    if "logging" in sys.modules:
        import logging  # noqa: PLC0415

        logging.getLogger("redlockd").debug(text, *words)
