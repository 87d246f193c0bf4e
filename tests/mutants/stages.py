# SPDX-License-Identifier: MIT
"""What a mutant goes through until something notices it.

A stage is built at once and run in pieces, several at a time. A piece that
fails is run again: what fails only now and then, as tests do that wait for a
clock on a machine that is busy, has not noticed anything.
"""
from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from tree import Tree, clean_environment

LANES = 3  # pieces of a mutant at a time: they mostly wait
OUT = "build/release"
# a mutant may not take the machine along with it
OUTPUT_MAX = 64 << 20
CONFINED = ["prlimit", f"--as={4 << 30}", f"--fsize={OUTPUT_MAX}", "--core=0"]
SIM_SEEDS, SIM_PIECES = 300, 3
NEMESIS_S = 40
# what tells best why a piece failed, the best first
REASONS = [re.compile(pattern, re.M) for pattern in (
    r"^(seed \d+: .*)", r"^(VIOLATION of .*)", r"^\S*?([^/\s]+:-?\d+:[FES]:.*)",
    r"(Assertion .*)")]


@dataclass
class Piece:
    """A command that passes or not."""
    name: str
    command: list[str]
    env: dict[str, str] = field(default_factory=dict)


@dataclass
class Stage:
    name: str
    targets: list[str]
    pieces: list[Piece]
    patience_s: float  # beyond what a piece took without a mutant


def suites(stage: str, root: Path, env: dict[str, str]) -> list[Piece]:
    """Only one, if CK_RUN_SUITE names it, as Check does."""
    only = os.environ.get("CK_RUN_SUITE")
    folder = root / "tests" / stage
    files = [*folder.rglob("check_*.c"), *folder.rglob("transcripts/*.txt")]
    return [Piece(name, [f"{OUT}/{stage}"], env | {"CK_RUN_SUITE": name})
            for name in sorted(file.stem.removeprefix("check_")
                               for file in files)
            if only in (None, "", name)]


def stages(names: list[str], root: Path) -> list[Stage]:
    """Those of the names, in the order in which they run."""
    of_server = {"REDLOCKD": f"{OUT}/redlockd", "TOOLS": OUT}
    tools = [f"{OUT}/{name}" for name in
             ("redlockd", "nemesis-proxy", "nemesis-shim.so")]
    each = SIM_SEEDS // SIM_PIECES
    played = [Piece(f"sim {first}..{first + each - 1}",
                    [f"{OUT}/sim", "--seed", str(first), "--seeds", str(each)])
              for first in range(1, SIM_SEEDS, each)]
    every = [
        Stage("unit", [f"{OUT}/unit"], suites("unit", root, {}), 15),
        Stage("sim", [f"{OUT}/sim", f"{OUT}/differ"],
              [*played, Piece("differ", [f"{OUT}/differ"])], 30),
        Stage("integration", [f"{OUT}/integration", f"{OUT}/starved-shim.so",
                              *tools],
              suites("integration", root, of_server), 60),
        Stage("nemesis", tools, [Piece("nemesis", [
            "tests/nemesis/nemesis.py", "--seed", "1", "--seconds",
            str(NEMESIS_S), "--tools", OUT], of_server)], 120)]
    return [stage for stage in every if stage.name in names]


class Running:
    """A piece that was started."""

    def __init__(self, tree: Tree, piece: Piece, patience_s: float) -> None:
        self.piece = piece
        self.begin = time.monotonic()
        self.end = self.begin + patience_s
        self.is_late = False
        # a file: a mutant may print without end
        self.output = tempfile.TemporaryFile()
        self.child = subprocess.Popen(
            CONFINED + piece.command, cwd=tree.root, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=self.output,
            stderr=subprocess.STDOUT,
            env=clean_environment() | piece.env)

    def is_over(self) -> bool:
        if self.child.poll() is None and time.monotonic() > self.end:
            self.is_late = True
            self.stop()
        return self.child.poll() is not None

    def stop(self) -> None:
        """Check and the nemesis take their own children along, if asked."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.child.poll() is not None:
                break
            os.killpg(self.child.pid, number)
            try:
                self.child.wait(5)
            except subprocess.TimeoutExpired:
                pass
        self.child.wait()

    def took_s(self) -> float:
        return time.monotonic() - self.begin

    def reason(self) -> str:
        """Why it failed; "": it passed."""
        if self.child.returncode == 0:
            return ""
        self.output.seek(0)
        text = self.output.read(OUTPUT_MAX).decode(errors="replace")
        for pattern in REASONS:
            if match := pattern.search(text):
                return match[1].strip()
        if self.is_late:
            return "too late"
        lines = text.split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "")
        return f"ended with {self.child.returncode}: {last.strip()}"


class Runner:
    """Runs stages in one tree."""

    def __init__(self, tree: Tree, took_s: dict[str, float],
                 ended: threading.Event) -> None:
        self.tree = tree
        self.took_s = took_s  # by each piece, without a mutant
        self.ended = ended    # nobody waits for the result any more

    def measure(self, stage: Stage) -> str:
        """Without a mutant: how long each piece takes. Which failed, or ""."""
        assert stage.pieces, f"{stage.name}: nothing would notice anything"
        return self._run(stage, deque(stage.pieces), is_sound=True)

    def judge(self, stage: Stage, module: str) -> str:
        """Which piece noticed the mutant, and why; "": none."""
        pieces = sorted(stage.pieces, key=lambda piece: (
            piece.name.split("_")[0] != module,
            self.took_s.get(f"{stage.name} {piece.name}", 0)))
        return self._run(stage, deque(pieces))

    def _run(self, stage: Stage, waiting: deque[Piece],
             is_sound: bool = False) -> str:
        lanes: list[Running | None] = [None] * LANES
        try:
            while (waiting or any(lanes)) and not self.ended.is_set():
                for lane, it in enumerate(lanes):
                    if it is None and waiting:
                        # the mutant's own suites and the short ones first;
                        # beside them the long ones, which are the last to end
                        piece = waiting.pop() if lane else waiting.popleft()
                        lanes[lane] = self._start(stage, piece)
                    elif it is not None and it.is_over():
                        lanes[lane] = None
                        if is_sound:
                            name = f"{stage.name} {it.piece.name}"
                            self.took_s[name] = it.took_s()
                        if found := self._confirmed(stage, it):
                            return found
                time.sleep(0.01)
            return ""
        finally:
            for it in lanes:
                if it is not None:
                    it.stop()

    def _start(self, stage: Stage, piece: Piece) -> Running:
        usual_s = self.took_s.get(f"{stage.name} {piece.name}", 120)
        return Running(self.tree, piece, stage.patience_s + 3 * usual_s)

    def _confirmed(self, stage: Stage, once: Running) -> str:
        """Why it failed, and failed again. The other lanes go on."""
        if not once.reason():
            return ""
        again = self._start(stage, once.piece)
        try:
            while not again.is_over() and not self.ended.is_set():
                time.sleep(0.01)
        finally:
            again.stop()
        return f"{once.piece.name}: {again.reason()}" if again.reason() else ""
