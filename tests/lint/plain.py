#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""openapi.yaml, --help and the manual pages, in sentences that are read once.

plain.py REDLOCKD REDLOCKCTL. No sentence has more than 30 words or a private
word where the field has a term, and --help fits into 80 columns. What the manual
page of redlockd has of docs/ is not read here. First a test shows that each of
these is noticed.
"""
from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import yaml

from findings import ROOT, source, tell

WORDS_MAX = 30
COLUMNS = 80
# what is refused, and what to write
TERMS = {
    r"fencing numbers?": "fencing token",
    r"answer(?:s|ed|ing)?": "response, reply, respond",
    r"ask(?:s|ed|ing)?(?! the operator)": "request, query, require",
    r"tell(?:s|ing)?|told": "report, notify",
    r"hears?|heard": "learn",
    r"away": "unreachable",
    r"forg[eo]ts?|forgotten": "lost data",
    r"(?:is|are) over|(?:has|have) ended|lasts? until": "expired, expires",
    r"arguments?": "query parameter",
    r"texts?(?! format)": "string",
    r"heads?": "headers",
    r"foreign": "held by another library",
    r"alarms?": "alert",
    r"so many": "at most",
    r"look(?:s|ed|ing)?(?: at)?": "probe, poll, check",
}
REFUSED = {re.compile(rf"(?<![\w.-]){word}(?![\w-])", re.I): term
           for word, term in TERMS.items()}
# names that stand for themselves: `code`, --flags, VARIABLES and URLs
CODE = re.compile(r"`[^`\n]+`|(?<!\w)--?[a-z][a-z-]*|\$?\b[A-Z][A-Z_.]+\b|\w+://\S+")
# an enumeration of names counts as one word
NAMES = re.compile(r"NAME(?: \([^)]*\))?(?:(?:,| and| or|, and|, or) NAME"
                   r"(?: \([^)]*\))?)+")
END = re.compile(r"(?<=[.!?])\s+(?=\S)")
WORD = re.compile(r"\S*\w\S*")


# ---- what is read -----------------------------------------------------------

def described(node: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """(where, text) of each description and summary, but of no example."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("description", "summary") and isinstance(value, str):
                yield f"openapi.yaml {where}/{key}", value
            elif key not in ("value", "example"):
                yield from described(value, f"{where}/{key}")
    for i, one in enumerate(node if isinstance(node, list) else ()):
        yield from described(one, f"{where}/{i}")


def of_markdown(text: str) -> Iterator[str]:
    """Paragraphs, items of lists, cells of tables."""
    for block in re.split(r"\n\s*\n|\n(?=[|-] ?)", text):
        cells = block.strip().strip("|").split(" | ") if \
            block.lstrip().startswith("|") else [block]
        yield from (cell.removeprefix("- ").strip() for cell in cells)


def of_help(text: str) -> Iterator[str]:
    """Paragraphs, and entries: an option and the lines indented deeper, or a
    line of a list. Neither the usage nor examples."""
    text = re.sub(r"^Usage: .*$|^Examples?:.*(?:\n  .*)*", "", text, flags=re.M)
    for block in re.split(r"\n\s*\n|\n(?=  \S)|(?<=:)\n", text):
        first, _, rest = block.strip("\n").partition("\n")
        is_option = re.match(r"  (?:-\w, )?--[a-z]", first)
        yield rest if is_option else block


def of_man(text: str) -> Iterator[str]:
    """Paragraphs; the letters of fonts are gone, the words in them stay."""
    text = re.sub(r"\\f[A-Z]", "", text).replace("\\-", "-")
    text = re.sub(r"^\.nf$.*?^\.fi$", ".PP", text, flags=re.M | re.S)
    for block in re.split(r"^\.(?:TH|SH|SS|TP|PP|nh)\b.*$", text, flags=re.M):
        yield re.sub(r"^\.[BIR]+ ", "", block, flags=re.M)


