#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Takes one cure away at a time, and looks whether the tests notice.

  run.py [--seconds 180] [--only TEXT] [--tls] [--check]

Each defect of access.py, batches.py, ctl.py, defects.py, earlier.py, permits.py,
readers.py and visits.py is built in a copy of its own; the copy's simulator
runs seed after seed, or the nemesis runs against its server, until the
invariant falls that the defect is known to break. The same seed must then hold
without the defect. Where no invariant falls, differ sees that a script does
something else than the simulator's node. What few seeds could show is left to a
unit test, or to a test of redlockctl. Of a rule that the code has twice over, the model is searched
instead, with the rule and without it.

TEXT is a part of a defect's name, or the name of a suite. --tls lets the
nemesis speak TLS for each defect. --check only looks whether each defect still
fits the code, and whether each test that is to notice it exists.
"""
from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable

from access import ACCESS
from batches import BATCHES
from ctl import CTL
from defects import DEFECTS, Defect, Edit
from earlier import EARLIER
from permits import PERMITS
from readers import READERS
from tree import ROOT, DoesNotBuild, Tree, run
from visits import VISITS

OUT = ROOT / "build" / "mutants"
BATCH = 4  # seeds that one run of the simulator plays
FALLEN = re.compile(r"^seed (\d+): (\w+)", re.M)
NEMESIS_BEGUN = re.compile(r"^seed \d+, \d+ s of faults", re.M)
NEMESIS_FALLEN = re.compile(r"^VIOLATION of (\w+)", re.M)
TEST_FALLEN = re.compile(r"^\S+:\d+:[FES]:\w+:(\w+):", re.M)


class Mutant(Tree):
    """A copy of the project with one defect or none. Each program is built when
    it is used: most defects need only one."""

    def __init__(self, name: str, edits: Iterable[Edit] = ()) -> None:
        super().__init__(OUT / re.sub(r"\W+", "-", name))
        self.built: dict[str, str] = {}
        for path, text in edited(name, edits).items():
            (self.root / path).write_text(text)

    def program(self, name: str) -> str:
        if name not in self.built:
            self.build([f"build/release/{name}"])
            self.built[name] = str(self.root / "build/release" / name)
        return self.built[name]

    def play(self, program: str, first: int, count: int, faults: str,
             timeout_s: float) -> str:
        command = [self.program(program), "--seed", str(first), "--seeds",
                   str(count)]
        if faults != "all":
            command += ["--faults", faults]
        return output(command, timeout_s)

    def check(self, suite: str, timeout_s: float) -> str:
        """What one suite of the unit tests prints."""
        return output([self.program("unit")], timeout_s,
                      {"CK_RUN_SUITE": suite})

    def torment(self, defect: Defect, seconds: float, is_tls: bool) -> str:
        """Until what the defect breaks has fallen, or for so long. Other
        invariants may fall before."""
        env = os.environ | {"REDLOCKD": self.program("redlockd")}
        child = subprocess.Popen(
            [str(ROOT / "tests/nemesis/nemesis.py"), "--seed",
             str(defect.seed), "--seconds", str(int(seconds)), "--faults",
             defect.faults, "--tools", str(ROOT / "build/release"),
             *(["--tls"] if is_tls else [])], text=True, env=env,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        lines = []
        assert child.stdout
        for line in child.stdout:
            lines.append(line)
            if defect.falls in NEMESIS_FALLEN.findall(line):
                child.terminate()
                break
        child.stdout.close()
        child.wait()
        text = "".join(lines)
        if not NEMESIS_BEGUN.search(text):
            sys.exit(f"mutants: the nemesis did not begin:\n{text}")
        return text


def applied(edit: Edit, text: str) -> str | None:
    """The text with the edit, or None unless it fits exactly once. White space
    counts only if that is needed to tell two places apart: the formatter breaks
    lines anew whenever a name changes its length."""
    if text.count(edit.old) == 1:
        return text.replace(edit.old, edit.new)
    found = list(re.finditer(r"\s+".join(map(re.escape, edit.old.split())), text))
    if len(found) != 1:
        return None
    return text[:found[0].start()] + edit.new.strip() + text[found[0].end():]


def edited(name: str, edits: Iterable[Edit]) -> dict[str, str]:
    """The files with the edits. Each must fit exactly once, and change it."""
    files: dict[str, str] = {}
    for edit in edits:
        text = files.get(edit.path) or (ROOT / edit.path).read_text()
        changed = applied(edit, text)
        if changed is None or edit.old == edit.new:
            sys.exit(f"mutants: {name}: {edit.path} has not exactly "
                     f"once:\n{edit.old}")
        files[edit.path] = changed
    return files


def output(command: list[str], timeout_s: float,
           env: dict[str, str] | None = None) -> str:
    """What it prints on stdout; if it takes too long, what it did so far. The
    command timeout ends the children of the command, too."""
    return subprocess.run(["timeout", str(timeout_s), *command], text=True,
                          capture_output=True, check=False,
                          env=os.environ | (env or {})).stdout


def names_of_tests() -> set[tuple[str, str]]:
    """Each test that a defect may name, behind the name of its suite; and what
    may be switched in each model."""
    names: set[tuple[str, str]] = set()
    for path in (ROOT / "tests/unit").rglob("*.c"):
        text = path.read_text()
        for suite in re.findall(r"^SUITE\((\w+)", text, re.M):
            names |= {(suite, test) for test in
                      re.findall(r"^TEST(?:_\w+)?\((\w+)", text, re.M)}
    for pattern, test in (("unit/node/transcripts/*.txt", r"^test (\w+)"),
                          ("cli/*.py", r"^def (\w+)")):
        for path in (ROOT / "tests").glob(pattern):
            names |= {(path.stem, found) for found in
                      re.findall(test, path.read_text(), re.M)}
    for path in (ROOT / "tests/model").glob("*.pml"):
        text = path.read_text()
        for included in re.findall(r'^#include "(\S+)"', text, re.M):
            text += (path.parent / included).read_text()
        names |= {(path.stem, macro) for macro in re.findall(r"[A-Z]\w*", text)}
    return names


def check_names(defect: Defect, names: set[tuple[str, str]]) -> None:
    wanted = [(defect.tests, defect.falls)] if defect.tests else \
        [(defect.model, macro.partition("=")[0]) for macro in defect.macros()]
    for suite, name in wanted:
        if (suite, name) not in names:
            sys.exit(f"mutants: {defect.name}: {suite} has no {name}")


class Seeds:
    """The simulator, or the differential test: one seed after the other."""

    def __init__(self, sound: Mutant, program: str) -> None:
        self.sound, self.program = sound, program

    def find(self, defect: Defect, seconds: float) -> tuple[str, int]:
        """What fell, and the seed; "": nothing did."""
        mutant = Mutant(defect.name, defect.edits)
        end, seed = time.monotonic() + seconds, defect.seed
        while (left := end - time.monotonic()) > 0:
            text = mutant.play(self.program, seed, BATCH, defect.faults, left)
            for number, invariant in FALLEN.findall(text):
                if invariant == defect.falls:
                    return invariant, int(number)
            seed += BATCH
        return "", 0

    def holds(self, defect: Defect, seed: int) -> bool:
        text = self.sound.play(self.program, seed, 1, defect.faults, 120)
        return f"{self.program}: 1 passed, 0 failed" in text


class Nemesis:
    """One seed, since a run takes long."""

    def __init__(self, sound: Mutant, is_tls: bool) -> None:
        """is_tls: always, not only where the defect needs it."""
        self.sound, self.is_tls = sound, is_tls
        self.took_s = 0.0

    def find(self, defect: Defect, seconds: float) -> tuple[str, int]:
        mutant = Mutant(defect.name, defect.edits)
        begin = time.monotonic()
        text = mutant.torment(defect, seconds, self.is_tls or defect.tls)
        self.took_s = time.monotonic() - begin
        for invariant in NEMESIS_FALLEN.findall(text):
            if invariant == defect.falls:
                return invariant, defect.seed
        return "", 0

    def holds(self, defect: Defect, _seed: int) -> bool:
        text = self.sound.torment(defect, self.took_s + 5,
                                  self.is_tls or defect.tls)
        return ", 0 failed" in text and not NEMESIS_FALLEN.search(text)


class Unit:
    """One suite, which names the test."""

    def __init__(self, sound: Mutant) -> None:
        self.sound = sound
        self.passes: dict[str, bool] = {}  # each suite without a defect, once

    def find(self, defect: Defect, seconds: float) -> tuple[str, int]:
        mutant = Mutant(defect.name, defect.edits)
        found = TEST_FALLEN.findall(mutant.check(defect.tests, seconds))
        return (defect.falls, 0) if defect.falls in found else ("", 0)

    def holds(self, defect: Defect, _seed: int) -> bool:
        if defect.tests not in self.passes:
            self.passes[defect.tests] = (", Failures: 0, Errors: 0" in
                                         self.sound.check(defect.tests, 120))
        return self.passes[defect.tests]


class Ctl:
    """One test of redlockctl, with sound servers."""

    def __init__(self, sound: Mutant) -> None:
        self.sound = sound

    def find(self, defect: Defect, seconds: float) -> tuple[str, int]:
        mutant = Mutant(defect.name, defect.edits)
        said = self._play(mutant, defect, seconds)
        return (defect.falls, 0) if f"FAIL  {defect.falls}: " in said else ("", 0)

    def holds(self, defect: Defect, _seed: int) -> bool:
        return "1 passed, 0 failed" in self._play(self.sound, defect, 120)

    def _play(self, mutant: Mutant, defect: Defect, seconds: float) -> str:
        return output(
            [str(ROOT / f"tests/cli/{defect.tests}.py"), defect.falls], seconds,
            {"REDLOCKD": self.sound.program("redlockd"),
             "REDLOCKCTL": mutant.program("redlockctl")})


class Model:
    """All states; nothing is left to chance."""

    def __init__(self) -> None:
        run([str(ROOT / "scripts/deps.sh"), "model"])
        self.sound: dict[str, bool] = {}  # each world of a model, once

    def find(self, defect: Defect, seconds: float) -> tuple[str, int]:
        found = self._search(defect.model, defect.macros(), seconds)
        return (found, 0) if found == defect.falls else ("", 0)

    def holds(self, defect: Defect, _seed: int) -> bool:
        which = f"{defect.model} {defect.world}"
        if which not in self.sound:
            found = self._search(defect.model, defect.world.split(), 600)
            self.sound[which] = found == "nothing"
        return self.sound[which]

    @staticmethod
    def _search(model: str, macros: list[str], seconds: float) -> str:
        """The name of what fell."""
        lines = output([str(ROOT / "tests/model/search.sh"), model, *macros],
                       seconds).splitlines()
        return lines[-1] if lines else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--only", default="")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    every = (ACCESS + BATCHES + CTL + DEFECTS + EARLIER + PERMITS + READERS +
             VISITS)
    names = names_of_tests()
    for defect in every:
        edited(defect.name, defect.edits)
        check_names(defect, names)
    if options.check:
        return
    chosen = [one for one in every
              if options.only in one.name or options.only == one.suite]
    sound = Mutant("none")
    suites = {"sim": Seeds(sound, "sim"), "differ": Seeds(sound, "differ"),
              "nemesis": Nemesis(sound, options.tls), "unit": Unit(sound),
              "ctl": Ctl(sound),
              "model": Model()}
    failed = 0
    print(f"{'defect':52}{'suite':9}{'invariant':13}{'seed':>5}{'s':>6}")
    for defect in chosen:
        suite = suites[defect.suite]
        begin = time.monotonic()
        try:
            invariant, seed = suite.find(defect, options.seconds)
        except DoesNotBuild as error:  # the other defects are tried all the same
            print(error)
            invariant, seed = "", 0
        took = time.monotonic() - begin
        is_good = bool(invariant) and suite.holds(defect, seed)
        failed += not is_good
        remark = "" if is_good or not invariant else "  and without it, too"
        print(f"{defect.name:52}{defect.suite:9}{invariant or 'NONE':13}"
              f"{seed or '':>5}{took:6.1f}{remark}", flush=True)
    shutil.rmtree(OUT, ignore_errors=True)
    print(f"mutants: {len(chosen) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
