# SPDX-License-Identifier: MIT
"""What is common to clients and locks, for threads and for asyncio."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from . import _log as log
from ._agenda import Kept
from ._clock import now
from ._errors import LockLost
from ._identity import File, Identity
from ._replicas import OVERDUE_S, PROBE_S, Replicas, shown
from ._talk import (
    Answer,
    Attempt,
    Grant,
    Hold,
    Send,
    Talk,
    Wish,
    acquire,
    downgrade,
    extend,
    release,
)
from ._wire import UNTRUSTED, Ask, Failure, Reply

if TYPE_CHECKING:
    import ssl


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

    def _asking(
        self, send: Send, on_overdue: Callable[[], None]
    ) -> Generator[Ask, Reply | Failure, Answer]:
        """Yields a request, and another one if our access token was replaced;
        wants what came of it."""
        identity = self._identity
        url = send.url or self._replicas.choose()
        target = self._replicas.targets[url]
        shows_nothing = send.is_probe
        is_repeated = False

        def overdue() -> None:
            nonlocal shows_nothing
            shows_nothing = True  # of how long others will have to wait
            if not send.is_probe:
                self._replicas.avoid(url)
            on_overdue()

        while True:
            authorization = identity.authorization
            request = target.request(
                send.method, send.path, send.headers, authorization, send.body
            )
            sent = now()
            ask = Ask(
                target,
                request,
                send.timeout_s,
                wait_s=send.wait_s,
                overdue_s=OVERDUE_S,
                on_overdue=overdue,
            )
            end = yield ask
            is_repeated = is_repeated or ask.is_repeated
            if isinstance(end, Failure):
                answer = self._failure(url, sent, end)
            elif end.status == 401 and identity.refresh(authorization):
                continue
            else:
                answer = self._answer(url, sent, end, shows_nothing)
            answer.is_repeated = is_repeated
            return answer

    def _answer(
        self, url: str, sent: float, reply: Reply, shows_nothing: bool
    ) -> Answer:
        answer = Answer.read(
            reply.status, reply.content, reply.retry_after, url, sent
        )
        answer.content_type = reply.content_type
        if answer.is_good and not shows_nothing:
            self._replicas.works(url)
        return answer

    def _failure(self, url: str, sent: float, failure: Failure) -> Answer:
        why = str(failure)
        if failure.code != UNTRUSTED:
            why = f"no answer: {why}"
        log.debug("%s: %s", shown(url), why)
        return Answer(0, {"code": failure.code, "detail": why}, url, sent)


def probe(replicas: Replicas, url: str) -> Talk[None]:
    """Asks a replica that failed whether it works again."""
    is_back = False
    try:
        answer = yield Send(
            "GET", "/readyz", {}, None, PROBE_S, url=url, is_probe=True
        )
        assert answer
        is_back = 0 < answer.status < 500 and answer.status != 429
    finally:
        replicas.probed(url, is_back)


C = TypeVar("C", bound=Caller)
K = TypeVar("K", bound=Kept)


class Holder(Generic[C, K]):
    """What Lock and AsyncLock have in common: what is wished for, the client,
    and the state of a lock while it is held."""

    _new_client: Callable[[str | Iterable[str] | None], C]
    _hold: Hold | None = None
    _keeper: K | None = None

    def __init__(
        self,
        *resources: str | Iterable[str],
        ttl: float | None = None,
        wait: float | None = None,
        owner: str | None = None,
        limit: int | None = None,
        permits: int = 1,
        shared: bool = False,
        urls: str | Iterable[str] | None = None,
        client: C | None = None,
        on_loss: Callable[[LockLost], None] | None = None,
    ) -> None:
        self._wish = Wish(
            resources,
            ttl=ttl,
            wait=wait,
            owner=owner,
            limit=limit,
            permits=permits,
            shared=shared,
        )
        self._client = client or type(self)._new_client(urls)
        self._is_shared = client is not None
        self._on_loss = on_loss
        self._is_entered = False

    def __del__(self) -> None:
        keeper = self._keeper
        if keeper and not keeper.has_gone:
            keeper.forget()
            log.warning(
                "%s: never released, and no longer extended", self._wish.name
            )

    def _enter(self) -> None:
        if self._is_entered:
            raise RuntimeError(
                f"{self._wish.name}: held by this object already"
            )
        self._is_entered = True

    def _keeping(self) -> K:
        if self._keeper is None:
            raise RuntimeError(f"{self._wish.name}: not held")
        return self._keeper

    def _wait_s(
        self, blocking: bool, blocking_timeout: float | None
    ) -> float | None:
        if not blocking:
            return 0.0
        if blocking_timeout is None:
            return self._wish.wait
        return blocking_timeout

    def _tell(self, loss: LockLost, error: BaseException | None) -> None:
        """Of a block that raised something itself."""
        if not isinstance(error, LockLost):
            log.warning("%s; the block raised %r", loss, error)

    # ---- what is asked

    def _acquiring(self, wait: float | None, attempt: Attempt) -> Talk[Grant]:
        client = self._client
        return acquire(
            client._replicas, self._wish, wait, client._timeout_s, attempt
        )

    def _renewing(self, hold: Hold) -> Callable[[], Talk[bool]]:
        """It must not refer to this object: nobody else may."""
        client = self._client
        return partial(extend, client._replicas, hold, client._timeout_s)

    def _extending(
        self, additional_time: float, replace_ttl: bool
    ) -> Talk[bool]:
        client = self._client
        self.check()
        left_s = 0.0 if replace_ttl else self._held.validity_s
        ttl_ms = round((left_s + additional_time) * 1000)
        return extend(client._replicas, self._held, client._timeout_s, ttl_ms)

    def _downgrading(self) -> Talk[None]:
        client = self._client
        self.check()
        return downgrade(client._replicas, self._held, client._timeout_s)

    def _releasing(self, is_again: bool = False) -> Talk[None]:
        client = self._client
        return release(
            client._replicas, self._held, client._timeout_s, is_again
        )

    # ---- what is told

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self._wish.resources))
        state = "not acquired"
        if self._hold:
            state = f"fencing_token={self._hold.grant.fencing_token}, "
            if self._hold.is_released:
                state += "released"
            elif self._hold.remaining_s > 0:
                state += f"{self._hold.remaining_s:.1f} s left"
            else:
                state += "lost"
        return f"<{type(self).__name__} {names}: {state}>"

    @property
    def _held(self) -> Hold:
        if self._hold is None:
            raise RuntimeError(f"{self._wish.name}: not acquired")
        return self._hold

    @property
    def id(self) -> str:
        """Its name in URLs."""
        return self._held.grant.id

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
        """For how many seconds work may go on; 0.0 if it may not. A tenth of
        the TTL later, others may get the lock."""
        return self._held.remaining_s

    def check(self) -> None:
        """Raises LockLost unless the lock is still ours. Call it right
        before each step that cannot be undone."""
        hold = self._held
        if hold.is_released:
            raise LockLost(f"{hold.name}: released")
        loss = hold.find_loss()
        if loss:
            raise loss
