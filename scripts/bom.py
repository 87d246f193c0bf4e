#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a release consists of, as a bill of materials in CycloneDX 1.5.

  bom.py image VERSION ARCHITECTURE    the packages of Debian in the image: lines of
                                       dpkg-query, name, version, architecture
  bom.py packages VERSION FOLDER       the files of a release, with what they depend on

The same files give the same bytes. SOURCE_DATE_EPOCH is the moment in it.
"""
from __future__ import annotations

import datetime
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import uuid
import xml.etree.ElementTree as xml
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

DEBIAN = "debian-13"  # of the image
Component = dict[str, Any]


def moment() -> str:
    seconds = int(os.environ["SOURCE_DATE_EPOCH"])
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime(
        "%Y-%m-%dT%H:%M:%SZ")


def bill(name: str, version: str, components: list[Component],
         depends: dict[str, list[str]]) -> str:
    body = {
        "metadata": {
            "timestamp": moment(),
            "component": {"type": "application", "bom-ref": name, "name": name,
                          "version": version,
                          "licenses": [{"license": {"id": "MIT"}}]}},
        "components": components,
        "dependencies": [{"ref": ref, "dependsOn": sorted(set(on))}
                         for ref, on in depends.items()],
    }
    number = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(body))
    return json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.5",
                       "serialNumber": f"urn:uuid:{number}", "version": 1} | body,
                      indent=1)


# ---- the image ------------------------------------------------------------------

def image(version: str, architecture: str, lines: list[str]) -> str:
    components = []
    for line in sorted(lines):
        name, number, kind = line.rstrip("\n").split("\t")
        where = f"pkg:deb/debian/{quote(name)}@{quote(number, safe='')}" \
                f"?arch={kind}&distro={DEBIAN}"
        components.append({"type": "library", "bom-ref": where, "name": name,
                           "version": number, "purl": where})
    if not components:
        sys.exit("bom.py: no package was read")
    name = f"redlockd image for {architecture}"
    return bill(name, version, components,
                {name: [one["bom-ref"] for one in components]})


# ---- the files of a release -------------------------------------------------------

def member(file: Path, pattern: str) -> str:
    """The text of the first member of an archive whose name matches."""
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            name = next(one for one in archive.namelist() if re.search(pattern, one))
            return archive.read(name).decode()
    with tarfile.open(file) as archive:
        one = next(one for one in archive if re.search(pattern, one.name))
        text = archive.extractfile(one).read()
        return (gzip.decompress(text) if one.name.endswith(".gz") else text).decode()


def of_deb(file: Path) -> Iterator[str]:
    field = subprocess.run(["dpkg-deb", "-f", str(file), "Depends"], check=True,
                           capture_output=True, text=True).stdout
    for one in re.findall(r"(?:^|,)\s*([a-z0-9.+-]+)", field):
        yield f"pkg:deb/debian/{quote(one)}"


def of_python(file: Path) -> Iterator[str]:
    text = member(file, r"(\.dist-info/METADATA|^[^/]+/PKG-INFO)$")
    for one in re.findall(r"^Requires-Dist: ([\w.-]+)", text, re.M):
        yield f"pkg:pypi/{one.lower()}"


def of_npm(file: Path) -> Iterator[str]:
    for one in json.loads(member(file, r"^package/package.json$")).get("dependencies", ()):
        yield f"pkg:npm/{quote(one)}"


def of_go(file: Path) -> Iterator[str]:
    for one in re.findall(r"^(?:require)?\s+(\S+) v[\d.]+", member(file, r"/go.mod$"), re.M):
        yield f"pkg:golang/{one}"


def of_composer(file: Path) -> Iterator[str]:
    for one in json.loads(member(file, r"^composer.json$")).get("require", ()):
        if "/" in one:  # else it is PHP or one of its extensions
            yield f"pkg:composer/{one}"


def of_gem(file: Path) -> Iterator[str]:
    text = member(file, r"^metadata.gz$")
    for one in re.findall(r"^- !ruby/object:Gem::Dependency\n  name: (\S+)", text, re.M):
        yield f"pkg:gem/{one}"


def of_crate(file: Path) -> Iterator[str]:
    for one in tomllib.loads(member(file, r"^[^/]+/Cargo.toml$")).get("dependencies", ()):
        yield f"pkg:cargo/{one}"


def of_maven(file: Path) -> Iterator[str]:
    space = "{http://maven.apache.org/POM/4.0.0}"
    for one in xml.parse(file).iter(f"{space}dependency"):
        yield "pkg:maven/" + "/".join(one.findtext(f"{space}{part}")
                                      for part in ("groupId", "artifactId"))


READERS = [
    (r"\.deb$", of_deb), (r"clients/.*(\.whl|\.tar\.gz)$", of_python),
    (r"\.tgz$", of_npm), (r"go/.*\.zip$", of_go), (r"clients/[^/]*\.zip$", of_composer),
    (r"\.gem$", of_gem), (r"\.crate$", of_crate), (r"\.pom$", of_maven)]
# what apt and Go make of the others, and what says what there is
APART = re.compile(r"apt/dists/|\.cdx\.json$|\.gpg$|^(SHA256SUMS|NOTES\.md)")


def packages(version: str, folder: Path) -> str:
    components, depends, needed = [], {}, set()
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if not file.is_file() or APART.search(name):
            continue
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        components.append({
            "type": "file", "bom-ref": name, "name": name, "version": version,
            "hashes": [{"alg": "SHA-256", "content": digest}]})
        depends[name] = [one for pattern, reader in READERS
                         if re.search(pattern, name) for one in reader(file)]
        needed.update(depends[name])
    for one in sorted(needed):
        components.append({"type": "library", "bom-ref": one, "purl": one,
                           "name": one.partition("/")[2]})
    return bill("redlockd", version, components, depends)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["image", number, kind]:
            print(image(number, kind, sys.stdin.readlines()))
        case ["packages", number, where]:
            print(packages(number, Path(where)))
        case _:
            sys.exit(__doc__)
