# SPDX-License-Identifier: MIT
"""One mutant after the other in one tree: made, built, tried, unmade."""
from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from places import Draw
from stages import OUT, Runner, Stage

NOTICED, SURVIVED = "noticed", "survived"
UNBUILDABLE, SAME = "does not compile", "same object code"


@dataclass
class Result:
    number: int
    path: str
    line: int
    column: int
    what: str
    source: str  # the line as it was
    state: str = ""
    stage: str = ""  # which noticed it
    by: str = ""     # which test, and how it failed
    passed: list[str] = field(default_factory=list)
    seconds: float = 0

    def is_mutant(self) -> bool:
        return self.state in (NOTICED, SURVIVED)

    def is_known(self, names: list[str]) -> bool:
        """Whether there is nothing left to try."""
        return bool(self.state) and (self.state != SURVIVED
                                     or set(names) <= set(self.passed))


class Trial:
    """The draws that one worker tries."""

    def __init__(self, runner: Runner, all_stages: list[Stage]) -> None:
        self.runner = runner
        self.tree = runner.tree
        self.stages = all_stages

    def fresh(self, draw: Draw) -> Result:
        place = draw.place
        text = (self.tree.root / place.path).read_bytes()
        source = text.split(b"\n")[place.line - 1].decode().strip()
        return Result(draw.number, place.path, place.line, place.column,
                      draw.change.what, source)

    def run(self, draw: Draw, result: Result) -> None:
        """Only those stages that it has not passed."""
        begin = time.monotonic()
        with self._mutated(draw) as state:
            result.state = state or self._tried(draw, result)
        result.seconds = round(result.seconds + time.monotonic() - begin, 1)

    def _tried(self, draw: Draw, result: Result) -> str:
        module = Path(draw.place.path).stem
        for stage in self.stages:
            if stage.name in result.passed:
                continue
            if self.tree.make(stage.targets).returncode != 0:
                return UNBUILDABLE
            result.by = self.runner.judge(stage, module)
            if self.runner.ended.is_set():
                return ""
            if result.by:
                result.stage = stage.name
                return NOTICED
            result.passed.append(stage.name)
        return SURVIVED

    @contextmanager
    def _mutated(self, draw: Draw) -> Iterator[str]:
        """With its object built; why it is no mutant, or ""."""
        source = self.tree.root / draw.place.path
        name = f"{OUT}/{Path(draw.place.path).with_suffix('.o')}"
        built = self.tree.root / name
        text, code = source.read_bytes(), built.read_bytes()
        before = stripped(built)
        change = draw.change
        source.write_bytes(text[:change.begin] + change.text
                           + text[change.end:])
        try:
            if self.tree.make([name]).returncode != 0:
                yield UNBUILDABLE
            elif stripped(built) == before:
                yield SAME
            else:
                yield ""
        finally:
            # in this order: make then finds the object newer, and links anew
            source.write_bytes(text)
            built.write_bytes(code)


def stripped(built: Path) -> bytes:
    """The object without what only debuggers read, such as columns."""
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(["objcopy", "--strip-debug", str(built), file.name],
                       check=True)
        return Path(file.name).read_bytes()
