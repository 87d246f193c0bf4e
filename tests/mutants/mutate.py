#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Changes the code at places drawn at random, and looks who notices.

  mutate.py [--count 50] [--seed 1] [--suites unit,sim] [--jobs 2] [--only N]
            [--check] -- FLAGS OF THE COMPILER

One operator is changed or one statement dropped: see places.py. What does not
compile is drawn again, and what compiles to the same object code, which
proves that it changes nothing. What was found is kept in
build/mutate/SEED.json: another run goes on from there, unless the tree has
changed. --check only looks, in seconds, whether the tool still works: the suites
pass inside its limits, and one mutant that must be noticed is.
"""
from __future__ import annotations

import argparse
import hashlib
import shutil
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import mutatetest
from desk import Desk, Notes, work
from places import all_places, draws
from report import totals
from stages import Runner, stages
from tree import COPIED, ROOT, Tree
from trial import Trial

OUT = ROOT / "build" / "mutate"
STAGES = ("unit", "sim", "integration", "nemesis")


def fingerprint(root: Path) -> str:
    """Of all that a result depends on: of the mutants, only the draw itself."""
    digest = hashlib.sha256()
    for part in COPIED:
        for file in sorted([root / part, *(root / part).rglob("*")]):
            inside = file.relative_to(root)
            is_tool = inside.parts[:2] == ("tests", "mutants")
            if (not file.is_file() or file.suffix == ".pyc"
                    or (is_tool and inside.name != "places.py")):
                continue
            digest.update(f"{inside}\0{file.stat().st_size}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def trials(root: Path, jobs: int, names: list[str],
           ended: threading.Event) -> list[Trial]:
    """A tree for each worker, each a copy of the first one, which is proven
    sound, and whose pieces tell how long they take."""
    took_s: dict[str, float] = {}
    made: list[Trial] = []
    for job in range(jobs):
        tree = Tree(root / str(job), made[0].tree.root if made else ROOT)
        runner = Runner(tree, took_s, ended)
        made.append(Trial(runner, stages(names, tree.root)))
        if job == 0:
            prove_sound(made[0])
    return made


def prove_sound(trial: Trial) -> None:
    for stage in trial.stages:
        trial.tree.build(stage.targets)
        if failed := trial.runner.measure(stage):
            sys.exit(f"mutate: {stage.name} fails without a mutant: {failed}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--suites", default="unit,sim",
                        help=f"of {','.join(STAGES)}, or all")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int, default=0,
                        help="this draw again, whatever is known of it")
    parser.add_argument("--check", action="store_true",
                        help="only whether the tool works")
    parser.add_argument("flags", nargs="*")
    options = parser.parse_args()
    options.names = list(STAGES) if options.suites == "all" else \
        options.suites.split(",")
    if unknown := set(options.names) - set(STAGES):
        parser.error(f"no such suites: {', '.join(sorted(unknown))}")
    return options


def mutate(options: argparse.Namespace, root: Path,
           ended: threading.Event) -> None:
    made = trials(root, options.jobs, options.names, ended)
    first = made[0].tree.root
    places = all_places(first, options.flags,
                        mutatetest.DRAWN_FROM if options.check else ())
    mutatetest.test_tree(made[0], places)
    if options.check:
        print("mutate: 1 passed, 0 failed")
        return
    notes = Notes(OUT / f"{options.seed}.json", fingerprint(first))
    queue = draws(places, options.seed)
    if options.only:
        queue = [queue[options.only - 1]]
        notes.results.pop(options.only, None)
    print(f"seed {options.seed}: {len(places)} places in "
          f"{len({place.path for place in places})} files; known already: "
          f"{len(notes.results)} draws", flush=True)
    desk = Desk(notes, queue, options.count, options.names,
                partial(print, flush=True))
    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            for done in [pool.submit(work, trial, desk) for trial in made]:
                done.result()
        except BaseException:
            ended.set()
            raise
    print(totals(desk.shown, options.names))


def main() -> None:
    options = parse_arguments()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("mutate: ended"))
    mutatetest.test_tool()
    root = OUT / str(options.seed)
    try:
        mutate(options, root, ended)
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
