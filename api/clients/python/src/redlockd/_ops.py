# SPDX-License-Identifier: MIT
"""The calls about locks of others, in the form of _talk.py."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal
from urllib.parse import quote, urlencode

from ._clock import now
from ._replicas import Replicas, shown
from ._talk import (
    ENDED,
    LONGEST_WAIT_S,
    Answer,
    Send,
    Sleep,
    Talk,
    Wish,
    backoff_s,
    denial,
    refusal,
    told,
    unavailable,
)

PAGE = 1000
FREE = "free"  # the version of a lock that nobody holds
# an answer to a watch that tells nothing new should take its time
LOOK_S = 1.0


@dataclass(frozen=True)
class HeldLock:
    """A lock when it was listed. None: not known, as for locks of other
    libraries, and of readers."""

    id: str
    resources: tuple[str, ...]
    owner: str | None
    fencing_token: int | None
    remaining: float | None  # seconds
    waiters: int  # clients that wait for it at the server that was asked
    readers: int = 0  # how many hold it; 0: it is exclusive
    slots: tuple[int, ...] = ()  # of a permit; resources has its pool
    version: str = ""  # another one when the lock has changed hands

    @staticmethod
    def read(fields: Mapping[str, Any]) -> HeldLock:
        remaining_ms = fields.get("remaining_ms")
        return HeldLock(
            id=fields["id"],
            resources=tuple(fields.get("resources") or [fields["resource"]]),
            owner=fields.get("owner"),
            fencing_token=fields.get("fencing_token"),
            remaining=None if remaining_ms is None else remaining_ms / 1000,
            waiters=fields.get("waiters", 0),
            readers=fields.get("readers", 0),
            slots=tuple(fields.get("slots", ())),
            version=fields.get("version", ""),
        )


def ask(
    replicas: Replicas, method: str, path: str, member: str, timeout_s: float
) -> Talk[Answer]:
    """Asks each replica once, and one of them again, until one answers with
    something else than a failure of its own: an object with this member, or a
    problem."""
    what = f"{method} {path}"
    count = len(replicas.urls)
    failures = denials = 0
    while True:
        answer = yield Send(method, path, {}, None, timeout_s)
        assert answer
        denials = denials + 1 if answer.is_denial else 0
        if denials >= count:
            raise denial(what, answer)
        if not denials and (answer.is_final or answer.has(member)):
            return answer
        failures += 1
        replicas.avoid(answer.url)
        if failures > count:
            why = f"{shown(answer.url)}: {answer}"
            raise unavailable(what, answer, why)
        if not denials:
            yield Sleep(backoff_s(0, None))


@dataclass(frozen=True)
class Page:
    locks: tuple[HeldLock, ...]
    cursor: str  # "": there is no next page


def list_page(
    replicas: Replicas, prefix: str, cursor: str, timeout_s: float
) -> Talk[Page]:
    wanted = {"page_size": str(PAGE), "prefix": prefix, "cursor": cursor}
    query = urlencode({name: text for name, text in wanted.items() if text})
    answer = yield from ask(
        replicas, "GET", f"/locks?{query}", "locks", timeout_s
    )
    if answer.status != 200:
        raise refusal("the list", answer)
    locks = tuple(HeldLock.read(fields) for fields in answer.body["locks"])
    return Page(locks, answer.body.get("next_cursor", ""))


def force_release(
    replicas: Replicas,
    id: str,
    fencing_token: int | Literal["all"],
    timeout_s: float,
) -> Talk[bool]:
    path = f"/locks/{quote(id, safe='~')}?force={fencing_token}"
    answer = yield from ask(replicas, "DELETE", path, "released", timeout_s)
    if answer.code in ENDED:
        return False
    if answer.status != 200:
        raise refusal(id, answer)
    return True


# ---- who holds it ------------------------------------------------------------


class Unknown(Enum):
    """In place of a holder: nobody has looked yet."""

    UNKNOWN = "unknown"


def lock_id(resource: str) -> str:
    """As the servers make it: any proxy passes it on unchanged."""
    if re.fullmatch(r"[A-Za-z0-9._:-]+", resource) and resource not in (
        ".",
        "..",
    ):
        return resource
    code = base64.urlsafe_b64encode(resource.encode()).decode()
    return "~" + code.rstrip("=")


def _holder(resource: str, answer: Answer) -> HeldLock | None:
    if answer.status != 200:
        raise refusal(resource, answer)
    return HeldLock.read(answer.body) if answer.body["held"] else None


def get_holder(
    replicas: Replicas, resource: str, timeout_s: float
) -> Talk[HeldLock | None]:
    path = f"/locks/{lock_id(resource)}"
    answer = yield from ask(replicas, "GET", path, "held", timeout_s)
    return _holder(resource, answer)


def is_locked(replicas: Replicas, wish: Wish, timeout_s: float) -> Talk[bool]:
    """Whether somebody holds one of its resources, or too many of its
    permits."""
    if wish.limit is None:
        for resource in wish.resources:
            if (yield from get_holder(replicas, resource, timeout_s)):
                return True
        return False
    resource = wish.resources[0]
    path = f"/pools/{lock_id(resource)}?limit={wish.limit}"
    answer = yield from ask(replicas, "GET", path, "free", timeout_s)
    if answer.status != 200:
        raise refusal(resource, answer)
    return len(answer.body["free"]) < wish.permits


def _version(last: HeldLock | Unknown | None) -> str:
    """Empty: none is known."""
    if isinstance(last, HeldLock):
        return last.version
    return FREE if last is None else ""


def _how_to_wait(version: str) -> tuple[str, float]:
    """The query, and how many seconds the server waits."""
    if not version:
        return "", 0.0
    wait_ms = round(LONGEST_WAIT_S * 1000)
    return f"?after={version}&wait_ms={wait_ms}", LONGEST_WAIT_S


def next_holder(
    replicas: Replicas,
    resource: str,
    last: HeldLock | Unknown | None,
    timeout_s: float,
) -> Talk[HeldLock | None]:
    """Waits until the lock has another version than the last one; None: nobody
    holds it. Goes on while servers fail."""
    path = f"/locks/{lock_id(resource)}"
    version = _version(last)
    query, wait_s = _how_to_wait(version)
    failures = denials = 0
    while True:
        answer = yield Send(
            "GET", path + query, {}, None, timeout_s, wait_s=wait_s
        )
        assert answer
        denials = denials + 1 if answer.is_denial else 0
        if denials:
            replicas.avoid(answer.url)
            if denials >= len(replicas.urls):
                raise denial(resource, answer)
        elif answer.has("version"):
            failures = 0
            query, wait_s = _how_to_wait(version)
            if answer.body["version"] != version:
                return _holder(resource, answer)
            yield Sleep(max(0.0, answer.sent + LOOK_S - now()))
        elif answer.is_final:
            raise refusal(resource, answer)
        else:
            failures += 1
            replicas.avoid(answer.url)
            # a server that does not wait, as it stops, may still tell
            query, wait_s = "", 0.0
            yield Sleep(backoff_s(failures, told(replicas, failures, answer)))
