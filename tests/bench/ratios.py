#!/usr/bin/env python3
"""Passes lines "PAIR with|without NAME VALUE…" on, then prints the medians of
the pairs' ratios, with to without."""
import statistics
import sys

runs = {}
for line in sys.stdin:
    print(line, end="", flush=True)
    pair, what, *words = line.split()
    values = dict(zip(words[::2], map(float, words[1::2])))
    values["cpu_us_per_cycle"] = values["server_cpu_us"] / values["cycles"]
    runs[pair, what] = values
for name in ("cycles_per_s", "p99_us", "cpu_us_per_cycle"):
    ratio = statistics.median(runs[pair, "with"][name] / values[name]
                              for (pair, what), values in runs.items()
                              if what == "without")
    print(f"{name} {ratio:.3f}")
