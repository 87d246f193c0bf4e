# SPDX-License-Identifier: MIT
"""The crate, for threads, beside rslock, for tasks. RUST_PROFILE=holder compiles both
in less time, and they are slower."""
from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from versions import versions

BUILD, FROM = Path("build/bench/clients/rust"), Path("tests/bench/clients/rust")
PROFILE = os.environ.get("RUST_PROFILE") or "release"
RSLOCK = Path("build/rslock", PROFILE, "rslock-bench")
# of our crate, as tests/rust/run.sh does it
DEBIAN = ["--config", 'source.crates-io.replace-with="debian"',
          "--config", 'source.debian.directory="/usr/share/cargo/registry"']


def install() -> None:
    """Without a cargo that builds rslock, the crate is alone."""
    subprocess.run(["scripts/deps.sh", "rust"], check=True)
    for whose, package in versions("rust").items():
        shutil.copytree(FROM, BUILD / whose, dirs_exist_ok=True)
        link = BUILD / whose / "package"
        link.unlink(missing_ok=True)
        (BUILD / whose / "Cargo.lock").unlink(missing_ok=True)  # of another cargo
        link.symlink_to(Path(package).resolve())
        subprocess.run(["nice", "cargo", "build", "-q", "--offline", *DEBIAN,
                        "--profile", PROFILE, "--manifest-path",
                        BUILD / whose / "Cargo.toml"], check=True)
    subprocess.run(["bash", "-c", "source tests/lib/libraries.sh; "
                    f"libraries_rust {PROFILE} rslock-bench"])
    if not RSLOCK.exists():
        PEERS.clear()


# those that ask redlockd, and those that ask the nodes themselves
OURS = {f"{whose}, Rust": [BUILD / whose / "target" / PROFILE / "redlockd-bench"]
        for whose in versions("rust")}
PEERS = {"rslock": [RSLOCK]}
# beside whom a side is to be looked at
BESIDE = dict.fromkeys(OURS, "rslock")
