# SPDX-License-Identifier: MIT
"""How redlockd's speed changes with the number of clients, of servers that share
a port, and with the distance of the nodes; in turns.
CLIENTS, SERVERS, DISTANCES_MS and CLIENTS_FEW (with several servers, or with
distance) change what is run; empty: nothing of it.
"""
from __future__ import annotations

import subprocess
from collections.abc import Iterator

from measure import (Path, Run, Runs, TOOLS, costs, cpu_per_counted, in_turns,
                     load, setting, numbers, output, pairs, pids, plot, show,
                     verdict, words)
from ports import free_ports
from processes import end, spawn
from stack import NODES, Stack, ask, started

SECONDS = setting("SECONDS_RUN", 3)
SERVERS = numbers("SERVERS", "1 2 4")
FEW, MANY = 64, 10000
MANY_LEAST = 0.7   # cycles/s of MANY clients, to those of FEW
FLAT = 0.9         # the knee: the fewest clients with this share of the best
FIRST = {"servers": "1", "distance": "direct"}  # what the others compare with
FAR = 100          # the server behind the proxy


# ---- what is run ------------------------------------------------------------

class World:
    """Servers that share a port, one, two, and so on; and one that is far."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.ports: dict[str, int] = {}
        self.servers: dict[str, list[int]] = {}  # pids
        for count in sorted({1, *SERVERS}):
            self.start_servers(count)
        self.proxy = spawn(f"{TOOLS}/nemesis-proxy", 1, *stack.ports,
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           text=True, bufsize=1)
        self.start_far()

    def start_servers(self, count: int) -> None:
        """Only the first says when all are ready."""
        port, first = free_ports(1)[0], 10 * count
        for server in range(first, first + count):
            self.stack.start_server(server, "--reuse-port", "on", port=port)
        answers = 0  # the kernel deals new connections out at random
        while answers < 40:
            is_ready = ask(port, "GET", "/readyz")[0] == 200
            answers = answers + 1 if is_ready else 0
        self.ports[str(count)] = port
        self.servers[str(count)] = pids([
            self.stack.servers[server] for server in range(first, first + count)])

    def start_far(self) -> None:
        """Five ways to the nodes on which replies are late, and a server behind
        them. It has keys of its own, as it knows the nodes by other names."""
        ways = self.proxy.stdout.readline().split()
        self.ports["far"] = self.stack.start_server(
            FAR, "--key-prefix", "far:",
            nodes=[f"127.0.0.1:{way}" for way in ways])
        self.servers["far"] = pids([self.stack.servers[FAR]])

    def set_distance(self, distance_ms: str) -> None:
        for node in range(NODES):
            self.proxy.stdin.write(f"delay 0 {node} 1 {distance_ms} 0\n")
        self.proxy.stdin.write("sync\n")
        self.proxy.stdout.readline()

    def run(self, part: str, pair: int, variant: str, clients: int) -> Run:
        where = {"clients": "1", "servers": variant,
                 "distance": "1" if variant == "direct" else "far"}[part]
        if where == "far":
            self.set_distance(variant)
        used = costs(server=self.servers[where], nodes=pids(self.stack.nodes),
                     proxy=[self.proxy.pid], generator=[0])
        return {"part": part, "pair": pair, "variant": variant,
                "clients": clients, "seconds": SECONDS,
                **output(*load(self.ports[where], clients, SECONDS, *used))}


def play() -> Iterator[Run]:
    # 64 and 10,000 are compared: the one right after the other
    crowds = numbers("CLIENTS", "1 8 256 1000 4000 64 10000")
    few = numbers("CLIENTS_FEW", "64 1000 10000")
    parts = {"servers": list(map(str, SERVERS)),
             "distance": words("DISTANCES_MS", "direct 0 1 10")}
    with started(log_level="error") as stack:
        world = World(stack)
        try:
            for pair in pairs(5):
                for clients in in_turns(crowds, pair):
                    yield world.run("clients", pair, "1", clients)
                for clients in few:
                    for part, variants in parts.items():
                        for variant in in_turns(variants, pair):
                            yield world.run(part, pair, variant, clients)
        finally:
            end(world.proxy)


# ---- what it shows ----------------------------------------------------------

def busy(who: str):
    """Cores"""
    return lambda run: run[f"{who}_cpu_us"] / run["seconds"] / 1e6


def label(part: str, variant: str) -> str:
    if part == "distance":
        return {"direct": "none", "0": "proxy, 0 ms"}.get(variant,
                                                           f"{variant} ms")
    return variant


def row(part: str, every: Runs, clients: int, variant: str) -> dict[str, str]:
    runs, cells = every.of(clients=clients, variant=variant), {}
    if part != "clients":
        first = every.of(clients=clients, variant=FIRST[part])
        cells = {part: label(part, variant), "ratio": "" if not first else
                 f"{runs.ratio(first, 'cycles_per_s'):.2f}"}
    cells |= {"cycles/s": runs.text("cycles_per_s"),
              "p50 ms": runs.ms("p50", 1), "p99 ms": runs.ms("p99", 1),
              **{who: runs.text(cpu_per_counted(who))
                 for who in ("server", "nodes", "generator")}}
    if part == "distance":
        cells["proxy, cores"] = "" if variant == "direct" else \
            runs.text(busy("proxy"), 2)
    return {"clients": f"{clients:,}", **cells}


def tell_knee(runs: Runs) -> None:
    rates = {clients: runs.of(clients=clients).median("cycles_per_s")
             for (clients,) in sorted(runs.each("clients"))}
    best = max(rates, key=rates.get)
    knee = min(clients for clients, rate in rates.items()
               if rate >= FLAT * rates[best])
    print(f"The knee is at {knee:,} clients, with"
          f" {rates[knee] / rates[best]:.0%} of the best rate ({best:,} clients:"
          f" {rates[best]:,.0f} /s).")


def is_flat(runs: Runs) -> bool:
    few, many = runs.of(clients=FEW), runs.of(clients=MANY)
    if not few or not many:
        return True
    share = many.ratio(few, "cycles_per_s")
    print(f"{MANY:,} clients get {share:.2f} of the rate of {FEW}:"
          f" {verdict(share >= MANY_LEAST, MANY_LEAST)}")
    return share >= MANY_LEAST


def tell(runs: Runs, path: Path, is_markdown: bool) -> bool:
    """False: 10,000 clients get too little of the rate of 64."""
    for (part,) in runs.each("part"):
        every = runs.of(part=part)
        keys = sorted(every.each("clients", "variant"), key=lambda key: (
            key[0], key[1] != "direct", float(key[1].replace("direct", "0"))))
        show([row(part, every, *key) for key in keys], is_markdown)
    crowds = runs.of(part="clients")
    if not crowds:
        return True
    tell_knee(crowds)

    def line(name: str, value, unit: float = 1) -> tuple:
        return name, "-o", {
            clients: crowds.of(clients=clients).median(value) / unit
            for (clients,) in sorted(crowds.each("clients"))}
    plot(path, (13, 4), [
        ("acquire + release, cycles/s", "linear", [line("", "cycles_per_s")]),
        ("a cycle, ms", "log", [line(name, f"{name}_us", 1000)
                                for name in ("p50", "p99")]),
        ("CPU time of a cycle, µs", "linear", [
            line(who, cpu_per_counted(who))
            for who in ("server", "nodes", "generator")])], 10)
    return is_flat(crowds)
