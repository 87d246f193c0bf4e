#!/usr/bin/env python3
"""redlockctl and answers that a redlockd seldom gives, or never.

Durations that none tells are those of another service: redlockctl does not run
the command, and no signal ends it. Of three pages of locks, the second one has a
lock again that the first one had, as happens when it changes hands between two
requests; the prefix must come whole.

strange.py
"""
from __future__ import annotations

import os
import subprocess
import sys
import urllib.parse
from typing import Any

from answers import Answers, Handler

PLAIN = {"id": "order", "resource": "order", "token": "of-the-lock",
         "fencing_token": 1, "validity_ms": 2000, "elapsed_ms": 1,
         "renew_after_ms": 700}
WRONG = [{"elapsed_ms": -9_000_000_000_000_000}, {"elapsed_ms": -1},
         {"elapsed_ms": 2**63 - 1}, {"validity_ms": 2**63 - 1},
         {"validity_ms": -1}, {"renew_after_ms": -2**63},
         {"renew_after_ms": 2**40}]
FOREIGN = 76  # sysexits.h: EX_PROTOCOL
PAGES: dict[str, tuple[list[str], str | None]] = {
    "": (["x&1", "x&2"], "a b"), "a b": (["x&2", "x&3"], "c&d"),
    "c&d": (["x&4"], None)}


def page_of(request: Handler, _: bytes) -> Any:
    path, _, query = request.path.partition("?")
    fields = dict(urllib.parse.parse_qsl(query))
    if path != "/locks" or fields.get("prefix") != "x&":
        return {"code": "wrong"}
    names, cursor = PAGES[fields.get("cursor", "")]
    more = {"next_cursor": cursor} if cursor else {}
    return {**more, "locks": [
        {"id": name, "resource": name, "held": True, "remaining_ms": 5000,
         "fencing_token": 7, "owner": "me", "waiters": 0} for name in names]}


def ask(service: Answers, *words: str) -> tuple[int, str]:
    ctl = os.environ.get("REDLOCKCTL", "build/release/redlockctl")
    ended = subprocess.run(
        [ctl, *words], text=True, timeout=60, stdin=subprocess.DEVNULL,
        capture_output=True, env={**os.environ, "REDLOCKD_URL": service.url})
    return ended.returncode, ended.stdout + ended.stderr


def is_run_well(change: dict[str, int]) -> bool:
    service = Answers(lambda *_: {**PLAIN, **change})
    status, said = ask(service, "run", "-w", "0.5", "--ttl", "3", "order",
                       "--", "echo", "ran")
    if not change:
        return status == 0 and "ran" in said
    return status == FOREIGN and "as no redlockd does" in said


def are_pages_followed() -> bool:
    return ask(Answers(page_of), "list", "--prefix", "x&") == (0, "".join(
        f"x&{n}: held by me, fencing token 7, for 5.0 s\n" for n in range(1, 5)))


def main() -> int:
    results = {str(change): is_run_well(change) for change in [{}, *WRONG]}
    results["pages"] = are_pages_followed()
    failed = [name for name, is_well in results.items() if not is_well]
    for name in failed:
        print("FAILED", name)
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return len(failed) != 0


if __name__ == "__main__":
    sys.exit(main())
