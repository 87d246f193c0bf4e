#!/usr/bin/python3
"""Medians and ratios of the runs that peers.sh printed, and a plot.

peers.py RUNS PLOT         a report; exits with 1 if a run proves nothing: a
                           cycle failed, none was done, or a lock is left behind
peers.py --markdown RUNS   the same as a table for the docs
"""
import collections
import sys

import pairs
from pairs import cpu_per_cycle, median, ratio

NAMES = {"redlockd": "redlockd", "rslock": "rslock", "aioredlock": "aioredlock",
         "baseline": "literal Redlock", "etcd": "etcd, one member"}
STYLES = {"redlockd": "-o", "rslock": "--^", "aioredlock": "--s",
          "baseline": "--x", "etcd": "--d"}
CPUS = ("client_cpu_us", "server_cpu_us", "nodes_cpu_us")


def read(path):
    """{(clients, peer): {what: [{name: value} of each pair]}}; what: the peer,
    and redlockd beside it"""
    cases = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in open(path, encoding="utf-8"):
        clients, _pair, peer, what, *rest = line.split()
        cases[int(clients), peer][what].append(pairs.values(rest))
    return cases


def is_of_processes(cases):
    """Each client was a process of its own: see processes.py."""
    return any("processes" in run for case in cases.values()
               for runs in case.values() for run in runs)


def by_clients(cases):
    """{what: {clients: [run]}}; of redlockd all of its runs"""
    found = {what: collections.defaultdict(list) for what in NAMES}
    for (clients, _peer), whats in cases.items():
        for what, runs in whats.items():
            found[what][clients] += runs
    return {what: runs for what, runs in found.items() if runs}


def times(cases, clients, peer):
    """redlockd's cycles ÷ the peer's"""
    case = cases[clients, peer]
    return ratio(case["redlockd"], case[peer], "cycles_per_s")


def milliseconds(runs, name):
    return median(runs, name) / 1000


def print_report(cases):
    if is_of_processes(cases):
        print("Each client is a process of its own. Cycles are the sum over the"
              " processes,\np50 and p99 the medians of the processes' own.\n")
    print("clients  peer          redlockd      peer   ratio        p50 ms"
          "          p99 ms    CPU µs a cycle: client, server, nodes")
    print("                       cycles/s  cycles/s          ours    peer"
          "    ours    peer    ours              peer's")
    for (clients, peer), case in cases.items():
        ours, theirs = case["redlockd"], case[peer]
        print(f"{clients:>7}  {peer:<12}"
              f" {median(ours, 'cycles_per_s'):>9,.0f}"
              f" {median(theirs, 'cycles_per_s'):>9,.0f}"
              f" {times(cases, clients, peer):>6.2f}×",
              *(f"{milliseconds(runs, name):>7.2f}"
                for name in ("p50_us", "p99_us") for runs in (ours, theirs)),
              *("   " + "".join(f"{cpu_per_cycle(runs, name):>5.0f}"
                                for name in CPUS) for runs in (ours, theirs)))


def print_markdown(cases):
    print(f"| {'processes' if is_of_processes(cases) else 'clients'} | | cycles |"
          " redlockd does | p50, p99 |"
          " CPU of a cycle: client, server, nodes |")
    print("| ---: | --- | ---: | ---: | ---: | ---: |")
    found = by_clients(cases)
    for clients in sorted({clients for clients, _ in cases}):
        for what, runs in found.items():
            if runs[clients]:
                print_row(cases, clients, what, runs[clients])


def print_row(cases, clients, what, runs):
    is_first = what == "redlockd"
    does = "" if is_first else f"{times(cases, clients, what):.1f}×"
    late = ", ".join(f"{milliseconds(runs, name):.1f}"
                     for name in ("p50_us", "p99_us"))
    costs = ", ".join("–" if name not in parts(what) else
                      f"{cpu_per_cycle(runs, name):.0f}" for name in CPUS)
    print(f"| {clients if is_first else ''} | {NAMES[what]} |"
          f" {median(runs, 'cycles_per_s'):,.0f} /s | {does} |"
          f" {late} ms | {costs} µs |")


def parts(what):
    """Libraries have no server; etcd has no nodes."""
    return {"redlockd": CPUS, "etcd": CPUS[:2]}.get(what, CPUS[::2])


def is_sound(every):
    failures, left = (sum(run[name] for run in every)
                      for name in ("failures", "left"))
    print(f"\n{len(every)} runs; failures: {failures:.0f};"
          f" locks left behind: {left:.0f}")
    return failures == left == 0


def main():
    is_table = sys.argv[1] == "--markdown"
    cases = read(sys.argv[2 if is_table else 1])
    every = [run for case in cases.values() for runs in case.values()
             for run in runs]
    if not every or any(run["cycles_per_s"] == 0 for run in every):
        sys.exit("No run, or a run without a cycle: nothing to compare.")
    if is_table:
        print_markdown(cases)
        return
    print_report(cases)
    pairs.plot(sys.argv[2], sorted({clients for clients, _ in cases}),
               [(NAMES[what], STYLES[what], runs)
                for what, runs in by_clients(cases).items()])
    sys.exit(0 if is_sound(every) else 1)


main()
