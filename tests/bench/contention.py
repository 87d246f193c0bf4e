# SPDX-License-Identifier: MIT
"""Clients that want the same locks: they wait in redlockd, or poll. On one server
and on two, in turns; beside one client alone, whose requests show the round trip.
CLIENTS, HOLDS_US, MODES and SERVERS change what is run; CLIENTS_TWO: how many
clients besides, on two servers; CLIENTS_EIGHT: how many on eight locks.

A hand-over is a grant to another client than the one that had the lock before:
of clients that poll, the one that has just released mostly gets it again. What
a grant costs is told for servers and nodes in all, but for batches and commands
of each node; commands include those that scripts call.

The round trip is the p50 of one client's requests while nobody else wants the
lock, the mean of that of POST and of DELETE. It depends on the pause between
requests: after 1 ms all processes sleep, and wake up more slowly. So there is
one for each hold time, and the ideal is 1 / (hold + the round trip at that
hold).
"""
from __future__ import annotations

from collections.abc import Iterator

from measure import (Path, Run, Runs, TOOLS, around, setting, numbers, pairs,
                     pids, plot, show, verdict, words)
from stack import NODES, Stack, metric, started

SECONDS = setting("SECONDS_RUN", 2)
MODES = words("MODES", "wait 100-200 10-10")
ROUNDS = 'redlockd_round_duration_seconds_count{operation="acquire"}'
IDEAL_LEAST = 0.8       # of the ideal: 16 clients, 1 ms, one server
FAIR_LEAST = 0.95       # fewest ÷ most there
CROSS_MOST = 10         # round trips from one server to another
CROSS_FAIR_LEAST = 0.5  # fewest ÷ most on two servers
NAMES = {"wait": "wait_ms", "10-10": "polls, 10 ms",
         "100-200": "polls, 100–200 ms"}
CASE = ("servers", "resources", "hold_us", "clients")


# ---- what is run ------------------------------------------------------------

