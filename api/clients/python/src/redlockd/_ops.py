"""The calls of operators, in the form of _talk.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote, urlencode

from ._errors import RequestRefused
from ._talk import (
    ENDED,
    Answer,
    Replicas,
    Send,
    Sleep,
    Talk,
    backoff_s,
    denial,
    shown,
    unavailable,
)

PAGE = 1000


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
        )


def ask(
    replicas: Replicas, method: str, path: str, timeout_s: float
) -> Talk[Answer]:
    """Asks each replica once, until one answers with something else than a
    failure of its own."""
    what = f"{method} {path}"
    denials = 0
    for failures in range(1, len(replicas.urls) + 1):
        url = replicas.choose()
        answer = yield Send(method, f"{url}{path}", {}, None, timeout_s)
        is_denial = answer is not None and answer.is_denial
        is_told = answer is not None and (
            answer.status == 200 or answer.is_final
        )
        if answer and is_told and not is_denial:
            return answer
        denials += is_denial
        replicas.avoid(url)
        if failures < len(replicas.urls):
            yield Sleep(backoff_s(0, None))
    if answer and denials == len(replicas.urls):
        raise denial(what, answer)
    raise unavailable(what, answer, f"{shown(url)}: {answer or 'no answer'}")


@dataclass(frozen=True)
class Page:
    locks: tuple[HeldLock, ...]
    cursor: str  # "": there is no next page


def list_page(
    replicas: Replicas, prefix: str, cursor: str, timeout_s: float
) -> Talk[Page]:
    wanted = {"limit": str(PAGE), "prefix": prefix, "cursor": cursor}
    query = urlencode({name: text for name, text in wanted.items() if text})
    answer = yield from ask(replicas, "GET", f"/locks?{query}", timeout_s)
    if answer.status != 200:
        raise RequestRefused(f"the list: {answer}", answer.status, answer.code)
    locks = tuple(HeldLock.read(fields) for fields in answer.body["locks"])
    return Page(locks, answer.body.get("cursor", ""))


def force_release(
    replicas: Replicas,
    id: str,
    fencing_token: int | Literal["all"],
    timeout_s: float,
) -> Talk[bool]:
    path = f"/locks/{quote(id, safe='~')}?force={fencing_token}"
    answer = yield from ask(replicas, "DELETE", path, timeout_s)
    if answer.code in ENDED:
        return False
    if answer.status != 200:
        raise RequestRefused(f"{id}: {answer}", answer.status, answer.code)
    return True
