# SPDX-License-Identifier: MIT
"""What .github/workflows names: make targets, and the steps of the nightly run."""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from steps import FIRST, NIGHTLY, TABLES

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = ("gate.yml", "nightly.yml")
# what it makes, it uploads, too
RELEASE = "release.yml"
# what a machine needs before it can make anything
SET_UP = re.compile(r"(apt-get (update|install)|git config|service) ")
PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40}")


def is_made(command: str) -> bool:
    return command.startswith("make ")


def targets_of(command: str) -> list[str]:
    """Of a command that makes something, without what its variables say."""
    bare = re.sub(r"\$\(.*?\)|'.*?'|\".*?\"", "", command)
    return [word for word in bare.split()[1:]
            if re.fullmatch(r"[a-z][a-z-]*", word)]


def unknown(commands: Iterable[str], known: set[str]) -> Iterator[str]:
    """Those that make nothing that there is."""
    for command in commands:
        targets = targets_of(command)
        if not targets or not known.issuperset(targets):
            yield f"no such target: {command}"


def wrong_steps(steps: list[dict[str, Any]]) -> Iterator[str]:
    for step in steps:
        if "uses" in step and not PINNED.fullmatch(step["uses"]):
            yield f"{step['uses']}: not pinned by its commit"
        for command in commands_of([step]):
            if command and not SET_UP.match(command) and not is_made(command):
                yield f"does what no make target does: {command}"


def wrong_matrix(jobs: dict[str, Any]) -> Iterator[str]:
    """Each step of the table has its job, but for those that all need."""
    steps = jobs["nightly"]["strategy"]["matrix"]["step"]
    due = [step.name for step in NIGHTLY if step not in FIRST
           and step.name not in ("deps", "build")]
    if steps != due:
        yield f"nightly.yml: its steps are {steps}, those of steps.py {due}"


def commands_of(steps: list[dict[str, Any]]) -> list[str]:
    return [command for step in steps if "run" in step
            for command in step["run"].strip().split(" && ")]


def wrong(targets: set[str]) -> list[str]:
    """targets: those that there are."""
    found = []
    made = {step.command for steps in TABLES.values() for step in steps}
    made.update(re.findall(r"^ +(?:- )?run: (make .*)", (FOLDER / RELEASE).read_text(),
                           re.M))
    for name in WORKFLOWS:
        try:
            jobs = yaml.safe_load((FOLDER / name).read_text())["jobs"]
            for job in jobs.values():
                found += [f"{name}: {text}"
                          for text in wrong_steps(job["steps"])]
                made.update(commands_of(job["steps"]))
            if name == "nightly.yml":
                found += wrong_matrix(jobs)
        except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
            found.append(f"{name}: {error!r}")
    return found + list(unknown(sorted(filter(is_made, made)), targets))