class Play:
    """Two servers of each kind: whoever polls has some of its own, whose nodes
    no longer announce anything for those that waited before."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        polls = ("--key-prefix", "polls:")
        for server in range(4):
            stack.start_server(server, *polls if server > 1 else ())

    def asked(self, ports: list[int]) -> tuple[int, int, float]:
        """Of the nodes: batches, and all commands, those of scripts too; and
        the acquires that were sent to them."""
        commands = sum(int(self.stack.info(node, "stats")
                           ["total_commands_processed"]) for node in range(NODES))
        return (self.stack.calls("evalsha"), commands,
                sum(metric(port, ROUNDS) for port in ports))

    def run(self, used: range, command: list, **labels: object) -> Run:
        ports = [self.stack.server_ports[server] for server in used]
        addresses = [f"127.0.0.1:{port}" for port in ports]
        before = self.asked(ports)
        run = around(command + addresses * (command[0] != "sleep"),
                     server=pids([self.stack.servers[one] for one in used]),
                     nodes=pids(self.stack.nodes))
        more = (after - was for was, after in zip(before, self.asked(ports)))
        return {**labels, **run, **dict(zip(("batches", "commands", "rounds"),
                                            more))}

    def contend(self, mode: str, pair: int, servers: int, resources: int,
                hold_us: int, clients: int, what: str = "") -> Run:
        first = 0 if mode in ("wait", "0-0") else 2
        used = 1 if what == "alone" else servers
        return self.run(
            range(first, first + used),
            [f"{TOOLS}/contention", mode, clients, resources, hold_us, SECONDS],
            pair=pair, mode=what or mode, servers=servers, resources=resources,
            hold_us=hold_us, clients=clients)

    def in_turns(self, pair: int, *case: int) -> Iterator[Run]:
        first = pair % len(MODES)  # each is so once: what grows hits all
        for mode in MODES[first:] + MODES[:first]:
            yield self.contend(mode, pair, *case)


def play() -> Iterator[Run]:
    with started(log_level="error") as stack:
        each = Play(stack)
        yield each.run(range(1), ["sleep", SECONDS], mode="idle")
        for pair in pairs(3):
            for servers in numbers("SERVERS", "1 2"):
                crowds = numbers("CLIENTS", "2 16 128")
                if servers > 1:
                    crowds += numbers("CLIENTS_TWO", "32")
                for hold_us in numbers("HOLDS_US", "0 1000"):
                    yield each.contend("0-0", pair, servers, 1, hold_us, 1,
                                       "alone")
                    for clients in crowds:
                        yield from each.in_turns(pair, servers, 1, hold_us,
                                                 clients)
                for clients in numbers("CLIENTS_EIGHT", "16 128"):
                    yield from each.in_turns(pair, servers, 8, 1000, clients)


# ---- what it shows ----------------------------------------------------------

def per_grant(name: str, share: int = 1):
    return lambda run: run[name] / run["grants"] / share


def fairness(run: Run) -> float:
    return run["fewest"] / run["most"] if run["most"] else 0


def trip_us(run: Run) -> float:
    return (run["wait_p50_us"] + run["release_p50_us"]) / 2


class Case:
    """Some clients of some locks, and one that is alone."""

    def __init__(self, runs: Runs, *case: int) -> None:
        self.servers, self.resources, self.hold_us, self.clients = case
        self.all = runs.of(**dict(zip(CASE, case)))
        self.every = runs

    def of(self, mode: str) -> Runs:
        return self.all.of(mode=mode)

    def alone(self, hold_us: int) -> Runs:
        return self.every.of(mode="alone", servers=self.servers,
                             hold_us=hold_us)

    def ideal(self, mode: str, trips_us: int) -> float:
        """Of the ideal of the same pair of runs; with the round trips at that
        hold."""
        return self.of(mode).ratio(
            self.alone(trips_us),
            lambda run: run["handovers_per_s"] / self.resources,
            lambda trip: 1e6 / (self.hold_us + trip_us(trip)))

    def crossing(self) -> float:
        """A hand-over to the other server, in round trips without a pause."""
        return self.of("wait").ratio(self.alone(0), "cross_p50_us", trip_us)


def tell_trips(runs: Runs) -> None:
    for servers, hold_us in runs.of(mode="alone").each("servers", "hold_us"):
        one = runs.of(mode="alone", servers=servers, hold_us=hold_us)
        print(f"round trip with {hold_us / 1000:g} ms between POST and DELETE,"
              f" beside runs on {servers} server(s): {one.text(trip_us)} µs (POST"
              f" {one.text('wait_p50_us')}, DELETE {one.text('release_p50_us')});"
              f" ideal {one.text(lambda run: 1e6 / (hold_us + trip_us(run)))}"
              " hand-overs/s")
    idle = runs.of(mode="idle")
    print(f"idle servers send the nodes {idle.text('batches')} batches,"
          f" {idle.text('commands')} commands in a run\n")


def row(case: Case, mode: str) -> dict[str, str]:
    runs = case.of(mode)
    wait = {name: runs.ms(f"wait_{name}", 1) for name in ("p50", "p99")}
    return {"": NAMES.get(mode, mode), "servers": str(case.servers),
            "clients": str(case.clients), "locks": str(case.resources),
            "hold ms": f"{case.hold_us / 1000:g}",
            "hand-overs/s": runs.text("handovers_per_s"),
            "grants/s": runs.text("grants_per_s"),
            "of ideal": f"{case.ideal(mode, case.hold_us):.2f}",
            "fewest ÷ most": runs.text(fairness, 2),
            "wait p50 ms": wait["p50"], "p99": wait["p99"],
            "to the same server, p50 ms": runs.ms("same_p50"),
            "to another": runs.ms("cross_p50"),
            "a grant: rounds": runs.text(per_grant("rounds"), 2),
            "batches": runs.text(per_grant("batches", NODES), 2),
            "commands": runs.text(per_grant("commands", NODES), 1),
            "CPU µs: servers": runs.text(per_grant("server_cpu_us")),
            "nodes": runs.text(per_grant("nodes_cpu_us"))}


def judge(what: str, value: float, is_met: bool, target: float,
          more: str = "") -> None:
    print(f"  {what}: {value:.2f}{more}: {verdict(is_met, target)}")


def tell_targets(runs: Runs) -> None:
    """Only of what was run."""
    one = Case(runs, 1, 1, 1000, 16)
    if one.of("wait"):
        rate, fair = one.ideal("wait", 1000), one.of("wait").median(fairness)
        print("16 clients, 1 ms, one server:")
        judge("of the ideal", rate, rate >= IDEAL_LEAST, IDEAL_LEAST,
              f" ({one.ideal('wait', 0):.2f} with the round trip without a"
              " pause)" if one.alone(0) else "")
        judge("fewest ÷ most", fair, fair >= FAIR_LEAST, FAIR_LEAST)
    few, many = (Case(runs, 1, 1, 0, clients).of("wait") for clients in (2, 128))
    if few and many:
        ratio = many.ratio(few, "handovers_per_s")
        print("128 clients, 0 ms, one server:")
        judge("hand-overs/s, to those of 2 clients", ratio, ratio >= 1, 1)
    for hold_us in 0, 1000:
        case = Case(runs, 2, 1, hold_us, 32)
        waits = case.of("wait")
        if not waits or not case.alone(0):
            continue
        trips, fair, rounds = (case.crossing(), waits.median(fairness),
                               waits.median(per_grant("rounds")))
        print(f"16 clients on each of two servers, {hold_us / 1000:g} ms:")
        judge("to the other server", trips, trips <= CROSS_MOST, CROSS_MOST,
              " round trips without a pause")
        judge("fewest ÷ most", fair, fair >= CROSS_FAIR_LEAST, CROSS_FAIR_LEAST)
        judge("acquires sent to the nodes, a grant", rounds,
              rounds <= case.servers, case.servers)


def lines(runs: Runs, value) -> list[tuple]:
    """Over the clients of one lock, each of which holds it for 1 ms."""
    return [(label, style, {
        clients: found.median(value)
        for (clients,) in sorted(runs.of(servers=1, resources=1).each("clients"))
        if (found := Case(runs, servers, 1, 1000, clients).of(mode))})
        for mode, servers, label, style in (
            ("wait", 1, "wait_ms", "-o"), ("wait", 2, "wait_ms, two servers", "-^"),
            ("10-10", 1, "poll every 10 ms", "--x"),
            ("100-200", 1, "poll every 100–200 ms", "--+"))]


def tell(runs: Runs, path: Path, is_markdown: bool) -> None:
    tell_trips(runs)
    cases = [(Case(runs, *case), sorted(set(MODES), reverse=True))
             for case in runs.each(*CASE)]
    show([row(case, mode) for case, modes in cases for mode in modes
          if case.of(mode)], is_markdown, is_named=True)
    tell_targets(runs)
    rates = lines(runs, "handovers_per_s")
    lone = runs.of(servers=1, hold_us=1000, mode="alone")
    if lone:
        ideal = lone.median(lambda run: 1e6 / (1000 + trip_us(run)))
        rates.append(("ideal", ":", dict.fromkeys(rates[0][2], ideal)))
    plot(path, (13, 4), [
        ("hand-overs/s", "linear", rates),
        ("p99 of the wait, ms", "log", lines(
            runs, lambda run: run["wait_p99_us"] / 1000)),
        ("fewest ÷ most grants", 1.05, lines(runs, fairness))])
