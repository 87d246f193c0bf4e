#!/usr/bin/env python3
"""One thing, one word: the glossary of docs/internals/guarantees.md, held.

A word of its last column stands nowhere in the engine, the node's side, the
script and the pages that explain them; fencing tokens and alerts have their
names in all files that people read. First a test shows that a wrong word is
noticed.
"""
from __future__ import annotations

import re
import subprocess

from findings import ROOT, tell

GLOSSARY = "docs/internals/guarantees.md"
# where a word has no other meaning
INSIDE = re.compile(r"server/(engine|node)/|docs/internals/(guarantees|architecture)\.md$")
PAGES = re.compile(r"(server|api|cli|docs|deploy)/|[A-Z]+\.md$|openapi\.yaml$")
EVERYWHERE = ("fencing number", "alarm")
# the alarms of the Node package are timers, and the map names its file
APART = re.compile(r"api/clients/node/|\.png$|docs/internals/map\.md$")
# the term of the table in which a word of the last column stands
APART_FROM = re.compile("high[- ]water marks?")
Texts = dict[str, str]


def refused(page: str) -> list[str]:
    """The last column of the glossary."""
    table = page.partition("## Terms")[2].partition("\n## ")[0]
    cells = [line.split("|")[-2].strip() for line in table.splitlines()
             if line.startswith("| ")]
    return [word for cell in cells[2:] for word in cell.split(", ") if word]


def places(texts: Texts, word: str) -> list[str]:
    where = PAGES if word in EVERYWHERE else INSIDE
    pattern = re.compile(rf"(?<![a-z.-]){word}s?(?![a-z-])", re.I)
    return [f"{path}:{number}: {word!r} has another name in {GLOSSARY}"
            for path, text in texts.items()
            if where.match(path)
            for number, line in enumerate(text.splitlines(), 1)
            if pattern.search(APART_FROM.sub("", line.replace("_", " ")))]


def complaints(texts: Texts) -> list[str]:
    page = texts[GLOSSARY]
    words = refused(page)
    before, _, after = page.partition("## Terms")
    rest = before + "\n" + after.partition("\n## ")[2]
    return [one for word in words
            for one in places(texts | {GLOSSARY: rest}, word)]


def test() -> None:
    page = ("## Terms\n| term | meaning | not |\n| --- | --- | --- |\n"
            "| generation | a counter | beat |\n| alert | a rule | alarm |\n"
            "| quarantine record | a record | mark |\n\n## Rest\n")
    assert refused(page) == ["beat", "alarm", "mark"], refused(page)
    good = {GLOSSARY: page, "cli/a.c": "a heartbeat, beats", "docs/b.md": "bar",
            "server/node/b.c": "the high-water mark"}
    assert not complaints(good), complaints(good)
    for path, text in (("server/node/a.c", "int last_beat;"),
                       ("server/engine/x/a.h", "Beats of a node"),
                       ("server/engine/x/b.h", "is_marked or a mark"),
                       ("docs/b.md", "an alarm"),
                       (GLOSSARY, page + "its beat\n")):
        assert len(complaints(good | {path: text})) == 1, (path, text)


test()
tell(complaints({
    name: (ROOT / name).read_text(errors="replace") for name in subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True,
        text=True).stdout.split("\n")
    if PAGES.match(name) and not APART.search(name) and (ROOT / name).is_file()}))
