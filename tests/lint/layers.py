#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The folders' layers, as the table in CONTRIBUTING.md draws them.

layers.py OBJECTS

Each file may include, directly or through other headers, only what the table
allows its folder; each folder has a row. No two modules know each other: of a
module x.c and x.h the includes count together. Neither does a header include
itself by way of others, nor do two files call each other, directly or by way
of others: who calls whom is read from the symbols of the object files below
OBJECTS.
"""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from posixpath import normpath

from findings import source, sources, table, tell

Graph = dict[str, set[str]]


def includes() -> Graph:
    """Of each file, the files of ours that it includes itself."""
    graph: Graph = {}
    texts = sources()
    for path, text in texts.items():
        names = {normpath(Path(path).parent / name)
                 for name in re.findall(r'^#include "(.*)"', text, re.M)}
        graph[path] = names & texts.keys()  # the others are generated
    return graph


def reached(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    rest = [start]
    while rest:
        for target in graph.get(rest.pop(), set()) - seen:
            seen.add(target)
            rest.append(target)
    return seen


def modules(graph: Graph) -> Graph:
    """The same, of modules."""
    joined: Graph = {}
    for name, targets in graph.items():
        module = name.rpartition(".")[0]
        joined.setdefault(module, set()).update(
            {target.rpartition(".")[0] for target in targets} - {module})
    return joined


def cycles(graph: Graph) -> list[str]:
    """One line for each set of nodes that reach each other."""
    reach = {node: reached(graph, node) for node in graph}
    found = {frozenset(other for other in reach[node]
                       if node in reach.get(other, set()))
             for node in graph if node in reach[node]}
    return [" ".join(sorted(circle)) for circle in found]


def allowed() -> dict[str, list[str]]:
    """The rows "| `folder/` | `folder/`, `folder/header.h` |".

    "what `folder/` may" stands for all that an earlier row allows.
    """
    rows: dict[str, list[str]] = {}
    for folder, targets in table(source("CONTRIBUTING.md"), "folder",
                                 "may include"):
        lower = re.findall(r"what `(.*?)` may", targets)
        targets = re.sub(r"what `.*?` may", "", targets)
        rows[folder.strip(" `")] = re.findall(r"`(.*?)`", targets) + \
            [target for name in lower for target in rows[name]]
    return rows


def check_layers(graph: Graph) -> list[str]:
    rows = allowed()
    problems = []
    for name in graph:
        folder = f"{Path(name).parent}/"
        if folder not in rows:
            problems.append(f"CONTRIBUTING.md: no row for {folder}")
            continue
        for target in sorted(reached(graph, name)):
            if not (f"{Path(target).parent}/" == folder or
                    target in rows[folder] or
                    f"{Path(target).parent}/" in rows[folder]):
                problems.append(f"{name}: includes {target}, "
                                f"which {folder} may not")
    return problems


def calls(objects: Path) -> Graph:
    defines: dict[str, str] = {}
    needs: dict[str, set[str]] = {}
    for name in sources("*.c"):
        out = subprocess.run(
            ["nm", "-P", str(objects / name.replace(".c", ".o"))],
            check=True, capture_output=True, text=True).stdout
        for line in out.splitlines():
            symbol, kind = line.split()[:2]
            if kind == "U":
                needs.setdefault(name, set()).add(symbol)
            elif kind.isupper():
                defines[symbol] = name
    return {name: {defines[symbol] for symbol in symbols & defines.keys()}
            for name, symbols in needs.items()}


graph = includes()
tell([*check_layers(graph),
      *(f"headers include each other: {circle}" for circle in cycles(graph)),
      *(f"modules know each other: {circle}" for circle in cycles(modules(graph))),
      *(f"files call each other: {circle}"
        for circle in cycles(calls(Path(sys.argv[1]))))])
