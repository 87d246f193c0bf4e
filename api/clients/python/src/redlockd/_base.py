"""What is common to clients and locks, for threads and for asyncio."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterable

import httpx

from ._identity import File, Identity, is_untrusted
from ._talk import UNTRUSTED, Answer, Hold, Replicas, Send, Wish, log, shown

# A server closes connections that are idle for 75 s. Their number has no limit:
# an extend must not wait for acquires that wait for locks.
LIMITS = httpx.Limits(
    max_connections=None, max_keepalive_connections=20, keepalive_expiry=60
)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Caller:
    """What Client and AsyncClient know: the servers, and their own identity."""

    def __init__(
        self,
        urls: str | Iterable[str] | None = None,
        timeout: float = 5.0,
        *,
        auth_token: str | None = None,
        auth_token_file: File | None = None,
        ca_file: File | None = None,
        cert_file: File | None = None,
        key_file: File | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        """urls: of the replicas; by default REDLOCKD_URL, separated by
        commas, or http://127.0.0.1:8080. timeout: seconds for an answer.

        auth_token: our token for the servers, or auth_token_file, a file with
        it, read again after a 401; by default REDLOCKD_AUTH_TOKEN or
        REDLOCKD_AUTH_TOKEN_FILE. ca_file: the CAs to trust, instead of the
        usual ones; cert_file, key_file: our certificate; by default
        REDLOCKD_CACERT, REDLOCKD_CERT, REDLOCKD_KEY. ssl_context: instead of
        these files."""
        self._replicas = Replicas(urls)
        self._timeout_s = timeout
        self._identity = Identity(
            auth_token=auth_token,
            auth_token_file=auth_token_file,
            ca_file=ca_file,
            cert_file=cert_file,
            key_file=key_file,
            ssl_context=ssl_context,
        )
        self._prepare()

    def _prepare(self) -> None:
        """What a kind of client has of its own."""

    def _direct(self) -> dict[str, None]:
        """Where httpx should use no proxy, even if the environment names one:
        on this machine, where a proxy would see the token for nothing."""
        hosts = {httpx.URL(url).host for url in self._replicas.urls}
        return {
            f"all://[{host}]" if ":" in host else f"all://{host}": None
            for host in hosts
            if _is_loopback(host)
        }

    def _request(
        self, pool: httpx.Client | httpx.AsyncClient, step: Send
    ) -> httpx.Request:
        return pool.build_request(
            step.method,
            step.url,
            headers={**step.headers, **self._identity.headers},
            json=step.body,
            timeout=httpx.Timeout(
                step.timeout_s, read=step.timeout_s + step.wait_s
            ),
        )

    def _is_other_identity(self, response: httpx.Response) -> bool:
        """Whether asking again at once may help."""
        refused = response.request.headers.get("Authorization")
        return response.status_code == 401 and self._identity.refresh(refused)

    def _answer(self, response: httpx.Response) -> Answer:
        return Answer.read(
            response.status_code,
            response.content,
            response.headers.get("Retry-After", ""),
        )

    def _failure(self, step: Send, error: httpx.HTTPError) -> Answer | None:
        log.debug("%s: %s", shown(step.url), error)
        if is_untrusted(error):
            return Answer(0, {"code": UNTRUSTED, "detail": str(error)})
        return None


class Holder:
    """The state of a lock while it is held."""

    _wish: Wish
    _hold: Hold | None = None

    @property
    def _held(self) -> Hold:
        if self._hold is None:
            raise RuntimeError(f"{self._wish.name}: not acquired")
        return self._hold

    @property
    def token(self) -> str:
        """Proves to redlockd that the lock is ours: keep it secret. A
        downgrade changes it."""
        return self._held.grant.token

    @property
    def fencing_token(self) -> int:
        """Rises with every grant: the resource should refuse lower ones."""
        return self._held.grant.fencing_token

    @property
    def shared(self) -> bool:
        """Whether others may hold the lock, too, as readers."""
        return self._held.grant.is_shared

    @property
    def slots(self) -> tuple[int, ...]:
        """With a limit: the numbers that nobody else has, from 0 on."""
        return self._held.slots

    @property
    def slot(self) -> int:
        """The first of them; without a limit there is none."""
        if not self._held.slots:
            raise RuntimeError(f"{self._wish.name}: acquired without a limit")
        return self._held.slots[0]

    @property
    def remaining(self) -> float:
        """For how many seconds the lock is certainly ours; 0.0 if it is not."""
        return self._held.remaining_s

    def check(self) -> None:
        """Raises LockLost unless the lock is still ours. Call it right
        before each step that cannot be undone."""
        loss = self._held.find_loss()
        if loss:
            raise loss
