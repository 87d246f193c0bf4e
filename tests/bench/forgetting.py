# SPDX-License-Identifier: MIT
"""Nodes that forget under load: when do they vote again, and what do clients
notice?

  idle    nothing is held: a node is flushed
  load    CLIENTS (64) clients take and release locks of 5 s, while one node after
          the other is flushed, or killed and started empty. Beside it the same
          load without losses: the ratio of their p99s
  long    a node is flushed after a lock of 60 s was granted

--short loses two nodes instead of ten, and leaves out `long`.
"""
from __future__ import annotations

import time

from measure import Load, Results, setting
from stack import NODES, Stack, ask

CLIENTS = int(setting("CLIENTS", 64))


def idle(stack: Stack, results: Results, _: bool) -> None:
    port = stack.start_server(0)
    for is_killed in (False, True):
        took_s = stack.lose(1, port, is_killed)
        what = "killed" if is_killed else "flushed"
        results.check(f"nothing is held, a node is {what}: votes again after "
                      f"{took_s:.1f} s", took_s <= 4)


def load(stack: Stack, results: Results, is_short: bool) -> None:
    port = stack.start_server(0)
    losses = [(node, is_killed) for is_killed in (False, True)
              for node in range(NODES)][::5 if is_short else 1]
    usual = Load(port, 5 if is_short else 15, clients=CLIENTS).end()
    running = Load(port, len(losses) * 7.5, clients=CLIENTS)
    time.sleep(1)
    took_s = [stack.lose(node, port, is_killed) for node, is_killed in losses]
    lossy = running.end()
    results.check(f"{len(losses)} losses under {CLIENTS} clients with locks of "
                  f"5 s: each votes again after {max(took_s):.1f} s at most",
                  max(took_s) <= 9)
    results.compare("meanwhile", lossy, usual, 2)


def long(stack: Stack, results: Results, is_short: bool) -> None:
    if is_short:
        return
    port = stack.start_server(0)
    body = {"resource": "long", "ttl_ms": 60000}
    results.check("a lock of 60 s is granted",
                  ask(port, "POST", "/locks", body)[0] == 201)
    took_s = stack.lose(2, port)
    results.check(f"a node that is flushed then votes again after "
                  f"{took_s:.1f} s", 55 < took_s <= 66)


SCENES = {"idle": idle, "load": load, "long": long}
