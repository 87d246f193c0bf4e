#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every identity asks everything: each set of scopes, with several sets of
prefixes, makes each call on several resources. What it may do is told by the
table of scopes in docs/reference/authentication.md, and by its prefixes.

  matrix.py        REDLOCKD: the binary
"""
from __future__ import annotations

import base64
import http.client
import itertools
import json
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parent.parent / "lib"))
import guarded
from stack import Stack

DOC = Path(__file__).parent.parent.parent / "docs" / "reference" / "authentication.md"
PREFIXES = (("*",), ("a/",), ("a/", "b/"), ("a", "ä/"))
NAMES = (("a/x",), ("b/x",), ("c/x",), ("a",), ("A/x",), ("ä/x",), ("a/../c",),
         ("a/x", "a/y"), ("a/x", "c/x"), ("a/x", "b/y"), ("b/x", "ä/y"))
LISTED = ("", "a/", "a/x", "b", "c/", "ä")
TOKEN = "1795221641865000.8f1c27a5b9d04e6e8f1c27a5b9d04e6e8f1c27a5"
KINDS = {"POST /locks", "PUT /locks/<id>/extend", "POST /batch",
         "DELETE /locks/<id>",
         "GET /locks/<id>", "GET /locks", "GET /pools/<id>", "GET /nodes", "GET /readyz?verbose",
         "GET /metrics", "DELETE /locks/<id>?force=…"}


def scopes_of_calls() -> dict[str, str]:
    """By the table: which scope allows a call."""
    section = DOC.read_text().split("\n## Scopes\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.M)
    scopes = {call: scope for scope, calls in rows
              for call in re.findall(r"`([A-Z]+ [^`]+)`", calls)}
    if set(scopes) != KINDS:
        sys.exit(f"the table has other calls than this test: "
                 f"{set(scopes) ^ KINDS}")
    return scopes


@dataclass(frozen=True)
class Identity:
    name: str
    scopes: frozenset[str]
    prefixes: tuple[str, ...]

    def line(self) -> str:
        words = [",".join(sorted(self.scopes))]
        return guarded.identity(self.name, self.name, " ".join(
            words + [f"prefix={one}" for one in self.prefixes]))

    def covers(self, names: tuple[str, ...]) -> bool:
        return self.prefixes == ("*",) or all(
            name.startswith(self.prefixes) for name in names)

    def may_list(self, prefix: str) -> bool:
        """Whether anything that it may see can begin so."""
        return self.prefixes == ("*",) or any(
            one.startswith(prefix) or prefix.startswith(one)
            for one in self.prefixes)


@dataclass(frozen=True)
class Call:
    kind: str
    names: tuple[str, ...] = ()
    prefix: str = ""

    def request(self) -> tuple[str, str, object]:
        method, path = self.kind.split(" ")
        path = path.replace("<id>", quote(lock_id(self.names), safe="~"))
        body: dict[str, object] | None = None
        if self.kind == "POST /locks":
            body = {"ttl_ms": 1000, **named(self.names)}
        elif self.kind == "POST /batch":
            body = {"operations": [{"operation": "extend", "token": TOKEN,
                                    "id": lock_id(self.names)}]}
        elif self.kind == "GET /pools/<id>":
            path += "?limit=3"
        elif self.kind == "GET /locks" and self.prefix:
            path += f"?prefix={quote(self.prefix)}"
        return method, path.replace("…", "1795221641865000"), body

    def is_allowed(self, identity: Identity, scope: str) -> bool:
        if scope not in identity.scopes:
            return False
        if self.kind == "GET /locks":
            return identity.may_list(self.prefix)
        return identity.covers(self.names)


def named(names: tuple[str, ...]) -> dict[str, object]:
    return {"resource": names[0]} if len(names) == 1 else {
        "resources": list(names)}


def lock_id(names: tuple[str, ...]) -> str:
    text = "\n".join(sorted(names, key=str.encode))
    if re.fullmatch(r"[A-Za-z0-9._:-]*", text):
        return text
    code = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    return ("~" if len(names) == 1 else "~~") + code


def identities() -> list[Identity]:
    every = ("lock", "read", "metrics", "admin")
    sets = [frozenset(some) for count in range(1, len(every) + 1)
            for some in itertools.combinations(every, count)]
    return [Identity(f"i{number}", scopes, prefixes)
            for number, (scopes, prefixes)
            in enumerate(itertools.product(sets, PREFIXES))]


def calls() -> list[Call]:
    with_names = [kind for kind in sorted(KINDS) if "<id>" in kind or
                  kind in ("POST /locks", "POST /batch")]
    alone = ("GET /nodes", "GET /readyz?verbose", "GET /metrics")
    return [Call(kind, names) for kind in with_names for names in NAMES
            if len(names) == 1 or kind != "GET /pools/<id>"] + [
        Call("GET /locks", (), prefix) for prefix in LISTED] + [
        Call(kind) for kind in alone]


class Matrix:
    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port,
                                                     timeout=60)
        self.scopes = scopes_of_calls()
        self.passed = self.failed = 0

    def ask(self, token: str, call: Call) -> tuple[int, bytes]:
        method, path, body = call.request()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if "extend" in path or call.kind == "DELETE /locks/<id>":
            headers["X-Lock-Token"] = TOKEN
        if body is not None:
            headers["Content-Type"] = "application/json"
        self.connection.request(method, path,
                                json.dumps(body) if body else None, headers)
        answer = self.connection.getresponse()
        status, text = answer.status, answer.read()
        if call.kind == "POST /batch" and status == 200:
            status = json.loads(text)["results"][0].get("status", 200)
        return status, text

    def note(self, is_good: bool, what: str) -> None:
        self.passed += is_good
        self.failed += not is_good
        if not is_good:
            print(f"FAILS {what}")

    def try_call(self, identity: Identity, call: Call) -> None:
        status, body = self.ask(identity.name, call)
        is_allowed = call.is_allowed(identity, self.scopes[call.kind])
        is_good = status not in (400, 401, 403) and status < 500 \
            if is_allowed else status == 403
        if is_good and is_allowed and call.kind == "GET /locks":
            is_good = all(identity.covers((lock["resource"],))
                          for lock in json.loads(body)["locks"])
        self.note(is_good, f"{identity.line()} {call}: {status} "
                           f"{body[:200]!r}")

    def try_strangers(self, call: Call) -> None:
        for token in ("", "i0x"):
            status, body = self.ask(token, call)
            self.note(status == 401, f"{token or 'nobody'} {call}: {status} "
                                     f"{body[:200]!r}")

    def hold(self, identity: Identity) -> None:
        """So that lists have what to show."""
        for name in ("a/held", "b/held", "c/held", "ä/held"):
            self.connection.request(
                "POST", "/locks", json.dumps({"resource": name, "ttl_ms": 60000}),
                {"Authorization": f"Bearer {identity.name}",
                 "Content-Type": "application/json"})
            answer = self.connection.getresponse()
            self.note(answer.status == 201, f"acquire {name}: {answer.read()!r}")

    def run(self, every: list[Identity]) -> None:
        self.hold(next(one for one in every if one.prefixes == ("*",)
                       and "lock" in one.scopes))
        for identity in every:
            for call in calls():
                self.try_call(identity, call)
        for call in calls():
            self.try_strangers(call)


def main() -> None:
    every = identities()
    with tempfile.TemporaryDirectory() as folder:
        auth = Path(folder) / "auth"
        auth.touch(0o600)
        auth.write_text("".join(f"{one.line()}\n" for one in every))
        stack = Stack(Path(folder))
        try:
            port = stack.start_server(0, "--auth-file", str(auth),
                                      "--node-timeout-ms", "2000")
            matrix = Matrix(port)
            matrix.run(every)
        finally:
            stack.end()
    print(f"rights: {matrix.passed} passed, {matrix.failed} failed")
    sys.exit(matrix.failed > 0)


if __name__ == "__main__":
    main()
