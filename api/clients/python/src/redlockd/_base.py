"""What is common to clients and locks, for threads and for asyncio."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from . import _log as log
from ._errors import LockLost
from ._identity import File, Identity
from ._replicas import OVERDUE_S, PROBE_S, Replicas, shown
from ._talk import (
    NO_ANSWER,
    STALE,
    UNSENT,
    UNTRUSTED,
    Answer,
    Hold,
    Send,
    Talk,
    Wish,
)
from ._wire import Ask, Failure, Reply

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

    def _asked(self, step: Send, authorization: str) -> Ask:
        target = self._replicas.targets[step.url]
        return Ask(
            target,
            target.request(
                step.method, step.path, step.headers, authorization, step.body
            ),
            step.timeout_s,
            step.wait_s,
            step.is_repeatable,
            OVERDUE_S,
            lambda: self._replicas.avoid(step.url),
        )

    def _answer(self, step: Send, reply: Reply) -> Answer:
        answer = Answer.read(reply.status, reply.content, reply.retry_after)
        if answer.is_good:
            self._replicas.works(step.url)
        return answer

    def _failure(self, step: Send, failure: Failure) -> Answer:
        why = f"no answer: {failure}"
        code = NO_ANSWER if failure.is_sent else UNSENT
        if failure.is_stale:
            code = STALE
        elif failure.is_untrusted:
            code, why = UNTRUSTED, str(failure)
        log.debug("%s: %s", shown(step.url), why)
        return Answer(0, {"code": code, "detail": why})


def probe(replicas: Replicas, url: str) -> Talk[None]:
    """Asks a replica that failed whether it works again."""
    answer = yield Send("GET", url, "/readyz", {}, None, PROBE_S)
    if not answer or not answer.is_good:
        replicas.avoid(url)


class Holder:
    """The state of a lock while it is held."""

    _wish: Wish
    _hold: Hold | None = None

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

    def _extended_ms(self, additional_time: float, replace_ttl: bool) -> int:
        """The TTL to ask for."""
        self.check()
        left_s = 0.0 if replace_ttl else self._held.validity_s
        return round((left_s + additional_time) * 1000)
