"""What clients ask for, as HTTP says it."""
from __future__ import annotations

import base64
from dataclasses import dataclass

from history import Call


def lock_id(resources: tuple[str, ...]) -> str:
    """In the path of its URL."""
    if len(resources) == 1:
        return resources[0]
    text = base64.urlsafe_b64encode("\n".join(resources).encode()).decode()
    return "~~" + text.rstrip("=")


@dataclass(frozen=True)
class Want:
    """What a client asks for, once or again."""
    resources: tuple[str, ...]
    key: str
    owner: str

    def head(self) -> str:
        key = f"Idempotency-Key: {self.key}\r\n" if self.key else ""
        return f"POST /locks HTTP/1.1\r\n{key}"

    def body(self, call: Call) -> dict:
        body: dict = {"ttl_ms": call.ttl_ms}
        if len(self.resources) == 1:
            body["resource"] = self.resources[0]
        else:
            body["resources"] = self.resources
        if self.owner:
            body["owner"] = self.owner
        if call.wait_ms:
            body["wait_ms"] = call.wait_ms
        return body
