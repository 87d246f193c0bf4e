"""Distributed locks from a redlockd server.

with Lock("order:42", ttl=30, wait=5) as lock:
    ship_order(42, fence=lock.fencing_token)

async with AsyncLock("order:42", ttl=30, wait=5) as lock:
    await ship_order(42, fence=lock.fencing_token)
"""

from ._aio import AsyncClient, AsyncLock
from ._errors import (
    LockHeld,
    LockLost,
    RedlockdError,
    RequestRefused,
    Unavailable,
)
from ._sync import Client, Lock

__all__ = [
    "AsyncClient",
    "AsyncLock",
    "Client",
    "Lock",
    "LockHeld",
    "LockLost",
    "RedlockdError",
    "RequestRefused",
    "Unavailable",
]
