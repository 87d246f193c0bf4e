"""The packages for users beside the libraries that they replace, over the same
five nodes without persistence, in turns.

A module clients/in_LANGUAGE.py says what there is to measure: install(), OURS
and PEERS, commands by name, and BESIDE, whom each of ours is compared with; a
NOTE, if it has one, is told below the table. A command gets the number of
clients, the seconds, and then the URL of redlockd or the addresses of the nodes,
and prints what clients/python/tally.py does.
LANGUAGES, CLIENTS, PAIRS and SECONDS_RUN change what is run.
"""
from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType

from measure import (Path, Run, Runs, around, cpu_per_cycle, in_turns, numbers,
                     pairs, pids, server_pids, setting, show, words)
from stack import started

FOLDER = Path(__file__).parent / "clients"


def languages() -> list[ModuleType]:
    sys.path.insert(0, str(FOLDER))
    found = sorted(path.stem.removeprefix("in_") for path in FOLDER.glob("in_*.py"))
    return [importlib.import_module(f"in_{name}")
            for name in words("LANGUAGES", " ".join(found))]


def play() -> Iterator[Run]:
    modules = languages()
    for module in modules:
        module.install()
    with started(log_level="error") as stack:
        url = f"http://127.0.0.1:{stack.start_server(0)}"
        for count in numbers("CLIENTS", "1 16 64"):
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


def tell(runs: Runs, path: Path, is_markdown: bool) -> bool:
    beside = {}
    for module in languages():
        beside |= module.BESIDE
    show([row(runs, clients, what, beside.get(what, ""))
          for clients, what in runs.each("clients", "what")], is_markdown)
    for module in languages():
        if note := getattr(module, "NOTE", ""):
            print(note + "\n")
    return bool(runs) and all(run["cycles_per_s"] > 0 for run in runs)
