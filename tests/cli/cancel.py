#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""redlockctl that is told to end while it asks for a lock: the lock is free
soon, also behind a proxy that does not pass on that a client has left.

cancel.py [TEST...]
"""
from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from again import obey_signals
from world import WAIT_S, PassOn, Proxy, World, play, tests_of

from balancers import stock_haproxy  # in ../lib
from stack import metric
from waiting import wait_until

SOON_S = 2.0
TTL = "4"  # the longest that World's servers allow
UNTIL_ENDED_S = 3.0  # redlockctl takes two seconds at most


class Late(PassOn):
    """Its first answer to an acquire comes so late that nobody reads it."""

    server: LateProxy

    def note(self, *_: object) -> None:
        if self.command == "POST" and not self.server.is_late:
            self.server.is_late = True
            time.sleep(1.5)

    do_GET = do_POST = do_PUT = do_DELETE = PassOn.pass_on


class LateProxy(Proxy):
    is_late = False


def ctl(world: World, url: str, command: str, resource: str, *options: str,
        words: tuple[str, ...] = (), before: Callable[[], None] = obey_signals,
        ) -> subprocess.Popen:
    rest = ("--", "true") if command == "run" else ()
    return subprocess.Popen(
        [*words, world.redlockctl, command, "--url", url, "-t", TTL, *options,
         resource, *rest], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, preexec_fn=before)


def waiters(world: World) -> float:
    """At all servers."""
    return sum(metric(port, "redlockd_waiters{") + metric(port, "redlockd_waiters ")
               for port in world.server_ports.values())


def take(world: World, resource: str,
         *options: str) -> subprocess.CompletedProcess:
    """At once, and directly; for whoever is next."""
    url = f"http://127.0.0.1:{world.server_ports[0]}"
    return subprocess.run(
        [world.redlockctl, "acquire", "--url", url, "-t", TTL, "-n",
         *options, resource], capture_output=True, text=True, timeout=WAIT_S,
        check=False)


def variable(text: str, name: str) -> str:
    line = next(it for it in text.splitlines()
                if it.startswith(f"export {name}="))
    return line.split("'")[1]


def release(world: World, taken: subprocess.CompletedProcess,
            resource: str) -> None:
    slot = variable(taken.stdout, "REDLOCKD_SLOT")
    subprocess.run(
        [world.redlockctl, "release", "--url",
         f"http://127.0.0.1:{world.server_ports[0]}", "--token",
         variable(taken.stdout, "REDLOCKD_TOKEN"),
         *(("--slot", slot) if slot else ()), resource], check=True,
        capture_output=True, timeout=WAIT_S)


WAYS = (
    ("acquire", signal.SIGINT, ()), ("acquire", signal.SIGTERM, ("-w", "30")),
    ("acquire", signal.SIGHUP, ("--shared",)),
    ("acquire", signal.SIGTERM, ("--limit", "1")),
    ("run", signal.SIGTERM, ()), ("run", signal.SIGINT, ("--shared",)),
    ("run", signal.SIGINT, ("--limit", "1")),
    ("acquire", signal.SIGUSR1, ()), ("acquire", signal.SIGUSR2, ()),
    ("acquire", signal.SIGALRM, ()), ("run", signal.SIGALRM, ()),
)


def who_waited_does_not_get_it(world: World) -> None:
    leave_all(world, 1)


def nor_at_any_server_behind_the_proxy(world: World) -> None:
    leave_all(world, 2)


def leave_all(world: World, servers: int) -> None:
    ports = list(world.server_ports.values())[:servers]
    with stock_haproxy(world.folder, *ports) as proxy:
        for i, (command, number, options) in enumerate(WAYS):
            name = f"waits{i}-{servers}"
            limit = options if "--limit" in options else ()
            held = take(world, name, *limit)
            asks = ctl(world, proxy.url, command, name, *options)
            wait_until(lambda: waiters(world) == 1, "it waits", WAIT_S)
            asks.send_signal(number)
            assert asks.wait(UNTIL_ENDED_S) == -number, (command, number)
            assert asks.stderr and asks.stderr.read() == ""
            wait_until(lambda: waiters(world) == 0, "nobody waits", SOON_S)
            release(world, held, name)
            taken = take(world, name, *limit)
            assert taken.returncode == 0, (command, options, taken.stderr)
            release(world, taken, name)


def what_it_got_unheard_is_released(world: World) -> None:
    for command, number, options in WAYS:
        proxy = LateProxy(world.server_ports[0], {}, Late)
        name = f"got{command}{number}{len(options)}"
        asks = ctl(world, proxy.url, command, name, *options)
        wait_until(lambda: not world.is_free(name) or "--limit" in options,
                   "it is granted", WAIT_S)
        time.sleep(0.2)
        asks.send_signal(number)
        assert asks.wait(UNTIL_ENDED_S) == -number, (command, number)
        limit = options if "--limit" in options else ()
        taken = take(world, name, *limit)
        assert taken.returncode == 0, (command, options, taken.stderr)
        release(world, taken, name)
        proxy.close()


@contextmanager
def silent_server() -> Iterator[tuple[str, Callable[[], None]]]:
    """Takes requests, and answers nothing. And what waits until one is there."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        links = []

        def wait_asked() -> None:
            silent.settimeout(WAIT_S)
            links.append(silent.accept()[0])
            assert links[-1].recv(1)
        yield f"http://127.0.0.1:{silent.getsockname()[1]}", wait_asked
        for link in links:
            link.close()


