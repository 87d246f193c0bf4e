# SPDX-License-Identifier: MIT
"""What is asked of redlockd, and when: without I/O, for threads and asyncio.

Each of acquire(), extend(), downgrade() and release() is a generator. It yields
what to do next, a Send or a Sleep. The caller sends the Answer to a Send back
into it, and None after a Sleep. It returns when it is done, or raises an error.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Generator, Iterable, Mapping
from typing import Any, TypeVar

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
from ._wire import NO_ANSWER, STALE, UNSENT, UNTRUSTED, is_word, quoted

# proxies may cut requests after 60 s, some after 15 s
LONGEST_WAIT_S = 10.0
# of a lock that is acquired only to be released
SHORTEST_TTL_MS = 100
BACKOFF_FIRST_S, BACKOFF_LAST_S = 0.05, 2.0
# An extend with so little time left waits for no other request.
URGENT_S = 1.0
# Renewals may go after this part of their time, so that many go together.
TOGETHER = 0.9
ENDED = ("lock_not_found", "not_owner")
HELD = ("lock_held", "too_many_readers")
MAX_HOLD = "max_hold_reached"
HEADER_SHOWN = 80  # characters
_UNPRINTABLE = re.compile(r"[^ -~]")


class Scope:
    """What a call is about: which others may be in one batch with it."""

    __slots__ = ("group", "names")

    def __init__(self, names: tuple[str, ...], group: str = "") -> None:
        """group: calls of one may, although they have a name in common; "":
        none."""
        self.names = names
        self.group = group


class Send:
    """A request. (Named tuples would take longer to define than a lock to
    acquire.)"""

    __slots__ = (
        "body",
        "headers",
        "is_probe",
        "is_urgent",
        "item",
        "left",
        "method",
        "path",
        "patience",
        "scope",
        "timeout_s",
        "url",
        "wait_s",
    )

    def __init__(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: str | None,
        timeout_s: float,
        *,
        wait_s: float = 0.0,
        url: str = "",
        is_probe: bool = False,
        is_urgent: bool = False,
        scope: Scope | None = None,
        item: str = "",
        patience: tuple[float, str] | None = None,
    ) -> None:
        """body: JSON, in ASCII. timeout_s: for the connection, and for the
        answer. wait_s: how much later the answer may come: the server waits.
        url: of the replica; "": of the one to ask when it is sent.
        is_probe: it only finds out whether the replica is back. is_urgent: it
        has no time to wait for others. scope: None: it is about no lock. item:
        the same in a batch.
        patience: the wait_s and the body that it has if it finds nothing else
        under way."""
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self.timeout_s = timeout_s
        self.wait_s = wait_s
        self.url = url
        self.left: Any = None  # the Call of it that was interrupted
        self.is_probe = is_probe
        self.is_urgent = is_urgent
        self.scope = scope
        self.item = item
        self.patience = patience

    @property
    def is_acquire(self) -> bool:
        return self.method == "POST"

    def wait(self) -> None:
        """Nothing else is under way: it may wait at the server."""
        if self.patience:
            self.wait_s, self.body = self.patience


class Sleep:
    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class Answer:
    __slots__ = (
        "body",
        "content_type",
        "is_repeated",
        "sent",
        "status",
        "url",
    )

    def __init__(
        self,
        status: int,
        body: Mapping[str, Any],
        url: str = "",
        sent: float = 0.0,
    ) -> None:
        """url: of the replica that was asked; "": of none. sent: the moment
        before the request was sent. Once it is_repeated: a kept connection
        ended before it, and the request may have been carried out then."""
        self.status = status
        self.body = body
        self.url = url
        self.sent = sent
        self.content_type = ""
        self.is_repeated = False

    @staticmethod
    def read(
        status: int,
        content: bytes,
        retry_after: str = "",
        url: str = "",
        sent: float = 0.0,
    ) -> Answer:
        """The content may be no JSON: a proxy may have answered."""
        try:
            body = json.loads(content.decode())
        except ValueError:
            body = None
        if not isinstance(body, dict):
            body = {}
        is_time = retry_after.isdecimal() and len(retry_after) < 10
        if is_time and "retry_after_ms" not in body:
            body["retry_after_ms"] = int(retry_after) * 1000
        return Answer(status, body, url, sent)

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
    def is_held(self) -> bool:
        """Whether others hold the lock, and it can be waited for."""
        return self.code in HELD

    @property
    def grants_nothing(self) -> bool:
        """Whether an acquire with this answer certainly was not granted."""
        return not self.is_repeated and (
            self.is_final
            or self.is_denial
            or self.status == 429
            or self.code == UNSENT
        )

    def has(self, member: str) -> bool:
        """Whether it is what was asked for, and no page of a proxy."""
        return self.status == 200 and member in self.body

    @property
    def retry_after_s(self) -> float:
        after_ms = self.body.get("retry_after_ms")
        if not isinstance(after_ms, (int, float)):
            return 0.0
        return max(after_ms, 0) / 1000

    @property
    def is_foreign(self) -> bool:
        """Whether a gateway has refused it, or whatever is there in place of
        redlockd, whose problems have a code."""
        return self.status >= 300 and not self.code

    @property
    def detail(self) -> str:
        if not self.is_foreign:
            return str(self.body.get("detail", ""))
        kind = _UNPRINTABLE.sub("?", self.content_type[:HEADER_SHOWN])
        return f"not from redlockd ({kind or 'no Content-Type'})"

    def __str__(self) -> str:
        status = f"{self.status} " if self.status else ""
        return f"{status}{self.detail}".rstrip()


Step = Send | Sleep
T = TypeVar("T")
Talk = Generator[Step, Answer | None, T]


class Grant:
    """Moments are on our clock. It does not change once a Hold has it."""

    __slots__ = (
        "fencing_token",
        "id",
        "is_shared",
        "renew_at",
        "renew_from",
        "slots",
        "token",
        "ttl_ms",
        "until",
        "work_until",
    )

    def __init__(self, body: Mapping[str, Any], sent: float) -> None:
        """Raises KeyError or TypeError."""
        granted = sent + body["elapsed_ms"] / 1000
        renew_s = body["renew_after_ms"] / 1000
        ttl_ms, validity_ms = body["ttl_ms"], body["validity_ms"]
        self.id: str = body["id"]
        self.token: str = body["token"]  # a secret
        self.fencing_token: int = body["fencing_token"]
        self.ttl_ms: int = ttl_ms
        self.renew_from: float = granted + renew_s * TOGETHER  # with others
        self.renew_at: float = granted + renew_s
        self.until: float = granted + validity_ms / 1000
        # a tenth of the TTL to end the work
        self.work_until: float = self.until - ttl_ms / 10_000
        self.slots: tuple[int, ...] = tuple(body.get("slots", ()))  # a permit's
        self.is_shared: bool = body.get("mode") == "shared"

    def __repr__(self) -> str:
        return f"Grant({self.id!r}, {self.fencing_token})"

    @property
    def members(self) -> str:
        """Of the JSON that names the lock."""
        return f'"id":{quoted(self.id)},"token":{quoted(self.token)}'

    @staticmethod
    def read(answer: Answer | None) -> Grant | None:
        """None: no grant."""
        if answer is None or answer.status not in (200, 201):
            return None
        body = answer.body
        try:
            if not is_word(body["id"] + body["token"]):
                return None
            return Grant(body, answer.sent)
        except (KeyError, TypeError):
            return None  # cut off, or not from redlockd


class Hold:
    """A lock that was granted: until when, and whether it was lost before.
    Work under it ends a tenth of the TTL before its validity does."""

    def __init__(self, wish: Wish, grant: Grant) -> None:
        self.name = wish.name
        self._wish = wish
        self.grant = grant
        self.slots = grant.slots
        self.loss: LockLost | None = None
        self.is_released = False
        # a downgrade has begun: from now on, each extend asks for it
        self.wants_shared = grant.is_shared
        self._mutex = threading.Lock()

    def extended(self, grant: Grant) -> None:
        """While the lock becomes a shared one, a renewal may be under way. Its
        answer may come last, with the token from before. No answer takes back
        what an earlier one promised."""
        with self._mutex:
            before = self.grant
            if before.is_shared and not grant.is_shared:
                grant.token, grant.is_shared = before.token, True
            grant.until = max(before.until, grant.until)
            grant.work_until = max(before.work_until, grant.work_until)
            self.grant = grant

    @property
    def scope(self) -> Scope:
        """Of calls with its token."""
        wish = self._wish
        if wish.limit is not None:  # each slot is a lock
            pool = wish.resources[0]
            return Scope(tuple(f"{pool}\n{slot}" for slot in self.slots))
        if self.grant.is_shared == wish.shared:
            return wish.scope
        return Scope(wish.resources, "readers")  # since its downgrade

    @property
    def remaining_s(self) -> float:
        """For work: less than until the validity ends."""
        if self.loss or self.is_released:
            return 0.0
        return max(0.0, self.grant.work_until - now())

    @property
    def validity_s(self) -> float:
        return max(0.0, self.grant.until - now())

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
        names: list[str] = []
        for each in resources:
            if isinstance(each, str):
                names.append(each)
            else:
                names.extend(each)
        self.resources = tuple(names)
        self.name = ", ".join(names)
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
        self.scope = Scope(self.resources, self._group)
        self.members = self._members()
        """Of the JSON that asks for it."""

    @property
    def _group(self) -> str:
        if self.limit is not None:
            return "permits"
        return "readers" if self.shared else ""

    def _members(self) -> str:
        text = f'"resource":{quoted(self.resources[0])}'
        if len(self.resources) > 1:
            text = f'"resources":[{",".join(map(quoted, self.resources))}]'
        if self.ttl is not None:
            text += f',"ttl_ms":{round(self.ttl * 1000)}'
        if self.owner is not None:
            text += f',"owner":{quoted(self.owner)}'
        if self.limit is not None:
            text += f',"limit":{self.limit},"permits":{self.permits}'
        if self.shared:
            text += ',"mode":"shared"'
        return text


def _refused(what: str, answer: Answer) -> str:
    """A refusal that is not from redlockd says where it is from."""
    if not answer.is_foreign:
        return f"{what}: {answer}"
    url = shown(answer.url)
    return f"{what}: {answer.status} from {url}, {answer.detail}"


def denial(what: str, answer: Answer) -> RedlockdError:
    text = _refused(what, answer)
    if answer.status == 401:
        return Unauthorized(text, 401, answer.code)
    if answer.status == 403:
        return Forbidden(text, 403, answer.code)
    return Untrusted(text)


def refusal(what: str, answer: Answer) -> RedlockdError:
    if answer.is_denial:
        return denial(what, answer)
    return RequestRefused(_refused(what, answer), answer.status, answer.code)


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


def told(
    replicas: Replicas, failures: int, answer: Answer | None
) -> Answer | None:
    """Whose delay to heed. Another replica, which is asked next, need not be
    busy: only once each has failed."""
    return answer if failures % len(replicas.urls) == 0 else None


def _acquiring(
    key: str, members: str, timeout_s: float, wait_s: float, scope: Scope
) -> Send:
    wait_ms = int(wait_s * 1000)
    patient = wait_s, f'{{{members},"wait_ms":{wait_ms}}}'
    return Send(
        "POST",
        "/locks",
        {"Idempotency-Key": key},
        f"{{{members}}}",
        timeout_s,
        scope=scope,
        item=f'{{"operation":"acquire",{members},"idempotency_key":"{key}"}}',
        patience=patient if wait_ms else None,
    )


class Attempt:
    """One acquire. All its requests have one key: if an answer with a grant was
    lost, the next request gets the same lock."""

    def __init__(self) -> None:
        self._key = os.urandom(16).hex()  # as secret as a token
        self._is_patient = False  # a try has found the lock held
        self.may_be_granted = False  # by a request whose answer does not tell
        self.asked: Send | None = None
        self.is_open = False  # it was asked; there is no answer, or a grant

    def ask(self, wish: Wish, timeout_s: float, left_s: float) -> Send:
        """Whoever waits for a lock may wait long, so where there are other
        requests to go with, it is tried first."""
        wait_s = min(max(left_s, 0.0), LONGEST_WAIT_S)
        self.asked = _acquiring(
            self._key, wish.members, timeout_s, wait_s, wish.scope
        )
        self.is_open = True
        if self._is_patient:
            self.asked.wait()
        return self.asked

    def waits_now(self) -> bool:
        """Whether that was a try, and the lock is waited for from now on. That
        is a request of its own: a server undoes it if its client leaves, but
        not a repeat. If the lock may be granted, the key stays."""
        assert self.asked
        if self._is_patient or self.asked.wait_s:
            return False
        self._is_patient = True
        if not self.may_be_granted:
            self._key = os.urandom(16).hex()
        return True


# How long an acquire that was given up waits until it is given back: its
# program may be about to end.
GIVE_BACK_S = 2.0
# Of an acquire that was given up: nobody knows what came of it.
UNKNOWN = Answer(0, {"code": NO_ANSWER, "detail": "given up"})


def acquire(
    replicas: Replicas,
    wish: Wish,
    wait: float | None,
    timeout_s: float,
    attempt: Attempt,
) -> Talk[Grant]:
    """Asks until the lock is ours or the time is up."""
    deadline = float("inf") if wait is None else now() + wait
    failures = denials = 0
    while True:
        answer = yield attempt.ask(wish, timeout_s, deadline - now())
        grant = Grant.read(answer)
        if grant and grant.work_until > now():
            return grant
        assert answer
        if not answer.grants_nothing:
            attempt.may_be_granted = True
        attempt.is_open = False
        left_s = deadline - now()
        denials = denials + 1 if answer.is_denial else 0
        if answer.is_held:
            if left_s <= 0:
                raise held(wish, answer)
            if attempt.waits_now():
                continue
            if not answer.body.get("waited_ms"):  # it did not wait
                delay_s = answer.retry_after_s or backoff_s(0, None)
                yield Sleep(min(delay_s, left_s))
            continue
        if answer.is_denial:
            replicas.avoid(answer.url)
            if denials >= len(replicas.urls):
                raise denial(wish.name, answer)
            continue
        if answer.is_final:
            raise refusal(wish.name, answer)
        failures += 1
        why = f"{shown(answer.url)}: {answer}"
        # each replica once, and one of them again
        if left_s <= 0 and failures > len(replicas.urls):
            raise unavailable(f"{wish.name}: no server grants it", answer, why)
        if answer.code == STALE:
            continue
        replicas.avoid(answer.url)
        tell = log.warning if failures == 1 else log.info
        tell(
            "%s: not acquired yet, trying again (%s)",
            wish.name,
            why,
        )
        delay_s = backoff_s(failures, told(replicas, failures, answer))
        yield Sleep(min(delay_s, max(left_s, 0.0)))


def undo(
    replicas: Replicas, send: Send, answer: Answer, timeout_s: float
) -> Talk[None]:
    """Of an acquire whose caller has left: releases what it was granted. If
    that is not known, it asks again with the same key."""
    assert send.scope
    assert send.body
    wish = Wish(send.scope.names)
    body = json.loads(send.body)
    body["ttl_ms"] = SHORTEST_TTL_MS
    body.pop("wait_ms", None)
    again = _acquiring(
        send.headers["Idempotency-Key"],
        json.dumps(body)[1:-1],
        timeout_s,
        0.0,
        send.scope,
    )
    was_lost = False
    for failures in range(len(replicas.urls) + 2):  # with the one before
        grant = Grant.read(answer)
        if grant:
            try:
                yield from release(replicas, Hold(wish, grant), timeout_s)
                return
            except LockLost:
                # the request of the caller may have come later than this one,
                # and have taken its place
                if was_lost:
                    return
            was_lost = True
            said = yield again
            assert said
            answer = said
            continue
        # the first one is the caller's: if it is to a repeat, it says nothing
        if answer.grants_nothing and failures == 0:
            return
        is_refused = answer.is_final and not answer.is_denial
        if is_refused and failures > 0:
            return  # others hold it: nothing was granted
        if not is_refused:
            replicas.avoid(answer.url)
        if failures > len(replicas.urls):
            break
        if failures:
            yield Sleep(backoff_s(failures, None))
        said = yield again
        assert said
        answer = said
    log.warning(
        "%s: cancelled, and not released: it may be held until its TTL ends",
        wish.name,
    )


def held(wish: Wish, answer: Answer) -> LockHeld:
    held_by = answer.body.get("held_by")
    if not isinstance(held_by, dict):
        held_by = {}
    if wish.limit is not None:
        text = f"{wish.name}: too few of {wish.limit} permits are free"
        return LockHeld(text, {})
    owner = held_by.get("owner", "somebody else")
    readers = held_by.get("readers", 0)
    if readers:
        owner = "a reader" if readers == 1 else f"{readers} readers"
    return LockHeld(f"{wish.name}: the lock is held by {owner}", held_by)


def downgrade(replicas: Replicas, hold: Hold, timeout_s: float) -> Talk[None]:
    """Makes an exclusive lock a shared one. Meanwhile it may be renewed, and
    each of both may get the answer with the new token first. If this is
    interrupted, the next renewal does it."""
    if hold.grant.is_shared:
        return
    hold.wants_shared = True
    try:
        yield from extend(replicas, hold, timeout_s, hold.grant.ttl_ms)
    except RequestRefused as refused:
        if refused.code != MAX_HOLD:
            hold.wants_shared = False  # no server has begun it
        raise


def extend(
    replicas: Replicas,
    hold: Hold,
    timeout_s: float,
    ttl_ms: int | None = None,
) -> Talk[bool]:
    """False: the lock cannot be extended, and ends with its validity. Raises
    LockLost if it is no longer ours. ttl_ms: not a renewal, but asked for;
    servers may refuse that, which raises. Renewals then have this TTL, too."""
    failures = refusals = 0
    while True:
        left_s = hold.remaining_s
        if left_s <= 0:
            raise hold.late()
        members = f'"ttl_ms":{ttl_ms or hold.grant.ttl_ms}'
        # asked with either token, a server finds the lock in either mode
        wants_shared = hold.wants_shared
        if wants_shared:
            members += ',"mode":"shared"'
        # Connection and answer together take at most half of what is left:
        # so another replica can be asked.
        answer = yield Send(
            "PUT",
            f"/locks/{hold.grant.id}/extend",
            {"X-Lock-Token": hold.grant.token},
            f"{{{members}}}",
            min(timeout_s, left_s / 4),
            is_urgent=left_s < URGENT_S,
            scope=hold.scope,
            item=f'{{"operation":"extend",{hold.grant.members},{members}}}',
        )
        grant = Grant.read(answer)
        if grant:
            hold.extended(grant)
            return True
        assert answer
        if wants_shared != hold.wants_shared:
            continue  # the token may have changed meanwhile
        if answer.code in ENDED:
            raise LockLost(f"{hold.name}: the lock ended ({answer})")
        if answer.code == MAX_HOLD:
            log.warning("%s: no longer extended (%s)", hold.name, answer)
            if ttl_ms:
                raise refusal(hold.name, answer)
            return False
        # the first of two may have made it a shared one
        may_be_done = answer.is_repeated and (
            wants_shared and not hold.grant.is_shared
        )
        if ttl_ms and answer.is_final and not may_be_done:
            refusals += 1
            if refusals == failures + 1 >= len(replicas.urls):
                raise refusal(hold.name, answer)
        failures += 1
        if answer.code == STALE and failures == 1:
            continue
        replicas.avoid(answer.url)
        log.warning(
            "%s: not extended yet (%s: %s)",
            hold.name,
            shown(answer.url),
            answer,
        )
        delay_s = backoff_s(failures, told(replicas, failures, answer))
        yield Sleep(min(delay_s, hold.remaining_s / 4))


def release(
    replicas: Replicas, hold: Hold, timeout_s: float, may_be_done: bool = False
) -> Talk[None]:
    """Raises LockLost if the lock had ended. If no server answers, that is only
    logged: the lock expires, and other clients wait for that long. may_be_done:
    by a request whose answer was lost."""
    hold.is_released = True
    for failures in range(1, len(replicas.urls) + 2):
        answer = yield Send(
            "DELETE",
            f"/locks/{hold.grant.id}",
            {"X-Lock-Token": hold.grant.token},
            None,
            timeout_s,
            scope=hold.scope,
            item=f'{{"operation":"release",{hold.grant.members}}}',
        )
        assert answer
        if answer.status == 200:
            return
        if answer.code in ENDED:
            # that may have been our own release
            if may_be_done or answer.is_repeated:
                return
            raise LockLost(f"{hold.name}: the lock had ended ({answer})")
        if answer.is_repeated or not (
            answer.is_denial or answer.status == 429 or answer.code == UNSENT
        ):
            may_be_done = True
        if answer.code == STALE:
            continue
        replicas.avoid(answer.url)
        if hold.validity_s <= 0 or failures > len(replicas.urls):
            break
        limit = answer if answer.status == 429 else None
        delay_s = backoff_s(failures, told(replicas, failures, limit))
        yield Sleep(min(delay_s, hold.validity_s))
    log.warning(
        "%s: not released; it is free in %.1f s (%s)",
        hold.name,
        hold.validity_s,
        answer,
    )
