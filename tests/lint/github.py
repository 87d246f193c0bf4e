#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The forms, the workflows and the settings of Dependabot in .github.

github.py TOOLS, a folder with check-jsonschema and zizmor

check-jsonschema compares them with the public schemas, zizmor looks for what
is dangerous in workflows, shellcheck reads what they run. Labels are those that
each repository has, Dependabot knows each folder with dependencies, and actions
are pinned by their commit, with the version in a comment. First a test shows
that what is wrong is noticed.
"""
from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from findings import ROOT, tell

SCHEMAS = {
    "ISSUE_TEMPLATE/config.yml": "vendor.github-issue-config",
    "ISSUE_TEMPLATE/*.yml": "vendor.github-issue-forms",
    "dependabot.yml": "vendor.dependabot",
    "workflows/*.yml": "vendor.github-workflows",
}
LABELS = {"bug", "documentation", "duplicate", "enhancement", "good first issue",
          "help wanted", "invalid", "question", "wontfix"}
# what lists dependencies, for each of Dependabot's ecosystems
MANIFESTS = {
    "bundler": r".*\.gemspec", "cargo": r"Cargo\.toml", "composer": r"composer\.json",
    "docker": r"Dockerfile|redlockd\.yaml", "gomod": r"go\.mod", "maven": r"pom\.xml",
    "npm": r"package\.json", "pip": r"requirements\.txt|pyproject\.toml",
}
# other libraries, in the versions that the docs name; what only a test generates
APART = re.compile("tests/(interop|bench|lib/rslock|openapi/generators/rust)/|"
                   "deploy/kubernetes/(?!base/)|deploy/helm/")
USES = re.compile(r"^\s*(?:- )?uses: (\S+)(.*)$", re.M)
PINNED = re.compile(r"([\w-]+/[\w./-]+)@([0-9a-f]{40})")
Texts = dict[str, str]


def said(tool: Path, *arguments: str | Path) -> Iterator[str]:
    done = subprocess.run([tool, *arguments], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        yield done.stdout.strip() or f"{tool.name} failed"


def by_tools(folder: Path, tools: Path) -> Iterator[str]:
    """What the tools say of a folder like .github."""
    seen: set[Path] = set()
    for pattern, schema in SCHEMAS.items():
        files = sorted(set(folder.glob(pattern)) - seen)
        seen.update(files)
        if not files:
            yield f".github: has no {pattern}"
            continue
        yield from said(tools / "check-jsonschema", "--builtin-schema", schema, *files)
    yield from said(tools / "zizmor", "--offline", "--no-progress", "--quiet",
                    "--strict-collection", folder)


def by_shellcheck(texts: Texts) -> Iterator[str]:
    """What is run in the jobs; without it nobody sees a mistake before a release."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            jobs = yaml.safe_load(text)["jobs"] if name.startswith("workflows/") else {}
            for job, its in jobs.items():
                for number, step in enumerate(its["steps"]):
                    path = Path(folder, f"{Path(name).stem}-{job}-{number}.sh")
                    # an expression is filled in before the shell reads it
                    path.write_text("#!/bin/bash\n" + re.sub(
                        r"\$\{\{.*?\}\}", "x", step.get("run", "")) + "\n")
        scripts = sorted(Path(folder).iterdir())
        yield from said(Path("shellcheck"), "-e", "SC2154", *scripts)


def of_forms(texts: Texts) -> Iterator[str]:
    for name, text in texts.items():
        form = yaml.safe_load(text) if "ISSUE_TEMPLATE/" in name else {}
        for label in set(form.get("labels", ())) - LABELS:
            yield f"{name}: a new repository has no label {label}"


def of_dependabot(settings: dict[str, Any], files: list[str]) -> Iterator[str]:
    """files: all names of the project."""
    wanted = defaultdict(set)
    for file in files:
        folder, _, name = file.rpartition("/")
        for ecosystem, form in MANIFESTS.items():
            if re.fullmatch(form, name) and not APART.match(file):
                wanted[ecosystem].add(f"/{folder}")
    wanted["github-actions"] = {"/"}
    known = defaultdict(set)
    for one in settings["updates"]:
        known[one["package-ecosystem"]].update(
            one.get("directories", [one.get("directory")]))
    for ecosystem in sorted(wanted.keys() | known.keys()):
        for folder in sorted(wanted[ecosystem] ^ known[ecosystem]):
            yield f"dependabot.yml: {ecosystem}: " + (
                f"{folder} is missing" if folder in wanted[ecosystem] else
                f"there is nothing in {folder}")


