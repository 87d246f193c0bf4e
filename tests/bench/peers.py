# SPDX-License-Identifier: MIT
"""redlockd beside other lock clients, in pairs of alternating runs, over the same
five nodes without persistence:

  rslock      the Rust library; needs a cargo of 1.85 or newer
  aioredlock  the Python library
  baseline    the Redlock page done literally, in C
  etcd        not Redlock: its own lock service, by its HTTP gateway. One member
              is its best case, as nothing has to be replicated; it fsyncs each
              write, which is its default.

The clients of a run are tasks or threads of one process. redlockd runs twice:
with a request for each call, and with batches, which its packages form from what
their tasks ask for. PROCESSES="8 64" runs that many processes instead, each with
one client, which has nothing to collect; without PEERS, only beside rslock and
the baseline. CLIENTS and PEERS change what is run.
"""
from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from measure import (CPUS, Path, Run, Runs, TOOLS, cpu_per_cycle, in_turns,
                     load, setting, numbers, pairs, pids, plot_cycles,
                     server_pids, show, values)
from ports import free_ports
from processes import cpu_us, end, spawn
from stack import Stack, ask, started
from waiting import wait_until

SECONDS = setting("SECONDS_RUN", 3)
PROCESSES = numbers("PROCESSES", "")
PEERS = (os.environ.get("PEERS") or (
    "rslock baseline" if PROCESSES else "rslock aioredlock baseline etcd")).split()
BUILD, FROM = Path("build/bench/peers"), Path("tests/bench/peers")
PYTHON = Path("build/bench/clients/python")  # that of bench-clients
OURS = {"redlockd": []} if PROCESSES else {"redlockd": [], "batches": ["-b", 2]}
NAMES = {"redlockd": "redlockd", "batches": "redlockd, batches",
         "rslock": "rslock", "aioredlock": "aioredlock", "baseline":
         "literal Redlock", "etcd": "etcd, one member"}
STYLES = {"redlockd": "-o", "batches": "-D", "rslock": "--^", "aioredlock": "--s",
          "baseline": "--x", "etcd": "--d"}
# whose CPU time a cycle of theirs takes: libraries have no server, etcd no nodes
PARTS = {"redlockd": CPUS, "batches": CPUS, "etcd": CPUS[:2]}
LIBRARIES = {
    "rslock": "libraries_rust release rslock-bench",
    "aioredlock": f"libraries_python {PYTHON} tests/bench/clients/python/requirements.txt"}
COMMANDS = {
    "rslock": ["build/rslock/release/rslock-bench"],
    "aioredlock": [PYTHON / "venv/bin/python3", FROM / "use_aioredlock.py"],
    "baseline": [f"{TOOLS}/baseline"]}


# ---- what is run ------------------------------------------------------------

def installed() -> list[str]:
    """Without a cargo that builds rslock, the others are measured."""
    if unknown := set(PEERS) - set(NAMES) | set(PEERS) & set(OURS):
        sys.exit(f"There is no peer {', '.join(unknown)}.")
    BUILD.mkdir(parents=True, exist_ok=True)
    for peer in set(PEERS) & set(LIBRARIES):
        done = subprocess.run(["bash", "-c", "source tests/lib/libraries.sh; "
                               + LIBRARIES[peer]], stdout=sys.stderr)
        if done.returncode != 0 and peer != "rslock":
            sys.exit(f"{peer} cannot be installed.")
    return [peer for peer in PEERS if peer not in COMMANDS
            or Path(COMMANDS[peer][0]).exists()]


