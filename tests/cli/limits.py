#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""redlockctl run where the servers limit how long a lock is held.

limits.py [TEST...]
"""
from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from answers import Answer, Answers, Handler
from world import (DIES_WITH_US, MAX_TTL_MS, WAIT_S, World, play,
                   tests_of)

from stack import ask  # in ../lib
from waiting import wait_until

LOST = 70
HOLD_S = MAX_TTL_MS / 1000  # of the servers here
OPTION = "--max-hold-ms"
WAYS: dict[str, tuple[str, ...]] = {
    "plain": ("plain",), "readers": ("-s", "readers"),
    "pool": ("--limit", "1", "pool"), "two": ("--limit", "3", "--permits", "2", "two"),
    "several": ("several:1", "several:2"), "again": ("--again", "again"),
}


def run(urls: list[str], *words: str, command: str,
        ttl: str = "2") -> subprocess.Popen:
    program = os.environ.get("REDLOCKCTL", "build/release/redlockctl")
    wait = () if "--again" in words else ("-n",)
    return subprocess.Popen(
        [*DIES_WITH_US, program, "run", *wait, "-t", ttl, *words, "--", "sh", "-c", command],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=os.environ | {"REDLOCKD_URL": " ".join(urls)})


class Rival(threading.Thread):
    """Wants a lock all the time, and notes if it gets it."""

    def __init__(self, port: int, wish: dict, wait_ms: int) -> None:
        super().__init__(daemon=True)
        self.port, self.wish, self.wait_ms = port, wish, wait_ms
        self.statuses: set[int] = set()
        self.ended = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.ended.wait(0.01):
            status, _ = ask(self.port, "POST", "/locks",
                            self.wish | {"ttl_ms": 500, "wait_ms": self.wait_ms})
            if not self.ended.is_set():
                self.statuses.add(status)


def the_command_goes_on_without_a_gap(world: World) -> None:
    seconds = 2.5 * HOLD_S
    script = f'echo "$REDLOCKD_FENCING_TOKEN"; sleep {seconds}; echo done'
    runs = {name: run(world.urls, *words, command=script)
            for name, words in WAYS.items()}
    wait_until(lambda: not any(map(world.is_free, ("plain", "readers", "several:1")))
               and world.ask("GET", "/pools/pool?limit=1")[1]["free"] == [],
               "they have begun", WAIT_S)
    wishes: list[dict[str, Any]] = [
        {"resource": "plain"}, {"resource": "readers"}, {"resource": "several:1"},
        {"resource": "pool", "limit": 1},
        {"resources": ["several:2", "a"]}]
    rivals = [Rival(port, wish, wait_ms) for wish in wishes
              for port in world.server_ports.values() for wait_ms in (0, 3000)]
    time.sleep(seconds - 1)
    for rival in rivals:
        rival.ended.set()
    for rival in rivals:
        assert rival.statuses == {409}, (rival.wish, rival.statuses)
    _, seen = ask(world.server_ports[0], "GET", "/locks/plain")
    for name, ctl in runs.items():
        out, said = ctl.communicate(timeout=WAIT_S)
        assert ctl.returncode == 0, (name, ctl.returncode, out, said)
        first, *rest = out.splitlines()
        assert rest == ["done"], (name, out, said)
        assert said.count(OPTION) == 1 and f"{HOLD_S:g} s" in said, (name, said)
        assert name != "plain" or seen["fencing_token"] > int(first), seen
    for rival in rivals:
        rival.join(WAIT_S)
    for name in "plain", "readers", "several:1", "several:2":
        wait_until(lambda name=name: world.is_free(name), "it is free", 3)
    _, pool = ask(world.server_ports[0], "GET", "/pools/two?limit=3")
    assert pool["free"] == [0, 1, 2], pool


def answers_that_are_lost_leave_no_trace(world: World) -> None:
    """Of extends and of repeats, at the limit; then the command ends."""
    for last_s in HOLD_S - 0.2, HOLD_S + 1.5:
        ctl = run(world.urls, "lossy", "--grace", "0.2", command=f"sleep {last_s}",
                  ttl="3")
        time.sleep(HOLD_S - 3)
        with world.cut(*world.proxies):
            time.sleep(1)
        _, said = ctl.communicate(timeout=WAIT_S)
        assert ctl.returncode == 0, (ctl.returncode, said)
        wait_until(lambda: world.is_free("lossy"), "it is free", 1)


# ---- scripted -----------------------------------------------------------------

def problem(status: int, code: str, **more: Any) -> Answer:
    return status, {"type": f"urn:redlockd:problem:{code}", "code": code,
                    "status": status, "detail": f"the detail of {code}"} | more


def grant(number: int, name: str = "x", validity_ms: int = 2900) -> dict:
    return {"id": name, "resource": name, "mode": "exclusive",
            "token": f"token-{number}", "fencing_token": number, "ttl_ms": 3000,
            "validity_ms": validity_ms, "elapsed_ms": 0, "renew_after_ms": 300,
            "max_hold_ms": 3600000}


class Script(Answers):
    """A server whose lock may not be extended from the first extend on: the
    repeats are answered as a test wants."""

    def __init__(self, repeats: Callable[[int], Answer],
                 extends: Callable[[int], Answer] | None = None) -> None:
        self.repeats, self.extends = repeats, extends
        self.calls: list[tuple[str, str, str]] = []
        super().__init__(self.play)

    def play(self, request: Handler, _: bytes) -> Answer:
        method = request.command
        self.calls.append((method, request.headers.get("X-Lock-Token", ""),
                           request.headers.get("Idempotency-Key", "")))
        count = len(self.of(method))
        if method == "POST":
            return (201, grant(1)) if count == 1 else self.repeats(count)
        if method == "PUT":
            return self.extends(count) if self.extends else \
                problem(409, "max_hold_reached")
        return 200, {"id": "x", "released": True}

    def of(self, method: str) -> list[tuple[str, str, str]]:
        return [call for call in self.calls if call[0] == method]


def play_script(script: Script, status: int, seconds: float = 30,
                command: str = "sleep 1", *words: str) -> str:
    with script:
        began = time.monotonic()
        ctl = run([script.url], *words, "x", command=command, ttl="3")
        _, said = ctl.communicate(timeout=WAIT_S)
        assert ctl.returncode == status, (ctl.returncode, said)
        assert time.monotonic() - began < seconds, said
    keys = {call[2] for call in script.of("POST")}
    assert len(keys) == 1 and "" not in keys, keys
    return said


def a_lock_that_was_free_meanwhile_is_lost(_: World) -> None:
    answers: dict[str, Answer] = {
        "free": (201, grant(2)),
        "another": (200, grant(2) | {"id": "y"}),
        "holder": problem(409, "lock_held", held_by={"fencing_token": 9,
                                                     "owner": "other"}),
    }
    for name, answer in answers.items():
        script = Script(lambda _, answer=answer: answer)
        said = play_script(script, LOST, 6, "sleep 20")
        assert OPTION in said and "3600 s" in said and "start redlockd" in said, said
        assert "lost" in said, said
        token = "token-1" if name == "holder" else "token-2"
        assert script.of("DELETE")[0][1] == token, (name, script.calls)


def another_identity_is_named_as_a_reason(world: World) -> None:
    """A key belongs to the identity: that of another token has none."""
    token = world.folder / "token"
    token.write_text("token-of-a-client\n")
    held = problem(409, "lock_held", held_by={"fencing_token": 9, "owner": "me"})
    for words in (), ("--auth-token-file", str(token)):
        said = play_script(Script(lambda _: held), LOST, 6, "sleep 20", *words)
        assert ("that of another identity" in said) == bool(words), said


def a_repeat_that_fails_is_made_again(_: World) -> None:
    """Clocks that differ, no quorum, no answer: the next one has it."""
    own = problem(409, "lock_held", held_by={"fencing_token": 1})
    for answer in own, problem(409, "lock_held"), problem(503, "no_quorum"), \
            (0, {}), (200, {}):
        script = Script(lambda count, answer=answer: (
            (200, grant(count)) if count > 3 else answer))
        said = play_script(script, 0)
        assert said.count(OPTION) == 1, (answer, said)
        assert script.of("DELETE")[0][1].startswith("token-"), script.calls
        assert script.of("DELETE")[0][1] != "token-1", script.calls


def an_unknown_token_is_asked_for_before_the_release(world: World) -> None:
    """The command ends while a repeat is under way."""
    mark = world.folder / "ended"

    def slow(count: int) -> Answer:
        if not mark.exists():
            wait_until(mark.exists, "the command's end", WAIT_S)
            time.sleep(0.7)
        return 200, grant(count)
    script = Script(slow)
    play_script(script, 0, 9, f"sleep 0.8; touch {mark}")
    token = f"token-{len(script.of('POST'))}"
    assert [call[1] for call in script.of("DELETE")] == [token], script.calls


def without_any_success_the_command_ends_in_time(_: World) -> None:
    script = Script(lambda _: problem(503, "no_quorum"))
    said = play_script(script, LOST, 8, "sleep 20")
    assert OPTION in said and "the detail of no_quorum" in said, said


def other_losses_do_not_blame_the_limit(_: World) -> None:
    def extends(count: int) -> Answer:
        return problem(409, "max_hold_reached") if count == 1 else \
            problem(409, "not_owner")
    script = Script(lambda count: (200, grant(count)), extends)
    said = play_script(script, LOST, 8, "sleep 20")
    assert "the detail of not_owner" in said.splitlines()[-1], said
    assert OPTION not in said.splitlines()[-1], said


def another_service_does_not_end_it_at_once(_: World) -> None:
    """What answers extends for a moment is no redlockd."""
    def extends(count: int) -> Answer:
        return (200, {}) if count < 3 else (200, grant(1))
    assert play_script(Script(lambda _: (500, {}), extends), 0) == ""


if __name__ == "__main__":
    sys.exit(play(tests_of(globals(), "World"), options=(
        OPTION, str(int(HOLD_S * 1000)))))
