# SPDX-License-Identifier: MIT
"""The seeds that failed once: tests/nemesis/seeds. A line is what nemesis.py
must be told to play it again, and behind # why it is kept:

  4711 --seconds 40 --faults all,-step --tls  # exclusion: ...
"""
from __future__ import annotations

import argparse
import shlex
from pathlib import Path

FILE = Path(__file__).with_name("seeds")
CLIENTS, RESOURCES = 16, 12  # as usual


def read(text: str) -> list[list[str]]:
    """The arguments of each line."""
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        words, _, reason = line.partition("#")
        if not words.strip():
            continue  # a comment
        seed, *options = shlex.split(words)
        if not seed.isdecimal() or not reason.strip():
            raise SystemExit(f"{FILE}:{number}: expected: SEED [OPTION…] # why")
        lines.append(["--seed", seed, *options])
    return lines


def choose(lines: list[list[str]], number: int) -> list[str]:
    """One of them, another for the next number."""
    return lines[number % len(lines)] if lines else []


def options(run: argparse.Namespace) -> str:
    """What decides what a run does, beside its seed."""
    words = ["--seconds", f"{run.seconds:g}", "--faults", run.faults]
    if (run.clients, run.resources) != (CLIENTS, RESOURCES):
        words += ["--clients", str(run.clients), "--resources",
                  str(run.resources)]
    return " ".join(words + ["--tls"] * run.tls)


def replay(run: argparse.Namespace) -> str:
    return f"tests/nemesis/nemesis.py --seed {run.seed} {options(run)}"


def advice(run: argparse.Namespace, is_new: bool) -> str:
    """What to do about a seed that failed."""
    if not is_new:
        return f"replay with: {replay(run)}"
    return (f"seed {run.seed} is new, so your change need not be the cause; "
            f"replay with: {replay(run)}\nkeep it by adding a line to "
            f"tests/nemesis/seeds: {run.seed} {options(run)}  # why")
