# SPDX-License-Identifier: MIT
"""Scenes that run two sides or more in turns, case by case, over the same nodes.
Each is a class, SCENES names it, and its table has a row for each case; CLIENTS
says how many clients there are.

  options    redlockd with OPTIONS and without: what they cost
  readers    shared locks beside exclusive ones: load.c with -s and without. Each
             client has a lock of its own; in the last row all readers have one
  permits    permits of a pool beside ordinary locks: contention.c with a pool and
             without. A round is an acquire of slots or a query of which are free
  collected  clients of one process whose calls are collected into batches, as the
             packages do it, beside a request for each call; LINES says how many
             requests may be under way at a time. First the load generator shows
             that it notices answers that are wrong
  tls        TLS beside plain HTTP; then what HANDSHAKES (1000) whole handshakes
             cost the server, with an ECDSA key and with an RSA one
  flood      eight clients alone, and beside 20,000 acquires a second of an identity
             that may make 100, over FLOODERS (32 1000) connections; then 64
             clients with and without an auth file
  fsync      redlockd on nodes that sync each write to the disk, beside what such
             nodes can do at most: redis-benchmark sends bare SETs to one of them,
             and to all five at once, with as many clients each
"""
from __future__ import annotations

import os
import shlex
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import spoiled
from measure import (CPUS, Run, Runs, TOOLS, around, certified, costs,
                     cpu_per_counted, cpu_per_cycle, in_turns, load, numbers, output, pairs, pids,
                     server_pids, setting, show, start_guarded, values, verdict,
                     words)
from processes import cpu_us, end, spawn
from stack import NODES, Stack, metric, started


class Beside:
    cases: list[Any] = [""]
    sides: list[str]
    times, seconds = 3, 2.0  # unless PAIRS and SECONDS_RUN say otherwise
    log_level, node_options = "warn", ()
    is_named = True          # the first column is

    def __init__(self) -> None:
        self.seconds = setting("SECONDS_RUN", self.seconds)

    @property
    def clients(self) -> int:
        return int(setting("CLIENTS", 64))

    def sides_of(self, case: Any) -> list[str]:
        return self.sides

    def start(self, stack: Stack) -> None:
        """The servers."""
        self.stack, self.port = stack, stack.start_server(0)

    def run(self, case: Any, what: str, pair: int) -> Run:
        raise NotImplementedError

    def more(self) -> Iterator[Run]:
        """What is measured besides."""
        yield from ()

    def play(self) -> Iterator[Run]:
        with started(*self.node_options, log_level=self.log_level) as stack:
            self.start(stack)
            for pair in pairs(self.times):
                for case in self.cases:
                    for what in in_turns(self.sides_of(case), pair):
                        yield {"pair": pair, "case": case, "what": what,
                               **self.run(case, what, pair)}
            yield from self.more()

    def row(self, case: Any, *sides: Runs) -> dict[str, str]:
        raise NotImplementedError

    def rows(self, runs: Runs) -> list[dict[str, str]]:
        return [self.row(case, *(runs.of(case=case, what=what)
                                 for what in self.sides))
                for (case,) in runs.each("case")]

    def tell(self, runs: Runs, _: Path, is_markdown: bool) -> bool:
        show(self.rows(runs), is_markdown, self.is_named)
        return True


class Options(Beside):
    sides, seconds = ["without", "with"], 5.0

    def start(self, stack: Stack) -> None:
        options = [], shlex.split(os.environ.get("OPTIONS", ""))
        self.stack, self.ports = stack, [
            stack.start_server(server, "--drain-ms", "0", *more)
            for server, more in enumerate(options)]

    def run(self, _: Any, what: str, pair: int) -> Run:
        server = self.sides.index(what)
        return output(*load(self.ports[server], self.clients, self.seconds,
                            *costs(server=pids([self.stack.servers[server]]))))

    def rows(self, runs: Runs) -> list[dict[str, str]]:
        lacking, having = (runs.of(what=what) for what in self.sides)
        return [{"": name, "without": lacking.text(value, digits, unit),
                 "with": having.text(value, digits, unit),
                 "ratio": f"{having.ratio(lacking, value):.3f}"}
                for name, value, digits, unit in (
                    ("cycles_per_s", "cycles_per_s", 0, 1),
                    ("p99_ms", "p99_us", 2, 1000),
                    ("cpu_us_per_cycle", cpu_per_cycle("server"), 1, 1))]


