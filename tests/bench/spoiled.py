# SPDX-License-Identifier: MIT
"""A lock service in memory, whose answers to batches can be spoiled: shows that
the load generator counts nothing that was not granted or released.
"""
from __future__ import annotations

import itertools
import json
import subprocess
import threading
from collections.abc import Callable

import services
from measure import Run, load, values

Results = list[dict]


def without(member: str) -> Callable[[Results], Results]:
    """Of each grant."""
    def spoil(results: Results) -> Results:
        for result in results:
            result.get("grant", {}).pop(member, None)
        return results
    return spoil


def held(results: Results) -> Results:
    """The first is refused, in words that look like JSON."""
    return [{"status": 409, "problem": {"detail": '} "{ \\'}}, *results[1:]]


# none of these may pass for a batch that went well
SPOILED: dict[str, Callable[[Results], Results]] = {
    "no token": without("token"),
    "no fencing token": without("fencing_token"),
    "a refusal": held,
    "another order": lambda results: results[::-1],
    "one is missing": lambda results: results[:-1],
    "one too many": lambda results: [*results, results[0]],
    "none": lambda results: []}


class Service(services.Service):
    def __init__(self, spoil: Callable[[Results], Results] | None) -> None:
        self.spoil, self.batches = spoil, 0
        self.held: dict[str, str] = {}
        self.numbers = itertools.count(1)
        self.lock = threading.Lock()
        super().__init__(Handler)

    def acquire(self, resource: str) -> tuple[int, str, dict]:
        number = next(self.numbers)
        if resource in self.held:
            return 409, "problem", {"code": "lock_held"}
        self.held[resource] = token = f"{number}.a{{b"
        return 201, "grant", {"id": resource, "resource": resource, "detail":
                              'a "{" \\', "token": token, "fencing_token": number}

    def release(self, resource: str, token: str) -> tuple[int, str, dict]:
        if self.held.get(resource) != token:
            return 404, "problem", {"code": "lock_not_found"}
        del self.held[resource]
        return 200, "release", {"id": resource, "resource": resource,
                                "released": True}

    def play(self, operation: dict) -> dict:
        if operation["operation"] == "acquire":
            status, kind, body = self.acquire(operation["resource"])
        else:
            status, kind, body = self.release(operation["id"], operation["token"])
        return {"status": status, kind: body}


class Handler(services.Handler):
    server: Service

    def tell(self, status: int, body: object) -> None:
        self.answer(status, json.dumps(body, separators=(",", ":")))

    def do_DELETE(self) -> None:
        with self.server.lock:
            status, _, body = self.server.release(
                self.path.removeprefix("/locks/"), self.headers["X-Lock-Token"])
        self.tell(status, body)

    def do_POST(self) -> None:
        asked = json.loads(self.body())
        server = self.server
        with server.lock:
            if self.path == "/locks":
                status, _, body = server.acquire(asked["resource"])
                self.tell(status, body)
                return
            results = [server.play(one) for one in asked["operations"]]
            server.batches += 1
        self.tell(200, {"results": server.spoil(results) if server.spoil
                        else results})


def run(spoil: Callable[[Results], Results] | None) -> tuple[Run, Service]:
    with Service(spoil) as service:
        done = subprocess.run(
            list(map(str, load(service.server_port, 16, 0.05, "-b", 2))),
            check=True, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
    return values(done.stdout), service


def check() -> None:
    """Raises if the load generator does not notice what is wrong."""
    good, service = run(None)
    if good["failures"] or not good["cycles_per_s"] or not service.batches or \
            service.held:
        raise RuntimeError(f"not spoiled: {good}, left: {service.held}")
    for what, spoil in SPOILED.items():
        found, _ = run(spoil)
        if not found["failures"]:
            raise RuntimeError(f"{what}: not noticed: {found}")
