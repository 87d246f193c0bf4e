#!/usr/bin/python3
"""Where the CPU time of a cycle goes, of the stacks that profile.sh recorded.

profile.py [--markdown] FOLDER. Each row of a table is its share of the samples
of all runs, times the median of the CPU time of a cycle. Exits with 1 if a cycle
failed.
"""
import argparse
import collections
import pathlib
import statistics
import sys

import inside
import pairs
import table

SIDES = ["old", "redlockd", "http", "rows"]
NODES = 5
HEADS = {"old": "before", "redlockd": "redlockd",
         "http": "floor: libmicrohttpd alone",
         "rows": "floor: the page's commands"}


def read_runs(path):
    """{side: {pair: {name: value}}}"""
    sides = collections.defaultdict(dict)
    for line in open(path, encoding="utf-8"):
        side, pair, *rest = line.split()
        sides[side][int(pair)] = pairs.values(rest)
    return sides


def count(folder, sides, who):
    """{side: {row: samples}} of the server, or of the nodes"""
    counts = collections.defaultdict(collections.Counter)
    for side, runs in sides.items():
        for pair, run in runs.items():
            stacks = inside.read(folder / f"{side}.{pair}")
            server = int(run.get("server", 0))
            mine = [stack for pid, stack in stacks
                    if (pid == server) == (who == "server")]
            counts[side].update(inside.rows(mine, who))
    return {side: rows for side, rows in counts.items() if rows}


def cpu(run, who):
    """µs a cycle, while cycles counted; of one node"""
    count_of = NODES if who == "nodes" else 1
    return (run[f"{who}_cpu_us"] / (run["cycles_per_s"] * run["seconds"])
            / count_of)


def print_table(sides, counts, who, names, is_markdown):
    shown = [side for side in SIDES if side in counts]
    costs = {side: statistics.median(cpu(run, who)
                                     for run in sides[side].values())
             for side in shown}
    sums = {side: sum(counts[side].values()) for side in shown}
    title = "redlockd" if who == "server" else "a node"
    rows = [[f"{title}, µs a cycle"] + [HEADS[side] for side in shown]]
    for name in names:
        cells = [f"{counts[side][name] / sums[side] * costs[side]:.1f}"
                 for side in shown]
        if any(float(cell) for cell in cells):
            rows.append([name] + cells)
    rows.append(["all"] + [f"{costs[side]:.1f}" for side in shown])
    rows.append(["samples"] + [f"{sums[side]:,}" for side in shown])
    table.show(rows, is_markdown, is_named=True)


def print_ratio(sides, who):
    old, new = sides["old"], sides["redlockd"]
    ratio = statistics.median(cpu(new[pair], who) / cpu(old[pair], who)
                              for pair in new if pair in old)
    print(f"CPU time of a cycle, {who}: {ratio:.2f} of before, the median of"
          " the pairs' ratios.")


def print_batches(sides):
    for side in ("old", "redlockd"):
        if side in sides:
            size = statistics.median(NODES * run["cycles"] / run["batches"]
                                     for run in sides[side].values())
            print(f"Cycles in a batch, {HEADS[side]}: {size:.1f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    sides = read_runs(args.folder / "runs")
    for who, names in inside.NAMES.items():
        print_table(sides, count(args.folder, sides, who), who, names,
                    args.markdown)
    for who in inside.NAMES if "old" in sides else ():
        print_ratio(sides, who)
    print_batches(sides)
    failures = sum(run["failures"] for runs in sides.values()
                   for run in runs.values())
    print(f"failures: {failures:.0f}")
    return failures > 0


sys.exit(main())
