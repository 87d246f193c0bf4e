#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The map of the source files, docs/internals/map.md: each module with the first sentence
of the comment at its top.

map.py [--check]    writes the map, or exits with 1 if it is not up to date
"""
from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAP = ROOT / "docs/internals/map.md"
FOLDERS = ("server", "api", "cli")
# how the comment at the top of a file begins and goes on; a module in C is known
# by its header, which may say before that why it has only one includer
COMMENTS = {
    ".h": (r"(?:/\*.*\*/\n)?/\*\n", r"^ \* ?"), ".c": (r"/\*\n", r"^ \* ?"),
    ".lua": (r"(?:#!.*\n)?", r"^-- ?"), ".js": (r"", r"^// ?"), ".mjs": (r"", r"^// ?"),
    ".go": (r"(?://go:build.*\n+)?", r"^// ?"), ".py": (r'(?:#!.*\n)?"""', r"^"),
}
HEAD = """# The source files

This page is for engineers who work on redlockd and look for a file. It has every module, by folder, with the first
sentence of its own file. `make map` writes this page: to change a line, change the comment at the top of the file.

[architecture.md](architecture.md) says how the parts work together, and which modules one acquire runs through.
[CONTRIBUTING.md](../../CONTRIBUTING.md#which-part-may-include-which) says which part may include which.
"""
NEXT = """
Next: [architecture](architecture.md), how the parts work together.
"""


def unlicensed(text: str) -> str:
    """The text without the line that tests/lint/spdx.py wants, and without the
    blank line that follows it in Go."""
    return re.sub(r"^[^\w\n]*SPDX-License-Identifier: .*\n(?:\n(?=//|package))?", "",
                  text, count=1, flags=re.M)


def head_of(path: Path) -> str:
    """The comment at its top, as one line."""
    begin, each = COMMENTS[path.suffix]
    text = unlicensed(path.read_text())
    start = re.match(begin, text)
    if start is None:
        return ""
    lines = []
    for line in text[start.end():].splitlines():
        found = re.match(each, line)
        if found is None or line.strip() in ('"""', "*/"):
            break
        line = line[found.end():]
        if not line.strip() or line.lstrip() == "*":
            break
        lines.append(line.strip().removesuffix('"""'))
        if line.endswith('"""'):
            break
    return " ".join(lines)


def sentence_of(path: Path) -> str:
    text = re.split(r"(?<=[.:])\s+(?=[A-Z<])|:$", head_of(path))[0]
    return text.rstrip(".:").replace("|", r"\|").replace("<", r"\<")


def modules() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in COMMENTS or "node_modules" in path.parts:
                continue
            if path.suffix == ".c" and path.with_suffix(".h").exists():
                continue
            if re.search(r"(^|[_.])test|\.d\.ts$", path.name):
                continue
            found.setdefault(str(path.parent.relative_to(ROOT)), []).append(path)
    return found


def page() -> tuple[str, list[Path]]:
    """The page, and the files that say nothing of themselves."""
    links, text, silent = [], "", []
    for folder, paths in modules().items():
        rows = []
        for path in paths:
            if sentence := sentence_of(path):
                name = path.stem if path.suffix in (".h", ".c") else path.name
                rows.append(f"- `{name}`: {sentence}\n")
            elif path.suffix in (".h", ".c"):
                silent.append(path)
        if rows:
            links.append(f"[{folder}/](#{folder.replace('/', '')})")
            text += f"\n## {folder}/\n\n{''.join(rows)}"
    contents = textwrap.fill(f"Folders: {', '.join(links)}.", 120, break_on_hyphens=False,
                             break_long_words=False)
    return f"{HEAD}\n{contents}\n{text}{NEXT}", silent


def main() -> int:
    text, silent = page()
    for path in silent:
        print(f"{path.relative_to(ROOT)}: no comment at its top")
    if sys.argv[1:] == ["--check"]:
        is_same = MAP.exists() and MAP.read_text() == text
        if not is_same:
            print("docs/internals/map.md is not up to date: make map")
        return 1 if silent or not is_same else 0
    MAP.write_text(text)
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
