# SPDX-License-Identifier: MIT
"""What one client's lists, waits and readers cost the others.

  lists   clients take and release locks, while 16 others list the locks that
          are held, a thousand a page. Beside it the same load without lists: the
          ratio of their p99s
  shares  one identity lists on 200 connections and waits on 4,000: how long do
          the list and the wait of another one take?
  readers as many readers as may hold 16 locks. Eight clients take and release
          others, alone, and while an identity with rate=20 repeats acquires of
          these 16 with a key, and an operator forces readers by their numbers
  pools   one identity asks for permits with keys on 100 connections, each of a
          pool of a thousand: how long do the permits of another one take, of
          pools of three, of a thousand, and of the same pool? Beside it the
          same without the first one: the ratio of their p99s
"""
from __future__ import annotations

import multiprocessing
import socket
import statistics
import threading
import time
import uuid
from functools import partial

from jobs import at_work, together
from measure import Load, Results, request, setting, start_guarded
from stack import Client, Stack

CLIENTS = int(setting("CLIENTS", 64))
HELD, LISTERS, LISTING, WAITING = 4000, 16, 200, 4000
READERS, NAMES, KEYS, FORCED = 1000, 16, 20, 20
GREEDY, PAUSE_S = 100, 0.03


def list_all(client: Client) -> int:
    """Follows the cursors; returns how many locks were shown."""
    shown, cursor = 0, ""
    while True:
        client.send("GET", f"/locks?page_size=1000{cursor}")
        page = client.expect(200)
        shown += len(page["locks"])
        if page.get("next_cursor") is None:
            return shown
        cursor = f"&cursor={page['next_cursor']}"


def hold(port: int, count: int, token: str = "") -> None:
    client = Client(port, token)
    for number in range(count):
        client.acquire(f"held:{number}")


