#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the steps of a table side by side, and tells what each cost.

  run.py TABLE [STEP…]

TABLE is one of steps.py. With names of steps, only these run, and what they
need. A step that waits most of its time runs beside others of its kind. A step
that computes runs at a low priority, one at a time, and takes what the others
leave. The output of each is in build/TABLE/STEP.log; its last lines are shown
when the step ends, more of them if it failed. The rest goes on then: one run
shows all that is wrong. A step may have a second try, when nothing runs beside
it any more; the report tells which one needed it. build/TABLE/result tells
other programs what failed, and in which commit.
"""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import costs
import runtest
from steps import TABLES, Step

ROOT = Path(__file__).resolve().parents[2]
CORES = os.cpu_count() or 1
# at a time; a step may start several processes of its own
LANES = {"waits": CORES + 1, "computes": 1}
SHOWN, SHOWN_FAILED = 3, 250
TICK_S = 0.1


@dataclass
class Run:
    """A step that was started."""
    step: Step
    log: Path
    child: subprocess.Popen[bytes]
    begun: float


@dataclass
class Result:
    step: Step
    status: int  # 0: it passed; negative: a signal ended it
    wall_s: float = 0
    cpu_s: float = 0
    is_skipped: bool = False  # what it needs failed
    is_second: bool = False   # the first try failed


class Table:
    """Steps that run, wait for their turn, or have ended."""

    def __init__(self, folder: Path, steps: list[Step]) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.begun = time.monotonic()
        self.waiting = list(steps)
        self.running: list[Run] = []
        self.results: dict[str, Result] = {}

    def play(self) -> list[Result]:
        try:
            self.play_waiting()
            for step in self.due_again():
                print(f"== {step.name}: once more, alone")
                self.waiting.append(step)
                self.play_waiting()
        finally:
            for run in self.running:
                stop(run.child)
        return list(self.results.values())

    def play_waiting(self) -> None:
        while self.waiting or self.running:
            self.start_all()
            self.end_all()
            time.sleep(TICK_S)

    def due_again(self) -> list[Step]:
        return [one.step for one in self.results.values()
                if one.status > 0 and not one.is_skipped
                and one.step.has_second_try]

    # ---- start --------------------------------------------------------------

    def start_all(self) -> None:
        """Those whose turn has come, in the order of the table."""
        for step in list(self.waiting):
            needed = [self.results.get(name) for name in step.after]
            if any(one and one.status != 0 for one in needed):
                self.waiting.remove(step)
                self.end(Result(step, 1, is_skipped=True), "")
            elif all(needed) and self.has_lane(step):
                self.waiting.remove(step)
                self.running.append(self.start(step))

    def has_lane(self, step: Step) -> bool:
        beside = [run.step for run in self.running if run.step.kind == step.kind]
        if any(one.is_alone for one in [step, *beside]):
            return not beside
        return len(beside) < LANES[step.kind]

    def start(self, step: Step) -> Run:
        is_second = step.name in self.results
        log = self.folder / f"{step.name}{'.again' * is_second}.log"
        command = ["bash", "-c", step.command]
        if step.kind == "computes":
            command = ["nice", "-n", "10", *command]
        # a group, not a session: where Linux shares the CPU between sessions
        # first (autogroups, see sched(7)), nice would not count between steps
        with log.open("wb") as output:
            child = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, process_group=0)
        return Run(step, log, child, time.monotonic())

    # ---- end ----------------------------------------------------------------

    def end_all(self) -> None:
        for run in list(self.running):
            if time.monotonic() - run.begun > run.step.limit_s:
                os.killpg(run.child.pid, signal.SIGKILL)
            pid, status, usage = os.wait4(run.child.pid, os.WNOHANG)
            if pid == 0:
                continue
            run.child.returncode = os.waitstatus_to_exitcode(status)
            self.running.remove(run)
            self.end(Result(run.step, run.child.returncode,
                            time.monotonic() - run.begun,
                            usage.ru_utime + usage.ru_stime),
                     run.log.read_text(errors="replace"))

    def end(self, result: Result, output: str) -> None:
        result.is_second = result.step.name in self.results
        self.results[result.step.name] = result
        minutes = (time.monotonic() - self.begun) / 60
        word = ("skipped" if result.is_skipped else
                "ok" if result.status == 0 else f"FAILED ({result.status})")
        print(f"== {minutes:.1f} min: {result.step.name}: {word}, "
              f"{result.wall_s:.0f} s, {result.cpu_s:.0f} CPU s")
        lines = [line for line in output.splitlines() if line.strip()]
        shown = SHOWN if result.status == 0 else SHOWN_FAILED
        for at, line in enumerate(lines, shown - len(lines)):
            if at >= 0 or "second try" in line:
                print(f"   {line}")
        sys.stdout.flush()


def stop(child: subprocess.Popen[bytes]) -> None:
    """With all that it has started in its group; they may clean up."""
    os.killpg(child.pid, signal.SIGTERM)
    try:
        child.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def note(folder: Path, failed: list[str]) -> None:
    """What release-check reads of the nightly run."""
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=40",
         "--exclude=*"], cwd=ROOT, capture_output=True, text=True, check=False)
    (folder / "result").write_text(json.dumps(
        {"commit": said.stdout.strip(), "failed": failed}) + "\n")


def chosen(steps: list[Step], names: list[str]) -> list[Step]:
    """Those of the names and what they need; all, if there is no name."""
    by_name = {step.name: step for step in steps}
    if unknown := set(names) - set(by_name):
        sys.exit(f"no such step: {', '.join(sorted(unknown))}; there are "
                 f"{', '.join(by_name)}")
    wanted: set[str] = set()
    waiting = list(names or by_name)
    while waiting:
        name = waiting.pop()
        wanted.add(name)
        waiting.extend(by_name[name].after)
    return [step for step in steps if step.name in wanted]


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in TABLES:
        sys.exit(f"usage: run.py {'|'.join(TABLES)} [STEP…]")
    name = sys.argv[1]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    runtest.run(lambda folder, steps: Table(folder, steps).play())
    costs.forget_tests(ROOT)
    begun = time.monotonic()
    folder = ROOT / "build" / name
    results = Table(folder, chosen(TABLES[name], sys.argv[2:])).play()
    failed = [result.step.name for result in results if result.status != 0]
    print()
    for line in costs.report(ROOT, results, time.monotonic() - begun):
        print(line)
    if not sys.argv[2:]:
        note(folder, failed)
    if second := [one.step.name for one in results
                  if one.is_second and one.status == 0]:
        print(f"passed at the second try, alone: {', '.join(second)}")
    if failed:
        print(f"failed: {', '.join(failed)}")
    print(f"{name}: {len(results) - len(failed)} passed, {len(failed)} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
