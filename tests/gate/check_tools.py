#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tries what no gate runs in full, so that nothing rots unseen.

  check_tools.py [TARGET…]

Each documented make target is run by the tables `test` or `gate` of steps.py, or
tried by tools.py; what is neither is an error, as is what is both. The logs are
in build/check-tools.
"""
from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import workflows
from steps import FIRST, GATE, TEST, Step
from tools import TOOLS, Tool

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "check-tools"
COPY = FOLDER / "copy"
MAKEFILES = ("Makefile", "tests/tests.mk")
LIMIT_S = 900   # for a tool; one may wait for what another installs
SHOWN_FAILED = 40
AT_A_TIME = 3   # lanes: they mostly wait


# ---- targets ----------------------------------------------------------------

def makefiles() -> str:
    return "".join((ROOT / name).read_text() for name in MAKEFILES)


def documented(text: str) -> set[str]:
    """Those that `make help` shows."""
    return set(re.findall(r"^([a-z-]*):.*## ", text, re.M))


def phony(text: str) -> set[str]:
    joined = text.replace("\\\n", " ")
    return set(" ".join(re.findall(r"^\.PHONY:(.*)", joined, re.M)).split())


def made_by(steps: list[Step]) -> set[str]:
    """The targets of their commands."""
    words = [word for step in steps if step.command.startswith("make ")
             for word in step.command.split()[1:]]
    return {word for word in words if re.fullmatch("[a-z][a-z-]*", word)}


def hidden(text: str) -> Iterator[str]:
    """Targets that are for people to type, but that nobody is told of: no rule
    and no recipe names them."""
    used = re.sub(r"^\.PHONY:(.*\\\n)*.*", "", text, flags=re.M)
    used = re.sub(r"^[a-z-]+:", "", used, flags=re.M)
    for name in sorted(phony(text) - documented(text)):
        if not re.search(rf"(?<![\w-]){name}(?![\w-])", used):
            yield f"{name}: has no description, and nothing makes it"


def missing_groups() -> Iterator[str]:
    """Where several steps install at once, they stand in each other's way."""
    script = (ROOT / "scripts/deps.sh").read_text()
    words = FIRST[0].command.split()
    for group in re.findall(r"^    ([a-z-]+)\)", script, re.M):
        if group not in words:
            yield f"{group}: not among the packages of the step deps"


def untried() -> list[str]:
    """What is wrong with the tables."""
    text = makefiles()
    targets, run = documented(text), made_by(GATE + TEST)
    tried = [tool.target for tool in TOOLS]
    wrong = [f"{name}: neither run by the gate nor in tools.py"
             for name in sorted(targets - run - set(tried))]
    wrong += [f"{name}: tools.py has it, and there is no such target"
              for name in tried if name not in targets]
    wrong += [f"{name}: tools.py has it, and the gate runs it"
              for name in tried if name in run]
    wrong += [f"{name}: tools.py has it twice"
              for name in set(tried) if tried.count(name) > 1]
    wrong += [f"{tool.target}: its command does not make it" for tool in TOOLS
              if not re.search(rf"\bmake {tool.target}(?![\w-])", tool.command)]
    return wrong + list(hidden(text)) + list(missing_groups())


# ---- one tool ----------------------------------------------------------------

def environment() -> dict[str, str]:
    """Nothing of the make that started this."""
    env = {name: value for name, value in os.environ.items()
           if name not in ("MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "STEPS",
                           "ONLY", "CHECK")}
    return env | {
        "MAKEFLAGS": "--no-print-directory", "ROOT": str(ROOT),
        "FOLDER": str(FOLDER), "COPY": str(COPY),
        "PYTHONPATH": str(ROOT / "tests/lib"), "PYTHONDONTWRITEBYTECODE": "1",
        "TARGETS": " ".join(sorted(documented(makefiles())))}


