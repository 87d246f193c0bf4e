# SPDX-License-Identifier: MIT
"""What all measurements share: runs in turns, medians and ratios, tables and
plots. A run is a dict of names and values; among them are the labels that tell
what ran, such as "pair", "what" and "clients".
"""
from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from certificates import openssl
from guarded import identity
from processes import cpu_us
from stack import TOOLS, Stack

Run = dict[str, Any]
Value = str | Callable[[Run], float]  # of a run: a name, or a function
CPUS = ("client", "server", "nodes")  # whose CPU time is measured


# ---- what the environment says ----------------------------------------------

def setting(name: str, default: float) -> float:
    return float(os.environ.get(name) or default)


def words(name: str, default: str) -> list[str]:
    """Empty: none of them."""
    return os.environ.get(name, default).split()


def numbers(name: str, default: str) -> list[int]:
    return [int(word) for word in words(name, default)]


# ---- runs -------------------------------------------------------------------

def in_turns(order: list, pair: int) -> list:
    """Now the one, now the other first: what grows hits all."""
    return order if pair % 2 else order[::-1]


def pairs(count: int) -> range:
    return range(1, int(setting("PAIRS", count)) + 1)


def values(printed: str) -> Run:
    """Of "name value name value…", as our programs print them."""
    found = printed.split()
    return dict(zip(found[::2], map(float, found[1::2])))


def output(*command: object) -> Run:
    done = subprocess.run(list(map(str, command)), check=True, text=True,
                          stdout=subprocess.PIPE)
    return values(done.stdout)


def around(command: list, **pids: list[int]) -> Run:
    """And the CPU time that these processes used meanwhile."""
    before = {who: cpu_us(of) for who, of in pids.items()}
    run = output(*command)
    return run | {f"{who}_cpu_us": cpu_us(of) - before[who]
                  for who, of in pids.items()}


def pids(processes: list) -> list[int]:
    return [process.pid for process in processes]


def costs(**of: list[int]) -> list[str]:
    """For load.c: it measures itself what they use while cycles count."""
    return [word for who, pids in of.items()
            for word in ("-c", f"{who}={','.join(map(str, pids))}") if pids]


def load(port: int, clients: int, seconds: float, *options: object) -> list:
    return [f"{TOOLS}/load", *options, f"127.0.0.1:{port}", clients, seconds]


def cpu_per_cycle(who: str) -> Callable[[Run], float]:
    """µs, over the warm-up too."""
    return lambda run: run[f"{who}_cpu_us"] / run["cycles"]


def cpu_per_counted(who: str) -> Callable[[Run], float]:
    """µs, while cycles counted; 0: no cycle did."""
    return lambda run: run[f"{who}_cpu_us"] / max(
        run["cycles_per_s"] * run["seconds"], 1)


def server_pids(stack: Stack) -> list[int]:
    return pids(list(stack.servers.values()))


class Load:
    """The load generator beside what else is done; locks of 5 s."""

    def __init__(self, port: int, seconds: float, token: str = "",
                 clients: int = 64) -> None:
        words = ["-l", 5000, *(["-a", token] if token else [])]
        self.child = subprocess.Popen(
            list(map(str, load(port, clients, seconds, *words))), text=True,
            stdout=subprocess.PIPE)

    def end(self) -> Run:
        return values(self.child.communicate()[0])


def request(method: str, path: str, body: object = None, *headers: str) -> bytes:
    """As it goes over the wire."""
    text = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(text)}"]
    return "\r\n".join([*lines, "", ""]).encode() + text


def start_guarded(stack: Stack, rights: dict[str, str], *options: str) -> int:
    """Server 0 for these identities; the token of each is its name."""
    auth = stack.folder / "auth"
    auth.touch(0o600)
    auth.write_text("".join(f"{identity(name, name, *filter(None, [what]))}\n"
                            for name, what in rights.items()))
    return stack.start_server(0, "--auth-file", str(auth), *options)


def certified(folder: Path, name: str, *key: str) -> tuple[str, ...]:
    """The options of a server with a new certificate; key: what openssl is told."""
    openssl(folder, "req", "-x509", "-nodes", "-days", "2", "-subj",
            "/CN=localhost", "-newkey", *key, "-keyout", f"{name}.key", "-out",
            f"{name}.pem")
    return ("--tls-cert", str(folder / f"{name}.pem"),
            "--tls-key", str(folder / f"{name}.key"))


