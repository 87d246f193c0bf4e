# SPDX-License-Identifier: MIT
"""Proves at the start of each run that places are found where they are, and
that what is no mutant, what is noticed and what is not are told apart: a tool
that takes everything for noticed would praise any test.
"""
from __future__ import annotations

import tempfile
import threading
from dataclasses import replace
from pathlib import Path

from desk import Desk, Notes
from places import Change, Draw, Finder, Place, draws
from stages import Piece, Runner, Stage
from tree import ROOT, Tree
from trial import NOTICED, SAME, SURVIVED, UNBUILDABLE, Result, Trial

TEXT = """\
#include <assert.h>
#define TWICE(x) ((x) + (x))
static int table[] = {1, 2};
int f(int a, int b)
{
    int c = a < b ? 0x1f : 7u;
    assert(a + b == 3);
    if (!a && b) {
        f(b,
          a);
        c -= TWICE(b * 4);
    } else
        return c;
    while (c & 1 || b)
        if (b)
            --c;
    return -c;
}
"""
FOUND = [
    (6, "`0x1f` → `32`"), (6, "`7u` → `8u`"), (6, "`<` → `<=`"),
    (6, "`<` → `>=`"), (8, "`!a` without its `!`"), (8, "`&&` → `||`"),
    (8, "dropped `f(b, a); c -= TWICE(b * 4);`"), (9, "dropped `f(b, a);`"),
    (11, "`-=` → `+=`"), (11, "dropped `c -= TWICE(b * 4);`"),
    (13, "dropped `return c;`"), (14, "`&` → `|`"), (14, "`1` → `2`"),
    (14, "`||` → `&&`"), (16, "dropped `--c;`"),
]
# of the second ||: what stands left of it stays together
BRACKETS = ("int f(int a, int b, int c)\n{\n    return a || b && c;\n}\n",
            "return (a && b && c);", "return a || (b || c);")


# where test_tree finds what it draws
DRAWN_FROM = ("server/engine/rounds/round.c", "server/main.c")


def finder(root: Path, text: str) -> Finder:
    file = root / "some.c"
    file.write_text(text)
    return Finder(root, file, ["-Wno-everything"])


def test_places(root: Path) -> None:
    found = [(place.line, change.what)
             for place in finder(root, TEXT).places()
             for change in place.changes]
    assert sorted(found) == sorted(FOUND), set(found) ^ set(FOUND)


def test_texts(root: Path) -> None:
    """A change keeps the lines, and what belongs together."""
    for text, *expected in (BRACKETS, [TEXT, "        \n;\n        c -="]):
        changed = [mutated(text, place) for place in
                   finder(root, text).places()]
        for part in expected:
            assert any(part in one for one in changed), part
        for one in changed:
            assert one.count("\n") == text.count("\n"), one


def mutated(text: str, place: Place) -> str:
    old, change = text.encode(), place.changes[0]
    return (old[:change.begin] + change.text + old[change.end:]).decode()


def test_draws(root: Path) -> None:
    places = list(finder(root, TEXT).places())
    assert draws(places, 1) == draws(places, 1)
    assert draws(places, 1) != draws(places, 2)
    assert {draw.place for draw in draws(places, 1)} == set(places)


def test_desk(root: Path) -> None:
    """Three mutants of which the third ends first, and what is no mutant;
    another run hands out only what is not known."""
    queue = [Draw(number, Place("f", 1, 1, ()), Change(0, 0, b"", ""))
             for number in range(1, 10)]
    states = {1: NOTICED, 2: SAME, 3: SURVIVED, 4: NOTICED}

    def end(desk: Desk, number: int) -> None:
        desk.give(Result(number, "f", 1, 1, "", "", states[number],
                         passed=["unit"]))
    desk = Desk(Notes(root / "1.json", "tree"), queue, 3, ["unit"], say=str)
    assert [draw.number for draw in (desk.take(), desk.take(), desk.take())
            if draw] == [1, 2, 3]
    for number in (3, 2):
        end(desk, number)
    assert (draw := desk.take()) and draw.number == 4
    for number in (4, 1):
        end(desk, number)
    assert desk.take() is None and desk.mutants == 3
    known = Desk(Notes(root / "1.json", "tree"), queue, 4, ["unit"], say=str)
    assert (draw := known.take()) and draw.number == 5 and known.mutants == 3
    more = Desk(Notes(root / "1.json", "tree"), queue, 3, ["sim"], say=str)
    assert (draw := more.take()) and draw.number == 3, "has not passed it"
    anew = Desk(Notes(root / "1.json", "other"), queue, 3, ["unit"], say=str)
    assert (draw := anew.take()) and draw.number == 1


def judged(script: str, patience_s: float = 10) -> str:
    """What a stage says of a command."""
    tree = Tree.__new__(Tree)  # nothing is built
    tree.root = ROOT
    took_s = {"shell it": 0.0}
    runner = Runner(tree, took_s, threading.Event())
    return runner.judge(Stage("shell", [], [
        Piece("it", ["sh", "-c", script])], patience_s), "it")


def test_pieces(root: Path) -> None:
    assert judged("true") == ""
    assert judged("echo 'a/check_x.c:7:F:c:t:0: why' && false") \
        == "it: check_x.c:7:F:c:t:0: why"
    assert judged("echo '(null):-1:S:c:setup:0: why' && false") \
        == "it: (null):-1:S:c:setup:0: why"
    assert judged("kill -ABRT $$") == "it: ended with -6: "
    assert judged("echo why; echo; exit 2") == "it: ended with 2: why"
    assert judged("exec sleep 60", 0.2) == "it: too late"
    assert judged(f"! mkdir {root}/once 2>/dev/null") == "", "only once"


def test_tool() -> None:
    for test in (test_places, test_texts, test_draws, test_desk,
                 test_pieces):
        with tempfile.TemporaryDirectory() as folder:
            test(Path(folder))


def drawn(root: Path, places: list[Place], source: str, what: str) -> Draw:
    """The first one on a line that reads so."""
    for place in places:
        lines = (root / place.path).read_text().split("\n")
        for change in place.changes:
            if change.what == what and lines[place.line - 1].strip() == source:
                return Draw(0, place, change)
    raise AssertionError(f"no line reads {source}")


def tried(trial: Trial, draw: Draw) -> Result:
    result = trial.fresh(draw)
    trial.run(draw, result)
    return result


def test_tree(trial: Trial, places: list[Place]) -> None:
    """That a bare majority is not enough is noticed, if the tests are asked,
    and nothing of it stays behind; what is no mutant is told apart."""
    root = trial.tree.root
    quorum = drawn(root, places, "if (row->have >= row->need)", "`>=` → `>`")
    before = (root / quorum.place.path).read_bytes()
    unasked = Trial(trial.runner, [])
    assert tried(unasked, quorum).state == SURVIVED
    if trial.stages[0].name == "unit":
        result = tried(trial, quorum)
        assert (result.state, result.stage) == (NOTICED, "unit"), result
        assert result.by.startswith("round: "), result
    assert (root / quorum.place.path).read_bytes() == before
    unused = drawn(root, places, "(void)ctx;", "dropped `(void)ctx;`")
    assert tried(unasked, unused).state == SAME
    broken = replace(quorum, change=replace(quorum.change, text=b"@"))
    assert tried(unasked, broken).state == UNBUILDABLE
    assert tried(unasked, quorum).state == SURVIVED, "built anew each time"
