"""What a batch of 100 extends costs redlockd beside 100 single ones.

PAIRS times (7), in turns, ROUNDS (40) of both: CPU time of the server, by
/proc. Single extends come one after the other on one connection, or each on a
connection of its own, all at once.
"""
from __future__ import annotations

import statistics
from collections.abc import Callable

from measure import Results, setting, pairs
from stack import Client, Stack

ROUNDS = int(setting("ROUNDS", 40))
LOCKS, MOST = 100, 0.25


def extend(client: Client, lock: dict[str, str]) -> None:
    client.send("PUT", f"/locks/{lock['id']}/extend", {"token": lock["token"]})


def measure(stack: Stack, results: Results, is_short: bool) -> None:
    port = stack.start_server(0)
    clients = [Client(port) for _ in range(LOCKS)]
    one = clients[0]
    granted = [one.acquire(f"held:{number}") for number in range(LOCKS)]
    locks = [{name: lock[name] for name in ("id", "token")} for lock in granted]
    operations = [{"operation": "extend"} | lock for lock in locks]

    def in_turn() -> None:
        for lock in locks:
            extend(one, lock)
            one.expect(200)

    def at_once() -> None:
        for client, lock in zip(clients, locks):
            extend(client, lock)
        for client in clients:
            client.expect(200)

    def batch() -> None:
        one.send("POST", "/batch", {"operations": operations})
        answers = one.expect(200)["results"]
        if not all(answer["status"] == 200 for answer in answers):
            raise RuntimeError(f"not extended: {answers}")

    def cost_us(ask: Callable[[], None]) -> float:
        """Of a round."""
        before = stack.cpu_s(0)
        for _ in range(ROUNDS):
            ask()
        return (stack.cpu_s(0) - before) / ROUNDS * 1e6

    found: dict[str, list[float]] = {}
    for _ in pairs(1 if is_short else 7):
        for ask in (in_turn, batch, at_once):
            found.setdefault(ask.__name__, []).append(cost_us(ask))
    cost = {name: statistics.median(values) for name, values in found.items()}
    for name, words in (("in_turn", "in turn"), ("at_once", "at once")):
        ratio = cost["batch"] / cost[name] if cost[name] else 1
        results.check(
            f"{LOCKS} extends {words}: {cost[name]:.0f} µs of redlockd, a "
            f"batch {cost['batch']:.0f} µs: {ratio:.2f}",
            ratio <= (1 if is_short else MOST))


SCENES = {"batch": measure}
