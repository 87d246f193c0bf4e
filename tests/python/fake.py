# SPDX-License-Identifier: MIT
"""A server that answers like redlockd, or fails as the test's script says."""
from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import signal
import socket
import ssl
import time
from dataclasses import dataclass
from typing import Any, Callable

import services
from jobs import Job
from waiting import wait_until


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: dict[str, Any]
    connection: tuple[str, int]


Action = Callable[["Handler", Request], None]


# ---- what the script can say, request by request ----------------------------

def usual(handler: Handler, request: Request) -> None:
    """Grants, extends and releases whatever is asked for."""
    if request.method == "DELETE":
        handler.tell(200, {"released": True})
    else:
        status = 201 if request.method == "POST" else 200
        handler.tell(status, handler.server.fake.grant(request))


def grant(**fields: Any) -> Action:
    """A grant or an extend with these fields."""
    def act(handler: Handler, request: Request) -> None:
        handler.tell(201 if request.method == "POST" else 200,
                     {**handler.server.fake.grant(request), **fields})
    return act


def problem(status: int, code: str, **fields: Any) -> Action:
    return lambda handler, _: handler.tell(
        status, {"status": status, "code": code, "detail": code, **fields})


def page(status: int, text: str, **headers: str) -> Action:
    """What is not from redlockd, or not all of it."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler, _: handler.answer(status, text, named)


def knows(*tokens: str) -> Action:
    """As usual for these; 401 for everybody else."""
    def act(handler: Handler, request: Request) -> None:
        text = request.headers.get("authorization", "")
        is_known = text in [f"Bearer {token}" for token in tokens]
        action = usual if is_known else problem(401, "unauthorized")
        action(handler, request)
    return act


def cut(handler: Handler, _: Request) -> None:
    """The connection breaks instead of an answer."""
    handler.break_connection()


def late(seconds: float, action: Action) -> Action:
    def act(handler: Handler, request: Request) -> None:
        time.sleep(seconds)
        action(handler, request)
    return act


def after_release(action: Action) -> Action:
    def act(handler: Handler, request: Request) -> None:
        wait_until(lambda: handler.server.fake.of("DELETE"), "the release")
        action(handler, request)
    return act


def silent(handler: Handler, request: Request) -> None:
    """No answer until the client leaves."""
    while handler.connection.recv(1000):
        pass
    handler.server.fake.left.append(request)
    handler.close_connection = True


def trickle(handler: Handler, _: Request) -> None:
    """An answer that never ends: no timeout of a single read notices."""
    try:
        while True:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: " if not handler.fed
                                else b"x")
            handler.fed = True
            time.sleep(0.02)
    except OSError:
        handler.close_connection = True


# ---- batches ----------------------------------------------------------------

class Item:
    """In place of the handler, for one operation of a batch."""

    def __init__(self, handler: Handler) -> None:
        self.server, self.connection = handler.server, handler.connection
        self.break_connection = handler.break_connection
        self.handler = handler
        self.result: dict[str, Any] = {}

    def tell(self, status: int, body: dict[str, Any]) -> None:
        kind = "problem" if "code" in body else \
            "release" if "released" in body else "grant"
        self.result = {"status": status, kind: body}

    def answer(self, status: int, text: str, *_: Any) -> None:
        self.tell(status, json.loads(text))


def call(operation: dict[str, Any], request: Request) -> Request:
    """The single call that asks for the same."""
    fields = dict(operation)
    kind = fields.pop("operation")
    if kind == "acquire":
        key = fields.pop("idempotency_key")
        return Request("POST", "/locks", {"idempotency-key": key}, fields,
                       request.connection)
    path = f"/locks/{fields.pop('id')}"
    headers = {"x-lock-token": fields.pop("token")}
    method, path = ("PUT", f"{path}/extend") if kind == "extend" else \
        ("DELETE", path)
    return Request(method, path, headers, fields, request.connection)


def clash(calls: list[Request]) -> bool:
    """Two of one lock; ids say nothing here."""
    tokens = [one.headers["x-lock-token"] for one in calls
              if one.method != "POST"]
    seen: dict[str, str] = {}
    for one in calls:
        kind = one.body.get("mode", "") or str("limit" in one.body or "")
        for name in one.body.get("resources") or [one.body.get("resource")]:
            if name and name in seen and not seen[name] == kind != "":
                return True
            seen[name] = kind
    return len(set(tokens)) < len(tokens)


def batch(handler: Handler, request: Request) -> None:
    """Each operation as if it had come alone."""
    calls = [call(one, request) for one in request.body["operations"]]
    if not 0 < len(calls) <= 100 or clash(calls):
        problem(400, "invalid_request")(handler, request)
        return
    results = []
    for one in calls:
        item = Item(handler)
        handler.server.fake.take(one)(item, one)
        results.append(item.result)
    if not handler.close_connection:
        handler.tell(200, {"results": results})


# ---- the server -------------------------------------------------------------

class Handler(services.Handler):
    server: Server
    fed = False

    def serve(self) -> None:
        text = self.body()
        request = Request(
            self.command, self.path,
            {name.lower(): value for name, value in self.headers.items()},
            json.loads(text) if text else {}, self.client_address)
        self.server.fake.take(request)(self, request)

    do_GET = do_POST = do_PUT = do_DELETE = serve

    def tell(self, status: int, body: dict[str, Any]) -> None:
        self.answer(status, json.dumps(body))

    def answer(self, *words: Any) -> None:
        try:
            super().answer(*words)
        except OSError:
            self.close_connection = True  # the client has left

    def break_connection(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


class Server(services.Service):
    def __init__(self, fake: Fake) -> None:
        self.fake = fake
        super().__init__(Handler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self.fake.tls is None:
            super().finish_request(request, client_address)
            return
        with self.fake.tls.wrap_socket(request, server_side=True) as tls:
            super().finish_request(tls, client_address)


class Fake:
    """Follows the scripts of POST, PUT and DELETE, also for the operations of a
    batch, then its `rest` for ever."""

    def __init__(self, tls: ssl.SSLContext | None = None,
                 **fields: int) -> None:
        """fields: of every grant, as ttl_ms."""
        self.tls = tls
        self.fields = fields
        self.scripts: dict[str, list[Action]] = {}
        self.rest: dict[str, Action] = {}
        self.requests: list[Request] = []
        self.batches: list[Request] = []
        self.left: list[Request] = []
        self._numbers = itertools.count(1_795_221_641_865_000)
        self._server = Server(self)
        self.close = self._server.close
        self.url = self._server.url
        if tls:
            self.url = self.url.replace("http:", "https:")

    def on(self, method: str, *actions: Action,
           rest: Action | None = None) -> Fake:
        """BATCH: of whole batches."""
        rest = rest or (batch if method == "BATCH" else usual)
        self.scripts[method] = list(actions)
        self.rest[method] = rest
        return self

    def take(self, request: Request) -> Action:
        """A batch is no request here, but each of its operations is."""
        if request.path == "/batch":
            self.batches.append(request)
            script = self.scripts.get("BATCH")
            return script.pop(0) if script else self.rest.get("BATCH", batch)
        self.requests.append(request)
        script = self.scripts.get(request.method)
        return script.pop(0) if script else \
            self.rest.get(request.method, usual)

    def grant(self, request: Request) -> dict[str, Any]:
        number = next(self._numbers)
        body = {"id": "an~id", "token": f"{number}.0123456789abcdef",
                "fencing_token": number, "elapsed_ms": 0,
                "ttl_ms": min(30000, self.fields.get("validity_ms", 30000)),
                "validity_ms": 29000, "renew_after_ms": 10000, **self.fields}
        if request.method == "PUT":
            body["token"] = request.headers["x-lock-token"]
        if request.body.get("mode") == "shared" or "~" in body["token"]:
            body["token"] = body["token"].replace(".", "~")
            body["mode"] = "shared"
        return body

    def of(self, method: str) -> list[Request]:
        return [one for one in self.requests if one.method == method]


async def eventually(predicate: Callable[[], object], what: str) -> None:
    """As wait_until(), in an event loop."""
    until = time.monotonic() + 20
    while not predicate():
        assert time.monotonic() < until, f"in vain: {what}"
        await asyncio.sleep(0.005)


class WithFake:
    """For test cases: servers of this kind, which end with the test."""

    def setUp(self):
        logging.getLogger("redlockd").setLevel(logging.CRITICAL)

    def fake(self, **fields):
        fake = Fake(**fields)
        self.addCleanup(fake.close)
        return fake

    def interrupt_when(self, *predicates):
        """Each once its moment has come."""
        def interrupt():
            for predicate in predicates:
                wait_until(predicate, "its moment")
                time.sleep(0.05)
                os.kill(os.getpid(), signal.SIGINT)

        # a job in the background ignores it
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        Job(interrupt).start()