class Readers(Beside):
    cases = ["one", "few", "many", "many of one lock"]
    sides = ["readers", "writers"]

    def count(self, case: str) -> int:
        return {"one": 1, "few": 8}.get(case, self.clients)

    def run(self, case: str, what: str, pair: int) -> Run:
        used = costs(nodes=pids(self.stack.nodes), server=server_pids(self.stack))
        options = ["-s"] * (what == "readers")
        if options and case == "many of one lock":
            options += ["-r", "bench:readers"]
        return output(*load(self.port, self.count(case), self.seconds, *used,
                            *options))

    def row(self, case: str, *sides: Runs) -> dict[str, str]:
        readers, writers = sides

        def ratio(value) -> str:
            return f"{readers.ratio(writers, value):.2f}"
        return {"readers": case, "clients": str(self.count(case)),
                "cycles/s": readers.text("cycles_per_s"),
                "÷ writers": ratio("cycles_per_s"),
                "redlockd's CPU": ratio(cpu_per_cycle("server")),
                "nodes' CPU": ratio(cpu_per_cycle("nodes"))}


class Permits(Beside):
    sides, log_level = ["permits", "locks"], ""

    def __init__(self) -> None:
        super().__init__()
        many = self.clients
        # clients, locks, slots, hold in µs
        self.of = {
            "full": (many, 10, 10, 5000),
            "busy": (7, 0, 10, 5000),  # nobody has to wait: nothing is compared
            "free, one client": (1, 1, 1000, 0),
            "free": (many, many, 1000, 0)}  # which each releases at once
        self.cases = list(self.of)

    def sides_of(self, case: str) -> list[str]:
        return self.sides[:1 + (self.of[case][1] > 0)]

    def counted(self) -> tuple[float, float]:
        """Grants, and rounds that were needed for them."""
        grants, tries, queries = (
            metric(self.port, f"redlockd_permit_{name}_total ")
            for name in ("grants", "tries", "queries"))
        return grants, tries + queries

    def run(self, case: str, what: str, pair: int) -> Run:
        clients, locks, slots, hold_us = self.of[case]
        grants, rounds = self.counted()
        found = output(f"{TOOLS}/contention", "wait", clients,
                       f"pool:{slots}" if what == "permits" else locks, hold_us,
                       self.seconds, f"127.0.0.1:{self.port}")
        more_grants, more_rounds = self.counted()
        if more_grants > grants:
            found["rounds"] = (more_rounds - rounds) / (more_grants - grants)
        return found

    def row(self, case: str, *sides: Runs) -> dict[str, str]:
        permits, locks = sides

        def ratio(value: str) -> str:
            return f"{permits.ratio(locks, value):.2f}" if locks else ""
        clients, _, slots, _ = self.of[case]
        return {"": case, "clients": str(clients), "slots": str(slots),
                "grants/s": permits.text("grants_per_s"),
                "÷ locks": ratio("grants_per_s"),
                "hand-overs/s": permits.text("handovers_per_s"),
                "fewest ÷ most": permits.text(
                    lambda run: run["fewest"] / (run["most"] or 1), 2),
                "wait p50 ms": permits.ms("wait_p50"),
                "wait ÷ locks": ratio("wait_p50_us"),
                "rounds a grant": permits.text("rounds", 2)}


class Collected(Beside):
    times, log_level, is_named = 7, "error", False

    def __init__(self) -> None:
        super().__init__()
        self.cases = numbers("CLIENTS", "1 8 16 64 256")
        self.sides = ["", *words("LINES", "1 2 4")]

    def start(self, stack: Stack) -> None:
        spoiled.check()
        super().start(stack)

    def run(self, case: int, what: str, pair: int) -> Run:
        used = costs(client=[0], server=server_pids(self.stack),
                     nodes=pids(self.stack.nodes))
        before = self.stack.calls("evalsha")
        found = output(*load(self.port, case, self.seconds, *used,
                             *(["-b", what] if what else [])))
        return {"seconds": self.seconds, **found,
                "commands": self.stack.calls("evalsha") - before}

    def rows(self, runs: Runs) -> list[dict[str, str]]:
        return [self.row_of(runs, *key) for key in runs.each("case", "what")]

    def row_of(self, runs: Runs, case: int, lines: str) -> dict[str, str]:
        each, alone = (runs.of(case=case, what=what) for what in (lines, ""))
        cells = {"clients": str(case),
                 "requests under way": f"{lines} at most" if lines else "of each",
                 "cycles/s": each.text("cycles_per_s"),
                 "ratio": f"{each.ratio(alone, 'cycles_per_s'):.2f}×",
                 "p50 ms": each.ms("p50"), "p99 ms": each.ms("p99")}
        for who in CPUS:
            cells[f"{who}, µs a cycle"] = each.text(cpu_per_counted(who), 1)
        return cells | {"commands to the nodes a cycle": each.text(
            lambda run: run["commands"] / run["cycles"], 2)}

    def tell(self, runs: Runs, path: Path, is_markdown: bool) -> bool:
        super().tell(runs, path, is_markdown)
        return all(run["cycles_per_s"] > 0 for run in runs)


