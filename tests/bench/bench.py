#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures redlockd. A scene is a row of the table in sides.py, or a module of this
folder.

  bench.py SCENE [--markdown] [--again]    redlockd beside something else, in
                                           turns
  bench.py SCENE [--short] [PART…]         what must be so; all parts, or some

Scenes of the first kind have play(), which yields runs, and tell(), which prints
what they show. A line a run goes to stderr, and all of them to
build/bench/SCENE.runs; --again measures nothing, and tells of the runs that are
there. --markdown prints the tables as docs/internals/measured.md has them. Exits with 1 if
a cycle failed, or if the runs prove nothing. Those of the second kind have
SCENES; --short plays less of each.

PAIRS and SECONDS_RUN say how often and for how long each side runs; REDLOCKD
and TOOLS name other binaries. The scenes have more such variables.
"""
from __future__ import annotations

import argparse
import importlib
import json
import sys
from importlib.util import find_spec
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent.parent / "lib"))

from measure import Results, Run, Runs
from stack import started


def record(run: Run, file) -> Run:
    print(*(f"{name} {value:g}" if isinstance(value, float) else
            f"{name} {value}" for name, value in run.items()), file=sys.stderr)
    file.write(json.dumps(run) + "\n")
    return run


def compare(name: str, scene, asked: argparse.Namespace) -> bool:
    folder = Path("build/bench")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.runs"
    if asked.again:
        runs = Runs(map(json.loads, path.read_text().splitlines()))
    else:
        with path.open("w", buffering=1) as file:
            runs = Runs(record(run, file) for run in scene.play())
    is_sound = scene.tell(runs, folder / f"{name}.png", asked.markdown)
    failures = sum(run.get("failures", 0) for run in runs)
    print(f"failures: {failures:.0f}")
    return is_sound is not False and failures == 0


def check(parts: dict, asked: argparse.Namespace) -> bool:
    results = Results()
    for part in asked.parts or parts:
        with started() as stack:
            parts[part](stack, results, asked.short)
    print(f"{results.passed} passed, {results.failed} failed")
    return results.failed == 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("scene")
    parser.add_argument("parts", nargs="*")
    for option in "--markdown", "--again", "--short":
        parser.add_argument(option, action="store_true")
    asked = parser.parse_intermixed_args()
    scene = importlib.import_module(asked.scene) if find_spec(asked.scene) else \
        importlib.import_module("sides").SCENES[asked.scene]()
    is_good = check(scene.SCENES, asked) if hasattr(scene, "SCENES") else \
        compare(asked.scene, scene, asked)
    sys.exit(not is_good)


if __name__ == "__main__":
    main()
