#!/usr/bin/env python3
"""The packages, interrupted while they acquire through a proxy that does not
pass on that a client has left: the lock is free soon.

check_clients.py [TEST...]
"""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/cli")]
from again import obey_signals  # noqa: E402
from cancel import LateProxy, Late, release, take, waiters  # noqa: E402
from world import WAIT_S, World, play  # noqa: E402

from balancers import stock_haproxy  # noqa: E402 in ../lib
from waiting import wait_until  # noqa: E402

CLIENTS = Path(__file__).resolve().parent / "clients"
BUILT = ROOT / "build/proxies"
SOON_S = 2.0
UNTIL_ENDED_S = 4.0
KINDS: tuple[tuple[str, dict, tuple[str, ...]], ...] = (
    ("plain", {}, ()), ("shared", {"shared": True}, ()),
    ("pool", {"limit": 1}, ("--limit", "1")), ("several", {}, ()),
)
if os.environ.get("SHORT"):
    KINDS = KINDS[:1]


def build() -> None:
    """Where Node finds the package, and the program in Go."""
    modules = BUILT / "node_modules"
    modules.mkdir(parents=True, exist_ok=True)
    if not (modules / "redlockd-client").is_symlink():
        (modules / "redlockd-client").symlink_to(ROOT / "api/clients/node")
    (BUILT / "wait.mjs").write_text((CLIENTS / "wait.mjs").read_text())
    (BUILT / "go.mod").write_text(
        "module example.org/waits\n\ngo 1.18\n\n"
        "require redlockd.example/redlockd v0.0.0\n\n"
        f"replace redlockd.example/redlockd => {ROOT}/api/clients/go\n")
    (BUILT / "main.go").write_text((CLIENTS / "waits/main.go").read_text())
    subprocess.run(["go", "build", "-o", "waits", "."], cwd=BUILT, check=True,
                   env={**os.environ, "GOFLAGS": "-mod=mod", "GOPROXY": "off",
                        "GOWORK": "off"})


def command(client: str) -> list[str]:
    if client == "node":
        return ["node", str(BUILT / "wait.mjs")]
    if client == "go":
        return [str(BUILT / "waits")]
    return [sys.executable, str(CLIENTS / f"wait_{client}.py")]


def start(world: World, client: str, url: str, name: str,
          options: dict) -> subprocess.Popen:
    names = [name, f"{name}b"] if "several" in name else [name]
    with (world.folder / "clients.log").open("ab") as log:
        return subprocess.Popen(
            [*command(client), url, json.dumps({"resources": names, **options})],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
            text=True, preexec_fn=obey_signals,
            env={**os.environ, "PYTHONPATH": str(ROOT / "api/clients/python/src"),
                 "PYTHONDONTWRITEBYTECODE": "1"})


def end(asks: subprocess.Popen) -> None:
    asks.send_signal(signal.SIGINT)
    assert asks.wait(UNTIL_ENDED_S) != 0
    assert asks.stdout and asks.stdout.read() == "", "it was granted"


def who_waited_does_not_get_it(world: World, client: str) -> None:
    with stock_haproxy(world.folder, world.server_ports[0]) as proxy:
        for kind, options, words in KINDS:
            name = f"waits-{client}-{kind}"
            held = take(world, name, *words)
            asks = start(world, client, proxy.url, name, options)
            wait_until(lambda: waiters(world) == 1, "it waits", WAIT_S)
            time.sleep(0.1)
            end(asks)
            wait_until(lambda: waiters(world) == 0, "nobody waits", SOON_S)
            release(world, held, name)
            taken = take(world, name, *words)
            assert taken.returncode == 0, (client, kind, taken.stderr)
            release(world, taken, name)


def what_it_got_unheard_is_released(world: World, client: str) -> None:
    for kind, options, words in KINDS:
        proxy = LateProxy(world.server_ports[0], {}, Late)
        name = f"got-{client}-{kind}"
        asks = start(world, client, proxy.url, name, options)
        wait_until(lambda: proxy.is_late, "it is granted", WAIT_S)
        time.sleep(0.1)
        end(asks)
        taken = take(world, name, *words, wait="0.3")
        assert taken.returncode == 0, (client, kind, taken.stderr)
        release(world, taken, name)
        proxy.close()


def of_each(test: Callable[[World, str], None]) -> list[Callable[[World], None]]:
    tests = []
    for client in "sync", "async", "node", "go":
        def one(world: World, client: str = client) -> None:
            test(world, client)
        one.__name__ = f"{test.__name__}_{client}"
        tests.append(one)
    return tests


TESTS = [*of_each(who_waited_does_not_get_it),
         *of_each(what_it_got_unheard_is_released)]

if __name__ == "__main__":
    build()
    sys.exit(play(TESTS))
