#!/usr/bin/env python3
"""Takes one cure away at a time, and looks whether the tests notice.

  run.py [--seconds 60] [--only TEXT]

Each defect of defects.py is built in a copy of its own; the copy's simulator
runs seed after seed, or the nemesis runs against its server, until a named
invariant falls. The same seed must then hold without the defect.
"""
from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from defects import DEFECTS, Defect

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "mutants"
COPIED = ("Makefile", "VERSION", "openapi.yaml", "server", "api", "tests")
BATCH = 4  # seeds that one run of the simulator plays
FALLEN = re.compile(r"^seed (\d+): (\w+)", re.M)
NEMESIS_FALLEN = re.compile(r"^VIOLATION of (\w+)", re.M)
FIRST_SEED = 1


class Mutant:
    """A copy of the project with one defect, built."""

    def __init__(self, defect: Defect | None) -> None:
        self.defect = defect
        name = re.sub(r"\W+", "-", defect.name) if defect else "none"
        self.root = OUT / name
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)
        for part in COPIED:
            run(["cp", "-a", str(ROOT / part), str(self.root)])
        # the objects too: only what the defect touches is built anew
        (self.root / "build").mkdir()
        for part in ("gen", "release"):
            run(["cp", "-a", str(ROOT / "build" / part),
                 str(self.root / "build")])
        for edit in defect.edits if defect else []:
            path = self.root / edit.path
            text = path.read_text()
            if text.count(edit.old) != 1:
                sys.exit(f"mutants: {defect.name}: {edit.path} has not exactly "
                         f"once:\n{edit.old}")
            path.write_text(text.replace(edit.old, edit.new))
        run(["make", "-s", "-C", str(self.root), "build",
             "build/release/sim"])

    def faults(self) -> str:
        return self.defect.faults if self.defect else "all"

    def simulate(self, first: int, count: int, faults: str,
                 timeout_s: float) -> str:
        command = [str(self.root / "build/release/sim"), "--seed", str(first),
                   "--seeds", str(count)]
        if faults != "all":
            command += ["--faults", faults]
        return output(command, timeout_s)

    def torment(self, seed: int, seconds: float, faults: str) -> str:
        """Until the first violation, or for so long."""
        env = os.environ | {"REDLOCKD": str(self.root / "build/release/redlockd")}
        child = subprocess.Popen(
            [str(ROOT / "tests/nemesis/nemesis.py"), "--seed", str(seed),
             "--seconds", str(int(seconds)), "--faults", faults, "--tools",
             str(ROOT / "build/release")], text=True, env=env,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        lines = []
        assert child.stdout
        for line in child.stdout:
            lines.append(line)
            if NEMESIS_FALLEN.match(line):
                child.terminate()
                break
        child.stdout.close()
        child.wait()
        return "".join(lines)


def run(command: list[str]) -> None:
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"mutants: {' '.join(command)}:\n{done.stdout}{done.stderr}")


def output(command: list[str], timeout_s: float,
           env: dict[str, str] | None = None) -> str:
    """What it prints on stdout; if it takes too long, what it did so far."""
    try:
        return subprocess.run(command, text=True, capture_output=True,
                              check=False, env=env, timeout=timeout_s).stdout
    except subprocess.TimeoutExpired as late:
        text = late.stdout or b""
        return text if isinstance(text, str) else text.decode()


def find_in_simulator(mutant: Mutant, seconds: float) -> tuple[str, int]:
    """The invariant that fell, and the seed; "": none."""
    begin, seed = time.monotonic(), FIRST_SEED
    while (left := begin + seconds - time.monotonic()) > 0:
        text = mutant.simulate(seed, BATCH, mutant.faults(), left)
        if fallen := FALLEN.search(text):
            return fallen[2], int(fallen[1])
        if not re.search(r"\d+ passed, 0 failed", text) and left > 5:
            return crashed(text), seed
        seed += BATCH
    return "", 0


def crashed(text: str) -> str:
    """An assertion of the code itself is a name, too."""
    return "" if "passed" in text else "assertion"


def find_by_nemesis(mutant: Mutant, seconds: float) -> tuple[str, int]:
    assert mutant.defect
    text = mutant.torment(FIRST_SEED, seconds, mutant.defect.faults)
    fallen = NEMESIS_FALLEN.search(text)
    return (fallen[1], FIRST_SEED) if fallen else ("", 0)


def holds_without(sound: Mutant, defect: Defect, seed: int,
                  seconds: float) -> bool:
    if defect.suite == "sim":
        return not FALLEN.search(sound.simulate(seed, 1, defect.faults, 120))
    return not NEMESIS_FALLEN.search(sound.torment(seed, seconds,
                                                   defect.faults))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    chosen = [one for one in DEFECTS
              if options.only in one.name or options.only == one.suite]
    sound = Mutant(None)
    failed, held = 0, {}
    print(f"{'defect':52}{'suite':9}{'invariant':12}{'seed':>6}{'s':>6}")
    for defect in chosen:
        mutant = Mutant(defect)
        begin = time.monotonic()
        find = find_in_simulator if defect.suite == "sim" else find_by_nemesis
        invariant, seed = find(mutant, options.seconds)
        took = time.monotonic() - begin
        remark = ""
        if invariant:
            key = (defect.suite, seed, defect.faults)
            if key not in held:
                held[key] = holds_without(sound, defect, seed, took + 5)
            remark = "" if held[key] else "  but without the defect, too"
        failed += not invariant or bool(remark)
        print(f"{defect.name:52}{defect.suite:9}{invariant or 'NONE':12}"
              f"{seed or '':>6}{took:6.1f}{remark}", flush=True)
        shutil.rmtree(mutant.root, ignore_errors=True)
    shutil.rmtree(OUT, ignore_errors=True)
    print(f"mutants: {len(chosen) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