def lists(stack: Stack, results: Results, is_short: bool) -> None:
    port = stack.start_server(0)
    seconds, held = (2, HELD // 4) if is_short else (8, HELD)
    hold(port, held)
    usual = Load(port, seconds, clients=CLIENTS).end()
    shown: list[int] = []

    def list_on(_: int, has_ended: threading.Event) -> None:
        client = Client(port)
        while not has_ended.is_set():
            shown.append(list_all(client))

    with at_work(list_on, LISTERS):
        time.sleep(0.5)
        busy = Load(port, seconds, clients=CLIENTS).end()
    results.check(f"{len(shown)} lists by {LISTERS} clients, of at least "
                  f"{min(shown, default=0)} locks", min(shown, default=0) >= held)
    results.compare("meanwhile", busy, usual, 3)


def begin_waits(port: int, token: str, count: int) -> list[socket.socket]:
    """So many acquires that wait for locks which are held."""
    waiting = []
    for number in range(count):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(request(
            "POST", "/locks", {"resource": f"held:{number % 100}", "ttl_ms": 1000,
                               "wait_ms": 45000}, f"Authorization: Bearer {token}"))
        waiting.append(connection)
    return waiting


def shares(stack: Stack, results: Results, is_short: bool) -> None:
    listing, waiting = (20, 100) if is_short else (LISTING, WAITING)
    limit_s = 1 if is_short else 0.1  # short ones run on busy machines
    port = start_guarded(stack, {"greedy": "", "operator": ""})
    hold(port, 100, "greedy")
    waits = begin_waits(port, "greedy", waiting)
    answers: dict[int, int] = {}

    def list_on(_: int, has_ended: threading.Event) -> None:
        client = Client(port, "greedy")
        while not has_ended.is_set():
            status, _ = client.ask("GET", "/locks?page_size=1000")
            answers[status] = answers.get(status, 0) + 1

    with at_work(list_on, listing):
        time.sleep(1)
        operator = Client(port, "operator")
        took_s = []
        for _ in range(20 if is_short else 100):
            began = time.monotonic()
            operator.send("GET", "/locks")
            operator.expect(200)
            took_s.append(time.monotonic() - began)
        began = time.monotonic()
        status, _ = operator.ask("POST", "/locks", {
            "resource": "held:0", "ttl_ms": 1000, "wait_ms": 100})
        waited_s = time.monotonic() - began
    for wait in waits:
        wait.close()
    print(f"  {listing} connections of another identity list: {answers}")
    results.check(f"an operator's list takes {statistics.median(took_s) * 1000:.0f} "
                  f"ms, {max(took_s) * 1000:.0f} ms at most, beside {waiting} waits",
                  statistics.median(took_s) <= limit_s)
    results.check(f"an operator's wait of 100 ms ends after {waited_s * 1000:.0f} "
                  f"ms: {status}", status == 409)


SHARED = {"resources": [f"shared:{number}" for number in range(NAMES)],
          "mode": "shared", "ttl_ms": 60000}


def force(port: int, grants: list[dict]) -> list[float]:
    client, took_s = Client(port, "operator"), []
    for grant in grants:
        began = time.monotonic()
        client.send("DELETE",
                    f"/locks/{grant['id']}?force={grant['fencing_token']}")
        client.expect(200)
        took_s.append(time.monotonic() - began)
    return took_s


def readers(stack: Stack, results: Results, is_short: bool) -> None:
    seconds, count = (3, READERS // 10) if is_short else (10, READERS)
    limit = ("--max-readers", str(count)) if is_short else ()
    port = start_guarded(stack, {"crowd": "lock", "good": "lock", "operator": "admin",
                                 "greedy": "lock rate=20"}, *limit)
    crowd, grants = Client(port, "crowd"), []
    for _ in range(count - KEYS):
        crowd.send("POST", "/locks", SHARED)
        grants.append(crowd.expect(201))
    quiet = Load(port, seconds, "good", 8).end()
    answers: dict[str, int] = {}

    def repeat(number: int, has_ended: threading.Event) -> None:
        """Acquires with its key again and again, sooner than it may."""
        client = Client(port, "greedy")
        client.headers["Idempotency-Key"] = f"reader-with-a-key-{number:04}"
        while not has_ended.is_set():
            status, answer = client.ask("POST", "/locks", SHARED)
            told = f"{status} {answer.get('code', '')}".strip()
            answers[told] = answers.get(told, 0) + 1

    with at_work(repeat, KEYS):
        busy = Load(port, seconds, "good", 8).end()
        beside = Load(port, seconds, "good", 8)
        took_s = force(port, grants[:FORCED])
        forced = beside.end()
    print(f"  keyed acquires of {NAMES} locks with {count - KEYS} readers: "
          f"{answers}")
    results.check(f"{sum(answers.values())} of them were answered", len(answers) > 0)
    results.compare("beside them", busy, quiet, 3)
    results.compare("beside forced ones", forced, quiet, 3)
    results.check(f"{FORCED} readers of {NAMES} locks forced in at most "
                  f"{max(took_s) * 1000:.0f} ms each", max(took_s) < 1)


def ask_for_permit(client: Client, pool: str, limit: int,
                   ttl_ms: int) -> tuple[int, dict]:
    client.headers["Idempotency-Key"] = uuid.uuid4().hex
    return client.ask("POST", "/locks", {
        "resource": pool, "limit": limit, "ttl_ms": ttl_ms})


def grab(port: int) -> None:
    """Asks for permits until this process is ended."""
    def go_on(number: int) -> None:
        client = Client(port, "greedy")
        while True:
            ask_for_permit(client, f"pool:{number}", 1000, 100)
    together(partial(go_on, number) for number in range(GREEDY))


def permit_times(port: int, pool: str, limit: int, count: int) -> list[float]:
    """How many seconds each permit took; a minute if there was none."""
    client = Client(port, "other")
    took_s = []
    for _ in range(count):
        time.sleep(PAUSE_S)
        began = time.monotonic()
        status, body = ask_for_permit(client, pool, limit, 5000)
        took_s.append(time.monotonic() - began if status == 201 else 60)
        if status == 201:
            client.ask("DELETE", f"/locks/{body['id']}", {"token": body["token"]})
        else:
            print(f"  {status} {body.get('code')}")
    return took_s


def percentile(took_s: list[float], percent: int) -> float:
    """In milliseconds."""
    return sorted(took_s)[len(took_s) * percent // 100] * 1000


def pools(stack: Stack, results: Results, is_short: bool) -> None:
    port = start_guarded(stack, {"greedy": "", "other": ""}, "--node-timeout-ms",
                         "2000")
    rounds, count = (1, 20) if is_short else (4, 100)
    cases = {"of a pool of three": ("small", 3),
             "of a pool of a thousand": ("large", 1000),
             "of the same pool": ("pool:0", 1000)}
    quiet: dict[str, list[float]] = {case: [] for case in cases}
    beside: dict[str, list[float]] = {case: [] for case in cases}
    for _ in range(rounds):
        for case, (pool, limit) in cases.items():
            quiet[case] += permit_times(port, pool, limit, count)
        greedy = multiprocessing.Process(target=grab, args=(port,))
        greedy.start()
        time.sleep(1)
        for case, (pool, limit) in cases.items():
            beside[case] += permit_times(port, pool, limit, count)
        results.check("it asked all the time", greedy.is_alive())
        greedy.kill()
        greedy.join()
        time.sleep(1)
    for case in cases:
        p50, p99 = (percentile(beside[case], each) for each in (50, 99))
        alone_p50, alone_p99 = (percentile(quiet[case], each) for each in (50, 99))
        results.check(
            f"another one's permit {case}: p50 {p50:.1f} ms, p99 {p99:.1f} ms, "
            f"alone {alone_p50:.1f} and {alone_p99:.1f} ms: "
            f"{p99 / alone_p99:.2f}", p99 / alone_p99 <= (30 if is_short else 3))


SCENES = {"lists": lists, "shares": shares, "readers": readers, "pools": pools}
