# SPDX-License-Identifier: MIT
"""What the steps and the tests of a run cost."""
from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from run import Result

SLOWEST = 15
# Check writes it; tests/lib/suites.sh says where
TEST = re.compile(r"<test result=.*?<id>(.*?)</id>.*?<iteration>(\d+)<.*?"
                  r"<duration>([\d.]+)</duration>", re.S)


def logs_of_tests(root: Path) -> Iterator[Path]:
    return root.glob("build/*/checks/*/*.xml")


def forget_tests(root: Path) -> None:
    """What an earlier run has left."""
    for file in logs_of_tests(root):
        file.unlink()


def slowest_tests(root: Path) -> list[tuple[float, str]]:
    """Seconds and name of the tests of all suites, the slowest first."""
    found = []
    for file in logs_of_tests(root):
        flavour, runner = file.parts[-4], file.parts[-2]
        for name, iteration, seconds in TEST.findall(
                file.read_text(errors="replace")):
            found.append((float(seconds), f"{flavour} {runner} {file.stem}: "
                          f"{name} {iteration}"))
    return sorted(found, reverse=True)


def report(root: Path, results: list[Result],
           wall_s: float) -> Iterator[str]:
    """The steps in the order of their end. The CPU time is that of the
    processes that a step started and waited for: not of containers."""
    yield f"{'step':20}{'wall min':>10}{'CPU min':>10}"
    for one in results:
        remark = ("  failed" if one.status != 0 else
                  "  second try" if one.is_second else "")
        yield (f"{one.step.name:20}{one.wall_s / 60:10.1f}"
               f"{one.cpu_s / 60:10.1f}{remark}")
    cpu_s = sum(one.cpu_s for one in results)
    yield f"{'all, side by side':20}{wall_s / 60:10.1f}{cpu_s / 60:10.1f}"
    if slowest := slowest_tests(root)[:SLOWEST]:
        yield ""
        yield "the slowest tests, in seconds"
    for seconds, name in slowest:
        yield f"{seconds:7.1f}  {name}"
