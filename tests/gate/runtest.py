"""Proves at the start of each run that no step can fail unseen."""
from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from steps import Step

if TYPE_CHECKING:
    from run import Result

LIMIT_S = 1
BUSY = "for ((i = 0; i < 20000; i++)); do :; done"


def steps(folder: Path) -> list[Step]:
    return [
        Step("good", BUSY),
        Step("fails", "echo why; false"),
        Step("needs it", "true", after=("good", "fails")),
        Step("needs that", "true", after=("needs it",)),
        Step("killed", "kill -9 $$"),
        Step("late", "sleep 60 & wait", limit_s=LIMIT_S),
        Step("first", f"cd {folder}; touch busy; sleep 0.2; rm busy",
             "computes"),
        Step("second", f"[ ! -e {folder}/busy ]", "computes"),
        Step("beside", f"cd {folder}; touch beside; sleep 0.5; rm beside"),
        Step("alone", f"sleep 0.2; [ ! -e {folder}/beside ]", is_alone=True),
    ]


def run(play: Callable[[Path, list[Step]], list[Result]]) -> None:
    shown = io.StringIO()
    with (tempfile.TemporaryDirectory() as name,
          contextlib.redirect_stdout(shown)):
        table = steps(Path(name))
        results = {one.step.name: one for one in play(Path(name), table)}
    assert set(results) == {step.name for step in table}, set(results)
    passed = {name for name, one in results.items() if one.status == 0}
    assert passed == {"good", "first", "second", "beside", "alone"}, passed
    skipped = {name for name, one in results.items() if one.is_skipped}
    assert skipped == {"needs it", "needs that"}, skipped
    assert "   why\n" in shown.getvalue(), shown.getvalue()
    assert results["good"].cpu_s > 0, "the CPU time of a step is not told"
    assert results["late"].wall_s >= LIMIT_S, "a step ended before its limit"
