# SPDX-License-Identifier: MIT
"""What the reader gets to see of the mutants."""
from __future__ import annotations

from collections import Counter
from pathlib import Path

from trial import NOTICED, SAME, SURVIVED, UNBUILDABLE, Result

BY_MAX = 100


def line_of(result: Result) -> str:
    head = (f"{result.number:5} {result.path}:{result.line}:{result.column} "
            f"{result.what}")
    if result.state == NOTICED:
        return f"{head}  {result.stage}: {result.by[:BY_MAX]}"
    if result.state == SURVIVED:
        return f"{head}  SURVIVED | {result.source}"
    return f"{head}  {result.state}"


def totals(results: list[Result], stages: list[str]) -> str:
    """A row for each folder, a column for each stage, and the sums."""
    mutants = [one for one in results if one.is_mutant()]
    earlier = sorted({one.stage for one in mutants} - {"", *stages})
    columns = [*earlier, *stages, SURVIVED]
    counts = Counter((str(Path(one.path).parent), one.stage or SURVIVED)
                     for one in mutants)
    lines = [f"{'folder':20}{'mutants':>12}"
             + "".join(f"{column:>12}" for column in columns)]
    for folder in sorted({folder for folder, _ in counts}):
        row = [counts[folder, column] for column in columns]
        lines.append(f"{folder:20}" + "".join(
            f"{number:12}" for number in (sum(row), *row)))
    again = Counter(one.state for one in results)
    lines.append(f"drawn again: {again[UNBUILDABLE]} did not compile, "
                 f"{again[SAME]} had the same object code")
    noticed = sum(one.state == NOTICED for one in mutants)
    lines.append(f"mutate: {noticed} noticed, {len(mutants) - noticed} survived")
    return "\n".join(lines)
