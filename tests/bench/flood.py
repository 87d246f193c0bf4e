"""What a well-behaved identity notices of one that floods the server: eight
clients alone, and beside 20,000 acquires a second of an identity that may make
100, over FLOODERS (32 1000) connections; then throughput with and without an
auth file, with 64 clients.
"""
from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

from guarded import identity
from measure import (Path, Run, Runs, costs, cpu_per_counted, in_pairs,
                     load, setting, numbers, output, pairs, pids, values,
                     verdict)
from stack import Stack, started

SECONDS = setting("SECONDS_RUN", 5)
MOST, LEAST = 2, 0.97  # p99 beside a flood to alone; throughput to without


def beside(port: int, flooders: int) -> Run:
    flood = subprocess.Popen(
        list(map(str, [*load(port, flooders, SECONDS + 1.5, "-f", "-r", "flood",
                             "-a", "bad"), 20000])),
        stdout=subprocess.PIPE, text=True)
    time.sleep(0.5)
    run = output(*load(port, 8, SECONDS, "-a", "good"))
    of_flood = values(flood.communicate()[0])
    return run | {"sent": of_flood["cycles"], "limited": of_flood["limited"]}


def start(stack: Stack) -> list[int]:
    """With an auth file and without; a token is its identity's name."""
    auth = stack.folder / "auth"
    auth.touch(0o600)
    auth.write_text("".join(f"{identity(name, name, rest)}\n" for name, rest in (
        ("good", "lock"), ("bad", "lock rate=100"))))
    return [stack.start_server(0, "--auth-file", str(auth)),
            stack.start_server(1)]


def play() -> Iterator[Run]:
    with started(log_level="warn") as stack:
        ports = start(stack)
        for flooders in numbers("FLOODERS", "32 1000"):
            for pair in pairs(3):
                labels = {"flooders": flooders, "pair": pair}
                yield {**labels, "what": "alone",
                       **output(*load(ports[0], 8, SECONDS, "-a", "good"))}
                yield {**labels, "what": "beside", **beside(ports[0], flooders)}

        def run(_: object, what: str) -> Run:
            server = int(what == "without")
            token = ["-a", "good"] * (what == "with")
            used = costs(server=pids([stack.servers[server]]))
            return {"seconds": SECONDS,
                    **output(*load(ports[server], 64, SECONDS, *token, *used))}
        yield from in_pairs(3, ["auth"], ["without", "with"], run)


def tell(runs: Runs, path: Path, is_markdown: bool) -> None:
    for (flooders,) in runs.each("flooders"):
        both = runs.of(flooders=flooders)
        flooded = both.of(what="beside")
        times = flooded.ratio(both.of(what="alone"), "p99_us")
        print(f"{flooded.text('sent')} acquires of the flood were sent,"
              f" {flooded.text('limited')} of them refused")
        print(f"p99 beside {flooders} connections that flood, as a multiple of"
              f" alone: {times:.2f}: {verdict(times <= MOST, MOST)}")
    having, lacking = runs.of(what="with"), runs.of(what="without")
    cost = having.ratio(lacking, cpu_per_counted("server"))
    share = having.ratio(lacking, "cycles_per_s")
    print("the server's CPU time for a cycle with an auth file, as a multiple of"
          f" without: {cost:.2f}")
    print(f"throughput with an auth file, as a multiple of without: {share:.2f}:"
          f" {verdict(share >= LEAST, LEAST)}")