def pages(redlockctl: str) -> list[list[str]]:
    """The command lines that print a help text of redlockctl."""
    out = said([redlockctl])
    return [[redlockctl]] + [[redlockctl, name] for name in
                             re.findall(r"^  ([a-z]+) ", out, re.M)]


def said(command: list[str]) -> str:
    return subprocess.run([*command, "--help"], check=True, capture_output=True,
                          text=True).stdout


# ---- what is complained of --------------------------------------------------

def complaints(where: str, text: str) -> Iterator[str]:
    bare = CODE.sub("NAME", " ".join(text.split()))
    for sentence in END.split(NAMES.sub("NAME", bare)):
        count = len(WORD.findall(sentence))
        if count > WORDS_MAX:
            yield f"{where}: {count} words in: {sentence}"
    for pattern, term in REFUSED.items():
        for match in pattern.finditer(bare):
            yield f"{where}: {match[0]!r} (write: {term}) in: {' '.join(text.split())}"


def of_spec(spec: Any) -> list[str]:
    return [one for where, text in described(spec)
            for part in of_markdown(text) for one in complaints(where, part)]


def of_page(name: str, text: str) -> list[str]:
    wide = [f"{name}: wider than {COLUMNS} columns: {line}"
            for line in text.splitlines() if len(line) > COLUMNS]
    return wide + [one for part in of_help(text)
                   for one in complaints(name, part)]


def of_manual(name: str, text: str) -> list[str]:
    return [one for part in of_man(text) for one in complaints(name, part)]


def test() -> None:
    long = "a word " * 16
    for bad in (long, "who answers", "the answer", "it is told so", "so many",
                f"short\n\n| a | {long} |\n", f"few:\n- one\n- {long}",
                "a foreign lock", "nodes that are away", "an argument"):
        spec = {"paths": {"description": bad, "examples": {"value": long}}}
        assert len(of_spec(spec)) == 1, (bad, of_spec(spec))
    names = ", ".join(f"`n{i}` (a name)" for i in range(40))
    for good in ("a word " * 15, "A word. " * 40, f"One of {names} or `x`.",
                 "`foreign` and `argument`", "reasks --ask ASK", "a.b.tell",
                 "ask the operator", "| " + "a word | " * 40):
        assert not of_spec({"summary": good}), (good, of_spec({"summary": good}))
    page = "a: b\n\nUsage: a [OPTION]...\n\nOne:\n{}\nThe end.\n"
    for bad in (f"  --ask WHOM [all]\n      {'a word ' * 9}\n      {'a word ' * 9}",
                "  --x\n      what is told", "\nTold\n", "  1   it is told\n",
                "  --xx " + "x" * 80):
        assert len(of_page("a", page.format(bad))) == 1, \
            (bad, of_page("a", page.format(bad)))
    for good in (f"  --ask WHOM [all]\n      {'a word ' * 9}\n  --x\n{'a word ' * 9}",
                 "  --ask\n  --tell TEXT [told]\n      a string",
                 f"Example: told\n  {'a word ' * 10}\n  {'a word ' * 10}\n"):
        assert not of_page("a", page.format(good)), \
            (good, of_page("a", page.format(good)))
    manual = ".SH A\n.B tells\nit is\n.TP\n.B --ask\nno text\n.nf\nasks\n.fi\n"
    assert len(of_manual("a", manual)) == 2, of_manual("a", manual)
    manual = f".SH A\n{long}.\n.PP\n.B redlockd\nis \\fBthe\\fP one.\n"
    assert len(of_manual("a", manual)) == 1, of_manual("a", manual)


if __name__ == "__main__":
    test()
    found = of_spec(yaml.safe_load(source("openapi.yaml")))
    for command in [[sys.argv[1]], *pages(sys.argv[2])]:
        name = " ".join([command[0].rpartition("/")[2], *command[1:], "--help"])
        found += of_page(name, said(command))
    for path in sorted((ROOT / "docs/man").iterdir()):
        found += of_manual(f"docs/man/{path.name}", path.read_text())
    tell(found, f"plain: sentences up to {WORDS_MAX} words")
