#!/usr/bin/python3
"""Medians of the runs that contention.sh printed, what is wanted, and a plot.

A hand-over is a grant to another client than the one that had the lock before:
of clients that poll, the one that has just released mostly gets it again. What
a grant costs is told for servers and nodes in all, but for batches and commands
of each node; commands include those that scripts call.

contention.py RUNS PLOT. Exits with 1 if a request failed.

The round trip is the p50 of one client's requests while nobody else wants the
lock, the mean of that of POST and of DELETE. It depends on the pause between
requests: after 1 ms all processes sleep, and wake up more slowly. So there is
one for each hold time, and the ideal is 1 / (hold + the round trip at that
hold).
"""
import collections
import statistics
import sys

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

NODES = 5
IDEAL_LEAST = 0.8       # of the ideal: 16 clients, 1 ms, one server
FAIR_LEAST = 0.95       # fewest ÷ most there
CROSS_MOST = 10         # round trips from one server to another
CROSS_FAIR_LEAST = 0.5  # fewest ÷ most on two servers
NAMES = {"wait": "wait_ms", "10-10": "polls, 10 ms",
         "100-200": "polls, 100–200 ms"}
Case = collections.namedtuple("Case", "servers resources hold_us clients")


def read(path):
    """{case: {mode: {pair: {name: value}}}}"""
    cases = collections.defaultdict(lambda: collections.defaultdict(dict))
    for line in open(path, encoding="utf-8"):
        pair, servers, resources, hold, clients, mode, *rest = line.split()
        case = Case(int(servers), int(resources), int(hold), int(clients))
        cases[case][mode][int(pair)] = dict(
            zip(rest[::2], map(float, rest[1::2])))
    return cases


def median(runs, value):
    """Of a name, or of what a function makes of a run."""
    get = value if callable(value) else lambda run: run[value]
    return statistics.median(map(get, runs.values()))


def per_grant(name):
    return lambda run: run[name] / run["grants"]


def fairness(run):
    return run["fewest"] / run["most"] if run["most"] else 0


def trip_us(run):
    return (run["wait_p50_us"] + run["release_p50_us"]) / 2


def alone(cases, case, hold_us=None):
    hold_us = case.hold_us if hold_us is None else hold_us
    return cases[Case(case.servers, 1, hold_us, 1)]["alone"]


def of_ideal(cases, case, runs, hold_us=None):
    """Of the ideal of the same pair of runs."""
    trips = alone(cases, case, hold_us)
    return statistics.median(
        run["handovers_per_s"] / case.resources *
        (case.hold_us + trip_us(trips[pair])) / 1e6
        for pair, run in runs.items())


def crossing(cases, case, runs, hold_us=None):
    """A hand-over to the other server, in round trips."""
    trips = alone(cases, case, hold_us)
    return statistics.median(run["cross_p50_us"] / trip_us(trips[pair])
                             for pair, run in runs.items())


def contended(cases):
    return [(case, runs) for case, runs in cases.items()
            if "alone" not in runs and "idle" not in runs]


def ms(us):
    return f"{us / 1000:.1f}" if us < 100000 else f"{us / 1000:,.0f}"


def print_trips(cases):
    for case, runs in cases.items():
        if "alone" in runs:
            one = runs["alone"]
            print(f"round trip with {case.hold_us / 1000:g} ms between POST and"
                  f" DELETE, beside runs on {case.servers} server(s):"
                  f" {median(one, trip_us):.0f} µs (POST"
                  f" {median(one, 'wait_p50_us'):.0f}, DELETE"
                  f" {median(one, 'release_p50_us'):.0f}); ideal"
                  f" {median(one, lambda r: 1e6 / (case.hold_us + trip_us(r))):,.0f}"
                  " hand-overs/s")
    for case, runs in cases.items():
        for run in runs.get("idle", {}).values():
            print(f"idle servers send the nodes {run['batches']:.0f} batches,"
                  f" {run['commands']:.0f} commands in a run")


def print_table(cases):
    print("""
                          hand-  grants   of  fewest   wait ms      hand-over   a grant:
servers, clients        overs/s      /s ideal ÷ most   p50   p99    p50 ms at   rounds, batches,
of locks, hold ms                                                 same, other   commands, CPU µs""")
    for case, modes in contended(cases):
        print(f"{case.servers}  {case.clients} on {case.resources},"
              f" {case.hold_us / 1000:g} ms")
        for mode, runs in sorted(modes.items(), reverse=True):
            cost = [median(runs, per_grant(name))
                    for name in ("rounds", "batches", "commands",
                                 "server_cpu_us", "nodes_cpu_us")]
            print(f"   {NAMES[mode]:<20}"
                  f"{median(runs, 'handovers_per_s'):>7,.0f}"
                  f" {median(runs, 'grants_per_s'):>7,.0f}"
                  f" {of_ideal(cases, case, runs):>5.2f}"
                  f" {median(runs, fairness):>6.2f}"
                  f" {ms(median(runs, 'wait_p50_us')):>5}"
                  f" {ms(median(runs, 'wait_p99_us')):>5}"
                  f" {median(runs, 'same_p50_us') / 1000:>5.2f}"
                  f" {median(runs, 'cross_p50_us') / 1000:>5.2f}"
                  f"   {cost[0]:>5.2f} {cost[1] / NODES:>5.2f}"
                  f" {cost[2] / NODES:>5.1f} {cost[3]:>5.0f} {cost[4]:>5.0f}")


