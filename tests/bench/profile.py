# SPDX-License-Identifier: MIT
"""Where the CPU time of a cycle goes, on redlockd and on a node: samples of their
stacks while the load generator runs, put down to what they were in. Beside them
the floors: a bare libmicrohttpd server that only answers, and nodes that get the
commands of the Redlock page in rows as long as redlockd's batches. In turns, for
the CPU time without perf, and as long with it, as watching makes a cycle dearer.
The stacks go to build/bench/profile.

OLD names another binary of redlockd to compare with. CLIENTS (64) changes what
is run; with LINES=2 their calls are collected into batches, and there is no floor
of the server. Each row of a table is its share of the samples of all runs, times the
median of the CPU time of a cycle.
"""
from __future__ import annotations

import collections
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import inside
from measure import (Run, Runs, TOOLS, costs, cpu_per_counted, in_turns, load,
                     setting, output, pairs, pids, show)
from ports import free_ports
from processes import end, spawn
from stack import NODES, REDLOCKD, Stack, started
from waiting import wait_until

SECONDS = setting("SECONDS_RUN", 3)
LINES = int(setting("LINES", 0))
FREQUENCY = 499  # Hz; a prime, so that it keeps step with nothing
STACK = 8192     # bytes of each sample; with more, watching costs more
FOLDER = Path("build/bench/profile")
HEADS = {"old": "before", "redlockd": "redlockd",
         "http": "floor: libmicrohttpd alone",
         "rows": "floor: the page's commands"}


# ---- what is run ------------------------------------------------------------

@dataclass
class Side:
    """What is measured: a server, its nodes, or both."""
    name: str
    stack: Stack | None
    server: int = 0  # pid
    port: int = 0

    def command(self, in_row: int) -> list:
        nodes = pids(self.stack.nodes) if self.stack else []
        used = costs(server=[self.server] if self.server else [], nodes=nodes)
        if self.name == "rows":
            return [f"{TOOLS}/baseline", *used, f"rows:{in_row}", SECONDS,
                    *self.stack.addresses]
        batches = ["-b", LINES] if LINES else []
        return load(self.port, int(setting("CLIENTS", 64)), SECONDS, *used,
                    *batches)

    def batches(self) -> int:
        """Commands that its nodes got so far."""
        return self.stack.calls("evalsha") if self.stack else 0

    def watch(self, pair: int, command: list) -> None:
        """Records the stacks while the command runs."""
        watched = [self.server] * (self.server > 0)
        watched += pids(self.stack.nodes) if self.stack else []
        data = FOLDER / "perf"
        run = output("perf", "record", "-q", "-o", data, "-e", "cpu-clock", "-F",
                     FREQUENCY, "-m", 2048, "--call-graph", f"dwarf,{STACK}",
                     "-p", ",".join(map(str, watched)), "--", *command)
        if run["failures"]:
            raise RuntimeError(f"{self.name}: a cycle failed")
        with open(FOLDER / f"{self.name}.{pair}", "wb") as stacks:
            subprocess.run(["perf", "script", "-i", str(data), "--no-inline",
                            "-F", "pid,ip,sym,dso"], check=True, stdout=stacks,
                           stderr=subprocess.DEVNULL)
        data.unlink()

    def run(self, pair: int, in_row: int) -> Run:
        command, before = self.command(in_row), self.batches()
        found = output(*command)
        found["batches"] = self.batches() - before
        self.watch(pair, command)
        return {"what": self.name, "pair": pair, "seconds": SECONDS,
                "server": self.server, **found}


def redlockd(world: ExitStack, name: str, binary: str) -> Side:
    stack = world.enter_context(started(log_level="error"))
    port = stack.start_server(0, binary=binary)
    return Side(name, stack, stack.servers[0].pid, port)


def bare_server(world: ExitStack) -> Side:
    port = free_ports(1)[0]
    child = spawn(f"{TOOLS}/floor", port)
    world.callback(end, child)
    wait_until(lambda: subprocess.run(
        ["curl", "-s", "-o", "/dev/null", f"http://127.0.0.1:{port}/"]
    ).returncode == 0, "the bare server answers")
    return Side("http", None, child.pid, port)


def play() -> Iterator[Run]:
    paranoid = Path("/proc/sys/kernel/perf_event_paranoid").read_text()
    if os.getuid() != 0 and int(paranoid) > 1:
        sys.exit("Only root sees what the kernel does"
                 " (kernel.perf_event_paranoid).")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    with ExitStack() as world:
        sides = [redlockd(world, "old", os.environ["OLD"])] \
            if os.environ.get("OLD") else []
        sides += [redlockd(world, "redlockd", REDLOCKD),
                  *([] if LINES else [bare_server(world)]),
                  Side("rows", world.enter_context(started()))]
        in_row = 1
        for pair in pairs(5):
            for side in in_turns(sides, pair):
                run = side.run(pair, in_row)
                if side.name == "redlockd":
                    in_row = max(1, round(cycles_in_batch(run)))
                yield run


# ---- what it shows ----------------------------------------------------------

def cycles_in_batch(run: Run) -> float:
    """A batch is one command on each of five nodes. One client alone needs two
    for a cycle."""
    return NODES * run["cycles"] / run["batches"]


def samples(runs: Runs, who: str) -> dict[str, collections.Counter]:
    """{side: {row: samples}} of the server, or of the nodes"""
    counts = collections.defaultdict(collections.Counter)
    for run in runs:
        stacks = inside.read(FOLDER / f"{run['what']}.{run['pair']}")
        mine = [stack for pid, stack in stacks
                if (pid == run["server"]) == (who == "server")]
        counts[run["what"]].update(inside.rows(mine, who))
    return {side: rows for side, rows in counts.items() if rows}


def cpu(who: str):
    """µs a cycle, while cycles counted; of one node"""
    one = cpu_per_counted(who)
    return lambda run: one(run) / (NODES if who == "nodes" else 1)


def show_rows(runs: Runs, who: str, is_markdown: bool) -> None:
    counts = samples(runs, who)
    sides = [side for side in HEADS if side in counts]
    cost = {side: runs.of(what=side).median(cpu(who)) for side in sides}
    sums = {side: sum(counts[side].values()) for side in sides}

    def cells(name: str, text) -> dict[str, str]:
        head = "redlockd" if who == "server" else "a node"
        return {f"{head}, µs a cycle": name,
                **{HEADS[side]: text(side) for side in sides}}
    rows = [cells(name, lambda side: "{:.1f}".format(
        counts[side][name] / sums[side] * cost[side]))
        for name in inside.NAMES[who]]
    show([row for row in rows if any(float(cell) for cell in
                                     list(row.values())[1:])]
         + [cells("all", lambda side: f"{cost[side]:.1f}"),
            cells("samples", lambda side: f"{sums[side]:,}")],
         is_markdown, is_named=True)


def tell(runs: Runs, path: Path, is_markdown: bool) -> None:
    old, new = runs.of(what="old"), runs.of(what="redlockd")
    for who in inside.NAMES:
        show_rows(runs, who, is_markdown)
        if old:
            print(f"CPU time of a cycle, {who}: {new.ratio(old, cpu(who)):.2f} of"
                  " before, the median of the pairs' ratios.\n")
    for each in filter(None, (old, new)):
        print(f"Cycles in a batch, {HEADS[each[0]['what']]}:"
              f" {each.text(cycles_in_batch, 1)}")
