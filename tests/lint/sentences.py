#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Unit tests assert codes, fields and counts; sentences stand in one table.

Five words in a row in a text of tests/unit are an error, but in the table, as
what a row is called (its first member), as an error of Redis that a test plays,
and as what a test says when it fails. First a test shows that one is noticed.
"""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = "tests/unit/api/check_sentences.c"
# what stands there is no English: options of redlockd and of Redis
APART = re.compile(r"tests/unit/(?:base/check_config|node/check_handshake)\.c")
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\]|\\.)+\'',
                   re.S)
TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
SENTENCE = re.compile(r"\b[A-Za-z][a-z_-]*(?:[,;:]? [A-Za-z][a-z_-]*){4,}\b")
# what stands before a text that only a failing test shows
FAILS = re.compile(r"\b(?:ck_abort_msg|FAIL_LINE)\($|\bck_assert_msg\([^;]*,\s*$")


def uncommented(source: str) -> str:
    """Comments are blank; the lines stay."""
    return TOKEN.sub(lambda it: it[0] if it[0][0] in "\"'" else
                     re.sub(r"[^\n]", " ", it[0]), source)


def complaints(path: str, source: str) -> list[str]:
    code = uncommented(source)
    found = []
    for text in TEXT.finditer(code):
        words = re.sub(r'"\s*"', "", text[0])
        before = code[:text.start()].rstrip()
        is_played = words.startswith('"-')  # an error that Redis sends
        if SENTENCE.search(words) and not is_played \
                and not before.endswith("{") and not FAILS.search(before):
            line = code.count("\n", 0, text.start()) + 1
            found.append(f"{path}:{line}: {words} belongs to {TABLE}")
    return found


def test() -> None:
    sentence = '"the lock is " /* … */\n "held by another"'
    for bad in (f"ck_assert_has(x, {sentence});", f'{{"x", {sentence}}}'):
        assert len(complaints("a.c", bad)) == 1, bad
    for good in (f"{{{sentence}, 1}}", f"ck_abort_msg({sentence});",
                 f"ck_assert_msg(a, {sentence});", f"/* {sentence} */",
                 'ck_assert_has(x, "the lock is held");',
                 'answer("-ERR max number of clients reached\\r\\n");',
                 'send("GET / HTTP/1.1\\r\\nHost: x\\r\\n")'):
        assert not complaints("a.c", good), good


def main() -> int:
    test()
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard",
                            "tests/unit/*.c"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split()
    found = [one for name in names
             if name != TABLE and not APART.fullmatch(name) and (ROOT / name).exists()
             for one in complaints(name, (ROOT / name).read_text())]
    for one in found:
        print(one)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
