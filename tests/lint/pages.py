#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The form of the pages: for whom each is, where it leads, how long its sentences
are, and that its words are the field's. First a test shows that each is noticed.
"""
from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

from findings import ROOT, prose, tell

WORDS_MAX = 30
SHORT = ("README.md", "docs/guide.md")  # whose sentences are short
WRITTEN = {"docs/internals/map.md"}  # by a program
# word, where else it has a meaning of its own
REFUSED = {
    "(?<!days )(?<!far )away": "", "told": "", "tells": "", "so many": "",
    "alarm": "", "fencing number": "", "foreign": "",
    "argument": "redlockctl|internals|CONTRIBUTING|clients/|deploy/",
    "forgot": "", "forgets": "", "has ended": "", "have ended": "",
    "an answer": "", "the answer": "", "its answer": "", "no answer": "",
    "each answer": "",
}
Pages = dict[str, str]


def plain(text: str) -> str:
    """Without links and code, each of which is one word, and without emphasis."""
    text = re.sub(r"!\[[^]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]+`", "`code`", text)
    return re.sub(r"\*\*|(?<!\w)\*|\*(?!\w)", "", text)


def paragraphs(text: str) -> Iterator[str]:
    """Also each item of a list and each cell of a table; no headings."""
    for block in re.split(r"\n\s*\n|\n(?= *(?:[-*]|\d+\.) )|\n(?=\|)|^#.*$", prose(text),
                          flags=re.M):
        block = plain(block)
        for part in block.split(" | ") if block.startswith("|") else [block]:
            yield " ".join(re.sub(r"^ *(?:[-*]|\d+\.) ", "", part).split())


def sentences(text: str) -> Iterator[str]:
    for paragraph in paragraphs(text):
        yield from re.split(r"(?<=[.!?])[)\"”]* +(?=[A-Z`(\"“]|redlock)", paragraph)


def long_sentences(pages: Pages) -> Iterator[str]:
    for name in SHORT:
        for sentence in sentences(pages.get(name, "")):
            count = len(re.findall(r"\w[\w'’./:%-]*", sentence))
            if count > WORDS_MAX:
                yield f"{name}: {count} words: {sentence[:70]}…"


def is_page(name: str) -> bool:
    return name.startswith("docs/") and name not in WRITTEN


def without_reader(pages: Pages) -> Iterator[str]:
    for name, text in pages.items():
        if is_page(name):
            if not re.match(r"# .*\n\nThis (page|guide) is for ", text):
                yield f"{name}: does not begin with whom it is for"
            if not re.search(r"\nNext: \[[^\n]*(\n[^\n]+)*\n$", text):
                yield f"{name}: does not end with the next page"


def doubled(pages: Pages) -> Iterator[str]:
    seen: dict[str, str] = {}
    for name, text in pages.items():
        if not (is_page(name) or name == "README.md"):
            continue
        for heading in re.findall(r"^##+ (.*)", prose(text), re.M):
            if heading in seen:
                yield f"{name}: {heading!r} is a heading of {seen[heading]}, too"
            seen[heading] = name


def refused(pages: Pages) -> Iterator[str]:
    for name, text in pages.items():
        if name in WRITTEN:
            continue
        # the glossary names the words that it refuses
        text = re.sub(r"\n## Terms\n.*?(?=\n## )", "", text, flags=re.S)
        text = " ".join(plain(prose(text)).split())
        for word, elsewhere in REFUSED.items():
            if elsewhere and re.search(elsewhere, name):
                continue
            for found in re.finditer(rf"(?<![\w_-]){word}s?(?![\w_-])", text, re.I):
                near = text[max(0, found.start() - 30):found.end() + 30]
                yield f"{name}: {word!r} in …{near}…"


def complaints(pages: Pages) -> list[str]:
    return [one for check in (long_sentences, without_reader, doubled, refused)
            for one in check(pages)]


def test() -> None:
    short = "It is `a b c`, [and so on](x.md#y)."
    good = {"README.md": f"# A\n\n## Use\n\n{short} {short}\n",
            "docs/b.md": f"# B\n\nThis page is for b.\n\n## Do\n\n{short}\n\n"
                         "Next: [c](c.md)\n"}
    assert not complaints(good), complaints(good)
    for name, old, new in (("README.md", short, "so, " * 31 + "."),
                           ("README.md", short, f"| {short} | {'so, ' * 31} |"),
                           ("docs/b.md", "This page is", "It is"),
                           ("docs/b.md", "Next: ", "See "),
                           ("docs/b.md", "## Do", "## Use"),
                           ("docs/b.md", short, "It is told\nso."),
                           ("README.md", short, "There is no\nanswer.")):
        bad = good | {name: good[name].replace(old, new, 1)}
        assert len(complaints(bad)) == 1, (new, complaints(bad))


def main() -> None:
    names = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split()
    tell(complaints({name: (ROOT / name).read_text() for name in names
                     if not name.startswith("tests/")}))


test()
main()
