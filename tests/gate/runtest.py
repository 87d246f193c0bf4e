# SPDX-License-Identifier: MIT
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

SUITES = Path(__file__).resolve().parents[1] / "lib/suites.sh"
LIMIT_S = 1
# of Check's suites: one passes, one only at the second try, one never
RUNNER = """#!/bin/bash
echo "$CK_RUN_SUITE" >>tries
case $CK_RUN_SUITE in
good) ;;
late) [ "$(grep -c late tries)" = 2 ] ;;
bad) false ;;
esac && echo '100%: Checks: 1, Failures: 0, Errors: 0' && exit
echo 'check_late.c:1:F:late:too_late:0: why'
echo '0%: Checks: 1, Failures: 1, Errors: 0'
exit 1
"""
BUSY = "for ((i = 0; i < 20000; i++)); do :; done"


def suites(folder: Path, *names: str) -> str:
    """The command that runs these suites."""
    folder.mkdir()
    (folder / "runner").write_text(RUNNER)
    (folder / "runner").chmod(0o755)
    for name in names:
        (folder / f"check_{name}.c").touch()
    return f"cd {folder}; AGAIN=yes {SUITES} {folder}/runner {folder}"


def steps(folder: Path) -> list[Step]:
    return [
        Step("good suites", suites(folder / "good_suites", "good", "late")),
        Step("bad suites", suites(folder / "bad_suites", "good", "bad", "late")),
        Step("good", BUSY),
        Step("fails", "echo why; false"),
        Step("needs it", "true", after=("good", "fails")),
        Step("needs that", "true", after=("needs it",)),
        Step("killed", "kill -9 $$"),
        Step("late", "sleep 60 & wait", limit_s=LIMIT_S),
        Step("first", f"cd {folder}; touch busy; sleep 0.2; rm busy",
             "computes"),
        Step("second", f"[ ! -e {folder}/busy ]", "computes"),
        Step("yields", "[ $(($(ps -o sid= $$))) = $(($(ps -o sid= $PPID))) ]",
             "computes"),
        Step("again", f"cd {folder}; [ -e tried ] || {{ touch tried; false; }}",
             has_second_try=True),
        Step("hopeless", f"echo >>{folder}/hopeless; false",
             has_second_try=True),
        Step("beside", f"cd {folder}; touch beside; sleep 0.5; rm beside"),
        Step("alone", f"sleep 0.2; [ ! -e {folder}/beside ]", is_alone=True),
    ]


def run(play: Callable[[Path, list[Step]], list[Result]]) -> None:
    shown = io.StringIO()
    with (tempfile.TemporaryDirectory() as name,
          contextlib.redirect_stdout(shown)):
        table = steps(Path(name))
        results = {one.step.name: one for one in play(Path(name), table)}
        tries = Path(name, "hopeless").read_text()
    assert set(results) == {step.name for step in table}, set(results)
    passed = {name for name, one in results.items() if one.status == 0}
    assert passed == {"good", "first", "second", "beside", "alone", "yields",
                      "again", "good suites"}, passed
    assert results["again"].is_second
    assert not results["good"].is_second
    assert tries == "\n\n", "two tries, not more"
    for line in ("100%: Checks: 2, Failures: 0, Errors: 0",
                 "66%: Checks: 3, Failures: 1, Errors: 0",
                 "second try, because of check_late.c:1:F:late:too_late:0: why",
                 "second try: late, alone; its runner ended with 1",
                 "bad failed, its runner ended with 1:"):
        assert f"   {line}\n" in shown.getvalue(), (line, shown.getvalue())
    skipped = {name for name, one in results.items() if one.is_skipped}
    assert skipped == {"needs it", "needs that"}, skipped
    assert "   why\n" in shown.getvalue(), shown.getvalue()
    assert results["good"].cpu_s > 0, "the CPU time of a step is not told"
    assert results["late"].wall_s >= LIMIT_S, "a step ended before its limit"
