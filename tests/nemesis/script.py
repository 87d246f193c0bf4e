# SPDX-License-Identifier: MIT
"""Histories made by hand: what feeds the checker in the self tests.

  NAME: what is found in it
      [LOCK =] OP [LOCK] SENT..[DONE] [#NUMBER] [STATUS [CODE]] [FIELD=VALUE…]

Moments are in ms. grant: an acquire that was granted; keyed: one with a key,
always the same, for longer than others. killed: no call, but a span in which a
server is down. resources=p#0+p#1: two slots of a pool. Behind -- stands a
comment.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from history import ACQUIRE, EXTEND, FREE, MS, WATCH, Call, Span
from wants import SLOT

BASE = 1_000 * MS  # long past, however lately the machine was booted
GRANT, KEYED, KILLED = "grant", "keyed", "killed"
LINE = re.compile(
    r"(?:(?P<name>\w+) = )?(?P<op>\w+)(?: (?P<lock>[a-z]+))? "
    r"(?P<sent>-?\d+)\.\.(?P<done>-?\d*)(?: #(?P<number>\d+))?"
    r"(?: (?P<status>\d+)(?: (?P<code>\w+))?)?(?P<fields>(?: \w+=\S*)*)")
GRANTS = (GRANT, KEYED)
VALIDITY_MS = {GRANT: 100, KEYED: 500, EXTEND: 100}


def _moment(ms: str) -> int:
    return BASE + int(ms) * MS if ms else 0


class Script:
    """Writes the calls of some lines."""

    def __init__(self, *lines: str) -> None:
        self.calls: list[Call] = []
        self.spans: list[Span] = []
        self.locks: dict[str, Call] = {}
        for line in lines:
            self.write(line)

    def write(self, line: str) -> None:
        found = LINE.fullmatch(line)
        assert found, line
        sent, done = _moment(found["sent"]), _moment(found["done"])
        fields = dict(word.split("=") for word in found["fields"].split())
        if found["op"] == KILLED:
            self.spans.append(Span("server-kill", "", sent, done,
                                   int(fields["server"])))
            return
        call = self._call(found["op"], found["lock"])
        call.sent = call.opened = sent
        call.done = done
        if found["number"]:
            call.number = int(found["number"])
        if found["op"] == WATCH:
            call.version = found["number"] or FREE
        if found["status"] or not done:
            call.status = int(found["status"] or 0)
            call.code = found["code"] or ""
        if call.is_won:
            call.validity_ms = VALIDITY_MS.get(found["op"], 0)
        call.is_repeat = found["op"] == KEYED and call.status == 200
        for name, value in fields.items():
            kind = type(getattr(call, name))
            setattr(call, name, tuple(value.replace("#", SLOT).split("+"))
                    if kind is tuple else kind(value))
        self.calls.append(call)
        self.locks[found["name"]] = call

    def _call(self, op: str, lock: str | None) -> Call:
        """Of a lock, if it has a name; answered with success."""
        call = Call(ACQUIRE if op in GRANTS else op, len(self.calls), 0, ("r",),
                    1000, status=201 if op in GRANTS else 200)
        if lock:
            of = self.locks[lock]
            call.of, call.resources = of.id, of.resources
            call.number, call.key = of.number, of.key
        elif call.op == ACQUIRE:
            call.of = call.id
        if op == KEYED:
            call.key = "k"
        if op == WATCH:
            call.after, call.session = FREE, 1
        return call


@dataclass
class Scene:
    """One of several histories."""
    found: set[str]  # the invariants that are violated
    lines: list[str]

    def play(self) -> Script:
        return Script(*self.lines)


def scenes(text: str) -> dict[str, Scene]:
    """By their names."""
    known: dict[str, Scene] = {}
    lines: list[str] = []
    for line in text.splitlines():
        words = re.split(r"(?:^| +)-- ", line)[0]
        if words.startswith(" ") and words.strip():
            lines.append(words.strip())
        elif words:
            name, _, found = words.partition(":")
            assert name not in known, name
            lines = []
            known[name] = Scene(set(found.split()), lines)
    return known


HISTORIES = scenes((Path(__file__).parent / "histories").read_text())
