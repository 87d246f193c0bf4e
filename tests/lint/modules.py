#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A noun is one module, and a static function has a name of its own.

No two static functions of server/, api/ and cli/ share a name: so
a backtrace and grep find the one that is meant. No header there has only one
includer besides its own .c, which is the sign of a noun cut in two, unless its
first line is a comment that says why; tests do not count. First a test shows that
what is wrong is noticed.
"""
from __future__ import annotations

import re
from collections import defaultdict
from pathlib import PurePosixPath
from posixpath import normpath

from findings import sources, tell

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
            name = normpath(folder / target)
            if name.removesuffix(".h") != path.removesuffix(".c"):
                includers[name].add(path)
    return {name: min(paths) for name, paths in includers.items()
            if len(paths) == 1 and name in texts and
            not REASON.match(texts[name].partition("\n")[0])}


def complaints(texts: Texts) -> list[str]:
    return shared_names(texts) + [
        f"{name}: only {by} includes it; merge them, or say in its first "
        "line why not" for name, by in sorted(lone_headers(texts).items())]


def test() -> None:
    def gives(want: list[str], texts: Texts) -> None:
        got = complaints(texts)
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


test()
tell(complaints(sources()))
