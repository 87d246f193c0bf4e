# SPDX-License-Identifier: MIT
"""The package for Java, alone: Debian has no Redis client for Java."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from versions import versions

BUILD, FROM = Path("build/bench/clients/java"), Path("tests/bench/clients/java")


def install() -> None:
    subprocess.run(["scripts/deps.sh", "java"], check=True)
    for whose, package in versions("java").items():
        shutil.rmtree(BUILD / whose, ignore_errors=True)
        subprocess.run(["nice", "javac", "--release", "11", "-d", BUILD / whose,
                        FROM / "Cycles.java",
                        *Path(package, "src/main/java").rglob("*.java")], check=True)


# those that ask redlockd, and those that ask the nodes themselves
OURS = {f"{whose}, Java": ["java", "-cp", BUILD / whose, "Cycles"]
        for whose in versions("java")}
PEERS: dict[str, list] = {}
BESIDE: dict[str, str] = {}
NOTE = "Java: alone. Debian has neither Redisson nor a Redis client for Java."
