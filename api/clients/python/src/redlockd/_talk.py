"""What is asked of redlockd, and when: without I/O, for threads and asyncio.

Each of acquire(), renew(), downgrade() and release() is a generator. It yields
what to do next, a Send or a Sleep. The caller sends the Answer to a Send back
into it, or None if there was none. It returns when it is done, or raises an
error.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Generator, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from . import _log as log
from ._clock import now, uniform
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
from ._replicas import Replicas, shown

# proxies may cut requests after 60 s, some after 15 s
LONGEST_WAIT_S = 10.0
BACKOFF_FIRST_S, BACKOFF_LAST_S = 0.05, 2.0
ENDED = ("lock_not_found", "not_owner")
MAX_HOLD = "max_hold_reached"
# Codes of an Answer that no server gave; its status is 0. The request may have
# been carried out, except after the first two.
UNTRUSTED = "untrusted"
UNSENT = "unsent"
NO_ANSWER = "no_answer"
STALE = "stale"  # a kept connection had ended: try again at once

# of ids and tokens, which we send as they are
_WORD = re.compile(r"[!-~]+")


class Send(NamedTuple):
    method: str
    url: str  # of the replica
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any] | None
    timeout_s: float  # for the connection, and for the answer
    wait_s: float = 0.0  # how much later the answer may come: the server waits
    # whether the answer means the same if it is the second request that arrived
    is_repeatable: bool = True


class Sleep(NamedTuple):
    seconds: float


class Answer(NamedTuple):
    status: int
    body: Mapping[str, Any]

    @staticmethod
    def read(status: int, content: bytes, retry_after: str = "") -> Answer:
        """The content may be no JSON: a proxy may have answered."""
        try:
            body = json.loads(content.decode())
        except ValueError:
            body = None
        if not isinstance(body, dict):
            body = {}
        if "retry_after_ms" not in body and retry_after.isdecimal():
            body["retry_after_ms"] = int(retry_after) * 1000
        return Answer(status, body)

    @property
    def code(self) -> str:
        return str(self.body.get("code", ""))

    @property
    def is_final(self) -> bool:
        """Whether the request is wrong, here and at every other replica."""
        return 300 <= self.status < 500 and self.status not in (408, 429)

    @property
    def is_good(self) -> bool:
        """Whether the server that gave it works."""
        return (
            200 <= self.status < 500
            and self.status not in (408, 429)
            and not self.is_denial
        )

    @property
    def is_denial(self) -> bool:
        """By redlockd or by a gateway in front. Another replica may know other
        identities."""
        return self.status in (401, 403) or self.code == UNTRUSTED

    @property
    def retry_after_s(self) -> float:
        return float(self.body.get("retry_after_ms", 0)) / 1000

    def __str__(self) -> str:
        status = f"{self.status} " if self.status else ""
        return f"{status}{self.body.get('detail', '')}".rstrip()


Step = Send | Sleep
T = TypeVar("T")
Talk = Generator[Step, Answer | None, T]


class Grant(NamedTuple):
    id: str
    token: str  # a secret
    fencing_token: int
    ttl_ms: int
    renew_at: float  # on our clock, as the next ones
    work_until: float  # by then, work must have ended
    until: float
    slots: tuple[int, ...] = ()  # of a permit
    is_shared: bool = False

    def __repr__(self) -> str:
        return f"Grant({self.id!r}, {self.fencing_token})"

    @staticmethod
    def read(answer: Answer | None, sent: float) -> Grant | None:
        """`sent` is the moment before the request was sent. None: no grant."""
        if answer is None or answer.status not in (200, 201):
            return None
        body = answer.body
        try:
            if not _WORD.fullmatch(body["id"] + body["token"]):
                return None
            granted = sent + body["elapsed_ms"] / 1000
            until = granted + body["validity_ms"] / 1000
            # a tenth of the TTL to end the work; less if little of it was left
            margin_s = min(body["ttl_ms"], body["validity_ms"]) / 10_000
            return Grant(
                id=body["id"],
                token=body["token"],
                fencing_token=body["fencing_token"],
                ttl_ms=body["ttl_ms"],
                renew_at=granted + body["renew_after_ms"] / 1000,
                work_until=until - margin_s,
                until=until,
                slots=tuple(body.get("slots", ())),
                is_shared=body.get("mode") == "shared",
            )
        except (KeyError, TypeError):
            return None  # cut off, or not from redlockd


class Hold:
    """A lock that was granted: until when, and whether it was lost before.
    Work under it ends a tenth of the TTL before its validity does."""

    def __init__(self, name: str, grant: Grant) -> None:
        self.name = name
        self.grant = grant
        self.slots = grant.slots
        self.loss: LockLost | None = None
        self.is_released = False
        # a downgrade has begun: from now on, each extend asks for it
        self.wants_shared = grant.is_shared
        self._mutex = threading.Lock()

    def extended(self, grant: Grant) -> None:
        """While the lock becomes a shared one, a renewal may be under way. Its
        answer may come last, with the token from before."""
        with self._mutex:
            if self.grant.is_shared and not grant.is_shared:
                grant = grant._replace(token=self.grant.token, is_shared=True)
            if self.grant.until > grant.until:
                grant = grant._replace(
                    until=self.grant.until, work_until=self.grant.work_until
                )
            self.grant = grant

    @property
    def remaining_s(self) -> float:
        """For work: less than until the validity ends."""
        if self.loss or self.is_released:
            return 0.0
        return max(0.0, self.grant.work_until - now())

    @property
    def validity_s(self) -> float:
        return max(0.0, self.grant.until - now())

    @property
    def renew_in_s(self) -> float:
        """Until the next renewal. An answer that was slow leaves less time."""
        return max(0.0, self.grant.renew_at - now())

    def find_loss(self) -> LockLost | None:
        """Before the release."""
        if self.loss is None and self.remaining_s <= 0:
            self.loss = self.late()
        return self.loss

    def late(self) -> LockLost:
        return LockLost(f"{self.name}: nothing extended the lock in time")


class Wish:
    """What to lock, and how."""

    def __init__(
        self,
        resources: Iterable[str | Iterable[str]],
        *,
        ttl: float | None = None,
        wait: float | None = None,
        owner: str | None = None,
        limit: int | None = None,
        permits: int = 1,
        shared: bool = False,
    ) -> None:
        self.resources: tuple[str, ...] = tuple(
            name
            for each in resources
            for name in ([each] if isinstance(each, str) else each)
        )
        self.ttl = ttl
        self.wait = wait
        self.owner = owner
        self.limit = limit
        self.permits = permits
        self.shared = shared
        if not self.resources:
            raise ValueError("name at least one resource")
        if self.limit is not None and len(self.resources) > 1:
            raise ValueError("a limit is of one resource")
        if self.limit is None and self.permits != 1:
            raise ValueError("permits need a limit")
        if self.limit is not None and self.shared:
            raise ValueError("a permit has one holder: it cannot be shared")

    @property
    def name(self) -> str:
        return ", ".join(self.resources)

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {}
        if len(self.resources) == 1:
            body["resource"] = self.resources[0]
        else:
            body["resources"] = list(self.resources)
        if self.ttl is not None:
            body["ttl_ms"] = round(self.ttl * 1000)
        if self.owner is not None:
            body["owner"] = self.owner
        if self.limit is not None:
            body["limit"] = self.limit
            body["permits"] = self.permits
        if self.shared:
            body["mode"] = "shared"
        return body


def denial(what: str, answer: Answer) -> RedlockdError:
    if answer.status == 401:
        return Unauthorized(f"{what}: {answer}", 401, answer.code)
    if answer.status == 403:
        return Forbidden(f"{what}: {answer}", 403, answer.code)
    return Untrusted(f"{what}: {answer}")


def refusal(what: str, answer: Answer) -> RedlockdError:
    if answer.is_denial:
        return denial(what, answer)
    return RequestRefused(f"{what}: {answer}", answer.status, answer.code)


def unavailable(what: str, answer: Answer | None, why: str) -> Unavailable:
    text = f"{what} ({why})"
    if answer and answer.status == 429:
        return RateLimited(text, answer.retry_after_s)
    return Unavailable(text)


def backoff_s(failures: int, answer: Answer | None) -> float:
    """Random, so that clients that failed together do not retry together."""
    longest = min(BACKOFF_LAST_S, BACKOFF_FIRST_S * 2.0 ** min(failures, 10))
    delay = uniform(longest / 2, longest)
    return max(delay, answer.retry_after_s) if answer else delay


def acquire(
    replicas: Replicas, wish: Wish, wait: float | None, timeout_s: float
) -> Talk[Grant]:
    """Asks until the lock is ours or the time is up. All requests have one key:
    if an answer with a grant was lost, the next request gets the same lock."""
    headers = {"Idempotency-Key": os.urandom(16).hex()}
    deadline = float("inf") if wait is None else now() + wait
    failures = denials = 0
    while True:
        wait_s = min(max(deadline - now(), 0.0), LONGEST_WAIT_S)
        body = {**wish.body(), "wait_ms": int(wait_s * 1000)}
        url = replicas.choose()
        sent = now()
        answer = yield Send(
            "POST", url, "/locks", headers, body, timeout_s, wait_s
        )
        grant = Grant.read(answer, sent)
        if grant and grant.work_until > now():
            return grant
        left_s = deadline - now()
        if answer and answer.code in ("lock_held", "too_many_readers"):
            if left_s <= 0:
                raise held(wish, answer)
            if not answer.body.get("waited_ms"):  # it did not wait
                yield Sleep(min(answer.retry_after_s, left_s))
            continue
        denials = denials + 1 if answer and answer.is_denial else 0
        if answer and answer.is_denial:
            replicas.avoid(url)
            if denials >= len(replicas.urls):
                raise denial(wish.name, answer)
            continue
        if answer and answer.is_final:
            raise refusal(wish.name, answer)
        failures += 1
        replicas.avoid(url)
        why = f"{shown(url)}: {answer or 'no answer'}"
        # each replica once, and one of them again
        if left_s <= 0 and failures > len(replicas.urls):
            raise unavailable(f"{wish.name}: no server grants it", answer, why)
        tell = log.warning if failures == 1 else log.info
        tell(
            "%s: not acquired yet, trying again (%s)",
            wish.name,
            why,
        )
        told = answer if failures % len(replicas.urls) == 0 else None
        yield Sleep(min(backoff_s(failures, told), max(left_s, 0.0)))


def held(wish: Wish, answer: Answer) -> LockHeld:
    held_by = answer.body.get("held_by", {})
    if wish.limit is not None:
        text = f"{wish.name}: too few of {wish.limit} permits are free"
        return LockHeld(text, {})
    owner = held_by.get("owner", "somebody else")
    readers = held_by.get("readers", 0)
    if readers:
        owner = "a reader" if readers == 1 else f"{readers} readers"
    return LockHeld(f"{wish.name}: the lock is held by {owner}", held_by)


def renew(replicas: Replicas, hold: Hold, timeout_s: float) -> Talk[None]:
    """Extends the lock repeatedly, from now on until it cannot be extended any
    more. Raises LockLost if it is no longer ours."""
    while (yield from _extend(replicas, hold, timeout_s)):
        yield Sleep(hold.renew_in_s)


def downgrade(replicas: Replicas, hold: Hold, timeout_s: float) -> Talk[None]:
    """Makes an exclusive lock a shared one. Meanwhile it may be renewed, and
    each of both may get the answer with the new token first. If this is
    interrupted, the next renewal does it."""
    if hold.grant.is_shared:
        return
    hold.wants_shared = True
    try:
        yield from extend(replicas, hold, hold.grant.ttl_ms, timeout_s)
    except RequestRefused as refused:
        if refused.code != MAX_HOLD:
            hold.wants_shared = False  # no server has begun it
        raise


def extend(
    replicas: Replicas, hold: Hold, ttl_ms: int, timeout_s: float
) -> Talk[None]:
    """Because somebody asks for it; renewals then have this TTL, too."""
    if not (yield from _extend(replicas, hold, timeout_s, ttl_ms)):
        raise RequestRefused(
            f"{hold.name}: it cannot be extended any more", 409, MAX_HOLD
        )


def _extend(
    replicas: Replicas,
    hold: Hold,
    timeout_s: float,
    ttl_ms: int | None = None,
) -> Talk[bool]:
    """False: the lock cannot be extended, and ends with its validity. ttl_ms:
    not a renewal, but asked for; servers may refuse that."""
    failures = refusals = 0
    while True:
        left_s = hold.remaining_s
        if left_s <= 0:
            raise hold.late()
        url = replicas.choose()
        body: dict[str, Any] = {"ttl_ms": ttl_ms or hold.grant.ttl_ms}
        # asked with either token, a server finds the lock in either mode
        wants_shared = hold.wants_shared
        if wants_shared:
            body["mode"] = "shared"
        sent = now()
        # connection and answer together take at most half of what is left:
        # so another replica can be asked
        answer = yield Send(
            "PUT",
            url,
            f"/locks/{hold.grant.id}/extend",
            {"X-Lock-Token": hold.grant.token},
            body,
            min(timeout_s, left_s / 4),
        )
        grant = Grant.read(answer, sent)
        if grant:
            hold.extended(grant)
            return True
        if wants_shared != hold.wants_shared:
            continue  # the token may have changed meanwhile
        if answer and answer.code in ENDED:
            raise LockLost(f"{hold.name}: the lock ended ({answer})")
        if answer and answer.code == MAX_HOLD:
            log.warning("%s: no longer extended (%s)", hold.name, answer)
            return False
        if ttl_ms and answer and answer.is_final:
            refusals += 1
            if refusals == failures + 1 >= len(replicas.urls):
                raise refusal(hold.name, answer)
        failures += 1
        replicas.avoid(url)
        log.warning(
            "%s: not extended yet (%s: %s)",
            hold.name,
            shown(url),
            answer or "no answer",
        )
        yield Sleep(min(backoff_s(failures, answer), hold.remaining_s / 4))


def release(
    replicas: Replicas, hold: Hold, timeout_s: float, may_be_done: bool = False
) -> Talk[None]:
    """Raises LockLost if the lock had ended. If no server answers, that is only
    logged: the lock expires, and other clients wait for that long. may_be_done:
    by a request whose answer was lost."""
    hold.is_released = True
    failures = 0
    while failures <= len(replicas.urls):
        url = replicas.choose()
        answer = yield Send(
            "DELETE",
            url,
            f"/locks/{hold.grant.id}",
            {"X-Lock-Token": hold.grant.token},
            None,
            timeout_s,
            # the second one may be told that the lock had ended
            is_repeatable=False,
        )
        if answer and answer.status == 200:
            return
        if answer and answer.code in ENDED:
            # that may have been our own release
            if may_be_done:
                return
            raise LockLost(f"{hold.name}: the lock had ended ({answer})")
        if not answer or not (
            answer.is_denial or answer.status == 429 or answer.code == UNSENT
        ):
            may_be_done = True
        failures += 1
        if answer and answer.code == STALE:
            continue
        replicas.avoid(url)
        if hold.validity_s <= 0:
            break
        told = answer if answer and answer.status == 429 else None
        yield Sleep(min(backoff_s(failures, told), hold.validity_s))
    log.warning(
        "%s: not released; it is free in %.1f s (%s)",
        hold.name,
        hold.validity_s,
        answer or "no answer",
    )