def a_second_signal_ends_it_at_once(world: World) -> None:
    for command in "acquire", "run":
        with silent_server() as (url, wait_asked):
            asks = ctl(world, url, command, "second")
            wait_asked()
            asks.send_signal(signal.SIGTERM)
            time.sleep(0.4)
            assert asks.poll() is None, "it still gives back"
            began = time.monotonic()
            asks.send_signal(signal.SIGINT)
            assert asks.wait(WAIT_S) == -signal.SIGINT
            assert time.monotonic() - began < 0.5


def what_was_never_asked_for_is_not_given_back(world: World) -> None:
    """No replica could be reached: there is nothing to release."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))  # refuses connections: it does not listen
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        for command in "acquire", "run":
            asks = ctl(world, url, command, "unasked")
            time.sleep(0.4)
            began = time.monotonic()
            asks.send_signal(signal.SIGTERM)
            assert asks.wait(WAIT_S) == -signal.SIGTERM
            assert time.monotonic() - began < 0.5
            assert asks.stderr and asks.stderr.read() == ""


def it_takes_two_seconds_at_most_and_says_so(world: World) -> None:
    for command in "acquire", "run":
        with silent_server() as (url, wait_asked):
            asks = ctl(world, url, command, "silent")
            wait_asked()
            asks.send_signal(signal.SIGTERM)
            began = time.monotonic()
            assert asks.wait(WAIT_S) == -signal.SIGTERM
            assert time.monotonic() - began < UNTIL_ENDED_S
            assert asks.stderr and "may be held until it expires" in \
                asks.stderr.read()


def what_is_ignored_does_not_end_it(world: World) -> None:
    """As under nohup, or in the background of a script."""
    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    url = f"http://127.0.0.1:{world.server_ports[0]}"
    for command, said in ("acquire", "REDLOCKD_TOKEN"), ("run", ""):
        name = f"nohup-{command}"
        held = take(world, name)
        asks = ctl(world, url, command, name, before=ignore)
        wait_until(lambda: waiters(world) == 1, "it waits", WAIT_S)
        asks.send_signal(signal.SIGHUP)
        asks.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert asks.poll() is None, (command, asks.returncode)
        release(world, held, name)
        assert asks.wait(WAIT_S) == 0, command
        assert asks.stdout and said in asks.stdout.read()


def what_could_not_be_printed_is_released(world: World) -> None:
    """Nobody knows its token."""
    url = f"http://127.0.0.1:{world.server_ports[0]}"
    for i, to in enumerate((">/dev/full", ">&-", "| true")):
        for words in "", "--json":
            name = f"unseen{i}{words}"
            script = (f"exec 3>&1; {{ sleep 0.2; {world.redlockctl} acquire -n -t {TTL} "
                      f"--url {url} {words} {name} 3>&-; echo $? >&3; }} {to}")
            if to == ">&-":
                script = (f"{world.redlockctl} acquire -n -t {TTL} --url {url} "
                          f"{words} {name} >&-; echo $?")
            done = subprocess.run(["sh", "-c", script], capture_output=True,
                                  text=True, timeout=WAIT_S, check=False)
            assert done.stdout == "71\n", (to, words, done)
            assert "standard output: " in done.stderr and \
                "Success" not in done.stderr, (to, words, done)
            assert world.is_free(name), (to, words, done)


def timeout_ends_it(world: World) -> None:
    with stock_haproxy(world.folder, world.server_ports[0]) as proxy:
        held = take(world, "timeout")
        asks = ctl(world, proxy.url, "acquire", "timeout",
                   words=("timeout", "0.5"))
        assert asks.wait(WAIT_S) == 124
        release(world, held, "timeout")
        assert take(world, "timeout").returncode == 0


if __name__ == "__main__":
    sys.exit(play(tests_of(globals(), "World")))
