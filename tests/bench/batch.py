# SPDX-License-Identifier: MIT
"""What a batch of 100 operations costs redlockd beside 100 single calls: extends,
and a mix of acquires, extends and releases, as tasks ask for them.

PAIRS times (7), in turns, ROUNDS (40) of both: CPU time of the server, by
/proc. Single calls come one after the other on one connection, or each on a
connection of its own, all at once.
"""
from __future__ import annotations

import statistics
from collections.abc import Callable

from measure import Results, setting, pairs
from stack import Client, Stack

ROUNDS = int(setting("ROUNDS", 40))
OPERATIONS, MOST = 100, 0.25
TTL_MS = 60000
CALLS = {"acquire": ("POST", "", 201), "extend": ("PUT", "/extend", 200),
         "release": ("DELETE", "", 200)}

Operation = dict[str, object]


class Extends:
    """Of locks that are held."""

    def __init__(self, client: Client, count: int = OPERATIONS) -> None:
        granted = [client.acquire(f"held:{number}") for number in range(count)]
        self.operations: list[Operation] = [
            {"operation": "extend", "id": lock["id"], "token": lock["token"]}
            for lock in granted]

    def next(self) -> list[Operation]:
        return self.operations

    def took(self, answers: list[dict]) -> None:
        """What was granted to the acquires."""


class Mix(Extends):
    """A third of each; what a round has acquired, the next one releases."""

    def __init__(self, client: Client) -> None:
        self.part = OPERATIONS // 3
        super().__init__(client, OPERATIONS - 2 * self.part)
        self.number = 0
        self.releases: list[Operation] = []
        self.took([client.acquire(f"first:{number}")
                   for number in range(self.part)])

    def next(self) -> list[Operation]:
        self.number += 1
        acquires = [{"operation": "acquire", "ttl_ms": TTL_MS,
                     "resource": f"fresh:{self.number}:{number}"}
                    for number in range(self.part)]
        return [*acquires, *self.operations, *self.releases]

    def took(self, answers: list[dict]) -> None:
        self.releases = [{"operation": "release", "id": lock["id"],
                          "token": lock["token"]} for lock in answers]


def call(client: Client, operation: Operation) -> None:
    body = dict(operation)
    method, more, _ = CALLS[body.pop("operation")]
    lock = f"/{body.pop('id')}" if "id" in body else ""
    client.send(method, f"/locks{lock}{more}", body)


def answer(client: Client, operation: Operation) -> dict:
    return client.expect(CALLS[operation["operation"]][2])


def measure(what: str, make: Callable[[Client], Extends], stack: Stack,
            results: Results, is_short: bool) -> None:
    port = stack.start_server(0)
    clients = [Client(port) for _ in range(OPERATIONS)]
    one = clients[0]
    rounds = make(one)

    def in_turn(operations: list[Operation]) -> list[dict]:
        answers = []
        for operation in operations:
            call(one, operation)
            answers.append(answer(one, operation))
        return answers

    def at_once(operations: list[Operation]) -> list[dict]:
        for client, operation in zip(clients, operations):
            call(client, operation)
        return list(map(answer, clients, operations))

    def batch(operations: list[Operation]) -> list[dict]:
        one.send("POST", "/batch", {"operations": operations})
        answers = one.expect(200)["results"]
        if not all(each["status"] < 300 for each in answers):
            raise RuntimeError(f"refused: {answers}")
        return [each.get("grant", {}) for each in answers]

    def cost_us(ask: Callable[[list[Operation]], list[dict]]) -> float:
        """Of a round."""
        before = stack.cpu_s(0)
        for _ in range(ROUNDS):
            operations = rounds.next()
            answers = ask(operations)
            rounds.took([got for asked, got in zip(operations, answers)
                         if asked["operation"] == "acquire"])
        return (stack.cpu_s(0) - before) / ROUNDS * 1e6

    found: dict[str, list[float]] = {}
    for _ in pairs(1 if is_short else 7):
        for ask in (in_turn, batch, at_once):
            found.setdefault(ask.__name__, []).append(cost_us(ask))
    cost = {name: statistics.median(values) for name, values in found.items()}
    for name, words in (("in_turn", "in turn"), ("at_once", "at once")):
        ratio = cost["batch"] / cost[name] if cost[name] else 1
        results.check(
            f"{OPERATIONS} {what} {words}: {cost[name]:.0f} µs of redlockd, a "
            f"batch {cost['batch']:.0f} µs: {ratio:.2f}",
            ratio <= (1 if is_short else MOST))


def extends(stack: Stack, results: Results, is_short: bool) -> None:
    measure("extends", Extends, stack, results, is_short)


def mix(stack: Stack, results: Results, is_short: bool) -> None:
    measure("acquires, extends and releases", Mix, stack, results, is_short)


SCENES = {"extends": extends, "mix": mix}
