# SPDX-License-Identifier: MIT
"""Which draws are tried, by whom, and what is known of them already."""
from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from places import Draw
from report import line_of
from trial import Result, Trial


class Notes:
    """What is known of the draws of a seed, kept in a file."""

    def __init__(self, file: Path, tree: str) -> None:
        self.file = file
        self.tree = tree
        self.results: dict[int, Result] = {}
        if file.exists():
            kept = json.loads(file.read_text())
            if kept["tree"] == tree:
                self.results = {one["number"]: Result(**one)
                                for one in kept["draws"]}

    def add(self, result: Result) -> None:
        self.results[result.number] = result
        kept = {"tree": self.tree, "draws": [
            asdict(self.results[number]) for number in sorted(self.results)]}
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
        new.replace(self.file)


class Desk:
    """Hands draws out to the workers until there are `count` mutants.

    A draw is handed out only as long as those before it may turn out too few:
    so the mutants are the same however many workers there are.
    """

    def __init__(self, notes: Notes, queue: list[Draw], count: int,
                 names: list[str], say: Callable[[str], object]) -> None:
        self.notes = notes
        self.queue = iter(queue)
        self.count = count
        self.names = names
        self.say = say
        self.mutants = 0
        self.open = 0
        self.shown: list[Result] = []
        self.changed = threading.Condition()

    def take(self) -> Draw | None:
        with self.changed:
            while True:
                while self.mutants + self.open >= self.count and self.open:
                    self.changed.wait()
                draw = (next(self.queue, None) if self.mutants < self.count
                        else None)
                if draw is None:
                    return None
                known = self.notes.results.get(draw.number)
                if known is None or not known.is_known(self.names):
                    self.open += 1
                    return draw
                self._show(known)

    def give(self, result: Result) -> None:
        with self.changed:
            self.open -= 1
            if result.state:  # else the run was ended
                self.notes.add(result)
                self._show(result)
            self.changed.notify_all()

    def _show(self, result: Result) -> None:
        self.mutants += result.is_mutant()
        self.shown.append(result)
        if result.is_mutant():
            self.say(line_of(result))


def work(trial: Trial, desk: Desk) -> None:
    while not trial.runner.ended.is_set() and (draw := desk.take()):
        result = desk.notes.results.get(draw.number) or trial.fresh(draw)
        try:
            trial.run(draw, result)
        finally:
            desk.give(result)
