#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pastes docs/deploy/production.md, from the top to the bottom, on six bare machines,
and asks the service at the end what the guide promises.

    guide.py WORK [--short] [--without LINE]…
    guide.py --list

WORK is what run.sh made: base/, a tree, and deb/, the packages. --short: alerts
that wait for minutes wait for seconds. --without: leaves out the block that
begins in that line, to see who notices. --list only reads the page.
"""
from __future__ import annotations

import argparse
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import outcome
import page
from machines import Machines, ROOT

PAGE = ROOT / "docs/deploy/production.md"
BLOCK_S = 900      # alerts take minutes
FASTER = """sed -i -E 's/^( +for: )[0-9]+m$/\\15s/' /etc/prometheus/rules.yml
"""


class Count:
    passed = 0
    failed = 0

    def report(self, what: str, complaint: str, took_s: float = 0) -> bool:
        if complaint:
            self.failed += 1
            print(f"FAIL  {what}\n" + "".join(
                f"      {line}\n" for line in complaint.splitlines()[-40:]),
                end="", flush=True)
        else:
            self.passed += 1
            print(f"ok    {what} ({took_s:.1f} s)", flush=True)
        return not complaint


def hurry(block: page.Block) -> str:
    """The same commands, with alerts that wait for seconds."""
    lines = []
    for line in block.commands.splitlines(keepends=True):
        if line.startswith("promtool check rules"):
            lines.append(FASTER)
        lines.append(line)
    return "".join(lines)


def paste(machines: Machines, block: page.Block, commands: str) -> str:
    """What is wrong with what came; "" if nothing is."""
    def run(host: str) -> str:
        status, came = machines.all[host].run(commands, BLOCK_S)
        if status != 0 and not block.is_console:
            return f"{host}: exit status {status}\n{came}"
        if block.is_console and page.mask(came) != page.mask(block.expected):
            return (f"{host}: exit status {status}\n{came}\n"
                    f"the page shows:\n{block.expected}")
        return ""
    if block.is_in_turn:
        return next(filter(None, map(run, block.hosts)), "")
    with ThreadPoolExecutor(len(block.hosts)) as threads:
        return "\n".join(filter(None, threads.map(run, block.hosts)))


class Client:
    """On admin, from when it is set up: takes one lock after the other."""

    PROFILE = "/etc/profile.d/locks.sh"

    def __init__(self, machines: Machines, log: Path) -> None:
        self.admin, self.log = machines.all["admin"], log
        self.process: subprocess.Popen[bytes] | None = None

    def start_if_it_can(self) -> None:
        if not self.process and (self.admin.upper / self.PROFILE[1:]).exists():
            with self.log.open("wb") as log:
                self.process = self.admin.spawn(
                    "while :; do redlockctl run -w 40 billing/$RANDOM -- echo "
                    "done || echo failed: $?; done", log)

    def end(self) -> str:
        """What is wrong with what it got."""
        if not self.process:
            return "no client was set up"
        self.process.kill()
        self.process.wait()
        lines = self.log.read_text().splitlines()
        print(f"      {lines.count('done')} locks")
        failures = [line for line in lines if line.startswith("failed")]
        return "" if "done" in lines and not failures else "\n".join(lines)


def play(machines: Machines, options: argparse.Namespace, count: Count) -> None:
    blocks = page.blocks(PAGE.read_text())
    for line in options.without:
        if line not in [block.line for block in blocks]:
            sys.exit(f"no block begins in line {line}")
    client = Client(machines, options.work / "client.log")
    for block in blocks:
        client.start_if_it_can()
        if block.line in options.without:
            print(f"left  {block.title()}")
            continue
        begun = time.monotonic()
        commands = hurry(block) if options.short else block.commands
        complaint = paste(machines, block, commands)
        if not count.report(block.title(), complaint,
                            time.monotonic() - begun):
            client.end()
            return
    count.report("a client was never refused", client.end())
    for what, check in outcome.CHECKS.items():
        try:
            complaint = check(machines)
        except (LookupError, ValueError) as error:  # what came is no answer
            complaint = repr(error)
        count.report(what, complaint)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path, nargs="?")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--without", type=int, action="append", default=[])
    options = parser.parse_args()
    if options.list:
        for block in page.blocks(PAGE.read_text()):
            print(block.title())
        return 0
    count = Count()
    machines = Machines(options.work)
    try:
        machines.start()
        play(machines, options, count)
        if options.keep:
            print({name: each.init for name, each in machines.all.items()})
            sys.stdin.read()
    finally:
        machines.stop()
    print(f"{count.passed} passed, {count.failed} failed")
    return 1 if count.failed or not count.passed else 0


sys.exit(main())
