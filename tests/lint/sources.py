#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sizes of the sources; libraries and clocks of those in C."""
import re

from findings import ROOT, complain, source, tell

FUNCTION_MAX, FILE_MAX, LINE_MAX = 80, 1000, 100
# who may include a library; every other file is below or beside it
LIBRARIES = {
    "uv.h": {"server/base/loop.c"},
    "hiredis/": {"server/node/wire.c"},
    "systemd/": {"server/notify.c"},
    "gnutls/": {"api/access/digest.c", "api/front.c", "api/http/tls.c",
                "server/base/certificates.c", "server/base/certificates.h",
                "server/node/session.c"},
    "microhttpd.h": {"api/front.c"},
    "jansson.h": {"api/message/body.c", "api/message/jsonload.c",
                  "cli/fetch.h"},
    "curl/": {"cli/fetch.c"},
}
CLOCKS = re.compile(r"\b(clock_gettime|gettimeofday|time|times|clock)\s*\(")


def check_function_sizes(name, lines):
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            if number - start + 1 > FUNCTION_MAX:
                complain(f"{name}:{start}", f"function of {number - start + 1} lines")
            start = None


def check_sizes(name, lines):
    if len(lines) > FILE_MAX:
        complain(name, f"{len(lines)} lines")
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_MAX:
            complain(f"{name}:{number}", f"{len(line)} columns")
        if line != line.rstrip():
            complain(f"{name}:{number}", "blanks at the end")
        if name.endswith((".c", ".h")) and "\t" in line:
            complain(f"{name}:{number}", "a tab")


def check_include(name, number, target):
    for library, users in LIBRARIES.items():
        if target.startswith(library) and name not in users:
            complain(f"{name}:{number}", f"<{target}> belongs to {sorted(users)}")


def check_source(path):
    name = str(path.relative_to(ROOT))
    lines = path.read_text().splitlines()
    check_sizes(name, lines)
    check_function_sizes(name, lines)
    if not name.startswith(("server/", "api/", "cli/")) or \
            path.suffix not in (".c", ".h", ".lua"):
        return
    for number, line in enumerate(lines, 1):
        include = re.match(r'#include [<"](.*)[>"]', line)
        if include:
            check_include(name, number, include[1])
        if CLOCKS.search(line) and name != "server/base/clock.c":
            complain(f"{name}:{number}", "only clock.c reads clocks")


def check_header(path):
    """One header per .c, and a guard named after the path."""
    name = str(path.relative_to(ROOT))
    if not re.search(r"#ifndef (\w+_H)\n#define \1\n", path.read_text()):
        complain(name, "no include guard")


def check_words():
    """What a node answered, and why it does not vote, share no name."""
    name = "server/engine/port/call.h"
    votes, states = (set(re.findall(rf"\b{prefix}_(\w+)\b",
                                    source(name)))
                     for prefix in ("VOTE", "STATE"))
    for word in sorted(votes & states - {"KINDS"}):
        complain(name,
                 f"VOTE_{word} and STATE_{word} share a name")


def check_rights():
    """A node is asked for the right to each command that a script calls."""
    folder = "server/node/scripts"
    name = f"{folder}/rights.lua"
    asked = set(re.findall(r"\{'([A-Z]+)'", source(name)))
    for path in sorted((ROOT / folder).glob("*.lua")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for command in re.findall(r"\b(?:call|try)\('(\w+)'|\bpcall\('(\w+)'",
                                      line):
                called = "".join(command)
                if called not in asked:
                    complain(f"{path.relative_to(ROOT)}:{number}",
                             f"{name} does not ask for {called}")


check_words()
check_rights()
for folder in ("server", "api", "cli", "tests"):
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix in (".c", ".h", ".lua", ".sh", ".py") or \
                (ROOT / "api/clients/examples" in path.parents and path.is_file()
                 and path.suffix != ".md"):
            check_source(path)
        if path.suffix == ".h":
            check_header(path)
tell()
