#!/usr/bin/python3
"""Medians and ratios of the runs that pair.sh and paused.sh printed; a plot.

report.py RUNS PLOT. Exits with 1 if a run had a failure, or if the baseline is
slower than its own round trips explain: then the figures prove nothing.
"""
import collections
import os
import sys

import pairs
from pairs import cpu_per_cycle, median, ratio

# what is wanted of the ratio to the baseline, by persistence and clients
TARGETS = {("none", 1): 1.2, ("none", 8): 1.4, ("none", 64): 2.0,
           ("always", 64): 1.5}
STOPPED_MOST = 1.5   # p99 with nodes stopped, to p99 with all of them
# the baseline's p50, to ten round trips
TRIPS_MOST = float(os.environ.get("TRIPS_TIMES", 1.3))


def read(path):
    """{(persistence, clients): {what: [{name: value} of each pair]}}"""
    rows = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in open(path, encoding="utf-8"):
        persistence, clients, _pair, what, *rest = line.split()
        rows[persistence, int(clients)][what].append(pairs.values(rest))
    return rows


def verdict(is_met, target):
    return f"{'meets' if is_met else 'MISSES'} {target}"


def print_pairs(rows):
    print("AOF       clients   redlockd  baseline   ratio      p50 ms"
          "        p99 ms       CPU µs a cycle")
    print("                    cycles/s  cycles/s          ours  base"
          "    ours  base    server  nodes  base's")
    for (persistence, clients), runs in rows.items():
        ours, base = runs["redlockd"], runs["baseline"]
        if not ours:
            continue
        times = ratio(ours, base, "cycles_per_s")
        target = TARGETS.get((persistence, clients))
        print(f"{persistence:<9} {clients:>7}"
              f" {median(ours, 'cycles_per_s'):>10,.0f}"
              f" {median(base, 'cycles_per_s'):>9,.0f}"
              f" {times:>6.2f}×"
              f" {median(ours, 'p50_us') / 1000:>6.2f}"
              f" {median(base, 'p50_us') / 1000:>5.2f}"
              f" {median(ours, 'p99_us') / 1000:>7.2f}"
              f" {median(base, 'p99_us') / 1000:>5.2f}"
              f" {cpu_per_cycle(ours, 'server_cpu_us'):>9.0f}"
              f" {cpu_per_cycle(ours, 'nodes_cpu_us'):>6.0f}"
              f" {cpu_per_cycle(base, 'nodes_cpu_us'):>7.0f}"
              + (f"   {verdict(times >= target, f'{target}×')}" if target
                 else ""))


def print_stopped(runs):
    if not runs["stopped0"]:
        return
    print(f"\nAt {median(runs['stopped0'], 'rate'):,.0f} cycles/s, begun by the"
          " clock, on five nodes without persistence:")
    for stopped in range(3):
        now = runs[f"stopped{stopped}"]
        times = ratio(now, runs["stopped0"], "p99_us")
        print(f"  {stopped} stopped: {median(now, 'cycles_per_s'):,.0f} done/s,"
              f" p50 {median(now, 'p50_us') / 1000:.2f} ms,"
              f" p99 {median(now, 'p99_us') / 1000:.2f} ms"
              + (f", {times:.2f}× of p99 with all: "
                 + verdict(times <= STOPPED_MOST, f"{STOPPED_MOST}×")
                 if stopped else ""))


def is_sound(rows):
    """Nothing failed, and the baseline is as fast as its round trips."""
    failures = sum(run["failures"] for row in rows.values()
                   for runs in row.values() for run in runs)
    print(f"\nfailures: {failures:.0f}")
    runs = rows["none", 1]
    if not runs["trips"]:
        return failures == 0
    times = ratio(runs["baseline"], runs["trips"], "p50_us")
    print(f"the baseline's p50 at one client is {times:.2f}× ten blocking round"
          f" trips: {verdict(times <= TRIPS_MOST, f'{TRIPS_MOST}×')}")
    return failures == 0 and times <= TRIPS_MOST


def plot(rows, path):
    counts = sorted({clients for persistence, clients in rows
                     if rows[persistence, clients]["redlockd"]})
    lines = [("none", "redlockd", "redlockd, no persistence", "-o"),
             ("everysec", "redlockd", "redlockd, AOF everysec", "-^"),
             ("always", "redlockd", "redlockd, AOF always", "-s"),
             ("none", "baseline", "literal Redlock, no persistence", "--x")]
    pairs.plot(path, counts, [
        (label, style, {c: rows[persistence, c][what] for c in counts})
        for persistence, what, label, style in lines])


def main():
    rows = read(sys.argv[1])
    print_pairs(rows)
    print_stopped(rows["none", 64])
    plot(rows, sys.argv[2])
    sys.exit(0 if is_sound(rows) else 1)


main()
