# SPDX-License-Identifier: MIT
"""The bills of materials of a release: valid by the schema of CycloneDX, and each file
of SHA256SUMS that somebody installs is in one, with its sum. And each package of the
clients has the licence, which they must hand on.

  bills.py FOLDER
"""
import json
import re
import sys
import tarfile
import zipfile
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

# those that list others
APART = re.compile(r"apt/dists/|\.cdx\.json$|^NOTES\.md$")


def has_licence(file: Path) -> bool:
    if zipfile.is_zipfile(file):
        names = zipfile.ZipFile(file).namelist()
    else:
        with tarfile.open(file) as archive:
            names = archive.getnames()
            if "data.tar.gz" in names:  # of a gem
                with tarfile.open(fileobj=archive.extractfile("data.tar.gz")) as data:
                    names = data.getnames()
    return any(name.split("/")[-1] == "LICENSE" for name in names)


def main(folder: Path) -> None:
    wrong = []
    files = sorted(folder.glob("*.cdx.json"))
    for file in files:
        if error := JsonStrictValidator(SchemaVersion.V1_5).validate_str(file.read_text()):
            wrong.append(f"{file.name}: {error}")
    [packages] = (file for file in files if file.name.endswith("-packages.cdx.json"))
    listed = {(one["hashes"][0]["content"], one["name"])
              for one in json.loads(packages.read_text())["components"]
              if one["type"] == "file"}
    due = {tuple(line.split("  ", 1))
           for line in (folder / "SHA256SUMS").read_text().splitlines()
           if not APART.search(line.split("  ", 1)[1])}
    wrong += [f"{name}: not in both" for _, name in sorted(listed ^ due)]
    archives = [file for file in (folder / "clients").rglob("*")
                if re.search(r"\.(crate|gem|jar|tgz|tar\.gz|whl|zip)$", file.name)]
    wrong += [f"{file.name}: has no LICENSE"
              for file in archives if not has_licence(file)]
    print("\n".join(wrong) or f"{len(files)} bills, {len(due)} files")
    sys.exit(bool(wrong or not due))


main(Path(sys.argv[1]))
