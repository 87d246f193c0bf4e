# SPDX-License-Identifier: MIT
"""What clients ask for, as HTTP says it."""
from __future__ import annotations

import base64
from dataclasses import dataclass

from history import EXCLUSIVE, SHARED, Call

SLOT = "\x1f"  # in the name of a slot: behind that of its pool


def slot_name(pool: str, slot: int) -> str:
    return f"{pool}{SLOT}{slot}"


def lock_id(resources: tuple[str, ...]) -> str:
    """In the path of its URL."""
    if len(resources) == 1 and resources[0].isalnum():
        return resources[0]
    text = base64.urlsafe_b64encode("\n".join(resources).encode()).decode()
    return "~~"[:len(resources)] + text.rstrip("=")


@dataclass(frozen=True)
class Want:
    """What a client asks for, once or again."""
    resources: tuple[str, ...]
    key: str
    owner: str
    limit: int = 0  # resources: the pool; 0: they are what it wants
    permits: int = 1
    mode: str = EXCLUSIVE

    def head(self) -> str:
        key = f"Idempotency-Key: {self.key}\r\n" if self.key else ""
        return f"POST /locks HTTP/1.1\r\n{key}"

    def body(self, call: Call) -> dict:
        body: dict = {"ttl_ms": call.ttl_ms}
        if len(self.resources) == 1:
            body["resource"] = self.resources[0]
        else:
            body["resources"] = self.resources
        if self.limit:
            body |= {"limit": self.limit, "permits": self.permits}
        if self.mode == SHARED:
            body["mode"] = SHARED
        if self.owner:
            body["owner"] = self.owner
        if call.wait_ms:
            body["wait_ms"] = call.wait_ms
        return body
