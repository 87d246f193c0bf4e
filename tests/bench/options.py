"""redlockd with OPTIONS and without, in turns over the same nodes: what they
cost. CLIENTS (64) says how many clients there are.
"""
from __future__ import annotations

import shlex
from collections.abc import Iterator

from measure import (Path, Run, Runs, costs, cpu_per_cycle, in_pairs, load,
                     setting, os, output, pids, show)
from stack import started


def play() -> Iterator[Run]:
    clients = int(setting("CLIENTS", 64))
    options = {"without": [],
               "with": shlex.split(os.environ.get("OPTIONS", ""))}
    with started(log_level="warn") as stack:
        ports = [stack.start_server(server, "--drain-ms", "0", *more)
                 for server, more in enumerate(options.values())]

        def run(_: object, what: str) -> Run:
            server = list(options).index(what)
            return output(*load(
                ports[server], clients, setting("SECONDS_RUN", 5),
                *costs(server=pids([stack.servers[server]]))))
        yield from in_pairs(3, [clients], list(options), run)


def tell(runs: Runs, path: Path, is_markdown: bool) -> None:
    having, lacking = runs.of(what="with"), runs.of(what="without")
    show([{"": name, "without": lacking.text(value, digits, unit),
           "with": having.text(value, digits, unit),
           "ratio": f"{having.ratio(lacking, value):.3f}"}
          for name, value, digits, unit in (
              ("cycles_per_s", "cycles_per_s", 0, 1),
              ("p99_ms", "p99_us", 2, 1000),
              ("cpu_us_per_cycle", cpu_per_cycle("server"), 1, 1))],
         is_markdown, is_named=True)
