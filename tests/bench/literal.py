# SPDX-License-Identifier: MIT
"""Acquire and release on distinct resources: redlockd over HTTP beside the
Redlock page done literally, on five local nodes each. The nodes behind redlockd
persist as told, those of the baseline never do. With one client the baseline's
round trips are measured too. Then half the peak rate of 64 clients, begun by the
clock, with all nodes, with one and with two of five stopped.
PERSISTENCE and CLIENTS change what is run.
"""
from __future__ import annotations

import signal
from contextlib import nullcontext

from measure import (Path, Runs, TOOLS, around, cpu_per_cycle, in_turns,
                     load, setting, numbers, output, pairs, pids, plot_cycles,
                     server_pids, show, verdict, words)
from stack import metric, started
from waiting import wait_until

SECONDS = setting("SECONDS_RUN", 3)
# what is wanted of the ratio to the baseline, by persistence and clients
TARGETS = {("none", 1): 1.2, ("none", 8): 1.4, ("none", 64): 2.0,
           ("always", 64): 1.5}
STOPPED_MOST = 1.5                        # p99 with nodes stopped, to p99 with all
TRIPS_MOST = setting("TRIPS_TIMES", 1.3)   # the baseline's p50, to ten round trips


def beside(persistence: str, clients: int):
    options = () if persistence == "none" else (
        "--appendonly", "yes", "--appendfsync", persistence)
    sides = ["redlockd", "baseline"] + ["trips"] * (clients == 1)
    with started(log_level="warn") as memory, (
            started(*options, log_level="warn") if options
            else nullcontext(memory)) as stack:
        port = stack.start_server(0)
        commands = {"redlockd": load(port, clients, SECONDS)} | {
            side: [f"{TOOLS}/baseline", what, SECONDS, *memory.addresses]
            for side, what in (("baseline", clients), ("trips", "trips"))}

        for pair in pairs(5):
            for what in in_turns(sides, pair):
                nodes = (stack if what == "redlockd" else memory).nodes
                yield {"pair": pair, "what": what, "persistence": persistence,
                       "clients": clients, **around(
                           commands[what], server=server_pids(stack),
                           nodes=pids(nodes))}


def with_nodes_stopped():
    with started(log_level="error") as stack:
        port = stack.start_server(0)
        command = load(port, 64, SECONDS)
        rate = int(output(*command)["cycles_per_s"] / 2)
        for pair in pairs(5):
            for stopped in range(3):
                for node in stack.nodes[:stopped]:
                    node.send_signal(signal.SIGSTOP)
                yield {"pair": pair, "stopped": stopped, "rate": rate, **around(
                    [*command, rate], server=server_pids(stack),
                    nodes=pids(stack.nodes))}
                for node in stack.nodes:
                    node.send_signal(signal.SIGCONT)
                wait_until(lambda: metric(port, "redlockd_node_voting") == 5,
                           "all nodes vote again")


def play():
    for persistence in words("PERSISTENCE", "none everysec always"):
        for clients in numbers("CLIENTS", "1 8 64 256"):
            yield from beside(persistence, clients)
    yield from with_nodes_stopped()


def row(persistence: str, clients: int, runs: Runs) -> dict[str, str]:
    ours, base = runs.of(what="redlockd"), runs.of(what="baseline")
    times = ours.ratio(base, "cycles_per_s")
    target = TARGETS.get((persistence, clients))
    return {"AOF": persistence, "clients": str(clients),
            "redlockd, cycles/s": ours.text("cycles_per_s"),
            "baseline": base.text("cycles_per_s"), "ratio": f"{times:.2f}×",
            "p50 ms": ours.ms("p50"), "base's p50": base.ms("p50"),
            "p99 ms": ours.ms("p99"), "base's p99": base.ms("p99"),
            "CPU µs a cycle: server": ours.text(cpu_per_cycle("server")),
            "nodes": ours.text(cpu_per_cycle("nodes")),
            "base's nodes": base.text(cpu_per_cycle("nodes")),
            "": verdict(times >= target, f"{target}×") if target else ""}


def tell_stopped(runs: Runs) -> None:
    everyone = runs.of(stopped=0)
    print(f"At {everyone.text('rate')} cycles/s, begun by the clock, on five"
          " nodes without persistence:")
    for stopped in range(3):
        now = runs.of(stopped=stopped)
        times = now.ratio(everyone, "p99_us")
        print(f"  {stopped} stopped: {now.text('cycles_per_s')} done/s,"
              f" p50 {now.ms('p50')} ms, p99 {now.ms('p99')} ms"
              + (f", {times:.2f}× of p99 with all: "
                 + verdict(times <= STOPPED_MOST, f"{STOPPED_MOST}×")
                 if stopped else ""))


def tell(runs: Runs, path: Path, is_markdown: bool) -> bool:
    """False: the baseline is slower than its own round trips explain."""
    cases = runs.each("persistence", "clients")
    show([row(*case, runs.of(persistence=case[0], clients=case[1]))
          for case in cases], is_markdown, is_named=True)
    tell_stopped(runs)
    plot_cycles(path, [
        (label, style, {clients: runs.of(persistence=persistence, what=what,
                                         clients=clients)
                        for _, clients in cases})
        for persistence, what, label, style in (
            ("none", "redlockd", "redlockd, no persistence", "-o"),
            ("everysec", "redlockd", "redlockd, AOF everysec", "-^"),
            ("always", "redlockd", "redlockd, AOF always", "-s"),
            ("none", "baseline", "literal Redlock, no persistence", "--x"))])
    lone = runs.of(persistence="none", clients=1)
    if not lone:
        return True
    times = lone.of(what="baseline").ratio(lone.of(what="trips"), "p50_us")
    print(f"the baseline's p50 at one client is {times:.2f}× ten blocking round"
          f" trips: {verdict(times <= TRIPS_MOST, f'{TRIPS_MOST}×')}")
    return times <= TRIPS_MOST
