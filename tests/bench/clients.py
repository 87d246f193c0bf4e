# SPDX-License-Identifier: MIT
"""The packages for users beside the libraries that they replace, over the same
five nodes without persistence, in turns; and programs that hold many locks, which
their package extends meanwhile.

A module clients/in_LANGUAGE.py says what there is to measure: install(), OURS
and PEERS, commands by name, and BESIDE, whom each of ours is compared with, if
there is anybody; a NOTE, if it has one, is told below the table. A command gets the
number of clients, the seconds, and then the URL of redlockd or the addresses of the
nodes, and prints what clients/python/tally.py does. HELD, if it is there, has the
commands for many locks, with {locks}, {ttl_ms}, {seconds} and {url} where these
go. Each may print a line "held" when it has its locks, and then prints how many
were lost, and its CPU time since: cpu_us, cpu_us_per_s or cpu_percent, of one
core.

LANGUAGES, CLIENTS, PAIRS and SECONDS_RUN change what is run. OLD_GO names the folder
of another version of the package for Go, which is measured, too; likewise for each
language. HELD says how many locks are held (none: HELD=), for SECONDS seconds, with
a TTL of TTL_MS. BUSY other processes want a core each meanwhile.
"""
from __future__ import annotations

import contextlib
import importlib
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

from measure import (Path, Run, Runs, around, cpu_per_cycle, in_turns, numbers,
                     pairs, pids, server_pids, setting, show, values, words)
from processes import cpu_us, end, spawn
from stack import Stack, started

FOLDER = Path(__file__).parent / "clients"


def languages() -> list[ModuleType]:
    sys.path.insert(0, str(FOLDER))
    found = sorted(path.stem.removeprefix("in_") for path in FOLDER.glob("in_*.py"))
    return [importlib.import_module(f"in_{name}")
            for name in words("LANGUAGES", " ".join(found))]


# ---- cycles -----------------------------------------------------------------

def cycles(modules: list[ModuleType], stack: Stack, url: str) -> Iterator[Run]:
    for count in numbers("CLIENTS", "1 16 64 256"):
        for module in modules:
            where = {**dict.fromkeys(module.OURS, [url]),
                     **dict.fromkeys(module.PEERS, stack.addresses)}
            commands = module.OURS | module.PEERS
            for pair in pairs(5):
                for what in in_turns(list(commands), pair):
                    yield {"clients": count, "pair": pair, "what": what,
                           **around([*commands[what], count,
                                     setting("SECONDS_RUN", 3), *where[what]],
                                    server=server_pids(stack),
                                    nodes=pids(stack.nodes))}


def row(runs: Runs, clients: int, what: str, beside: str) -> dict[str, str]:
    each = runs.of(clients=clients, what=what)
    peers = runs.of(clients=clients, what=beside)
    first = [run["first_cpu_us"] for run in each if "first_cpu_us" in run]
    return {"clients": str(clients), "": what,
            "cycles/s": each.text("cycles_per_s"),
            "than its peer": f"{each.ratio(peers, 'cycles_per_s'):.2f}× {beside}"
            if peers else "",
            "p50 ms": each.ms("p50"), "p99 ms": each.ms("p99"),
            "CPU µs a cycle: client, server, nodes": " ".join(
                each.text(cpu_per_cycle(who))
                for who in ("client", "server", "nodes")),
            "first lock, CPU ms": each.text("first_cpu_us", 0, 1000)
            if first else ""}


# ---- many locks -------------------------------------------------------------

def hold(command: list, stack: Stack, **values_of: object) -> Run:
    """From the line that says that all are held, to the one that tells of it."""
    def used() -> dict[str, int]:
        return {"server_cpu_us": cpu_us(server_pids(stack)),
                "nodes_cpu_us": cpu_us(pids(stack.nodes))}
    begun, found = used(), {}
    with subprocess.Popen([str(word).format(**values_of) for word in command],
                          text=True, stdout=subprocess.PIPE) as child:
        for line in child.stdout:
            if line.startswith("held"):
                begun = used()
            elif "lost" in line.split():
                ended = used()
                found |= {who: ended[who] - begun[who] for who in begun}
            found |= values(line)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    return found


@contextlib.contextmanager
def others() -> Iterator[None]:
    """Which want a core each."""
    busy = [spawn(sys.executable, "-c", "while True: pass")
            for _ in range(int(setting("BUSY", 0)))]
    try:
        yield
    finally:
        for child in busy:
            end(child)


def held(modules: list[ModuleType], stack: Stack, url: str) -> Iterator[Run]:
    seconds, ttl_ms = int(setting("SECONDS", 60)), int(setting("TTL_MS", 10000))
    for count in numbers("HELD", "100 1000 10000"):
        for module in modules:
            for what, command in getattr(module, "HELD", {}).items():
                yield {"locks": count, "what": what, "seconds": seconds, **hold(
                    command, stack, locks=count, ttl_ms=ttl_ms, seconds=seconds,
                    url=url)}


def client_percent(run: Run) -> float:
    """Of a core."""
    if "cpu_percent" in run:
        return run["cpu_percent"]
    per_s = run.get("cpu_us_per_s", run.get("cpu_us", 0) / run["seconds"])
    return per_s / 1e4


def row_held(run: Run) -> dict[str, str]:
    def core(name: str) -> str:
        return f"{run[name] / run['seconds'] / 1e4:.1f}"
    return {"locks": f"{run['locks']:,.0f}", "": run["what"],
            "lost": f"{run['lost']:.0f}",
            "% of a core: client": f"{client_percent(run):.1f}",
            "server": core("server_cpu_us"), "five nodes": core("nodes_cpu_us")}


# ---- both -------------------------------------------------------------------

def play() -> Iterator[Run]:
    modules = languages()
    for module in modules:
        module.install()
    with started(log_level="error") as stack:
        url = f"http://127.0.0.1:{stack.start_server(0)}"
        yield from cycles(modules, stack, url)
        with others():
            yield from held(modules, stack, url)


def tell(runs: Runs, path: Path, is_markdown: bool) -> bool:
    """False: a run without a cycle, or a lost lock."""
    beside = {}
    for module in languages():
        beside |= module.BESIDE
    counted = Runs(run for run in runs if "clients" in run)
    kept = Runs(run for run in runs if "locks" in run)
    if counted:
        show([row(counted, clients, what, beside.get(what, ""))
              for clients, what in counted.each("clients", "what")], is_markdown)
    for module in languages():
        if note := getattr(module, "NOTE", ""):
            print(note + "\n")
    if kept:
        show([row_held(run) for run in kept], is_markdown)
    return bool(runs) and all(run["cycles_per_s"] > 0 for run in counted) and \
        not any(run["lost"] for run in kept)
