# SPDX-License-Identifier: MIT
"""What an operator changes while all goes on, and how he errs: a name moves to
another machine, limits change, servers are restarted one after the other; some
have a wrong address for a while, or a server with a wrong configuration runs
beside them, which clients ask as well. See Change nodes or limits in
docs/operations.md.
"""
from __future__ import annotations

import json
import random
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from cluster import NAMES, Cluster, Server
from history import (ACQUIRE, RELEASE, SECOND, Call, History, Span, Violation,
                     now)
from jobs import Job
from memory import until
from nodes import STATE, Node
from plan import (MAX_TTLS_MS, MISTAKES, NODES, OTHER_NAMES, SERVERS,
                  Fault)
from processes import end
from strikes import Strikes
from wants import Want, lock_id

READY_S = 5         # for which the next server waits, if it has to
GENTLE_S = 1.5      # in which a server that is asked to end mostly does so
DRAIN_S = 20        # in which it always does, see docs/operations.md
DIED_S = 4          # in which it is noticed that one died
UNDISTURBED_S = 3
WRONG_EPOCHS = (1, 19)  # ahead: the next one, and one that is none
TTLS_MS = (200, 2000)  # each server allows them


@dataclass(frozen=True)
class Mistake:
    """How the server beside the others is configured."""
    places: tuple[int, ...]  # to which the names lead
    ahead: int = 0  # of the epoch that the servers have
    names: str = NAMES
    takes_over: bool = False  # by the word that the old servers are stopped


def mistake(kind: str, places: list[int], rng: random.Random) -> Mistake:
    """places: to which the names should lead."""
    wrong = list(places)
    strangers = [2 * NODES, 2 * NODES + 1, 2 * NODES + 2]
    if kind == "wrong-epoch":
        return Mistake(tuple(wrong), rng.choice(WRONG_EPOCHS))
    if kind in OTHER_NAMES:
        return other_names(kind, places, rng)
    if kind == "swapped":
        one, two = rng.sample(range(NODES), 2)
        wrong[one], wrong[two] = wrong[two], wrong[one]
        return Mistake(tuple(wrong))
    count = 1 if kind == "wrong-address" else 3
    for name, place in zip(rng.sample(range(NODES), count), strangers):
        wrong[name] = place
    return Mistake(tuple(wrong))


def other_names(kind: str, places: list[int], rng: random.Random) -> Mistake:
    """Fewer of the old names than a majority, or a majority of both lists; the
    others are new machines."""
    if kind == "new-names":
        count = rng.choice((3, 4))
        fresh = rng.choice((0, 1, 2)) if count == 3 else 1
    else:
        count = rng.choice((1, 2, 2))
        fresh = rng.choice((2, 3)) if count == 1 else rng.choice((1, 2, 3))
    kept = sorted(rng.sample(range(NODES), count))
    strangers = tuple(range(2 * NODES, 2 * NODES + fresh))
    return Mistake(tuple(places[name] for name in kept) + strangers, 1,
                   "".join(NAMES[name] for name in kept) + "xyz"[:fresh],
                   kind == "take-over")


def limit_ms(fault: Fault, limits_ms: tuple[int, ...]) -> int:
    """That all servers are to have, no greater than what some have had."""
    allowed = [one for one in MAX_TTLS_MS if one <= max(limits_ms)]
    return allowed[int(fault.amount * len(allowed))]


def ended(server: Server, status: int,
          was_up: bool = True) -> list[Violation]:
    """What is wrong about how a server ended that got SIGTERM. Below zero: by
    that signal; -9: it had to be killed, as it did not end. One that has just
    been started may not yet expect the signal."""
    if status == 0 or (status == -signal.SIGTERM and not was_up):
        return []
    text = f"{server.name} ended with {status} on SIGTERM"
    return [Violation("alive", f"{text}; {server.last_line()}", now())]


