#!/usr/bin/env python3
"""A noun is one module, and a static function has a name of its own.

modules.py [--prune]

No two static functions of server/, api/ and cli/ share a name: so
a backtrace and grep find the one that is meant. No header there has only one
includer besides its own .c, which is the sign of a noun cut in two, unless its
first line is a comment that says why; tests do not count. tests/lint/lone_headers
lists those that are still to be merged: it only shrinks; --prune takes out those
that need not be listed any more. First a test shows that what is wrong is noticed.
"""
from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
LONE = ROOT / "tests/lint/lone_headers"
LONE_MOST = 31  # as many as the list has: lower it with the list
FOLDERS = ("server", "api", "cli")
STATIC = re.compile(r"^static\b[^;={]*?\b(\w+)\([^;]*?\)\s*\{", re.M)
INCLUDE = re.compile(r'^#include "(.*)"', re.M)
REASON = re.compile(r"/\* \w+( \S+){3,} \*/$")  # four words at least
Texts = dict[str, str]


def shared_names(texts: Texts) -> list[str]:
    found = defaultdict(list)
    for path, text in texts.items():
        for name in STATIC.findall(text):
            found[name].append(path)
    return [f"{name}: static in {' and in '.join(paths)}"
            for name, paths in sorted(found.items()) if len(paths) > 1]


def lone_headers(texts: Texts) -> dict[str, str]:
    """Those without a reason, and the file that includes each."""
    includers = defaultdict(set)
    for path, text in texts.items():
        folder = PurePosixPath(path).parent
        for target in INCLUDE.findall(text):
            name = normal(folder / target)
            if name.removesuffix(".h") != path.removesuffix(".c"):
                includers[name].add(path)
    return {name: min(paths) for name, paths in includers.items()
            if len(paths) == 1 and name in texts and
            not REASON.match(texts[name].partition("\n")[0])}


def normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def complaints(texts: Texts, listed: list[str], most: int) -> list[str]:
    lone = lone_headers(texts)
    found = shared_names(texts)
    found += [f"{name}: only {by} includes it; merge them, or say in its first "
              "line why not" for name, by in sorted(lone.items())
              if name not in listed]
    found += [f"tests/lint/lone_headers: {name} need not be listed"
              for name in listed if name not in lone]
    if len(listed) > most:
        found.append("tests/lint/lone_headers: has grown")
    if len(listed) < most:
        found.append(f"tests/lint/modules.py: LONE_MOST may be {len(listed)}")
    return found


def test() -> None:
    def gives(want: list[str], texts: Texts, *listed: str, most: int = 0) -> None:
        got = complaints(texts, list(listed), most)
        assert len(got) == len(want) and all(
            part in one for part, one in zip(want, got)), (want, got)

    good = {"cli/a.h": "/*\n * A. */\n", "cli/a.c": '#include "a.h"\n',
            "cli/b.c": '#include "a.h"\n', "server/c.c": '#include "../cli/a.h"\n'}
    lone = good | {"server/c.c": ""}
    reason = {"cli/a.h": "/* Apart from b.c: another process. */\n"}
    gives([], good)
    gives(["cli/a.h: only cli/b.c"], lone)
    gives([], lone | reason)
    gives(["cli/a.h: only"], lone | {"cli/a.h": "/* see b.c */\n"})
    gives([], lone, "cli/a.h", most=1)
    gives(["cli/a.h need not"], good, "cli/a.h", most=1)
    gives(["has grown"], lone, "cli/a.h")
    gives(["LONE_MOST may be 1"], lone, "cli/a.h", most=2)
    first = "static int walk(int a,\n                int b)\n{\n}\n"
    gives(["walk: static in cli/a.c and in cli/b.c"], good | {
        "cli/a.c": good["cli/a.c"] + first,
        "cli/b.c": good["cli/b.c"] + first.replace("int walk", "bool *walk")})
    gives(["walk: static in cli/a.h and in cli/b.c"], good | {
        "cli/a.h": first.replace("int walk", "inline int walk"),
        "cli/b.c": good["cli/b.c"] + "static int step(void)\n{\n}\n" + first})
    gives([], good | {  # declared twice, called, or named by a pointer
        "cli/b.c": good["cli/b.c"] + "static int walk(int a);\n" + first +
        "static int (*const all[])(int) = {walk};\nint c = walk(1);\n"})


def prune(texts: Texts) -> None:
    kept = [name for name in LONE.read_text().split()
            if name in lone_headers(texts)]
    LONE.write_text("".join(f"{name}\n" for name in kept))
    script = Path(__file__)
    script.write_text(re.sub(r"^LONE_MOST = \d+", f"LONE_MOST = {len(kept)}",
                             script.read_text(), flags=re.M))


def main() -> int:
    test()
    texts = {str(path.relative_to(ROOT)): path.read_text()
             for folder in FOLDERS
             for path in sorted((ROOT / folder).rglob("*.[ch]"))}
    if "--prune" in sys.argv:
        prune(texts)
        return 0
    found = complaints(texts, LONE.read_text().split(), LONE_MOST)
    for one in found:
        print(one)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
