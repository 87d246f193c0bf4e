"""What can be raised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class RedlockdError(Exception):
    """Every error of this package."""


class LockHeld(RedlockdError):
    """Somebody else held the lock for as long as we were to wait."""

    def __init__(self, message: str, held_by: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.owner: str | None = held_by.get("owner")
        self.fencing_token: int | None = held_by.get("fencing_token")
        remaining_ms = held_by.get("remaining_ms")
        self.remaining: float | None = (
            None if remaining_ms is None else remaining_ms / 1000
        )


class LockLost(RedlockdError):
    """The lock ended before its holder released it: what the holder did after
    that may have overlapped with the work of the next one."""


class Unavailable(RedlockdError):
    """No server granted or refused the lock for as long as we were to wait.
    If an answer was lost, the lock may be held until its TTL ends."""


class RateLimited(Unavailable):
    """No server granted it, since they are asked too often."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds


class Untrusted(RedlockdError):
    """No server has a certificate that we trust, for its name and not
    expired."""


class RequestRefused(RedlockdError):
    """The request is wrong, and would be wrong again."""

    def __init__(self, message: str, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Unauthorized(RequestRefused):
    """401: the servers do not know our token, or want one."""


class Forbidden(RequestRefused):
    """403: they know us, and do not allow it."""
