"""Distributed locks from a redlockd server.

with Lock("order:42", ttl=30, wait=5) as lock:
    ship_order(42, fence=lock.fencing_token)

async with AsyncLock("order:42", ttl=30, wait=5) as lock:
    await ship_order(42, fence=lock.fencing_token)
"""

from ._aio import AsyncClient, AsyncLock
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
from ._ops import HeldLock
from ._sync import Client, Lock

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
