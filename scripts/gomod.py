#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the Go client into a folder as Go's module proxies serve it, in the
version of VERSION. The same sources give the same bytes.

  gomod.py FOLDER

Then `GOPROXY=file://FOLDER GONOSUMDB=* go get MODULE` finds it there.
"""
from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "api/clients/go"
# zip has no earlier moment, and Go none that it needs
MOMENT = (1980, 1, 1, 0, 0, 0)


def module_of(source: Path) -> str:
    found = re.search(r"^module (\S+)$", (source / "go.mod").read_text(), re.M)
    if not found:
        raise SystemExit(f"{source}/go.mod names no module")
    return found[1]


def files_of(source: Path) -> list[Path]:
    """What users need: the sources without their tests, and what tells of it."""
    code = [file for file in source.glob("*.go")
            if not file.name.endswith("_test.go")]
    return sorted([*code, *(source / name
                            for name in ("go.mod", "README.md", "LICENSE"))])


def escaped(path: str) -> str:
    """As proxies name modules: an upper-case letter is ! and a lower-case one."""
    return re.sub("[A-Z]", lambda letter: "!" + letter[0].lower(), path)


def write_zip(target: Path, prefix: str, files: list[Path]) -> None:
    with zipfile.ZipFile(target, "w") as archive:
        for file in files:
            entry = zipfile.ZipInfo(f"{prefix}/{file.name}", MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, file.read_bytes())


def publish(folder: Path) -> str:
    """Returns MODULE@VERSION."""
    module = module_of(SOURCE)
    version = "v" + (ROOT / "VERSION").read_text().strip()
    target = folder / escaped(module) / "@v"
    target.mkdir(parents=True, exist_ok=True)
    (target / "list").write_text(f"{version}\n")
    (target / f"{version}.info").write_text(
        json.dumps({"Version": version, "Time": "1980-01-01T00:00:00Z"}) + "\n")
    (target / f"{version}.mod").write_bytes((SOURCE / "go.mod").read_bytes())
    write_zip(target / f"{version}.zip", f"{module}@{version}", files_of(SOURCE))
    return f"{module}@{version}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    print(publish(Path(sys.argv[1])))