def allow_descriptors() -> None:
    """As many as this process may have."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Runs(list[Run]):
    def of(self, **labels: object) -> Runs:
        return Runs(run for run in self if all(
            run.get(name) == value for name, value in labels.items()))

    def each(self, *labels: str) -> list[tuple]:
        """What there is of them, in the order in which it ran."""
        return list(dict.fromkeys(tuple(run[label] for label in labels)
                                  for run in self
                                  if all(label in run for label in labels)))

    def median(self, value: Value) -> float:
        return statistics.median(of(run, value) for run in self)

    def ratio(self, others: Runs, value: Value, other: Value = "") -> float:
        """The median of the pairs' ratios."""
        beside = {run["pair"]: of(run, other or value) for run in others}
        return statistics.median(of(run, value) / beside[run["pair"]]
                                 for run in self if run["pair"] in beside)

    def text(self, value: Value, digits: int = 0, unit: float = 1) -> str:
        return f"{self.median(value) / unit:,.{digits}f}"

    def ms(self, name: str, digits: int = 2) -> str:
        return self.text(f"{name}_us", digits, 1000)


def of(run: Run, value: Value) -> float:
    return value(run) if callable(value) else run[value]


# ---- what is told -----------------------------------------------------------

def show(rows: list[dict[str, str]], is_markdown: bool = False,
         is_named: bool = False) -> None:
    """Cells by their heads. All is aligned to the right, but for the first
    column if that holds names."""
    heads = list(dict.fromkeys(head for row in rows for head in row))
    table = [heads] + [[row.get(head, "") for head in heads] for row in rows]
    if is_markdown:
        marks = ["---:"] * len(heads)
        if is_named:
            marks[0] = "---"
        for row in [heads, marks, *table[1:]]:
            print("| " + " | ".join(row) + " |")
    else:
        wide = [max(map(len, column)) for column in zip(*table)]
        for row in table:
            cells = [one.rjust(size) for one, size in zip(row, wide)]
            if is_named:
                cells[0] = row[0].ljust(wide[0])
            print("  ".join(cells).rstrip())
    print()


class Results:
    """Of what is not compared with anything: what must be so."""

    def __init__(self) -> None:
        self.passed = self.failed = 0

    def check(self, what: str, is_so: bool) -> None:
        print(f"  {'ok   ' if is_so else 'FAILS'} {what}", flush=True)
        self.passed += is_so
        self.failed += not is_so

    def compare(self, what: str, busy: Run, usual: Run, most: float) -> None:
        """The p99s of two loads; nothing has failed meanwhile."""
        self.check(f"{busy['cycles']:.0f} cycles {what}, failures: "
                   f"{busy['failures']:.0f}", busy["failures"] == 0)
        ratio = busy["p99_us"] / usual["p99_us"]
        self.check(f"p99 {what} {busy['p99_us'] / 1000:.1f} ms, without "
                   f"{usual['p99_us'] / 1000:.1f} ms: {ratio:.2f}", ratio <= most)


def verdict(is_met: bool, target: object) -> str:
    return f"{'meets' if is_met else 'MISSES'} {target}"


def plot(path: Path, size: tuple[float, float], panels: list[tuple],
         base: int = 2) -> None:
    """A panel is (title, kind, lines), its lines (label, style, {clients:
    value}); the kind is "linear", "log" or the highest value."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure, all_axes = plt.subplots(1, len(panels), figsize=size)
    for axes, (title, kind, lines) in zip(all_axes, panels):
        for label, style, points in lines:
            axes.plot(list(points), list(points.values()), style, label=label)
        counts = sorted({count for _, _, points in lines for count in points})
        axes.set_xscale("log", base=base)
        axes.set_xticks(counts, [f"{count:,}" for count in counts])
        axes.minorticks_off()
        axes.set_xlabel("clients")
        axes.set_title(title)
        axes.grid(alpha=0.3)
        if kind == "log":
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
        else:
            axes.set_ylim(0, None if kind == "linear" else kind)
        if len(lines) > 1:
            axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def plot_cycles(path: Path, lines: list[tuple[str, str, dict[int, Runs]]]) -> None:
    """Cycles and p99 over numbers of clients."""
    def each(value: Value, unit: float = 1) -> list[tuple]:
        return [(label, style, {count: found.median(value) / unit
                                for count, found in sorted(by.items()) if found})
                for label, style, by in lines]
    plot(path, (10, 4), [
        ("acquire + release, cycles/s", "linear", each("cycles_per_s")),
        ("p99 of a cycle, ms", "log", each("p99_us", 1000))])
