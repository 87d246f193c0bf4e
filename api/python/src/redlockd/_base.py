"""What Lock and AsyncLock have in common."""

from __future__ import annotations

import functools
import ssl

import httpx

from ._talk import Hold, Send, Wish


# Reading the certificates takes longer than acquiring a lock.
@functools.cache
def ssl_context() -> ssl.SSLContext:
    return httpx.create_ssl_context()


# A server closes what was idle for 75 s. There is no limit to the number of
# connections: an extend must not wait for acquires that wait for locks.
LIMITS = httpx.Limits(
    max_connections=None, max_keepalive_connections=20, keepalive_expiry=60
)


def timeouts(step: Send) -> httpx.Timeout:
    return httpx.Timeout(step.timeout_s, read=step.timeout_s + step.wait_s)


class Holder:
    """What can be asked of a lock while it is held."""

    _wish: Wish
    _hold: Hold | None = None

    @property
    def _held(self) -> Hold:
        if self._hold is None:
            raise RuntimeError(f"{self._wish.name}: not acquired")
        return self._hold

    @property
    def token(self) -> str:
        """Proves to redlockd that the lock is ours: keep it secret."""
        return self._held.grant.token

    @property
    def fencing_token(self) -> int:
        """Rises with every grant: let what the lock protects refuse lower
        ones."""
        return self._held.grant.fencing_token

    @property
    def remaining(self) -> float:
        """For how many seconds the lock is surely ours; 0.0 if it is not."""
        return self._held.remaining_s

    def check(self) -> None:
        """Raises LockLost unless the lock is still ours. To be called right
        before each step that cannot be undone."""
        loss = self._held.find_loss()
        if loss:
            raise loss
