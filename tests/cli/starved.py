#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""redlockctl without memory: whichever allocation of a command fails, from
before its first request to its end, each request leaves whole or not at all.
The command tries again and succeeds, or says that it is out of memory, and its
exit status tells so.

starved.py [COMMAND...]
"""
from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from answers import Answer, Answers, Handler

RESOURCE, LONG = "order:42", "order:42/and/more/that/no/small/buffer/holds"
TOKEN = "1795232967010985.15efaee60135134959b13300cbc2a96f06ea9d60.us"
LOCK = {"id": RESOURCE, "resource": RESOURCE, "token": TOKEN, "owner": LONG,
        "fencing_token": 1795232967010985, "held": True,
        "version": "1795232967010985", "validity_ms": 2000,
        "elapsed_ms": 1, "remaining_ms": 1999, "renew_after_ms": 700}
ANSWERS: dict[str, Any] = {
    "GET /locks": {"locks": [LOCK, {**LOCK, "id": LONG, "resource": LONG}]},
    f"DELETE /locks/{RESOURCE}": {"id": RESOURCE, "released": True},
    "GET /nodes": {"voting": 3, "total": 3, "quorum": 2, "nodes": [
        {"node": f"redis{n}:6379", "state": "voting", "rtt_us": 100,
         "detail": "the node may vote"} for n in range(3)]}}
PAGE = "<q?7xq"   # struct starved_page: left, lasts, failed
ALL = 1 << 40     # more allocations than there are
LAST = 160        # allocations, from before the first request to the end
OUT_OF_MEMORY = 71
LASTS_STEP = 8
JOBS = 4


@dataclass(frozen=True)
class Command:
    words: str
    asks: str
    body: dict[str, Any] | None = None  # members that it must have
    step: int = 4  # of the allocations that are tried
    lasts: bool = True  # also while there is no memory at all


COMMANDS = {
    "acquire": Command(
        f"acquire -n --shared --owner us --ttl 3 {RESOURCE} {LONG}",
        "POST /locks", {"resources": [RESOURCE, LONG], "owner": "us",
                        "mode": "shared", "ttl_ms": 3000}, step=1),
    "permits": Command(
        f"acquire -n --json --limit 3 --owner us {RESOURCE}", "POST /locks",
        {"resource": RESOURCE, "limit": 3, "permits": 1, "owner": "us"}),
    # these two try for ten seconds
    "extend": Command(f"extend --ttl 3 {RESOURCE}",
                      f"PUT /locks/{RESOURCE}/extend", {"ttl_ms": 3000},
                      step=1, lasts=False),
    "release": Command(f"release {RESOURCE}", f"DELETE /locks/{RESOURCE}",
                       lasts=False),
    "show": Command(f"show {RESOURCE}", f"GET /locks/{RESOURCE}"),
    "list": Command("list --json", "GET /locks", step=1),
    "table": Command("list --prefix order", "GET /locks"),
    "nodes": Command("nodes", "GET /nodes"),
}


class Service(Answers):
    """Notes what a request lacks, and answers that all is well."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.requests: list[list[str]] = []
        super().__init__(self.note)

    def lacks(self, request: Handler, body: bytes) -> list[str]:
        wanted = {"Authorization": "Bearer our-token"}
        if request.command in ("PUT", "DELETE"):
            wanted["X-Lock-Token"] = TOKEN
        if self.command.body is not None:
            wanted["Content-Type"] = "application/json"
        # a lock is given back whose token could not be printed
        gives_back = request.command == "DELETE" and \
            self.command.asks == "POST /locks"
        if gives_back:
            del wanted["Content-Type"]
        found = [name for name, value in wanted.items()
                 if request.headers.get(name) != value]
        if gives_back:
            return found
        if request.command == "POST" and \
                "Idempotency-Key" not in request.headers:
            found.append("Idempotency-Key")
        if "Expect" in request.headers:
            found.append("no Expect")
        if what(request) != self.command.asks:
            found.append(request.requestline)
        sent = json.loads(body or "{}")
        return found + [name for name, value in (self.command.body or {}).items()
                        if sent.get(name) != value]

    def note(self, request: Handler, body: bytes) -> Answer:
        self.requests.append(self.lacks(request, body))
        own = {"slots": [1]} if b'"limit"' in body else {}
        return 200, ANSWERS.get(what(request), {**LOCK, **own})


def what(request: Handler) -> str:
    return f"{request.command} {request.path.split('?')[0]}"


@dataclass
class Ended:
    status: int
    out: str  # without the digits: times differ
    error: str
    left: int  # of the allocations


class Program:
    def __init__(self, service: Service, folder: Path) -> None:
        ctl = Path(os.environ.get("REDLOCKCTL", "build/release/redlockctl"))
        shim = ctl.resolve().parent / "starved-shim.so"
        assert shim.exists(), shim
        self.folder = folder
        self.words = [str(ctl), *service.command.words.split()]
        kept = {name: text for name, text in os.environ.items()
                if not name.startswith("REDLOCKD_")}
        self.environment = {
            **kept, "LD_PRELOAD": str(shim),
            "REDLOCKD_URL": service.url,
            "REDLOCKD_AUTH_TOKEN": "our-token", "REDLOCKD_TOKEN": TOKEN}

    def run(self, number: int, lasts: bool = False) -> Ended:
        """This allocation fails, or all from it on."""
        page = self.folder / f"{'one-all'[4 * lasts:][:3]}{number:020}"
        page.write_bytes(struct.pack(PAGE, number, lasts, 0))
        ended = subprocess.run(self.words, text=True, timeout=60,
                               stdin=subprocess.DEVNULL, capture_output=True,
                               env={**self.environment, "STARVED": str(page)})
        left = struct.unpack(PAGE, page.read_bytes())[0]
        return Ended(ended.returncode, re.sub(r"\d", "", ended.stdout),
                     ended.stderr, left)


def is_good(ended: Ended, well: Ended) -> bool:
    if ended.status == OUT_OF_MEMORY:
        return "out of memory" in ended.error
    return (ended.status, ended.out) == (0, well.out)


def check(name: str) -> bool:
    command = COMMANDS[name]
    service = Service(command)
    with tempfile.TemporaryDirectory() as folder, \
            ThreadPoolExecutor(JOBS) as pool:
        program = Program(service, Path(folder))
        well = program.run(ALL)
        whole = [lacks for lacks in service.requests if not lacks]
        count = ALL - well.left
        first = max(count - LAST, 1)
        runs = [(n, False) for n in range(first, count + 1, command.step)]
        if command.lasts:
            runs += [(n, True) for n in range(first, count + 1, LASTS_STEP)]
        ends = list(pool.map(lambda run: program.run(*run), runs))
    service.shutdown()
    lacking = [lacks for lacks in service.requests if lacks]
    bad = [(run, ended) for run, ended in zip(runs, ends)
           if not is_good(ended, well)]
    starved = sum(ended.status == OUT_OF_MEMORY for ended in ends)
    print(f"{name}: {count} allocations; of {len(ends)} runs {starved} were "
          f"out of memory; {len(service.requests)} requests")
    passed = [well.status == 0 and len(whole) == 1, not lacking, not bad,
              0 < starved < len(ends)]
    if not all(passed):
        print("FAILED", name, *passed, well, lacking[:3], *bad[:9], sep="\n  ")
    return all(passed)


def main() -> int:
    names = sys.argv[1:] or list(COMMANDS)
    passed = sum(check(name) for name in names)
    print(f"{passed} passed, {len(names) - passed} failed")
    return 0 if passed == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