def of_workflows(texts: Texts) -> Iterator[str]:
    pins = defaultdict(set)
    for name, text in texts.items():
        if not name.startswith("workflows/"):
            continue
        if "permissions" not in yaml.safe_load(text):
            yield f"{name}: says no permissions for all jobs"
        if re.search(r"\bsecrets\b", text):
            yield f"{name}: uses a secret"
        for action, rest in USES.findall(text):
            if not (match := PINNED.fullmatch(action)):
                yield f"{name}: {action}: is not pinned by its commit"
            elif not re.fullmatch(r" # v\d+\.\d+\.\d+( # zizmor: .*)?", rest):
                yield f"{name}: {action}: no version like # v1.2.3 behind it"
            else:
                pins[match[1]].add(match[2] + rest.partition(" # zizmor")[0])
    for action, commits in pins.items():
        if len(commits) > 1:
            yield f"{action}: several commits: {', '.join(sorted(commits))}"


def texts_of(folder: Path) -> Texts:
    return {path.relative_to(folder).as_posix(): path.read_text()
            for path in sorted(folder.rglob("*.yml"))}


def complaints(texts: Texts, files: list[str]) -> list[str]:
    return [*of_forms(texts), *of_workflows(texts),
            *of_dependabot(yaml.safe_load(texts["dependabot.yml"]), files)]


def test(tools: Path) -> None:
    commit = "0123456789" * 4
    flow = ("permissions: {}\njobs:\n  a:\n    steps:\n"
            f"      - uses: a/b@{commit} # v1.2.3\n")
    good = {"ISSUE_TEMPLATE/a.yml": "labels: [bug]\n", "workflows/a.yml": flow,
            "dependabot.yml": "updates:\n- {package-ecosystem: npm, directory: /a}\n"
            "- {package-ecosystem: github-actions, directory: /}\n"}
    files = ["a/package.json", "a/b.c", "tests/interop/requirements.txt"]
    assert not complaints(good, files), complaints(good, files)
    for name, old, new in (
            ("ISSUE_TEMPLATE/a.yml", "bug", "nosuch"),
            ("workflows/a.yml", f"@{commit}", "@v1"),
            ("workflows/a.yml", " # v1.2.3", ""), ("workflows/a.yml", "v1.2.3", "v1"),
            ("workflows/a.yml", "permissions: {}", "a: 1"),
            ("workflows/a.yml", "steps", "e: ${{ secrets.A }}\n    steps"),
            ("workflows/a.yml", flow, flow + flow[-60:].replace("v1.2.3", "v1.2.4")),
            ("dependabot.yml", "directory: /a", "directories: [/a, /b]"),
            ("dependabot.yml", "- {package-ecosystem: npm, directory: /a}\n", "")):
        bad = good | {name: good[name].replace(old, new, 1)}
        assert len(complaints(bad, files)) == 1, (new, complaints(bad, files))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / ".github"
        shutil.copytree(ROOT / ".github", folder)
        for file, old, new in (
                ("ISSUE_TEMPLATE/bug.yml", "type: textarea", "type: nosuch"),
                ("ISSUE_TEMPLATE/config.yml", "about:", "nosuch:"),
                ("dependabot.yml", "ecosystem: npm", "ecosystem: nosuch"),
                ("workflows/gate.yml", "timeout-minutes", "nosuch"),
                ("workflows/gate.yml", "  pull_request:", "  pull_request_target:")):
            text = (folder / file).read_text()
            assert old in text, (file, old)
            (folder / file).write_text(text.replace(old, new))
        found = list(by_tools(folder, tools))
        assert len(found) == 5, found
    bad = {"workflows/a.yml": "jobs: {a: {steps: [{run: 'echo $(ls) $x'}]}}"}
    assert len(list(by_shellcheck(bad))) == 1


def main() -> None:
    tools = Path(sys.argv[1])
    test(tools)
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split("\n")
    texts = texts_of(ROOT / ".github")
    tell([*by_tools(ROOT / ".github", tools), *by_shellcheck(texts),
          *complaints(texts, files)])


if __name__ == "__main__":
    main()
