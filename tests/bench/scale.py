#!/usr/bin/python3
"""Medians of the runs that scale.sh printed, where the knee is, and a plot.

scale.py [--markdown] RUNS PLOT. Exits with 1 if a cycle failed, or if 10,000
clients get too little of the rate of 64.
"""
import argparse
import collections
import statistics
import sys

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

import pairs  # noqa: E402
import table  # noqa: E402

FEW, MANY = 64, 10000
MANY_LEAST = 0.7   # cycles/s of MANY clients, to those of FEW
FLAT = 0.9         # the knee: the fewest clients with this share of the best
FIRST = {"servers": "1", "distance": "direct"}  # what the others compare with


def read(path):
    """{part: {(clients, variant): {pair: {name: value}}}}"""
    parts = collections.defaultdict(lambda: collections.defaultdict(dict))
    for line in open(path, encoding="utf-8"):
        part, pair, variant, clients, *rest = line.split()
        parts[part][int(clients), variant][int(pair)] = pairs.values(rest)
    return parts


def median(runs, name):
    return pairs.median(runs.values(), name)


def cpu(runs, who):
    """µs a cycle, while cycles counted; 0: no cycle did"""
    return statistics.median(
        run[f"{who}_cpu_us"] / max(run["cycles_per_s"] * run["seconds"], 1)
        for run in runs.values())


def busy(runs, who):
    """Cores"""
    return statistics.median(run[f"{who}_cpu_us"] / run["seconds"] / 1e6
                             for run in runs.values())


def ratio(runs, others):
    """Of cycles/s, pair by pair"""
    return statistics.median(runs[pair]["cycles_per_s"]
                             / others[pair]["cycles_per_s"]
                             for pair in runs if pair in others)


def label(part, variant):
    if part == "distance":
        return {"direct": "none", "0": "proxy, 0 ms"}.get(variant,
                                                           f"{variant} ms")
    return variant


def cells(part, rows, key):
    """One row of a table, as text"""
    clients, variant = key
    runs, row = rows[key], [f"{clients:,}"]
    if part != "clients":
        first = rows.get((clients, FIRST[part]))
        row += [label(part, variant), f"{ratio(runs, first):.2f}" if first
                else ""]
    row += [f"{median(runs, 'cycles_per_s'):,.0f}",
            f"{median(runs, 'p50_us') / 1000:.1f}",
            f"{median(runs, 'p99_us') / 1000:.1f}",
            f"{cpu(runs, 'server'):.0f}", f"{cpu(runs, 'nodes'):.0f}",
            f"{cpu(runs, 'generator'):.0f}"]
    if part == "distance":
        row.append(f"{busy(runs, 'proxy'):.2f}" if variant != "direct" else "")
    return row


def heads(part):
    row = ["clients"]
    if part != "clients":
        row += [part, "ratio"]
    row += ["cycles/s", "p50 ms", "p99 ms", "server", "nodes", "generator"]
    return row + (["proxy, cores"] if part == "distance" else [])


def print_table(part, rows, is_markdown):
    keys = sorted(rows, key=lambda key: (key[0], key[1] != "direct",
                                         float(key[1].replace("direct", "0"))))
    table.show([heads(part)] + [cells(part, rows, key) for key in keys],
               is_markdown)


def print_knee(rows):
    rates = {clients: median(runs, "cycles_per_s")
             for (clients, _), runs in rows.items()}
    best = max(rates, key=rates.get)
    knee = min(clients for clients, rate in rates.items()
               if rate >= FLAT * rates[best])
    print(f"The knee is at {knee:,} clients, with"
          f" {rates[knee] / rates[best]:.0%} of the best rate ({best:,} clients:"
          f" {rates[best]:,.0f} /s).")


def is_flat(rows):
    few, many = rows.get((FEW, "1")), rows.get((MANY, "1"))
    if not few or not many:
        return True
    share = ratio(many, few)
    is_met = share >= MANY_LEAST
    print(f"{MANY:,} clients get {share:.2f} of the rate of {FEW}:"
          f" {'meets' if is_met else 'MISSES'} {MANY_LEAST}")
    return is_met


def plot(rows, path):
    at = sorted(clients for clients, _ in rows)
    runs = [rows[clients, "1"] for clients in at]
    figure, (rate, late, used) = plt.subplots(1, 3, figsize=(13, 4))
    rate.plot(at, [median(run, "cycles_per_s") for run in runs], "-o")
    rate.set_ylim(bottom=0)
    rate.set_title("acquire + release, cycles/s")
    for name in ("p50", "p99"):
        late.plot(at, [median(run, f"{name}_us") / 1000 for run in runs], "-o",
                  label=name)
    late.set_yscale("log")
    late.yaxis.set_major_formatter("{x:g}")
    late.set_title("a cycle, ms")
    late.legend()
    for who in ("server", "nodes", "generator"):
        used.plot(at, [cpu(run, who) for run in runs], "-o", label=who)
    used.set_ylim(bottom=0)
    used.set_title("CPU time of a cycle, µs")
    used.legend()
    for axes in (rate, late, used):
        axes.set_xscale("log")
        axes.set_xticks(at, [f"{clients:,}" for clients in at], rotation=45)
        axes.minorticks_off()
        axes.set_xlabel("clients")
        axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("runs")
    parser.add_argument("plot")
    args = parser.parse_args()
    parts = read(args.runs)
    for part, rows in parts.items():
        print_table(part, rows, args.markdown)
    clients = parts.get("clients", {})
    if clients:
        print_knee(clients)
        plot(clients, args.plot)
    is_good = is_flat(clients)
    failures = sum(run["failures"] for rows in parts.values()
                   for runs in rows.values() for run in runs.values())
    print(f"failures: {failures:.0f}")
    return not is_good or failures > 0


sys.exit(main())
