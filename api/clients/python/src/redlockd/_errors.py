# SPDX-License-Identifier: MIT
"""The exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def _restored(
    kind: type[RedlockdError], args: tuple[Any, ...], fields: dict[str, Any]
) -> RedlockdError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


class RedlockdError(Exception):
    """Every error of this package."""

    def __reduce__(self) -> Any:
        """An exception of its own arguments would be made again from its
        message alone: that fails, and with it a pool of processes."""
        return _restored, (type(self), self.args, dict(self.__dict__))


class LockHeld(RedlockdError):
    """Somebody else held the lock until the wait had passed."""

    def __init__(self, message: str, held_by: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.owner: str | None = held_by.get("owner")
        self.fencing_token: int | None = held_by.get("fencing_token")
        self.readers: int | None = held_by.get("readers")
        remaining_ms = held_by.get("remaining_ms")
        self.remaining: float | None = (
            None if remaining_ms is None else remaining_ms / 1000
        )


class LockLost(RedlockdError):
    """The lock ended before its holder released it. What the holder did since
    then may have overlapped with the work of the next holder."""


class Unavailable(RedlockdError):
    """No server granted or refused the lock until the wait had passed. If an
    answer was lost, the lock may be held until its TTL ends."""


class RateLimited(Unavailable):
    """No server granted it: we ask them too often."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds


class Untrusted(RedlockdError):
    """No server has a certificate that we trust: signed by a known CA, for its
    name, and not expired."""


class RequestRefused(RedlockdError):
    """The request is wrong, and would be wrong again."""

    def __init__(self, message: str, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Unauthorized(RequestRefused):
    """401: the servers do not know our token, or we have none."""


class Forbidden(RequestRefused):
    """403: the servers know us, but we may not do this."""
