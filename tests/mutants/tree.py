# SPDX-License-Identifier: MIT
"""A copy of the project, in which files are changed and built anew."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("Makefile", "VERSION", "openapi.yaml", "server", "api", "cli", "docs",
          "tests")
BUILT = ("gen", "release")  # of build/: only what is changed is built anew


class DoesNotBuild(SystemExit):
    """Ends the run, with what the compiler said, unless it is caught."""


class Tree:
    """The project at `root`, copied with its objects from `source`."""

    def __init__(self, root: Path, source: Path = ROOT) -> None:
        self.root = root
        shutil.rmtree(root, ignore_errors=True)
        (root / "build").mkdir(parents=True)
        for part in COPIED:
            run(["cp", "-a", str(source / part), str(root)])
        for part in BUILT:
            run(["cp", "-a", str(source / "build" / part),
                 str(root / "build")])

    def make(self, targets: Iterable[str]) -> subprocess.CompletedProcess[str]:
        # whoever stops the run with Ctrl-C has not shown that it fails
        return subprocess.run(["make", "-s", "-C", str(self.root), *targets],
                              text=True, capture_output=True, check=False,
                              start_new_session=True, env=clean_environment())

    def build(self, targets: Iterable[str]) -> None:
        """What must succeed."""
        done = self.make(targets)
        if done.returncode != 0:
            raise DoesNotBuild(
                f"mutants: {self.root}:\n{done.stdout}{done.stderr}")


def clean_environment() -> dict[str, str]:
    """Nothing of the make that may have started this: neither its job server
    nor CI, which would make a warning an error."""
    return {name: value for name, value in os.environ.items()
            if name not in ("CI", "MAKEFLAGS", "MFLAGS", "MAKELEVEL")}


def run(command: list[str]) -> None:
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"mutants: {' '.join(command)}:\n{done.stdout}{done.stderr}")
