#!/usr/bin/python3
"""How near redlockd comes to its nodes' fsyncs, of the runs that fsync.sh printed.

fsync.py [--markdown] RUNS. Exits with 1 if a cycle failed.
"""
import argparse
import collections
import statistics
import sys

import pairs
import table

NODES = 5
HEADS = ["clients", "SETs/s, one node", "five at once", "redlockd, cycles/s",
         "calls/s", "÷ one node", "÷ five", "p50 ms", "p99 ms",
         "SETs an fsync, one", "five", "calls an fsync", "fsyncs a cycle"]


def read(path):
    """{clients: {what: {pair: {name: value}}}}"""
    rows = collections.defaultdict(lambda: collections.defaultdict(dict))
    for line in open(path, encoding="utf-8"):
        what, pair, clients, *rest = line.split()
        rows[int(clients)][what][int(pair)] = pairs.values(rest)
    return rows


def median(runs, value):
    return statistics.median(value(run) for run in runs.values())


def calls(run):
    """A cycle is two"""
    return 2 * run["cycles_per_s"]


def sets(run):
    return run["sets_per_s"]


def ratio(ours, bare):
    return statistics.median(calls(ours[pair]) / sets(bare[pair])
                             for pair in ours)


def syncs(run):
    """Of a cycle, on one node; over the warm-up too"""
    return run["fsyncs"] / NODES / run["cycles"]


def sets_a_sync(run):
    return run["sets"] / run["fsyncs"]


def cells(clients, runs):
    ours, one, five = runs["redlockd"], runs["one"], runs["five"]
    return [f"{clients:,}", f"{median(one, sets):,.0f}",
            f"{median(five, sets):,.0f}",
            f"{median(ours, lambda run: run['cycles_per_s']):,.0f}",
            f"{median(ours, calls):,.0f}", f"{ratio(ours, one):.2f}",
            f"{ratio(ours, five):.2f}",
            f"{median(ours, lambda run: run['p50_us'] / 1000):.1f}",
            f"{median(ours, lambda run: run['p99_us'] / 1000):.1f}",
            f"{median(one, sets_a_sync):.1f}",
            f"{median(five, sets_a_sync):.1f}",
            f"{median(ours, lambda run: 2 / syncs(run)):.1f}",
            f"{median(ours, syncs):.3f}"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("runs")
    args = parser.parse_args()
    rows = read(args.runs)
    table.show([HEADS] + [cells(clients, runs)
                          for clients, runs in sorted(rows.items())],
               args.markdown)
    print("Of the rate of bare SETs on all five: "
          + ", ".join(f"{ratio(runs['redlockd'], runs['five']):.0%} with"
                      f" {clients:,}" for clients, runs in sorted(rows.items()))
          + " clients.")
    print("Fsyncs of a node for a cycle, which has two calls: "
          + ", ".join(f"{median(runs['redlockd'], syncs):.3f}"
                      for _, runs in sorted(rows.items())) + ".")
    failures = sum(run["failures"] for runs in rows.values()
                   for run in runs["redlockd"].values())
    print(f"failures: {failures:.0f}")
    return failures > 0


sys.exit(main())
