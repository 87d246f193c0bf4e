# SPDX-License-Identifier: MIT
"""What the lints share: what they read, what they have found, and how they tell."""
from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("server", "api", "cli")
problems: list[str] = []


def source(name: str) -> str:
    return (ROOT / name).read_text()


def sources(pattern: str = "*.[ch]") -> dict[str, str]:
    """The texts of what the programs are made of, by their names."""
    return {str(path.relative_to(ROOT)): path.read_text()
            for folder in FOLDERS
            for path in sorted((ROOT / folder).rglob(pattern))}


def complain(where: object, text: str) -> None:
    problems.append(f"{where}: {text}")


def same(where: str, what: str, told: set[Any], known: set[Any]) -> None:
    """What a page or a description tells, and what the code knows."""
    for one in sorted(told - known, key=str):
        complain(where, f"{what}: there is no {one}")
    for one in sorted(known - told, key=str):
        complain(where, f"{what}: {one} is missing")


def tell(found: Iterable[str] = problems, what: str = "") -> None:
    """Prints what was found, and ends: with 1 if there is anything. what: how much
    was looked at."""
    found = list(found)
    for one in found:
        print(one)
    if what:
        print(f"{what}, {len(found)} problems")
    sys.exit(bool(found))


# ---- pages ------------------------------------------------------------------

def cells(line: str) -> list[str]:
    return [cell.strip() for cell in
            re.split(r"(?<=\s)\|(?=\s)", line.strip().strip("|"))]


def table(text: str, *header: str) -> list[list[str]]:
    """The rows, as lists of cells, of the page's tables with this header."""
    rows, ahead = [], -1  # lines before the next row; -1: no such table
    for line in text.splitlines():
        if not line.startswith("|"):
            ahead = -1
        elif cells(line) == list(header):
            ahead = 1
        elif ahead > 0:
            ahead -= 1
        elif ahead == 0:
            rows.append(cells(line))
    if not rows:
        complain(header[0], "found no table of it")
    return rows


def prose(text: str) -> str:
    """The page without its code blocks."""
    return re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.M | re.S)


def links(text: str) -> list[tuple[str, str, str]]:
    """(link, path, anchor) of each that leads to no other site."""
    return [(link, *link.partition("#")[::2])
            for link in re.findall(r"\]\(([^)\s]+)\)", text)
            if not re.match(r"\w+:", link)]


def anchors(text: str) -> set[str]:
    """The ids of its headings, as GitHub and GitLab make them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", prose(text), re.M)}
