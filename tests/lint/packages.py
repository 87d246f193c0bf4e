#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is packaged against the code, and what is made from it.

packages.py BUILD, a folder with redlockd, redlockctl and share/

The version of debian/changelog is VERSION; what scripts/deps.sh wants for a
build is in debian/control. The manual pages and redlockd.env have each option;
man and mandoc have nothing to say, and redlockd takes each default. The two
units differ in what a shared port needs, and in nothing else.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

from findings import ROOT, problems, source, tell

BUILD = Path(sys.argv[1])
# what every Debian builds with has them
ESSENTIAL = {"gcc", "make"}
ALIAS = {"pkg-config": "pkgconf"}


def output(*command, **more):
    run = subprocess.run(command, capture_output=True, text=True, check=False,
                         **more)
    return (run.stdout + run.stderr).strip()


def check_version():
    version = source("VERSION").strip()
    first = source("debian/changelog").splitlines()[0]
    if f"redlockd ({version}) " not in first:
        problems.append(f"debian/changelog: its version is not {version}")


def check_dependencies():
    group = re.search(r"^    build\)\n(.*?)^        ;;",
                      source("scripts/deps.sh"), re.M | re.S)
    wanted = {line.split()[2] for line in group[1].strip().splitlines()}
    control = source("debian/control")
    listed = re.search(r"^Build-Depends:(.*?)^\S", control, re.M | re.S)[1]
    named = set(re.findall(r"^[\s]*([a-z0-9.+-]+)", listed, re.M))
    for package in sorted(wanted - ESSENTIAL):
        if ALIAS.get(package, package) not in named:
            problems.append(f"debian/control: no Build-Depends on {package}")


def check_options():
    page = (BUILD / "share/redlockd.8").read_text().replace("\\-", "-")
    env = (BUILD / "share/redlockd.env").read_text()
    for flag, form in re.findall(r"^  --([a-z-]+)(?: (\S+))?",
                                 output(f"{BUILD}/redlockd", "--help"), re.M):
        variable = "REDLOCKD_" + flag.upper().replace("-", "_")
        if f".B --{flag}" not in page:
            problems.append(f"redlockd.8: no --{flag}")
        if form and (variable not in page or f"#{variable}=" not in env):
            problems.append(f"redlockd.8, redlockd.env: no {variable}")


def check_defaults():
    env = dict(re.findall(r"^#(REDLOCKD_\w+)=(.*)$",
                          (BUILD / "share/redlockd.env").read_text(), re.M))
    del env["REDLOCKD_NODES_FILE"]  # beside REDLOCKD_NODES
    said = output(f"{BUILD}/redlockd", "--check-config", env=env)
    if said != "configuration ok":
        problems.append(f"redlockd.env: {said}")


def check_pages():
    for name in ("redlockd.8", "redlockctl.1"):
        page = BUILD / "share" / name
        for command in (["mandoc", "-Tlint", "-Wwarning", page],
                        ["man", "--warnings", "-E", "UTF-8", "-Tutf8", "-Z",
                         "-l", page]):
            run = subprocess.run(command, capture_output=True, text=True,
                                 check=False, env={**os.environ, "LC_ALL": "C.UTF-8"})
            said = run.stdout if command[0] == "mandoc" else run.stderr
            problems.extend(f"{command[0]}: {line}" for line in said.splitlines())


def check_completion():
    said = output("bash", "-n", str(BUILD / "share/redlockctl.bash"))
    if said:
        problems.append(said)


def service_of(unit):
    """The settings of its process."""
    text = (ROOT / "debian" / unit).read_text().split("[Service]\n")[1]
    return [line for line in text.splitlines() if not line.startswith("#")]


def check_units():
    one, shared = (service_of(f"redlockd{at}.service") for at in ("", "@"))
    expected = []
    for line in one:
        expected.append(line)
        if line.startswith("EnvironmentFile="):
            expected.append("EnvironmentFile=-/etc/redlockd/redlockd@%i.env")
        elif line.startswith("ExecStart="):
            expected[-1] += " --reuse-port on"
    if shared != expected:
        problems.append("debian/redlockd@.service is not redlockd.service with "
                        "a shared port")


check_version()
check_dependencies()
check_options()
check_defaults()
check_pages()
check_completion()
check_units()
tell()