def tell(what, value, is_met, target):
    print(f"  {what}: {value}: {'meets' if is_met else 'MISSES'} {target}")


def print_targets(cases):
    """Only of what was run."""
    print()
    one, two = Case(1, 1, 1000, 16), [Case(2, 1, 0, 32), Case(2, 1, 1000, 32)]
    runs = cases[one].get("wait")
    if runs:
        rate = of_ideal(cases, one, runs)
        fair = median(runs, fairness)
        print("16 clients, 1 ms, one server:")
        tell("of the ideal", f"{rate:.2f} ({of_ideal(cases, one, runs, 0):.2f}"
             " with the round trip without a pause)", rate >= IDEAL_LEAST,
             IDEAL_LEAST)
        tell("fewest ÷ most", f"{fair:.2f}", fair >= FAIR_LEAST, FAIR_LEAST)
    few, many = (cases[Case(1, 1, 0, n)].get("wait") for n in (2, 128))
    if few and many:
        ratio = statistics.median(many[pair]["handovers_per_s"] /
                                  few[pair]["handovers_per_s"] for pair in few)
        print("128 clients, 0 ms, one server:")
        tell("hand-overs/s, to those of 2 clients", f"{ratio:.2f}", ratio >= 1,
             1)
    for case in two:
        runs = cases[case].get("wait")
        if not runs:
            continue
        trips = crossing(cases, case, runs, 0)
        fair = median(runs, fairness)
        rounds = median(runs, per_grant("rounds"))
        print(f"16 clients on each of two servers, {case.hold_us / 1000:g} ms:")
        tell("to the other server", f"{trips:.1f} round trips without a pause",
             trips <= CROSS_MOST, CROSS_MOST)
        tell("fewest ÷ most", f"{fair:.2f}", fair >= CROSS_FAIR_LEAST,
             CROSS_FAIR_LEAST)
        tell("acquires sent to the nodes, a grant", f"{rounds:.2f}",
             rounds <= case.servers, case.servers)


def plot(cases, path):
    figure, axes = plt.subplots(1, 3, figsize=(12, 4))
    titles = ("hand-overs/s", "p99 of the wait, ms", "fewest ÷ most grants")
    values = ("handovers_per_s", lambda run: run["wait_p99_us"] / 1000,
              fairness)
    counts = sorted({c.clients for c, _ in contended(cases)
                     if c.servers == 1 and c.resources == 1})
    lines = [("wait", 1, "wait_ms", "-o"),
             ("wait", 2, "wait_ms, two servers", "-^"),
             ("10-10", 1, "poll every 10 ms", "--x"),
             ("100-200", 1, "poll every 100–200 ms", "--+")]
    for ax, title, value in zip(axes, titles, values):
        for mode, servers, label, style in lines:
            found = {n: cases[Case(servers, 1, 1000, n)].get(mode)
                     for n in counts}
            at = [n for n in counts if found[n]]
            ax.plot(at, [median(found[n], value) for n in at], style,
                    label=label)
        ax.set_xscale("log", base=2)
        ax.set_xticks(counts, [str(n) for n in counts])
        ax.set_xlabel("clients of one lock, each holds it for 1 ms")
        ax.set_title(title)
        ax.grid(alpha=0.3)
    ideal = cases[Case(1, 1, 1000, 1)].get("alone")
    if ideal:
        axes[0].axhline(median(ideal, lambda r: 1e6 / (1000 + trip_us(r))),
                        color="grey", linestyle=":", label="ideal")
    axes[0].set_ylim(bottom=0)
    axes[1].set_yscale("log")
    axes[1].yaxis.set_major_formatter("{x:g}")
    axes[2].set_ylim(0, 1.05)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels))
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(path, dpi=110)


def main():
    cases = read(sys.argv[1])
    print_trips(cases)
    print_table(cases)
    print_targets(cases)
    failures = sum(run.get("failures", 0) for modes in cases.values()
                   for runs in modes.values() for run in runs.values())
    print(f"\nfailures: {failures:.0f}")
    plot(cases, sys.argv[2])
    sys.exit(0 if failures == 0 else 1)


main()
