"""The Go package beside Redlock over redigo. OLD_GO names the folder of another
version of the package, which is measured, too."""
from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

BUILD, FROM = Path("build/bench/clients/go"), Path("tests/bench/clients/go")
DEBIAN = "/usr/share/gocode"
OLD = os.environ.get("OLD_GO", "")


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
    _install(BUILD, "api/clients/go")
    if OLD:
        _install(BUILD / "old", OLD)


# those that ask redlockd, and those that ask the nodes themselves
OURS: dict[str, list] = {"ours, Go": [BUILD / "redlockd"]}
if OLD:
    OURS["old, Go"] = [BUILD / "old/redlockd"]
PEERS: dict[str, list] = {"redigo": [BUILD / "redlock"]}
# beside whom a side is to be looked at
BESIDE = {"ours, Go": "redigo", "old, Go": "redigo"}
# those that hold many locks
HELD = {"ours, Go": [BUILD / "held", "{locks}", "{ttl_ms}", "{seconds}", "{url}"]}
NOTE = ("redigo: Debian has no redsync. This is what redsync does, written over "
        "redigo for this measurement.")
