#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What must be true before a version gets its tag.

  release_check.py [--check]

A line for each condition. --check proves that each of them can fail, but for the
builds: in a copy of the project, in which one thing after the other is wrong.
"""
from __future__ import annotations

import argparse
import datetime
import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts")]
import project  # noqa: E402

# where the version stands: a file, and what it looks like there
PLACES = [
    ("VERSION", r"^(.+)$"),
    ("CHANGELOG.md", r"\A(?s:.*?)^## (\S+)"),
    ("debian/changelog", r"\Aredlockd \((\S+)\) unstable;"),
    ("README.md", r"Version ([\d.]+), not released yet"),
    ("openapi.yaml", r"^  version: (\S+)$"),
    ("api/clients/python/pyproject.toml", r'^version = "(.+)"$'),
    ("api/clients/node/package.json", r'^  "version": "(.+)",$'),
    ("api/clients/php/composer.json", r'^    "version": "(.+)",$'),
    ("api/clients/ruby/redlockd.gemspec", r'^  gem.version = "(.+)"$'),
    ("api/clients/java/pom.xml", r"^  <version>(.+)</version>$"),
    ("api/clients/rust/Cargo.toml", r'^version = "(.+)"$'),
    ("Dockerfile", r"^ARG VERSION=(\S+)$"),
    ("docs/deploy/compose.md", r"_ANONYMOUS=yes \S+:([\d.]+)$"),
    ("deploy/kubernetes/base/kustomization.yaml", r"newTag: ([\d.]+)\}"),
    ("deploy/helm/redlockd/Chart.yaml", r"^version: (.+)$"),
    ("deploy/helm/redlockd/Chart.yaml", r"^appVersion: (.+)$"),
]
# the same digits there are the version of something else
FOREIGN = re.compile(r"tests/.*/(Cargo\.(toml|lock)|requirements\.txt)|"
                     r"tests/gate/release_check\.py")
DATED = re.compile(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", re.M)


def git(root: Path, *command: str) -> str:
    return subprocess.run(["git", *command], cwd=root, check=True, text=True,
                          capture_output=True).stdout.strip()


def version_of(root: Path) -> str:
    return (root / "VERSION").read_text().strip()


# ---- conditions: each tells what is wrong ------------------------------------

def version_is_the_same(root: Path) -> Iterator[str]:
    version = version_of(root)
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        yield f"VERSION: {version} is not like 1.2.3"
    for name, form in PLACES:
        found = re.findall(form, (root / name).read_text(), re.M)
        if set(found) != {version}:
            yield f"{name}: {', '.join(found) or 'no version'}, not {version}"


def no_other_place_has_it(root: Path) -> Iterator[str]:
    """A place that is not in the table would keep the old version."""
    version = version_of(root)
    pattern = rf"(^|[^0-9.]){re.escape(version)}([^0-9.]|$)"
    known = {name for name, _ in PLACES}
    lines = subprocess.run(["git", "grep", "-InE", pattern], cwd=root,
                           text=True, capture_output=True, check=False).stdout
    for line in lines.splitlines():
        name = line.split(":")[0]
        if name not in known and not FOREIGN.fullmatch(name):
            yield f"{line[:100]}: PLACES of release_check.py lacks it"


def names_are_those_of_project_env(root: Path) -> Iterator[str]:
    yield from project.check(root)


def names_are_registered(root: Path) -> Iterator[str]:
    """Nothing goes to an address that belongs to nobody, or to somebody else."""
    if project.read_names(root)["REGISTERED"] != "yes":
        yield (f"{project.FILE}: its names are placeholders; register them, or set"
               " others, and say REGISTERED=yes")


def changelog_has_a_date(root: Path) -> Iterator[str]:
    dates = dict(DATED.findall((root / "CHANGELOG.md").read_text()))
    version = version_of(root)
    if version not in dates:
        yield f"CHANGELOG.md: no line like ## {version} (2026-01-31)"
    elif dates[version] > datetime.date.today().isoformat():
        yield f"CHANGELOG.md: {dates[version]} is yet to come"


def version_has_no_tag(root: Path) -> Iterator[str]:
    if git(root, "tag", "--list", f"v{version_of(root)}"):
        yield f"v{version_of(root)} exists"


def all_is_committed(root: Path) -> Iterator[str]:
    yield from git(root, "status", "--porcelain").splitlines()


def nightly_run_was_green(root: Path) -> Iterator[str]:
    commit = git(root, "rev-parse", "HEAD")
    try:
        result = json.loads((root / "build/nightly/result").read_text())
    except (OSError, ValueError) as error:
        yield f"make nightly tells nothing: {error}"
        return
    if result["commit"] != commit:
        yield f"make nightly ran on {result['commit']}, not on {commit}"
    if result["failed"]:
        yield f"make nightly: failed: {', '.join(result['failed'])}"


def packages_have_the_same_bytes(root: Path) -> Iterator[str]:
    """Built twice, on this system."""
    yield from built_twice(root, "deb.sh", "*.deb", set())


def clients_have_the_same_bytes(root: Path) -> Iterator[str]:
    """Those of the clients: each is there, in this version."""
    version, names = version_of(root), project.read_names(root)
    wheel = re.sub("[-_.]+", "_", names["PYPI_NAME"]).lower()
    tarball = names["NPM_NAME"].removeprefix("@").replace("/", "-")
    yield from built_twice(root, "clients.sh", "*", {
        f"{wheel}-{version}-py3-none-any.whl", f"{wheel}-{version}.tar.gz",
        f"{tarball}-{version}.tgz",
        "list", *(f"v{version}.{kind}" for kind in ("info", "mod", "zip")),
        f"redlockd-php-{version}.zip", f"{names['GEM_NAME']}-{version}.gem",
        *(f"{names['MAVEN_ARTIFACT']}-{version}{kind}"
          for kind in (".jar", "-sources.jar", ".pom")),
        f"{names['CRATE_NAME']}-{version}.crate"})


def built_twice(root: Path, script: str, pattern: str,
                wanted: set[str]) -> Iterator[str]:
    folder = root / "build/release-check" / script.removesuffix(".sh")
    both = folder / "once", folder / "again"
    for one in both:
        done = subprocess.run([str(root / "scripts" / script), str(one)],
                              cwd=root, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            yield done.stdout
            return
    yield from different_packages(*both, pattern, wanted)


def different_packages(once: Path, again: Path, pattern: str,
                       wanted: set[str]) -> Iterator[str]:
    """wanted: files of these names and no others; empty: whatever was built."""
    files = {file.relative_to(folder) for folder in (once, again)
             for file in folder.rglob(pattern) if file.is_file()}
    names = {file.name for file in files}
    for name in sorted(names ^ wanted if wanted else ()):
        yield f"{name}: is missing, or was not to be built"
    if not files:
        yield "no package was built"
    _, unequal, missing = filecmp.cmpfiles(once, again, sorted(map(str, files)),
                                           shallow=False)
    for name in unequal + missing:
        yield f"{name}: differs from build to build"


Condition = Callable[[Path], Iterator[str]]
QUICK: list[Condition] = [
    version_is_the_same, no_other_place_has_it, names_are_those_of_project_env,
    names_are_registered, changelog_has_a_date, version_has_no_tag,
    all_is_committed, nightly_run_was_green]


class Counts:
    def __init__(self) -> None:
        self.passed = self.failed = 0

    def tell(self, what: str, wrong: list[str]) -> None:
        self.passed += not wrong
        self.failed += bool(wrong)
        print(f"{'FAIL' if wrong else 'ok':5} {what}", flush=True)
        for text in wrong:
            for line in text.splitlines():
                print(f"      {line}", flush=True)

    def end(self) -> None:
        print(f"{self.passed} passed, {self.failed} failed")
        sys.exit(self.failed > 0)


def words(condition: Condition) -> str:
    return condition.__name__.replace("_", " ")


def release_check(counts: Counts) -> None:
    for condition in QUICK:
        counts.tell(words(condition), list(condition(ROOT)))
    counts.tell(words(clients_have_the_same_bytes),
                list(clients_have_the_same_bytes(ROOT)))
    what = words(packages_have_the_same_bytes)
    if shutil.which("dpkg-buildpackage"):
        counts.tell(what, list(packages_have_the_same_bytes(ROOT)))
    else:
        print(f"SKIP  {what}: NOT CHECKED, this is no Debian; run it on one")
    print("SKIP  packages of other systems: NOT CHECKED here; deb-test of the "
          "nightly run builds and boots them")


# ---- whether it notices ------------------------------------------------------

class World:
    """A copy of the project that may be released."""

    def __init__(self, root: Path) -> None:
        self.root = root
        names = git(ROOT, "ls-files", "-z", "--cached", "--others",
                    "--exclude-standard").split("\0")
        for name in names:
            if name and (ROOT / name).exists():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, root / name)
        version = version_of(root)
        text = (root / "CHANGELOG.md").read_text()
        (root / "CHANGELOG.md").write_text(re.sub(
            rf"^## {re.escape(version)} .*", f"## {version} (2020-01-31)", text,
            flags=re.M))
        text = (root / project.FILE).read_text()
        (root / project.FILE).write_text(re.sub("(?m)^REGISTERED=.*",
                                                "REGISTERED=yes", text))
        git(root, "init", "-q")
        git(root, "add", ".")
        self.commit()
        self.note(git(root, "rev-parse", "HEAD"), [])

    def commit(self) -> None:
        git(self.root, "-c", "user.name=x", "-c", "user.email=x", "commit",
            "-q", "--allow-empty", "-m", "all")

    def note(self, commit: str, failed: list[str]) -> None:
        folder = self.root / "build/nightly"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "result").write_text(
            json.dumps({"commit": commit, "failed": failed}))

    def change(self, name: str, begin: int, end: int, new: str) -> str:
        """The text before."""
        text = (self.root / name).read_text()
        (self.root / name).write_text(text[:begin] + new + text[end:])
        return text


def expect(counts: Counts, what: str, root: Path, condition: Condition,
           says: str) -> None:
    """It fails, and says why; says "": it passes."""
    found = list(condition(root))
    is_good = any(says in text for text in found) if says else not found
    counts.tell(what, [] if is_good else [f"it says: {found}"])


def check_places(counts: Counts, world: World) -> None:
    for name, form in PLACES:
        text = (world.root / name).read_text()
        match = re.search(form, text, re.M)
        if not match:
            counts.tell(f"{name} has {form}", ["it has not"])
            continue
        world.change(name, *match.span(1), "9.9.9")
        expect(counts, f"{name}: another version is noticed, {form}", world.root,
               version_is_the_same, "9.9.9" if name == "VERSION" else name)
        (world.root / name).write_text(text)


def check_rest(counts: Counts, world: World) -> None:
    root, version = world.root, version_of(world.root)
    head = git(root, "rev-parse", "HEAD")
    page = world.change("SECURITY.md", 0, 0, f"This is {version}\n")
    expect(counts, "a place that nobody knows is noticed", root,
           no_other_place_has_it, "SECURITY.md")
    expect(counts, "what is not committed is noticed", root, all_is_committed,
           "SECURITY.md")
    (root / "SECURITY.md").write_text(page)
    text = (root / "CHANGELOG.md").read_text()
    for new in "unreleased", "2999-01-31":
        begin = text.index("2020-01-31")
        world.change("CHANGELOG.md", begin, begin + 10, new)
        expect(counts, f"({new}) is noticed", root, changelog_has_a_date,
               "CHANGELOG.md")
        (root / "CHANGELOG.md").write_text(text)
    git(root, "tag", f"v{version}")
    expect(counts, "a tag that exists is noticed", root, version_has_no_tag,
           "exists")
    world.note(head, ["soak"])
    expect(counts, "a failed night is noticed", root, nightly_run_was_green,
           "soak")
    world.note(f"{head}-dirty", [])
    expect(counts, "the night of another commit is noticed", root,
           nightly_run_was_green, "not on")
    (root / "build/nightly/result").unlink()
    expect(counts, "a missing night is noticed", root, nightly_run_was_green,
           "tells nothing")


# a fork that shares no name with the project
FORK = {
    "REGISTERED": "no",
    "HOME_URL": "https://locks.example.net/about",
    "REPOSITORY_URL": "https://git.example.net/team/locks",
    "MAINTAINER_NAME": "Jo Doe",
    "MAINTAINER_EMAIL": "jo@example.net",
    "SECURITY_CONTACT": "safety@example.net",
    "IMAGE": "images.example.net/team/locks",
    "GO_MODULE": "git.example.net/team/locks/api/clients/go",
    "PYPI_NAME": "team-locks",
    "NPM_NAME": "@team/locks",
    "COMPOSER_NAME": "team/locks",
    "GEM_NAME": "team_locks",
    "MAVEN_GROUP": "net.example.team",
    "MAVEN_ARTIFACT": "locks",
    "CRATE_NAME": "team-locks-rs",
}


def write_names(root: Path, names: project.Names) -> None:
    (root / project.FILE).write_text(
        "".join(f'{name}="{value}"\n' for name, value in names.items()))


def project_said(root: Path, option: str) -> str:
    return subprocess.run([root / "scripts/project.py", option], cwd=root,
                          text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT).stdout


def check_names(counts: Counts, world: World) -> None:
    """Each name that is wrong is noticed, and a fork changes one file."""
    root, names = world.root, project.read_names(world.root)
    for file, template in project.places():
        path, wrong = root / file, project.filled(template, FORK)
        text = path.read_text()
        path.write_text(text.replace(project.filled(template, names), wrong, 1))
        expect(counts, f"{file}: is noticed: {' '.join(wrong.split())}", root,
               project.check_places, f"{file}: ")
        path.write_text(text)
    for what in "jo@redlockd.org", "github.com/fork/redlockd", "redlockd.example":
        page = world.change("SECURITY.md", 0, 0, f"See {what}.\n")
        expect(counts, f"{what} is noticed in prose", root,
               project.check_prose, what)
        (root / "SECURITY.md").write_text(page)
    for name in "redlockd", "Redlockd":
        write_names(root, FORK | {"PYPI_NAME": name})
        counts.tell(f"{name} is no name for PyPI, as the sources have it",
                    [] if project_said(root, "--check").startswith(
                        f"{project.FILE}: PYPI_NAME={name}: ") else [name])
    write_names(root, FORK)
    expect(counts, "names that nobody has registered are noticed", root,
           names_are_registered, "placeholders")
    said = project_said(root, "--write")
    counts.tell("project.py writes the names of a fork",
                [] if "SECURITY.md" in said else [said])
    expect(counts, "then no file has another name", root,
           names_are_those_of_project_env, "")
    old = [names[name] for name in (
        "REPOSITORY_URL", "IMAGE", "GO_MODULE", "MAINTAINER_EMAIL",
        "SECURITY_CONTACT")] + [f'"{names["NPM_NAME"]}"']
    left = [f"{file}: has {one}" for file, text in project.texts(root).items()
            for one in old if one in text]
    counts.tell("and none has a name of before", left)
    vet = subprocess.run(
        ["go", "vet", "."], cwd=root / "api/clients/go", text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "GOTOOLCHAIN": "local", "GOPROXY": "off"})
    counts.tell("the Go module builds under its new name",
                [vet.stdout] if vet.returncode else [])


def check_packages(counts: Counts, root: Path) -> None:
    once, again = root / "once", root / "again"
    for folder in once, again:
        folder.mkdir()

    def compare(_: Path) -> Iterator[str]:
        return different_packages(once, again, "*.deb", set())
    expect(counts, "no package is noticed", root, compare, "no package")
    for folder in once, again:
        (folder / "x.deb").write_text("same")
    expect(counts, "packages may be the same", root, compare, "")
    (again / "x.deb").write_text("else")
    expect(counts, "packages that differ are noticed", root, compare, "x.deb")
    (again / "x.deb").unlink()
    expect(counts, "a missing package is noticed", root, compare, "x.deb")
    (again / "x.deb").write_text("same")
    expect(counts, "one that is not expected is noticed", root,
           lambda _: different_packages(once, again, "*.deb", {"y.deb"}),
           "x.deb")


def self_check(counts: Counts) -> None:
    with tempfile.TemporaryDirectory() as name:
        world = World(Path(name))
        for condition in QUICK:
            expect(counts, f"{words(condition)}: it can pass", world.root,
                   condition, "")
        check_places(counts, world)
        check_rest(counts, world)
        check_names(counts, world)
    with tempfile.TemporaryDirectory() as name:
        check_packages(counts, Path(name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    # nothing that git has set for a hook of its own
    for variable in [name for name in os.environ if name.startswith("GIT_")]:
        del os.environ[variable]
    counts = Counts()
    (self_check if parser.parse_args().check else release_check)(counts)
    counts.end()


if __name__ == "__main__":
    main()
