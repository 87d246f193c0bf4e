#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One thing, one word: the glossary of docs/internals/guarantees.md, held.

A word of its last column stands nowhere in the engine, the node's side, the
script and the pages that explain them; fencing tokens and alerts have their
names in all files that people read. What the programs say, in error details,
log lines and metrics, has the field's words: MESSAGES lists those that were
replaced. First a test shows that a wrong word is noticed.
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
# the alarms of the Node and PHP packages are timers, and the map names their files
APART = re.compile(r"api/clients/(node|php)/|\.png$|docs/internals/map\.md$")
# the term of the table in which a word of the last column stands
APART_FROM = re.compile("high[- ]water marks?")
# (files, words that no message there has, what to say instead); a message is a
# string with a blank
MESSAGES = (
    (r"(server|api|cli)/", "away", "unreachable; remove"),
    (r"(server|api|cli)/", "told|tells?|hears?|heard", "reported; notified; learned"),
    (r"(server|api|cli)/", "so many", "at most N"),
    (r"(server|api|cli)/", "alarms?", "alert"),
    (r"(server|api|cli)/", "fencing numbers?", "fencing token"),
    (r"(server|api|cli)/", "foreign", "of another library; not redlockd's"),
    (r"(server|api|cli)/", "is over|(has|have) ended|validity ended", "has expired"),
    (r"(server|api|cli)/", "ttl ends", "it expires"),
    (r"(server|api|cli)/", "out of reach", "unreachable"),
    (r"(server|api|cli)/", "heads?", "header fields"),
    (r"(server|api|cli)/", "hardly", "unlikely"),
    (r"(server|api)/", "answers?", "response; reply of a node"),
    (r"(server|api|cli)/", "no memory|their memory", "out of memory; their data"),
    (r"server/(?!config/)(?!node/batch)|api/", "arguments?", "query parameter"),
)
# --help, whose words are those of the man page, and what Redis says
NO_MESSAGES = re.compile(r"cli/options\.c$|server/node/scripts/.*/|api/clients/|api/page/")
SOURCES = re.compile(r"\.(c|h|lua)$")
COMMENT = re.compile(r"/\*.*?\*/|--\[\[.*?\]\]|^\s*--[^\n]*", re.S | re.M)
STRINGS = re.compile(r'"((?:[^"\\\n]|\\.)*)"((?:[\s\\]*"(?:[^"\\\n]|\\.)*")*)')
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


def messages(source: str) -> list[tuple[int, str]]:
    """(line, text) of each string with a blank; adjacent strings are one."""
    code = COMMENT.sub(lambda it: re.sub(r"[^\n]", " ", it[0]), source)
    found = []
    for it in STRINGS.finditer(code):
        text = it[1] + re.sub(r'[\s\\]*"((?:[^"\\]|\\.)*)"', r"\1", it[2])
        if " " in text.strip():
            found.append((code.count("\n", 0, it.start()) + 1, text))
    return found


def slips(texts: Texts) -> list[str]:
    found = []
    for path, source in texts.items():
        if not SOURCES.search(path) or NO_MESSAGES.match(path):
            continue
        wrong = [(re.compile(rf"(?<![\w-])({words})(?![\w-])"), better)
                 for where, words, better in MESSAGES if re.match(where, path)]
        for number, text in messages(source):
            for pattern, better in wrong:
                slip = pattern.search(text.lower() if "HEAD" not in text else text)
                if slip:
                    found.append(f"{path}:{number}: a message says {slip[0]!r};"
                                 f" better: {better}")
    return found


def test_messages() -> None:
    good = {"api/a.c": '/* "he told me" */ say("the reply\\" was " /* so many */\n "late");',
            "api/b.c": 'allow("GET, HEAD"); name("told"); x("a header")',
            "api/clients/c.c": 'say("told you so")',
            "server/config/c.c": 'refuse("argument %d: wrong")',
            "server/node/scripts/s.lua": '-- "it is told"\nreturn "no slot free"',
            "docs/a.md": '"the node is away"'}
    assert not slips(good), slips(good)
    for path, text in (("api/a.c", 'say("the argument "\n    "is wrong")'),
                       ("api/a.h", '#define A "the node is "    \\\n  "away"'),
                       ("server/a.c", 'log("so "  "many clients")'),
                       ("server/node/scripts/s.lua", 'error("held by a foreign lock")'),
                       ("cli/a.c", 'complain("Told to stop: %s")'),
                       ("server/engine/a.c", '{"x", "stays until its TTL ends"}'),
                       ("api/b.c", 'say("no answer of the node")')):
        assert len(slips({path: text})) == 1, (path, text, slips({path: text}))


def test() -> None:
    test_messages()
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
pages = {
    name: (ROOT / name).read_text(errors="replace") for name in subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True,
        text=True).stdout.split("\n")
    if PAGES.match(name) and not APART.search(name) and (ROOT / name).is_file()}
tell(complaints(pages) + slips(pages))
