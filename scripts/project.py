#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Keeps the names of project.env the same in all files that need them.

project.py --check    exits with 1 if a file has another name
project.py --write    writes the names into the files

PLACES has the lines that must be there. The Go module, the image, the
repository and the npm package also stand in imports and prose, wherever these
need them: there, --write replaces the value that PLACES finds first.
"""
from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = "scripts/project.env"
HOST = r"[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)+"
URL = rf"https://{HOST}(?:/[\w.-]+)*"
EMAIL = rf"[\w.+-]+@{HOST}"
WORD = r"[A-Za-z0-9][\w.-]*"
# what each value looks like
FORMS = {
    "REGISTERED": "yes|no",
    "HOME_URL": URL,
    "REPOSITORY_URL": rf"https://{HOST}(?:/[\w.-]*[\w-])+",
    "MAINTAINER_NAME": r"\w[\w .-]*\w",
    "MAINTAINER_EMAIL": EMAIL,
    "SECURITY_CONTACT": EMAIL,
    "IMAGE": rf"{HOST}(?:/[a-z0-9._-]+)+",
    "GO_MODULE": rf"{HOST}(?:/[\w.-]+)+",
    # else its source archive would have the name of that of redlockd
    "PYPI_NAME": rf"(?i:(?!redlockd$)){WORD}",
    "NPM_NAME": rf"(?:@{WORD}/)?{WORD}",
    "COMPOSER_NAME": rf"{WORD}/{WORD}",
    "GEM_NAME": WORD,
    "MAVEN_GROUP": WORD,
    "MAVEN_ARTIFACT": WORD,
    "CRATE_NAME": WORD,
}
# file: the lines, or parts of a line, in which names stand as @NAME@
PLACES = {
    "api/clients/go/go.mod": ["module @GO_MODULE@\n"],
    "api/clients/python/pyproject.toml": [
        'name = "@PYPI_NAME@"\n',
        'Homepage = "@HOME_URL@"\n',
        'Repository = "@REPOSITORY_URL@"\n',
        'Issues = "@REPOSITORY_URL@/issues"\n'],
    "api/clients/python/README.md": ["# @PYPI_NAME@\n"],
    "tests/python/check_package.py": ['metadata.version("@PYPI_NAME@")'],
    "api/clients/node/package.json": [
        '"name": "@NPM_NAME@"',
        '"homepage": "@HOME_URL@"',
        '"bugs": "@REPOSITORY_URL@/issues"',
        '"url": "git+@REPOSITORY_URL@.git"'],
    "api/clients/node/README.md": ["# @NPM_NAME@\n"],
    "api/clients/php/composer.json": [
        '"name": "@COMPOSER_NAME@"',
        '"homepage": "@HOME_URL@"',
        '"issues": "@REPOSITORY_URL@/issues"',
        '"source": "@REPOSITORY_URL@"'],
    "api/clients/php/README.md": ["composer require @COMPOSER_NAME@\n"],
    "api/clients/ruby/redlockd.gemspec": [
        'gem.name = "@GEM_NAME@"\n',
        'gem.homepage = "@HOME_URL@"\n',
        '"source_code_uri" => "@REPOSITORY_URL@"',
        '"bug_tracker_uri" => "@REPOSITORY_URL@/issues"'],
    "tests/ruby/check_ruby.py": ['NAME = "@GEM_NAME@"\n'],
    "api/clients/ruby/README.md": ['gem "@GEM_NAME@"'],
    "api/clients/java/pom.xml": [
        "<groupId>@MAVEN_GROUP@</groupId>",
        "<artifactId>@MAVEN_ARTIFACT@</artifactId>",
        "</description>\n  <url>@HOME_URL@</url>",
        "<developer>\n      <name>@MAINTAINER_NAME@</name>\n"
        "      <email>@MAINTAINER_EMAIL@</email>",
        "<scm>\n    <url>@REPOSITORY_URL@</url>",
        "<connection>scm:git:@REPOSITORY_URL@.git</connection>"],
    "api/clients/java/README.md": ["`@MAVEN_GROUP@:@MAVEN_ARTIFACT@`"],
    "api/clients/rust/Cargo.toml": [
        '[package]\nname = "@CRATE_NAME@"\n',
        'homepage = "@HOME_URL@"\n',
        'repository = "@REPOSITORY_URL@"\n'],
    "tests/bench/clients/rust/Cargo.toml": ['package = "@CRATE_NAME@"'],
    "api/clients/rust/README.md": ["`@CRATE_NAME@ = { path"],
    "Dockerfile": [
        'image.url="@HOME_URL@"',
        'image.source="@REPOSITORY_URL@"',
        'image.authors="@MAINTAINER_NAME@"'],
    "docker-compose.yml": ["image: ${REDLOCKD_IMAGE:-@IMAGE@}"],
    "docs/deploy/compose.md": ["REDLOCKD_ALLOW_ANONYMOUS=yes @IMAGE@:"],
    "deploy/kubernetes/base/kustomization.yaml": ["{name: redlockd, newName: @IMAGE@,"],
    "deploy/helm/redlockd/values.yaml": ["image:\n  repository: @IMAGE@\n"],
    "docs/deploy/kubernetes.md": ["images: [{name: @IMAGE@,"],
    "debian/control": [
        "Maintainer: @MAINTAINER_NAME@ <@MAINTAINER_EMAIL@>\n",
        "Homepage: @HOME_URL@\n",
        "Vcs-Browser: @REPOSITORY_URL@\n",
        "Vcs-Git: @REPOSITORY_URL@.git\n"],
    # of the newest version: that of the others stays
    "debian/changelog": [" -- @MAINTAINER_NAME@ <@MAINTAINER_EMAIL@>  "],
    "debian/copyright": [
        "Upstream-Contact: @MAINTAINER_NAME@ <@MAINTAINER_EMAIL@>\n",
        "Source: @REPOSITORY_URL@\n"],
    "SECURITY.md": ["mail to @SECURITY_CONTACT@"],
    "CODE_OF_CONDUCT.md": ["write to @MAINTAINER_EMAIL@"],
    "docs/support.md": ["(@REPOSITORY_URL@/issues)"],
    ".github/ISSUE_TEMPLATE/config.yml": [
        "url: @REPOSITORY_URL@/security/advisories/new\n"],
    "openapi.yaml": [
        "contact:\n    name: @MAINTAINER_NAME@\n    url: @REPOSITORY_URL@/issues\n"],
}
NODE = r"\.(mjs|mts|cts|js|ts|md|sh|json)$"
# name, which files may have it in other places, what stands around it there
ELSEWHERE = (
    ("GO_MODULE", "", r"(?<![\w./-])@(?![\w-])"),
    ("IMAGE", "", r"(?<![\w./-])@(?![\w-])"),
    ("REPOSITORY_URL", "", r"@(?![\w-])"),
    ("NPM_NAME", NODE, r'(?<=")@(?=")|(?<=node_modules/)@(?![\w-])'),
)
# what is as it was, or has names that are only examples
APART = re.compile(rf"{re.escape(FILE)}|debian/changelog|CHANGELOG\.md|"
                   r"tests/(?!go/|node/|examples/|bench/clients/|python/check_package)")
# reserved for examples, RFC 2606 and 6761; and redlockd@1.env
RESERVED = re.compile(r"\bexample\.(com|net)$|\.(example|test|internal|env)$")
ADDRESS = re.compile(rf"(?<![\w:/.@+-])({EMAIL}(?<=[a-z]))(?![\w@:/-])")
PROJECT = re.compile(rf"(?<![\w.@-])({HOST}[a-z]/[\w./-]*redlockd)(?![\w-])")
# names that look as if the project lived there; examples have example.com or .net
PLACEHOLDER = re.compile(r"\bredlockd\.example\b|\bexample\.org\b")
Names = dict[str, str]


def read_names(root: Path = ROOT) -> Names:
    """The values of project.env. Ends the program if they are unusable."""
    names = {}
    for line in (root / FILE).read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.partition("=")
            names[name] = value.strip('"')
    wrong = [f"{FILE}: {name} is missing" for name in FORMS.keys() - names.keys()]
    wrong += [f"{FILE}: {name}={value}: nobody knows this name, or its form is wrong"
              for name, value in names.items()
              if not re.fullmatch(FORMS.get(name, "(?!)"), value)]
    if wrong:
        sys.exit("\n".join(sorted(wrong)))
    return names


def pattern(template: str) -> re.Pattern[str]:
    """Finds the template with any values; each name is a group."""
    parts = re.split(r"@([A-Z_]+)@", template)
    text = "".join(rf"(?P<{part}>{_any(part)})" if at % 2 else re.escape(part)
                   for at, part in enumerate(parts))
    start = "" if template[0] in " \"'`<" else r"(?<![\w-])"
    return re.compile(start + text)


def _any(name: str) -> str:
    if name == "MAINTAINER_NAME":
        return "[^<>\"\n]+?"
    if name.endswith("_URL"):
        return "[^\\s<>\"'`,{}()]+?"
    return "[^\\s<>\"'`:,{}()]*[^\\s<>\"'`:,{}().]"


def filled(template: str, names: Names) -> str:
    return re.sub(r"@([A-Z_]+)@", lambda it: names[it[1]], template)


def places() -> Iterator[tuple[str, str]]:
    for file, templates in PLACES.items():
        for template in templates:
            yield file, template


def files_of(root: Path) -> list[str]:
    """What git knows or will know; without git, all but what is built."""
    if (root / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root, check=True, capture_output=True, text=True).stdout
        return sorted(filter(None, listed.split("\0")))
    names = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(str(name) for name in names if name.parts[0] != "build")


def texts(root: Path) -> dict[str, str]:
    """The files below root, but for those of bytes."""
    found = {}
    for name in files_of(root):
        try:
            found[name] = (root / name).read_bytes().decode()
        except (OSError, UnicodeDecodeError):
            continue
    return found


def current(files: dict[str, str]) -> Names:
    """The names that the files have now."""
    names: Names = {}
    for file, template in places():
        if match := pattern(template).search(files.get(file, "")):
            names = match.groupdict() | names
    return names


def check(root: Path) -> Iterator[str]:
    """What is wrong with the files below root."""
    yield from check_places(root)
    yield from check_prose(root)


def check_places(root: Path) -> Iterator[str]:
    """Each of them has the right names."""
    names = read_names(root)
    for file, template in places():
        wanted = filled(template, names).strip("\n")
        match = pattern(template).search((root / file).read_text())
        if not match:
            yield f"{file}: has no {wanted}"
        elif match[0].strip("\n") != wanted:
            yield f"{file}: {match[0].strip()}: must be: {wanted}"


def check_prose(root: Path) -> Iterator[str]:
    """Nowhere else does the project have another address."""
    names = read_names(root)
    known = tuple(names[name].removeprefix("https://") for name in
                  ("HOME_URL", "REPOSITORY_URL", "IMAGE", "GO_MODULE"))
    for file, text in texts(root).items():
        if APART.match(file):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for match in PLACEHOLDER.finditer(line):
                yield f"{file}:{number}: {match[0]} is a placeholder"
            for match in ADDRESS.finditer(line):
                if match[1] not in names.values() and \
                        not RESERVED.search(match[1]):
                    yield f"{file}:{number}: {match[1]} is not in {FILE}"
            for match in PROJECT.finditer(line):
                if not f"{match[1]}/".startswith(tuple(f"{one}/" for one in known)) \
                        and not RESERVED.search(match[1].partition("/")[0]):
                    yield f"{file}:{number}: {match[1]} is not in {FILE}"


def write(root: Path) -> None:
    """Writes the names into the files below root."""
    names, files = read_names(root), texts(root)
    old = current(files)
    for file, text in files.items():
        new = text
        if not APART.match(file):
            for name, where, around in ELSEWHERE:
                # not a bare word that means something else, too
                if re.search(where, file) and \
                        re.fullmatch(FORMS[name], old.get(name, "")):
                    form = around.replace("@", re.escape(old[name]))
                    new = re.sub(form, lambda _, to=names[name]: to, new)
        for template in PLACES.get(file, ()):
            new = pattern(template).sub(
                lambda _, to=filled(template, names): to, new, count=1)
        if new != text:
            (root / file).write_bytes(new.encode())
            print(file)


def main() -> None:
    if sys.argv[1:] == ["--write"]:
        write(ROOT)
    elif sys.argv[1:] != ["--check"]:
        sys.exit(__doc__)
    found = list(check(ROOT))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
