# SPDX-License-Identifier: MIT
"""The bills of materials of a release: valid by the schema of CycloneDX, and each file
of SHA256SUMS that somebody installs is in one, with its sum.

  bills.py FOLDER
"""
import json
import re
import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

# those that list others
APART = re.compile(r"apt/dists/|\.cdx\.json$|^NOTES\.md$")


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
    print("\n".join(wrong) or f"{len(files)} bills, {len(due)} files")
    sys.exit(bool(wrong or not due))


main(Path(sys.argv[1]))
