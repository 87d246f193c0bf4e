"""What the reports of runs in pairs share: medians, ratios, a plot's axes."""
import statistics

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def values(words):
    """{name: value} of "name value name value…"."""
    return dict(zip(words[::2], map(float, words[1::2])))


def median(runs, name):
    return statistics.median(run[name] for run in runs)


def ratio(runs, others, name):
    """The median of the pairs' ratios."""
    return statistics.median(
        run[name] / other[name] for run, other in zip(runs, others))


def cpu_per_cycle(runs, name):
    """µs, over the warm-up too"""
    return statistics.median(run[name] / run["cycles"] for run in runs)


def plot(path, counts, lines):
    """Cycles and p99 over numbers of clients; a line is (label, style, {clients:
    runs}), and has a point where there are runs."""
    figure, (rate, late) = plt.subplots(1, 2, figsize=(10, 4))
    for label, style, runs in lines:
        at = [count for count in counts if runs[count]]
        rate.plot(at, [median(runs[c], "cycles_per_s") for c in at], style,
                  label=label)
        late.plot(at, [median(runs[c], "p99_us") / 1000 for c in at], style,
                  label=label)
    for axes, title in ((rate, "acquire + release, cycles/s"),
                        (late, "p99 of a cycle, ms")):
        axes.set_xscale("log", base=2)
        axes.set_xticks(counts, [str(c) for c in counts])
        axes.set_xlabel("clients")
        axes.set_title(title)
        axes.grid(alpha=0.3)
    rate.set_ylim(bottom=0)
    late.set_yscale("log")
    late.yaxis.set_major_formatter("{x:g}")
    rate.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
