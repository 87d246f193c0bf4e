# SPDX-License-Identifier: MIT
"""The Go package beside Redlock over redigo."""
from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from versions import versions

BUILD, FROM = Path("build/bench/clients/go"), Path("tests/bench/clients/go")
DEBIAN = "/usr/share/gocode"


def _install(folder: Path, package: str) -> None:
    """Without modules, as Debian builds: its packages are in GOPATH."""
    source = folder / "src"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(package, source / "github.com/redlockd/redlockd/api/clients/go")
    shutil.copytree(FROM, source / "bench")
    subprocess.run(["nice", "go", "build", "-o", f"{folder.resolve()}/", "bench/..."],
                   check=True, env={**os.environ, "GO111MODULE": "off", "GOFLAGS": "",
                                    "GOPATH": f"{folder.resolve()}:{DEBIAN}"})


def install() -> None:
    subprocess.run(["scripts/deps.sh", "go", "redigo"], check=True)
    for whose, package in versions("go").items():
        _install(BUILD / whose, package)


# those that ask redlockd, and those that ask the nodes themselves
OURS = {f"{whose}, Go": [BUILD / whose / "redlockd"] for whose in versions("go")}
PEERS = {"redigo": [BUILD / "ours/redlock"]}
# beside whom a side is to be looked at
BESIDE = dict.fromkeys(OURS, "redigo")
# those that hold many locks
HELD = {"ours, Go": [BUILD / "ours/held", "{locks}", "{ttl_ms}", "{seconds}", "{url}"]}
NOTE = ("redigo: Debian has no redsync. This is what redsync does, written over "
        "redigo for this measurement.")
