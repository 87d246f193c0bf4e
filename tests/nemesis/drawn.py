# SPDX-License-Identifier: MIT
"""What clients and operators of the nemesis ask: a table, which a lint compares
with openapi.yaml. Each request is read as it is sent, so the table does not say
more than is done: at the end of a run, `drawn` names what it says too much.
"""
from __future__ import annotations

from urllib.parse import parse_qsl

# of each operation of openapi.yaml: parameters and fields of the body
DRAWN: dict[str, tuple[str, ...]] = {
    "acquireLock": ("Idempotency-Key", "resource", "resources", "ttl_ms",
                    "wait_ms", "owner", "mode", "limit", "permits"),
    "extendLock": ("X-Lock-Token", "token", "ttl_ms", "mode"),
    "runBatch": ("operations", "operations.operation", "operations.id",
                 "operations.token", "operations.resource",
                 "operations.resources", "operations.ttl_ms",
                 "operations.owner", "operations.mode", "operations.limit",
                 "operations.permits", "operations.idempotency_key"),
    "releaseLock": ("X-Lock-Token", "token", "force"),
    "getLock": ("after", "wait_ms"),
    "getPool": ("limit",),
    "listLocks": ("prefix", "page_size", "cursor"),
    "listNodes": (),
    "getLiveness": (),
    "getReadiness": ("verbose",),
    "getMetrics": (),
    "getOpenapi": (),
    "getDocs": (),
    "getPage": (),
    "getPageStyle": (),
    "getPageScript": (),
    "getPageIcon": (),
}
HEADERS = {"idempotency-key": "Idempotency-Key",
           "x-lock-token": "X-Lock-Token"}
LOCK = {"GET": "getLock", "DELETE": "releaseLock"}
LOCKS = {"GET": "listLocks", "POST": "acquireLock"}
PAGES = {"/nodes": "listNodes", "/livez": "getLiveness",
         "/readyz": "getReadiness", "/metrics": "getMetrics",
         "/openapi.yaml": "getOpenapi", "/docs": "getDocs", "/": "getPage",
         "/page.css": "getPageStyle", "/page.js": "getPageScript",
         "/page.svg": "getPageIcon"}


def operation(method: str, path: str) -> str:
    """As openapi.yaml calls it."""
    if path == "/locks":
        return LOCKS[method]
    if path == "/batch":
        return "runBatch"
    if path.startswith("/pools/"):
        return "getPool"
    if path.startswith("/locks/"):
        return "extendLock" if method == "PUT" else LOCK[method]
    return PAGES[path]


def asked(head: str, body: dict | None) -> tuple[str, set[str]]:
    """Operation and fields of a request."""
    line, *headers = head.split("\r\n")
    method, target, _ = line.split(" ")
    path, _, query = target.partition("?")
    names = {header.partition(":")[0].lower() for header in headers}
    fields = {HEADERS[name] for name in names if name in HEADERS}
    fields |= {name for name, _ in parse_qsl(query, keep_blank_values=True)}
    fields |= {f"operations.{name}" for one in (body or {}).get("operations", ())
               for name in one}
    return operation(method, path), fields | set(body or ())


class Drawn:
    """What has been sent, and what is left of the table."""

    def __init__(self) -> None:
        self.left = {(name, field) for name, fields in DRAWN.items()
                     for field in ("", *fields)}

    def note(self, head: str, body: dict | None) -> None:
        if not self.left:
            return  # most of the time
        name, fields = asked(head, body)
        self.left -= {(name, field) for field in ("", *fields)}

    def missing(self) -> list[str]:
        return sorted(f"{name} {field}".strip() for name, field in self.left)
