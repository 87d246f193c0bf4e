#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Puts the runbook into the status page: runbook.py index.html runbook.md
operations.md >page.html

It is part of the page, and not a page of its own, because it is needed when the
server does not answer any more. Links to what the page does not have become
text that names the document. For whom a document is, and what to read next, is
left out.
"""
from __future__ import annotations

import html
import posixpath
import re
import sys
from collections.abc import Iterator

from markdown_it import MarkdownIt

# what the runbook says of states leads there
NEEDED = ("When a node does not vote", "What a node may lack")
PLACE = "<!-- the runbook -->\n"
LINK = re.compile(r'<a href="([^"]*)">(.*?)</a>', re.S)
markdown = MarkdownIt("js-default")


def anchor_of(title: str) -> str:
    """As in the documents, after what tells it from the rest of the page."""
    return "runbook-" + title.lower().replace(" ", "-")


def sections(text: str) -> Iterator[tuple[str, str]]:
    """The title of each, and what it says; of what is before the first: ''."""
    text = re.sub(r"^(?:This page is for |Next: \[)(?:.+\n)+", "", text, flags=re.M)
    parts = re.split(r"^## (.*)\n", text, flags=re.M)
    yield "", re.sub(r"^# .*\n", "", parts[0])
    yield from zip(parts[1::2], parts[2::2])


def read(path: str) -> dict[str, str]:
    with open(path, encoding="utf-8") as file:
        return dict(sections(file.read()))


def render(text: str, anchors: set[str], own: str) -> str:
    """Of a document whose own name this is."""
    def lead(found: re.Match[str]) -> str:
        target, words = found.groups()
        if target.startswith("https://"):
            return found[0]
        path, _, name = target.partition("#")
        if f"runbook-{name}" in anchors:
            return f'<a href="#runbook-{name}">{words}</a>'
        where = posixpath.normpath(posixpath.join("docs", path or own))
        return f"{words} ({html.escape(where)})"
    return LINK.sub(lead, str(markdown.render(text)))


def fold(title: str, content: str) -> str:
    """What a link leads to is inside, so that the browser unfolds it."""
    return (f"<details>\n<summary><h3>{html.escape(title)}</h3></summary>\n"
            f'<div id="{anchor_of(title)}">\n{content}</div>\n</details>\n')


def main() -> None:
    index, runbook, operations = sys.argv[1:]
    alerts, states = read(runbook), read(operations)
    intro = alerts.pop("")
    anchors = {anchor_of(title) for title in (*alerts, *NEEDED)}
    text = render(intro, anchors, "runbook.md")
    for title, content in alerts.items():
        text += fold(title, render(content, anchors, "runbook.md"))
    for title in NEEDED:
        text += fold(title, render(states[title], anchors, "operations.md"))
    with open(index, encoding="utf-8") as file:
        before, after = file.read().split(PLACE)
    sys.stdout.reconfigure(encoding="utf-8")  # whatever the locale says
    print(before + text + after, end="")


main()