class Misled(Job):
    """A client of the mistaken server: it wants what the others want, and does
    not keep it for long."""

    def __init__(self, cluster: Cluster, history: History,
                 names: list[str]) -> None:
        super().__init__(name="misled client")
        self.server, self.history = cluster.mistaken, history
        self.names, self.rng = names, random.Random(len(history.spans))
        self.connection = cluster.visit(self.server)
        self.head = cluster.head()
        self.stop = threading.Event()
        self.granted = 0

    def work(self) -> None:
        while not self.stop.wait(0.01):
            if self.server.listens():
                break
        while not self.stop.wait(self.rng.uniform(0.001, 0.05)):
            self._cycle()
        self.connection.close()

    def _cycle(self) -> None:
        names = (self.rng.choice(self.names),)
        call = Call(ACQUIRE, -1, SERVERS, names, self.rng.randint(*TTLS_MS))
        call.of = call.id
        want = Want(names, "", "")
        members = self._ask(call, want.head(), json.dumps(want.body(call)))
        if not call.is_won:
            return
        self.granted += 1
        self.stop.wait(self.rng.uniform(0, 0.1))
        if self.rng.random() < 0.2:
            return  # it has to end by itself
        release = Call(RELEASE, -1, SERVERS, names)
        release.of, release.number = call.id, call.number
        self._ask(release, f"DELETE /locks/{lock_id(names)} HTTP/1.1\r\n"
                  f"X-Lock-Token: {members['token']}\r\n")

    def _ask(self, call: Call, head: str, body: str = "") -> dict:
        call.sent = now()
        self.history.add(call)
        return self.connection.request(call, head + self.head, body.encode())