def bash(command: str, log: Path) -> tuple[int, float]:
    """Its exit status, and the CPU time of what it started."""
    with log.open("wb") as output:
        child = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", command], cwd=ROOT,
            env=environment(), stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True)
        late = threading.Timer(LIMIT_S, stop, [child.pid])
        late.start()
        try:
            _, status, usage = os.wait4(child.pid, 0)
        finally:
            late.cancel()
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_utime + usage.ru_stime


def stop(group: int) -> None:
    """What it started dies with it, or cleans up."""
    os.killpg(group, signal.SIGTERM)


class Counts:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.passed = self.failed = 0
        self.cpu_s = 0.0

    def tell(self, what: str, wrong: str, cpu_s: float = 0) -> None:
        with self.lock:
            self.passed += not wrong
            self.failed += bool(wrong)
            self.cpu_s += cpu_s
            print(f"{'FAIL' if wrong else 'ok':5} {what}", flush=True)
            for line in wrong.splitlines()[-SHOWN_FAILED:]:
                print(f"      {line}", flush=True)

    def skip(self, what: str) -> None:
        with self.lock:
            print(f"SKIP  {what}", flush=True)


def try_tool(tool: Tool, counts: Counts) -> None:
    log = FOLDER / f"{tool.target}.log"
    if tool.needs and bash(tool.needs, log)[0] != 0:
        counts.skip(f"{tool.target}: this machine cannot: {tool.needs}")
        return
    begun = time.monotonic()
    status, cpu_s = bash(tool.command, log)
    text = log.read_text(errors="replace")
    wrong = ""
    if status != 0:
        wrong = f"{text}ended with {status}"
    elif not re.search(tool.says, text, re.M):
        wrong = f"{text}does not say: {tool.says}"
    counts.tell(f"{tool.target} [{time.monotonic() - begun:.1f} s, "
                f"{cpu_s:.1f} CPU s]", wrong, cpu_s)


# ---- all of them -------------------------------------------------------------

def make_copy() -> None:
    """What git knows, and what is new."""
    shutil.rmtree(COPY, ignore_errors=True)
    COPY.mkdir(parents=True)
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others",
         "--exclude-standard"], cwd=ROOT, capture_output=True, check=True)
    there = [name for name in names.stdout.split(b"\0")
             if name and (ROOT / os.fsdecode(name)).exists()]
    packed = subprocess.run(["tar", "--null", "--files-from=-", "-c"], cwd=ROOT,
                            input=b"\0".join(there), capture_output=True,
                            check=True)
    subprocess.run(["tar", "-x"], cwd=COPY, input=packed.stdout, check=True)


def try_all(tools: list[Tool], counts: Counts) -> None:
    lanes: dict[str, list[Tool]] = {}
    for tool in tools:
        lanes.setdefault(tool.lane or tool.target, []).append(tool)

    def play(lane: list[Tool]) -> None:
        for tool in lane:
            try_tool(tool, counts)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        # the longest first
        for done in [pool.submit(play, lane) for lane in
                     sorted(lanes.values(), key=len, reverse=True)]:
            done.result()


def main() -> None:
    counts = Counts()
    checks: list[tuple[str, Callable[[], list[str]]]] = [
        ("each target is run by the gate, or tried here", untried),
        ("each workflow names what there is",
         lambda: workflows.wrong(phony(makefiles())))]
    for what, check in checks:
        counts.tell(what, "\n".join(check()))
    names = sys.argv[1:]
    if unknown := set(names) - {tool.target for tool in TOOLS}:
        sys.exit(f"check_tools.py: not tried: {', '.join(sorted(unknown))}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    make_copy()
    begun = time.monotonic()
    try_all([tool for tool in TOOLS if not names or tool.target in names],
            counts)
    for left in (COPY, FOLDER / "root", FOLDER / "service",
                 FOLDER / "release"):
        shutil.rmtree(left, ignore_errors=True)
    print(f"in {time.monotonic() - begun:.0f} s, {counts.cpu_s:.0f} CPU s")
    print(f"{counts.passed} passed, {counts.failed} failed")
    sys.exit(counts.failed > 0)


if __name__ == "__main__":
    main()
