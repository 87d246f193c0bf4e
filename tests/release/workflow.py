#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the workflow of a release refuses: its steps, run with a GitHub that knows one
tag, and with names of ours.

  workflow.py FOLDER, where it may write
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
JOBS = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
COMMIT = "c" * 40
# gh api PATH --jq FILTER
GH = """#!/bin/bash
echo "$2" >>asked
case $2 in
repos/Jo/Locks/git/ref/tags/*) file=ref ;;
repos/Jo/Locks/git/tags/*) file=tag ;;
*) exit 1 ;;
esac
jq -r "$4" $file
"""
RUN = {"GITHUB_REPOSITORY": "Jo/Locks", "GITHUB_SERVER_URL": "https://github.com",
       "GITHUB_REF_NAME": "v1.2.3", "GITHUB_SHA": COMMIT}
REF = {"object": {"type": "tag", "sha": "a" * 40}}
TAG = {"tag": "v1.2.3", "object": {"type": "commit", "sha": COMMIT},
       "verification": {"verified": True, "reason": "valid"}}
NAMES = {"REGISTERED": "yes", "REPOSITORY_URL": "https://github.com/Jo/Locks",
         "IMAGE": "ghcr.io/jo/locks"}


def passes(folder: Path, job: str, name: str, **run: str) -> bool:
    """Whether the step does, as a runner would start it."""
    [step] = (one for one in JOBS[job]["steps"] if name in one.get("name", ""))
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder, check=False, capture_output=True, text=True,
        env=RUN | run | {"PATH": f"{folder}:{os.environ['PATH']}"})
    return done.returncode == 0


def tag_passes(folder: Path, ref: Any = REF, tag: Any = TAG, **run: str) -> bool:
    (folder / "ref").write_text(json.dumps(ref))
    (folder / "tag").write_text(json.dumps(tag))
    return passes(folder, "tag", "who signed", **run)


def names_pass(folder: Path, **names: str) -> bool:
    (folder / "scripts").mkdir(exist_ok=True)
    (folder / "scripts/project.env").write_text(
        "".join(f"{name}={value}\n" for name, value in (NAMES | names).items()))
    return passes(folder, "build", "are registered")


def main(folder: Path) -> None:
    (folder / "gh").write_text(GH)
    (folder / "gh").chmod(0o755)
    assert tag_passes(folder)
    asked = (folder / "asked").read_text()
    commit = {"object": {"type": "commit", "sha": COMMIT}}
    other = {"type": "commit", "sha": "d" * 40}
    assert not tag_passes(folder, ref=commit), "a tag without a signature"
    assert not tag_passes(folder, tag=TAG | {"verification": {"verified": False}}), \
        "a signature that GitHub does not know"
    assert not tag_passes(folder, tag=TAG | {"object": other}), \
        "a tag that was moved: signed is another commit than this"
    assert not tag_passes(folder, tag=TAG | {"tag": "v1.0.0"}), \
        "a tag that was signed for another name"
    (folder / "asked").unlink()
    for name in "v1", "v1.2.3-rc1", "vx", 'v1";id;"', "v$(id)", "v1.2.3\nv":
        assert not tag_passes(folder, GITHUB_REF_NAME=name,
                              tag=TAG | {"tag": name}), name
    assert "/git/tags/" in asked and not (folder / "asked").exists()
    assert names_pass(folder)
    for name, value in (("REGISTERED", "no"), ("IMAGE", "ghcr.io/else/locks"),
                        ("IMAGE", "ghcr.io/jo/other"),
                        ("REPOSITORY_URL", "https://github.com/else/locks")):
        assert not names_pass(folder, **{name: value}), value


main(Path(sys.argv[1]))