class Etcd:
    """Started only for its runs: it works a bit even while nobody asks it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "etcd"
        self.port, peer = free_ports(2)
        at, peer_at = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{peer}"
        with open(folder / "etcd.log", "wb") as log:
            self.child = spawn(
                "etcd", "--data-dir", self.folder, "--logger", "zap",
                "--log-level", "error", "--initial-cluster",
                f"default={peer_at}", "--listen-client-urls", at,
                "--advertise-client-urls", at, "--listen-peer-urls", peer_at,
                "--initial-advertise-peer-urls", peer_at, stdout=log, stderr=log)
        try:
            wait_until(lambda: ask(self.port, "GET", "/health")[1].get("health")
                       == "true", "etcd is healthy")
        except TimeoutError:
            print((folder / "etcd.log").read_text(), file=sys.stderr)
            raise

    def keys(self) -> int:
        """Those from `bench:` to `bench;`"""
        return int(ask(self.port, "POST", "/v3/kv/range", {
            "count_only": True, "key": "YmVuY2g6", "range_end": "YmVuY2g7"})[1]
            .get("count", 0))

    def end(self) -> None:
        end(self.child)
        shutil.rmtree(self.folder)


@contextmanager
def beside(peer: str, folder: Path) -> Iterator[Etcd | None]:
    etcd = Etcd(folder) if peer == "etcd" else None
    try:
        yield etcd
    finally:
        if etcd:
            etcd.end()


def count_keys(stack: Stack) -> int:
    return sum(len(subprocess.run(
        ["redis-cli", "-p", str(port), "--scan", "--pattern", "bench:*"],
        check=True, capture_output=True).stdout.split()) for port in stack.ports)


def count_left(count) -> int:
    """Releases that nobody waits for are done within a moment."""
    for _ in range(20):
        if count() == 0:
            break
        time.sleep(0.05)
    return count()


def all_at_once(command: list, count: int) -> Run:
    """Of so many processes: times are the medians, all else is the sum."""
    children = [subprocess.Popen(list(map(str, command)), text=True,
                                 stdout=subprocess.PIPE) for _ in range(count)]
    reports = [values(child.communicate()[0]) for child in children]
    if any(child.returncode for child in children):
        sys.exit(f"{command[0]}: a process failed")
    return {name: (statistics.median if name in ("p50_us", "p99_us") else sum)(
        report[name] for report in reports) for name in reports[0]}


def run(stack: Stack, etcd: Etcd | None, what: str, count: int) -> Run:
    clients = 1 if PROCESSES else count
    used = {"server": [], "nodes": pids(stack.nodes)}
    if what in OURS:
        used["server"] = server_pids(stack)
        command = load(stack.server_ports[0], clients, SECONDS, *OURS[what])
    elif what == "etcd":
        used = {"server": [etcd.child.pid], "nodes": []}
        command = [f"{TOOLS}/load-etcd", f"127.0.0.1:{etcd.port}", clients,
                   SECONDS]
    else:
        command = [*COMMANDS[what], clients, SECONDS, *stack.addresses]
    before = {who: cpu_us(of) for who, of in used.items()}
    found = all_at_once(command, count if PROCESSES else 1)
    for who, of in used.items():
        found[f"{who}_cpu_us"] = cpu_us(of) - before[who]
    found["left"] = count_left(etcd.keys if what == "etcd"
                               else lambda: count_keys(stack))
    return found


def play() -> Iterator[Run]:
    peers = installed()
    with started(log_level="error") as stack:
        stack.start_server(0)
        for count in PROCESSES or numbers("CLIENTS", "1 8 64 256"):
            for peer in peers:
                with beside(peer, stack.folder) as etcd:
                    for pair in pairs(5):
                        for what in in_turns([*OURS, peer], pair):
                            yield {"clients": count, "pair": pair, "peer": peer,
                                   "what": what, "processes": count * bool(PROCESSES),
                                   **run(stack, etcd, what, count)}


# ---- what it shows ----------------------------------------------------------

def beside_each(runs: Runs, clients: int, peer: str) -> dict[str, str]:
    """How many times the peer's cycles ours does, by the pairs with it."""
    case = runs.of(clients=clients, peer=peer)
    theirs = case.of(what=peer)
    return {ours: f"{case.of(what=ours).ratio(theirs, 'cycles_per_s'):.2f}×"
            for ours in OURS if case.of(what=ours)}


def used(each: Runs, what: str) -> str:
    return ", ".join(each.text(cpu_per_cycle(who), int(who == "client")) if who in
                     PARTS.get(what, CPUS[::2]) else "–" for who in CPUS)


def row(runs: Runs, clients: int, what: str, is_of_processes: bool):
    """Of ours all runs, beside whomever"""
    each = runs.of(clients=clients, what=what)
    ratios = {} if what in OURS else beside_each(runs, clients, what)
    return {"processes" if is_of_processes else "clients":
            str(clients) if what == "redlockd" else "", "": NAMES[what],
            "cycles": f"{each.text('cycles_per_s')} /s",
            **{f"{NAMES[ours]} does": ratios.get(ours, "") for ours in OURS},
            "p50, p99": f"{each.ms('p50', 1)}, {each.ms('p99', 1)} ms",
            "CPU of a cycle: client, server, nodes": f"{used(each, what)} µs"}


def tell(runs: Runs, path: Path, is_markdown: bool) -> bool:
    """False: a run proves nothing: none was done, or a lock is left behind."""
    if not runs or any(run["cycles_per_s"] == 0 for run in runs):
        print("No run, or a run without a cycle: nothing to compare.")
        return False
    counts = sorted({run["clients"] for run in runs})
    by_clients = {what: {count: runs.of(clients=count, what=what)
                         for count in counts} for what in NAMES}
    is_of_processes = bool(runs[0]["processes"])
    if is_of_processes:
        print("Each client is a process of its own. Cycles are the sum over the"
              " processes,\np50 and p99 the medians of the processes' own.\n")
    show([row(runs, count, what, is_of_processes) for count in counts
          for what in NAMES if by_clients[what][count]], is_markdown)
    plot_cycles(path, [(NAMES[what], STYLES[what], by)
                       for what, by in by_clients.items() if any(by.values())])
    left = sum(run["left"] for run in runs)
    print(f"{len(runs)} runs; locks left behind: {left:.0f}")
    return left == 0