class Changes(Strikes):
    quarantine_s: float

    def __init__(self, cluster: Cluster, history: History,
                 names: list[str]) -> None:
        """names: of resources that clients want."""
        super().__init__(cluster, history)
        self.resources = names
        self.epoch = 1  # of the configuration
        self.killed: dict[int, Span] = {}  # servers that are down
        self.restarting: list[Span] = []
        self.violations: list[Violation] = []

    # ---- names and limits ---------------------------------------------------

    def move(self, fault: Fault) -> Iterator[None]:
        """A name leads to another machine: to an empty one, or to that which it
        had before, with all that this one knew, or as it has gone on. What it
        has left is dead already, or stopped, or goes on."""
        old = self.cluster.nodes[fault.target]
        new = self.cluster.other_machine(fault.target)
        if not new.child:
            if not fault.way:
                new.wipe()
            new.start()
        new.wait_until_ready()
        if fault.amount < 0.3:
            old.kill()
        first, *others = self._order(fault)
        self._lead(first, new)
        self._restart(first, fault)
        yield
        for server in others:
            yield from self._wait_until_ready(self.cluster.servers[first])
            self._lead(server, new)
            self._restart(server, fault)
            first = server
        self.cluster.nodes[fault.target] = new
        if fault.amount < 0.7:
            old.kill()

    def astray(self, fault: Fault) -> Iterator[None]:
        """One server, or two, lead a name to an empty machine for a while."""
        node = self.cluster.nodes[fault.target]
        servers = self._order(fault)[:1 if fault.amount < 0.5 else 2]
        wrong = self.cluster.other_machine(fault.target)
        wrong.kill()
        wrong.wipe()
        wrong.start()
        wrong.wait_until_ready()
        for server in servers:
            self._lead(server, wrong)
            self._restart(server, fault)
        yield
        for server in servers:
            self._lead(server, node)
            self._restart(server, fault)
        wrong.kill()

    def limits(self, fault: Fault) -> Iterator[None]:
        """Clients ask for no more than the lower one before a server has it,
        and for the higher one when it has that."""
        limit = limit_ms(fault, self.cluster.config.max_ttls_ms)
        asked = self.cluster.max_ttls_ms
        for server in range(SERVERS):
            asked[server] = min(asked[server], limit)
        yield
        for server in self._order(fault):
            self.cluster.servers[server].max_ttl_ms = limit
            self._restart(server, fault)
            yield from self._wait_until_ready(self.cluster.servers[server])
            asked[server] = limit

    @staticmethod
    def _order(fault: Fault) -> list[int]:
        """In which the servers are restarted."""
        rng = random.Random(fault.begin)
        return rng.sample(range(SERVERS), SERVERS)

    def _lead(self, server: int, machine: Node) -> None:
        self.cluster.servers[server].places[machine.index] = machine.place

    def _restart(self, server: int, fault: Fault) -> None:
        self._kill_server(server, is_gentle=int(fault.begin * 1000) % 2 == 0)
        self._start_server(server)

    def _wait_until_ready(self, server: Server) -> Iterator[None]:
        return until(server.is_ready, READY_S * SECOND)

    def _kill_server(self, server: int, is_gentle: bool = False) -> None:
        span = Span("killed", f"server {server}", server=server)
        self.history.spans.append(span)
        self.killed[server] = span
        one = self.cluster.servers[server]
        if (status := one.died()) is not None:
            self._report("alive", f"{one.name} ended with {status}; "
                         f"{one.last_line()}")
        elif is_gentle and one.child:
            was_up = one.listens()
            one.signal(signal.SIGTERM)
            if (status := one.wait(GENTLE_S)) is not None:
                self.violations += ended(one, status, was_up)
        one.kill()

    def note_death(self, server: Server) -> None:
        """Of one that nobody asked to end, if we still took it for alive."""
        text = f"{server.name} ended with {server.died()}; {server.last_line()}"
        self.violations.append(Violation("alive", text, now()))
        span = Span("died", text, now() - DIED_S * SECOND, server=server.index)
        self.history.spans.append(span)
        self.killed[server.index] = span
        server.child = None
        self._start_server(server.index)

    def server_term(self, fault: Fault) -> Iterator[None]:
        """SIGTERM at any moment: it drains, and ends with 0."""
        server = self.cluster.servers[fault.target]
        span = Span("killed", f"server {fault.target}", server=fault.target)
        self.history.spans.append(span)
        self.killed[fault.target] = span
        was_up = server.listens()
        child, server.child = server.child, None
        assert child
        child.terminate()
        yield
        yield from until(lambda: child.poll() is not None, DRAIN_S * SECOND)
        status = child.poll()
        end(child)
        self.violations += ended(server, -9 if status is None else status,
                                 was_up)
        self._start_server(fault.target)

    def _start_server(self, server: int) -> None:
        self.cluster.servers[server].start()
        self.restarting.append(self.killed.pop(server))

    # ---- mistakes -----------------------------------------------------------

    def wrong_epoch(self, fault: Fault) -> Iterator[None]:
        return self._mistake(fault, fault.kind)

    wrong_address = wrong_addresses = swapped = wrong_epoch

    def _mistake(self, fault: Fault, kind: str) -> Iterator[None]:
        """The server is there until the generator goes on."""
        places = [node.place for node in self.cluster.nodes]
        it = mistake(kind, places, random.Random(fault.begin))
        server, strangers = self.cluster.mistaken, self.cluster.strangers
        for place in set(it.places) - set(places):
            self.cluster.machines[place].wipe()
            self.cluster.machines[place].start()
        server.places, server.names = list(it.places), it.names
        server.extra = [*self.cluster.extra, *self._epoch(it.ahead)]
        if it.takes_over:
            server.extra.append(self._word(it.ahead))
        client = Misled(self.cluster, self.history, self.resources)
        server.start()
        client.start()
        try:
            yield
        finally:
            client.stop.set()
            client.join(10)
            self.done[f"{kind} granted"] += client.granted
            if (status := server.died()) is not None:
                self._report("alive", f"a mistaken server ended with {status}")
            server.kill()
            for machine in strangers:
                machine.kill()

    def _epoch(self, ahead: int = 0) -> list[str]:
        """Options of a server."""
        epoch = self.epoch + ahead
        return ["--config-epoch", str(epoch)] if epoch > 1 else []

    def _word(self, ahead: int = 0) -> str:
        """The option that says that the old servers are stopped."""
        return f"--take-over={self.epoch + ahead}"

    def undisturbed(self, fault: Fault) -> Iterator[None]:
        """Where nothing else is wrong, no mistake takes a node's vote, not even
        for a moment: each has the admission that it had, and no machine has
        its name."""
        yield
        order = random.Random(fault.begin).sample(MISTAKES, len(MISTAKES))
        for kind in order:
            if not (yield from self._wait_until_whole()):
                self.done["undisturbed not whole"] += 1
                return
            before = self._births()
            mistaken = self._mistake(fault, kind)
            next(mistaken)
            yield from until(lambda: False, UNDISTURBED_S * SECOND)
            self._compare(kind, before, self._births())
            next(mistaken, None)

    def _compare(self, kind: str, before: dict[str, str],
                 after: dict[str, str]) -> None:
        self.done["undisturbed met"] += 1
        for name in sorted(before.keys() | after.keys()):
            one, two = before.get(name), after.get(name)
            if one != two:
                self._report("undisturbed", f"{kind}: {name} was {one}, and "
                             f"became {two}")

    def _births(self) -> dict[str, str]:
        """Epoch, configuration, name and incarnation of each node's admission; and the
        latest incarnation under each name that any node was told."""
        found: dict[str, str] = {}
        for node, name in zip(self.cluster.nodes, NAMES):
            lines = self._ask(node, "HGETALL", STATE).decode().split("\r\n")
            words = lines[2::2]
            fields = dict(zip(words[::2], words[1::2]))
            admit = fields.get("admit", "").split(":")
            found[f"the admission of node {name}"] = ":".join(admit[:4])
            for field, incarnation in fields.items():
                if field.startswith("w:m"):
                    told = f"the latest incarnation of {field[3:]}"
                    found[told] = max(incarnation, found.get(told, ""))
        return found

    def _report(self, invariant: str, text: str) -> None:
        self.violations.append(Violation(invariant, text, now()))
