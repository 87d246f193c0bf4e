#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Generates clients from openapi.yaml, compiles them, and lets them do the job
that README.md describes.

  matrix.py TOOLS JAR URL DEFAULT_TTL_MS [LANGUAGE… | short]

TOOLS is the folder of the Python tools, JAR the openapi-generator, URL a
redlockd with the limits that README.md tells. Without a LANGUAGE, all; short:
those that each change must pass. The logs are
build/generators/LANGUAGE/STEP.log. Ends with "N passed, N failed".
"""
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from languages import LANGUAGES, SHORT
from later import start_later

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
OUT = ROOT / "build/generators"
PAGE = "docs/client-authors.md"
SHOWN = 30    # lines of a log
LIMIT_S = 900  # for a step: a machine may be busy

# Warnings that no document prevents: what they are about.
HARMLESS = [re.compile(text) for text in (
    r"Failed to get the schema name: null",        # an example without a $ref
    r"Ignoring complex example on request body",   # an example that is an object
    r"Type null not handled properly in toExampleValue",
    r"cannot be used as a (model|field/variable) name\. Renamed to ",
    r"\(reserved word\) cannot be used as model name",
)]


def warnings(log):
    for line in log.splitlines():
        if re.search(r"\b(WARN|WARNING|ERROR)\b", line) and \
                not any(harmless.search(line) for harmless in HARMLESS):
            yield line


class Matrix:
    def __init__(self, tools, jar, url, ttl_ms):
        self.words = {"tools": tools, "python": f"{tools}/python3", "jar": jar,
                      "spec": ROOT / "openapi.yaml", "here": HERE,
                      "jobs": HERE / "jobs"}
        self.url, self.ttl_ms = url, ttl_ms
        self.later = start_later(url)
        self.cargo = threading.Lock()
        self.printing = threading.Lock()
        self.passed = self.failed = 0

    def tell(self, what, seconds, wrong=""):
        with self.printing:
            self.passed += not wrong
            self.failed += bool(wrong)
            print(f"{'FAIL' if wrong else 'ok':5} {what}"
                  f"{f', {seconds:.0f} s' if seconds else ''}", flush=True)
            for line in wrong.splitlines()[-SHOWN:]:
                print(f"      {line[:200]}", flush=True)

    def run(self, language, step, commands):
        """What is wrong, or nothing."""
        folder = OUT / language.name
        words = self.words | {"out": folder, "client": folder / "client"}
        env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | {
            name: value.format(**words) for name, value in language.env.items()}
        log = folder / f"{step.replace(' ', '-')}.log"
        with log.open("w") as output:
            for command in commands:
                line = command.format(**words)
                print("$", line, file=output, flush=True)
                try:
                    status = subprocess.run(
                        ["bash", "-euo", "pipefail", "-c", line], cwd=ROOT,
                        env=env, stdin=subprocess.DEVNULL, stdout=output,
                        stderr=subprocess.STDOUT, timeout=LIMIT_S).returncode
                except subprocess.TimeoutExpired:
                    status = f"none after {LIMIT_S} s"
                if status:
                    return f"{log.read_text()}status {status}; {log}"
        return ""

    def step(self, language, step, commands):
        start = time.monotonic()
        wrong = self.run(language, step, commands)
        if step == "generates" and not wrong:
            log = OUT / language.name / "generates.log"
            wrong = "\n".join(warnings(log.read_text()))
        self.tell(f"{language.name} {step}", time.monotonic() - start, wrong)
        return not wrong

    def one(self, language):
        """The steps that it has done."""
        folder = OUT / language.name
        for name in ("client", "classes", "job"):
            path = folder / name
            shutil.rmtree(path, True) if path.is_dir() else \
                path.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        steps = [("generates", (language.generation(),))]
        if language.compile:
            steps.append(("compiles", language.compile))
        for url, what in ((self.url, "does the job"),
                          (self.later, "does the job with a later server")):
            if language.job:
                name = f"{language.name} {'later' if url != self.url else ''}"
                steps.append((what, (f"timeout 120 {language.job} {url} "
                                     f"{self.ttl_ms} '{name}'",)))
        done = set()
        for step, commands in steps:
            if step == "compiles" and language.cargo:
                with self.cargo:
                    well = self.step(language, step, commands)
            else:
                well = self.step(language, step, commands)
            if not well:
                break
            done.add(step)
        return done


# ---- the docs ---------------------------------------------------------------

def versions():
    lines = (HERE / "requirements.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def row(language, done):
    """As the docs show it."""
    def cell(step, has):
        return ("yes" if step in done else "no") if has else "not tried"
    options = f"`{language.options}`" if language.options else ""
    generator = f"{language.version} {versions()[language.version]}"
    if language.generator != language.version:
        generator += f", `{language.generator}`"
    return [language.name, generator, options, cell("generates", True),
            cell("compiles", language.compile),
            cell("does the job with a later server", language.job)]


def table():
    """The rows of the docs, by their first cell."""
    text = (ROOT / PAGE).read_text()
    section = text.split("## Generated clients\n", 1)[-1].split("\n## ", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in section.splitlines() if line.startswith("| ")]
    return {cells[0]: cells for cells in rows[2:]}


def differences(results):
    shown = table()
    for name in sorted(set(shown) - {language.name for language in LANGUAGES}):
        yield f"{name}: no such row in languages.py"
    for language in LANGUAGES:
        if language.name not in shown:
            yield f"{language.name}: is missing"
    for language, done in results:
        want = row(language, done)
        if shown.get(language.name, want) != want:
            yield f"it says {' | '.join(shown[language.name])}"
            yield f"now it is {' | '.join(want)}"


def has_cargo():
    """One that reads our Cargo.lock and builds what that names."""
    if not shutil.which("cargo"):
        return False
    says = subprocess.run(["cargo", "--version"], capture_output=True,
                          text=True).stdout
    numbers = re.search(r"(\d+)\.(\d+)", says)
    return numbers and tuple(map(int, numbers.groups())) >= (1, 85)


def main():
    tools, jar, url, ttl_ms, *names = sys.argv[1:]
    if names == ["short"]:
        names = list(SHORT)
    unknown = set(names) - {language.name for language in LANGUAGES}
    if unknown:
        sys.exit(f"no such generator: {' '.join(sorted(unknown))}")
    chosen = [language for language in LANGUAGES
              if not names or language.name in names]
    for language in [one for one in chosen if one.cargo and not has_cargo()]:
        print(f"SKIP  {language.name}: there is no cargo (1.85 or newer)")
        chosen.remove(language)
    matrix = Matrix(tools, jar, url, ttl_ms)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(zip(chosen, pool.map(matrix.one, chosen)))
    wrong = "\n".join(differences(results))
    matrix.tell(f"{PAGE} says the same", 0, wrong)
    print(f"{matrix.passed} passed, {matrix.failed} failed")
    sys.exit(1 if matrix.failed else 0)


if __name__ == "__main__":
    main()
