#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Clients that work through all drills, in a process of their own, so that they
can be stopped with all others.

  clients.py PORT…

Some hold a lock and extend it, some acquire and release, some wait for one that
the others have. Whatever fails is asked again at the next server. What happened
is printed, a line of JSON each, with times of CLOCK_MONOTONIC in seconds:

  {"ask": "acquire", "status": 201, "code": "", "from": 1.0, "to": 1.1}
  {"hold": "queue", "fence": 7, "from": 1.1, "to": 1.4}     never longer than valid
  {"lost": "held:1", "why": "404 not_found", "at": 1.3}     while it was valid
"""
from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
from stack import ask

TTL_MS = 5000
EXTEND_S = 1.0
PAUSE_S = 0.05
PATIENCE_S = 0.1  # before a server is asked again

printing = threading.Lock()


def tell(**what: object) -> None:
    with printing:
        print(json.dumps(what), flush=True)


class Client:
    def __init__(self, number: int, ports: list[int]) -> None:
        self.number, self.ports, self.turn = number, ports, number

    def once(self, call: str, *request: object) -> tuple[int, dict, float]:
        """At the server whose turn it is; the next turn is another one's if it
        failed. Returns when it was asked, too."""
        port = self.ports[self.turn % len(self.ports)]
        began = time.monotonic()
        status, answer = ask(port, *request)  # type: ignore[arg-type]
        is_failed = status == 0 or status >= 500
        tell(ask=call, status=status, code=answer.get("code", ""),
             **{"from": began, "to": time.monotonic()})
        if is_failed:
            self.turn += 1
            if self.turn % len(self.ports) == self.number % len(self.ports):
                time.sleep(PATIENCE_S)
        return status, answer, began

    def acquire(self, resource: str, wait_ms: int = 0) -> tuple[dict, float]:
        """Returns the lock, and until when it is certainly valid."""
        body = {"resource": resource, "ttl_ms": TTL_MS}
        if wait_ms:
            body["wait_ms"] = wait_ms
        while True:
            status, lock, began = self.once("acquire", "POST", "/locks", body)
            if status == 201:
                # a wait does not count: validity_ms begins behind it
                waited_s = lock.get("waited_ms", 0) / 1000
                return lock, began + waited_s + lock["validity_ms"] / 1000
            if status == 409:
                time.sleep(PAUSE_S)

    def extend(self, lock: dict, until: float) -> float:
        """Until when it is valid now; 0: it is lost."""
        while time.monotonic() < until:
            status, answer, began = self.once(
                "extend", "PUT", f"/locks/{lock['id']}/extend",
                {"ttl_ms": TTL_MS}, {"X-Lock-Token": lock["token"]})
            if status == 200:
                return began + answer["validity_ms"] / 1000
            if status in (404, 409) and time.monotonic() < until:
                tell(lost=lock["id"], why=f"{status} {answer.get('code')}",
                     at=time.monotonic())
                return 0
        tell(lost=lock["id"], why="it could not be extended in time",
             at=time.monotonic())
        return 0

    def release(self, lock: dict) -> None:
        for _ in range(2 * len(self.ports)):
            status, _, _ = self.once("release", "DELETE",
                                     f"/locks/{lock['id']}", None,
                                     {"X-Lock-Token": lock["token"]})
            if status in (200, 404, 409):
                return

    # ---- what they do

    def hold(self) -> None:
        resource = f"held:{self.number}"
        while True:
            lock, until = self.acquire(resource)
            while until:
                tell(hold=resource, fence=lock["fencing_token"],
                     **{"from": time.monotonic(), "to": until})
                time.sleep(EXTEND_S)
                until = self.extend(lock, until)

    def cycle(self) -> None:
        count = 0
        while True:
            count += 1
            lock, _ = self.acquire(f"cycle:{self.number}:{count % 100}")
            self.release(lock)
            time.sleep(PAUSE_S)

    def queue(self) -> None:
        while True:
            lock, until = self.acquire("queue", 2000)
            began = time.monotonic()
            time.sleep(PAUSE_S)
            tell(hold="queue", fence=lock["fencing_token"],
                 **{"from": began, "to": min(until, time.monotonic())})
            self.release(lock)


def main() -> None:
    ports = [int(port) for port in sys.argv[1:]]
    kinds: list[Callable[[Client], None]] = [Client.hold, Client.cycle,
                                             Client.queue]
    threads = []
    for number in range(6):
        client = Client(number, ports)
        threads.append(threading.Thread(target=kinds[number // 2],
                                        args=[client], daemon=True))
        threads[-1].start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
