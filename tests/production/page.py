# SPDX-License-Identifier: MIT
"""The blocks of docs/deploy/production.md that a reader pastes. Each begins with a line
that says where, such as "# on n1" or "# on each of n1 … n5, one after the
other"."""
from __future__ import annotations

import re
from dataclasses import dataclass

WHERE = re.compile(r"# on (?:(\w+)|each of n1 … n5(, one after the other)?)")
NODES = ("n1", "n2", "n3", "n4", "n5")

# what differs from run to run
MASKS = ((r'"request_id":"[0-9a-f]{16}"', '"request_id":"ID"'),
         (r"[0-9]{16}\.[0-9a-f]{40}", "TOKEN"),
         (r"[0-9]{16}", "NUMBER"),
         (r'"(validity|elapsed|waited|remaining|retry_after)_ms":[0-9]+',
          r'"\1_ms":MS'),
         (r'"(granted|held|released|asked)":[1-5]', r'"\1":MOST'),
         (r"for [0-9.]+ s", "for S"))


@dataclass(frozen=True)
class Block:
    line: int                # of the fence
    hosts: tuple[str, ...]
    is_in_turn: bool
    commands: str
    expected: str            # "" if nothing is shown
    is_console: bool

    def where(self) -> str:
        return self.hosts[0] if len(self.hosts) == 1 else "each node"

    def title(self) -> str:
        first = next(line for line in self.commands.splitlines()
                     if not line.startswith(("cd ", "apt-get update")))
        return f"line {self.line}, on {self.where()}: {first[:50]}"


def mask(text: str) -> str:
    for pattern, instead in MASKS:
        text = re.sub(pattern, instead, text)
    return text.strip()


def commands_of(lines: list[str]) -> tuple[str, str]:
    """Of a console block: what is typed, and what is shown. A command goes on
    after a line that ends with a backslash."""
    typed: list[str] = []
    shown: list[str] = []
    goes_on = False
    for line in lines:
        if line.startswith("$ ") or goes_on:
            typed.append(line if goes_on else line[2:])
            goes_on = line.endswith("\\")
        else:
            shown.append(line)
    return "\n".join(typed), "\n".join(shown)


def block(number: int, kind: str, lines: list[str]) -> Block:
    where = WHERE.fullmatch(lines[0]) if lines else None
    if not where:
        raise ValueError(f"line {number}: the block does not say where")
    hosts = (where[1],) if where[1] else NODES
    if kind == "sh":
        commands, expected = "\n".join(lines[1:]), ""
    else:
        commands, expected = commands_of(lines[1:])
    return Block(number, hosts, bool(where[2]), commands, expected,
                 kind == "console")


def blocks(text: str) -> list[Block]:
    found: list[Block] = []
    kind, begun, lines = "", 0, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if kind and line == "```":
            if kind in ("sh", "console"):
                found.append(block(begun, kind, lines))
            kind = ""
        elif kind:
            lines.append(line)
        elif line.startswith("```"):
            kind, begun, lines = line[3:] or "text", number, []
    return found