class Tls(Beside):
    sides, seconds, log_level = ["plain", "tls"], 3.0, "error"
    keys = {"ECDSA P-256": ("ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            "RSA 2048": ("rsa:2048",)}

    def start(self, stack: Stack) -> None:
        super().start(stack)
        for server, key in enumerate(self.keys.values(), 1):
            stack.start_server(server, *certified(stack.folder, str(server), *key))

    def run(self, _: Any, what: str, pair: int) -> Run:
        server = self.sides.index(what)
        return around(load(self.stack.server_ports[server], self.clients,
                           self.seconds, *["-t"] * server),
                      server=pids([self.stack.servers[server]]))

    def more(self) -> Iterator[Run]:
        count = int(setting("HANDSHAKES", 1000))
        context = ssl._create_unverified_context()
        for server, name in enumerate(self.keys, 1):
            pid = [self.stack.servers[server].pid]
            before = cpu_us(pid)
            for _ in range(count):
                shake_hands(self.stack.server_ports[server], context)
            yield {"handshake": name, "us": (cpu_us(pid) - before) // count}

    def rows(self, runs: Runs) -> list[dict[str, str]]:
        return [{"": what, "cycles/s": each.text("cycles_per_s"),
                 "p50 ms": each.ms("p50"), "p99 ms": each.ms("p99"),
                 "server, µs a cycle": each.text(cpu_per_cycle("server"))}
                for what in self.sides if (each := runs.of(what=what))]

    def tell(self, runs: Runs, path: Path, is_markdown: bool) -> bool:
        super().tell(runs, path, is_markdown)
        plain, tls = (sum(run["cycles_per_s"] for run in runs.of(what=what))
                      for what in self.sides)
        if plain > 0:
            print(f"tls / plain: {tls / plain:.2f}")
        for (name,) in runs.each("handshake"):
            print(f"handshake {name}: {runs.of(handshake=name).text('us')} us of"
                  " CPU, connection and one request included")
        return True


def shake_hands(port: int, context: ssl.SSLContext) -> None:
    with socket.create_connection(("127.0.0.1", port)) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with context.wrap_socket(plain) as secure:
            secure.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            if not secure.recv(4096).startswith(b"HTTP/1.1 200 "):
                raise RuntimeError("not served over TLS")


class Flood(Beside):
    seconds = 5.0
    most, least = 2, 0.97  # p99 beside a flood to alone; throughput to without

    def __init__(self) -> None:
        super().__init__()
        self.cases = [*numbers("FLOODERS", "32 1000"), "auth"]

    def sides_of(self, case: Any) -> list[str]:
        return ["without", "with"] if case == "auth" else ["alone", "beside"]

    def start(self, stack: Stack) -> None:
        """With an auth file and without."""
        self.stack, self.ports = stack, [
            start_guarded(stack, {"good": "lock", "bad": "lock rate=100"}),
            stack.start_server(1)]

    def run(self, case: Any, what: str, pair: int) -> Run:
        if what == "alone":
            return output(*load(self.ports[0], 8, self.seconds, "-a", "good"))
        if what == "beside":
            return self.flooded(case)
        server = int(what == "without")
        used = costs(server=pids([self.stack.servers[server]]))
        return {"seconds": self.seconds, **output(
            *load(self.ports[server], 64, self.seconds,
                  *["-a", "good"] * (what == "with"), *used))}

    def flooded(self, flooders: int) -> Run:
        flood = subprocess.Popen(
            list(map(str, [*load(self.ports[0], flooders, self.seconds + 1.5, "-f",
                                 "-r", "flood", "-a", "bad"), 20000])),
            stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        run = output(*load(self.ports[0], 8, self.seconds, "-a", "good"))
        of_flood = values(flood.communicate()[0])
        return run | {"sent": of_flood["cycles"], "limited": of_flood["limited"]}

    def tell(self, runs: Runs, _: Path, is_markdown: bool) -> bool:
        for (flooders,) in runs.each("case")[:-1]:
            alone, beside = (runs.of(case=flooders, what=what)
                             for what in self.sides_of(flooders))
            times = beside.ratio(alone, "p99_us")
            print(f"{beside.text('sent')} acquires of the flood were sent,"
                  f" {beside.text('limited')} of them refused")
            print(f"p99 beside {flooders} connections that flood, as a multiple of"
                  f" alone: {times:.2f}: {verdict(times <= self.most, self.most)}")
        lacking, having = (runs.of(what=what) for what in self.sides_of("auth"))
        share = having.ratio(lacking, "cycles_per_s")
        print("the server's CPU time for a cycle with an auth file, as a multiple of"
              f" without: {having.ratio(lacking, cpu_per_counted('server')):.2f}")
        print(f"throughput with an auth file, as a multiple of without: {share:.2f}:"
              f" {verdict(share >= self.least, self.least)}")
        return True


class Fsync(Beside):
    sides, times, seconds = ["one", "redlockd", "five"], 5, 3.0
    log_level, is_named = "error", False
    # no rewriting of the files meanwhile
    node_options = ("--appendonly", "yes", "--appendfsync", "always",
                    "--auto-aof-rewrite-percentage", "0")

    def __init__(self) -> None:
        super().__init__()
        self.cases = numbers("CLIENTS", "1 8 64 256")

    def synced(self, nodes: list[int]) -> int:
        """How often they wrote to their files, each time with an fsync: all their
        writes but those of replies. To be asked of nodes that have nothing to do."""
        count = 0
        for node in nodes:
            text = Path(f"/proc/{self.stack.nodes[node].pid}/io").read_text()
            count += int(text.split("syscw: ")[1].split()[0])
            count -= int(self.stack.info(node, "stats")["total_writes_processed"])
        return count

    def bare(self, clients: int, nodes: list[int]) -> Run:
        """The rate of the slowest node, and the SETs of all of them from the start
        to the end."""
        def times_and_sets() -> list[tuple[float, int]]:
            return [(time.monotonic(), self.stack.calls("set", node))
                    for node in nodes]
        sets = self.stack.calls("set", *nodes)
        children = [spawn("redis-benchmark", "-p", self.stack.ports[node], "-t",
                          "set", "-q", "-c", clients, "-n", 1000000000, "-r",
                          100000, "-d", 64, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) for node in nodes]
        time.sleep(0.5)
        before = times_and_sets()
        time.sleep(self.seconds)
        after = times_and_sets()
        for child in children:
            end(child)
        return {"sets_per_s": min((then[1] - first[1]) / (then[0] - first[0])
                                  for first, then in zip(before, after)),
                "sets": self.stack.calls("set", *nodes) - sets}

    def run(self, case: int, what: str, pair: int) -> Run:
        nodes = [(pair - 1) % NODES] if what == "one" else list(range(NODES))
        before = self.synced(nodes)
        run = output(*load(self.port, case, self.seconds)) \
            if what == "redlockd" else self.bare(case, nodes)
        return {**run, "fsyncs": self.synced(nodes) - before}

    def row(self, case: int, *sides: Runs) -> dict[str, str]:
        one, ours, five = sides

        def calls(run: Run) -> float:
            """A cycle is two."""
            return 2 * run["cycles_per_s"]

        def syncs(run: Run) -> float:
            """Of a cycle, on one node; over the warm-up too."""
            return run["fsyncs"] / NODES / run["cycles"]

        def sets_a_sync(run: Run) -> float:
            return run["sets"] / run["fsyncs"]
        return {"clients": f"{case:,}", "SETs/s, one node": one.text("sets_per_s"),
                "five at once": five.text("sets_per_s"),
                "redlockd, cycles/s": ours.text("cycles_per_s"),
                "calls/s": ours.text(calls),
                "÷ one node": f"{ours.ratio(one, calls, 'sets_per_s'):.2f}",
                "÷ five": f"{ours.ratio(five, calls, 'sets_per_s'):.2f}",
                "p50 ms": ours.ms("p50", 1), "p99 ms": ours.ms("p99", 1),
                "SETs an fsync, one": one.text(sets_a_sync, 1),
                "five": five.text(sets_a_sync, 1),
                "calls an fsync": ours.text(lambda run: 2 / syncs(run), 1),
                "fsyncs a cycle": ours.text(syncs, 3)}


SCENES = {"options": Options, "readers": Readers, "permits": Permits,
          "collected": Collected, "tls": Tls, "flood": Flood, "fsync": Fsync}
