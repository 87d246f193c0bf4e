# SPDX-License-Identifier: MIT
"""Distributed locks from a redlockd server.

with Lock("order:42", ttl=30, wait=5) as lock:
    ship_order(42, fence=lock.fencing_token)

async with AsyncLock("order:42", ttl=30, wait=5) as lock:
    await ship_order(42, fence=lock.fencing_token)
"""

from typing import TYPE_CHECKING, Any

from ._errors import (
    Forbidden,
    LockHeld,
    LockLost,
    RateLimited,
    RedlockdError,
    RequestRefused,
    Unauthorized,
    Unavailable,
    Untrusted,
)
from ._sync import Client, Lock

if TYPE_CHECKING:
    from ._aio import AsyncClient, AsyncLock
    from ._ops import HeldLock

__all__ = [
    "AsyncClient",
    "AsyncLock",
    "Client",
    "Forbidden",
    "HeldLock",
    "Lock",
    "LockHeld",
    "LockLost",
    "RateLimited",
    "RedlockdError",
    "RequestRefused",
    "Unauthorized",
    "Unavailable",
    "Untrusted",
]


def __getattr__(name: str) -> Any:
    """asyncio takes longer to load than a lock to acquire."""
    if name in ("AsyncClient", "AsyncLock"):
        from . import _aio  # noqa: PLC0415

        return getattr(_aio, name)
    if name == "HeldLock":
        from . import _ops  # noqa: PLC0415

        return _ops.HeldLock
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
