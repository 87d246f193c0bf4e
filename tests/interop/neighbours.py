#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which lock libraries keep redlockd out on the same nodes, and which redlockd
keeps out: run for real where they are to be had, replayed where not.

The tables of docs/neighbours.md must say what comes out; WRITE=1 writes them.
NEIGHBOURS="redsync GETSET" plays those whose names contain one of the words.
"""
import os
import pathlib
import re
import signal
import sys
import time
import traceback
from dataclasses import dataclass

import page
import wires_redlock
import wires_single
from clients import HOLDERS, Library
from meeting import OURS_MS, THEIRS_MS, Meeting, Score
from wires import Replay, Wire
from world import REDLOCKD_CLIENT, World, must

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(sys.argv[1])
PYTHON = str(BUILD / "venv/bin/python3")
RSLOCK = pathlib.Path("build/rslock/holder/rslock-holder")

PREFIXED = "redlock:"  # --key-prefix of one of the servers


@dataclass(frozen=True)
class Neighbour:
    name: str
    version: str
    how: str
    start: object  # (world, nodes): its client
    key_prefix: str = ""
    is_single: bool = False
    has_ttl: bool = True
    can_extend: bool = True
    can_force: bool = False
    refusal: str = ""  # what its acquire ends with while redlockd holds
    quorum: object = Wire.quorum  # of how many nodes: how many it needs

    def head(self):
        return [self.name, self.version, self.how, f"`{self.key_prefix}r`"]


def replayed(wire):
    return Neighbour(wire.name, wire.version, "replayed",
                     lambda world, nodes: Replay(wire, nodes),
                     wire.key_prefix, wire.is_single, wire.has_ttl,
                     wire.can_extend,
                     wire.is_single and hasattr(wire, "force_release"),
                     wire.refusal, wire.quorum)


def pinned(file, pattern):
    return re.search(pattern, (HERE / file).read_text())[1]


def run_for_real(name, command, version, **traits):
    def start(world, nodes):
        return world.client_of([node.address for node in nodes],
                               library=Library(name, command))
    return Neighbour(name, version, "real", start, **traits)


def from_pypi(name, package, holder, **traits):
    return run_for_real(
        name, (PYTHON, str(HOLDERS / holder)),
        pinned("requirements.txt", rf"(?m)^{package}==(\S+)"), **traits)


NEIGHBOURS = [
    from_pypi("redlock-py", "redlock-py", "use_redlock_py.py",
              can_extend=False),
    from_pypi("aioredlock", "aioredlock", "use_aioredlock.py"),
    from_pypi("pottery", "pottery", "use_pottery.py", key_prefix="redlock:"),
    run_for_real("rslock", (str(RSLOCK),), pinned(
        "../lib/rslock/Cargo.lock", r'name = "rslock"\nversion = "(.+)"')),
    *map(replayed, wires_redlock.WIRES),
    from_pypi("redis-py `Lock`", "redis", "use_redis_py.py", is_single=True),
    *map(replayed, wires_single.WIRES),
]


class OnEach:
    """A lock on one Redis, taken on each of several; a majority counts."""

    def __init__(self, clients):
        self.clients = clients

    def acquire(self, resource, ttl_ms):
        answers = [client.acquire(resource, ttl_ms) for client in self.clients]
        taken = [client for client, answer in zip(self.clients, answers)
                 if answer.said_yes]
        # the majority's answer
        answer = sorted(answers, key=lambda one: one.said_yes)[
            len(answers) // 2]
        if not answer.said_yes:
            for client in taken:
                client.release(resource)
        return answer

    def release(self, resource):
        for client in self.clients:
            client.release(resource)


class Place:
    """Nodes, and two redlockd that have them."""

    def __init__(self, score, world, count):
        self.score = score
        self.world = world
        self.world.start_nodes(count=count)
        self.world.voters = count
        self.server = self.world.start_server(max_ttl_ms=OURS_MS)
        self.prefixed = self.world.start_server(
            "--key-prefix", PREFIXED, max_ttl_ms=OURS_MS)
        self.world.settle()
        self.ours = self.world.redlockd_client(self.server)

    def meeting(self, neighbour, theirs, verb="acquire"):
        return Meeting(self.score, self.world, self.server, self.ours,
                       neighbour, theirs, verb=verb)

    def prefixed_meeting(self, neighbour, theirs):
        return Meeting(self.score, self.world, self.prefixed,
                       self.world.redlockd_client(self.prefixed), neighbour,
                       theirs, PREFIXED)


def on_one_of_five(place, neighbour, theirs):
    """The first node alone; redlockd has all five."""
    meeting = place.meeting(neighbour, theirs)
    out = meeting.keeps_us_out()
    # redlockd's acquire missed this node, as if it had been down
    resource, name, key = meeting.names("missed")
    place.world.occupy(key, place.world.nodes[:1])
    must(place.ours.acquire(name, OURS_MS), "redlockd acquires")
    place.world.vacate(key, place.world.nodes[:1])
    answer = theirs.acquire(resource, THEIRS_MS)
    place.score.check(place.ours.extend(name, OURS_MS).said_yes,
                      f"{neighbour.name} on one of five: our extend")
    if answer.said_yes:
        theirs.release(resource)
    place.ours.release(name)
    return [out, "no" if answer.said_yes else "yes"]


def on_each_of_five(place, neighbour):
    theirs = OnEach([neighbour.start(place.world, [node])
                     for node in place.world.nodes])
    meeting = place.meeting(neighbour, theirs)
    return [meeting.keeps_us_out(), meeting.is_kept_out()]


def play(neighbour, five, one, tables):
    place = one if neighbour.is_single else five
    theirs = neighbour.start(place.world, place.world.nodes)
    meeting = place.meeting(neighbour, theirs)
    row = neighbour.head() + meeting.everything()
    # the readers' key is no string: what would overwrite one fails
    cells = row[-4:]
    cells[1] = cells[1].replace("overwrites", "yes")
    met = place.meeting(neighbour, theirs, "share").everything()
    place.score.check(met == cells, f"{neighbour.name}: readers: {met}")
    if neighbour.can_force:
        meeting.forced()
    if neighbour.key_prefix == PREFIXED:
        place.score.check(
            row == neighbour.head() + place.prefixed_meeting(
                neighbour, theirs).everything(),
            f"{neighbour.name}: the same with --key-prefix {PREFIXED}")
    tables[page.SINGLE if neighbour.is_single else page.REDLOCK].append(row)
    tables[page.LOSSES] += [[neighbour.name, what, f"`{answer}`"]
                            for what, answer in meeting.losses]
    if neighbour.is_single:
        theirs = neighbour.start(five.world, five.world.nodes[:1])
        tables[page.PLACES].append(
            [neighbour.name, *on_one_of_five(five, neighbour, theirs),
             *on_each_of_five(five, neighbour)])


def chosen():
    words = os.environ.get("NEIGHBOURS", "").split()
    names = [one for one in NEIGHBOURS
             if not words or any(word in one.name for word in words)]
    return names or sys.exit(f"no neighbour's name contains one of {words}")


def main():
    # what was started is cleaned up on the way out
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    score, tables, skipped = Score(), page.empty_tables(), []
    start = time.monotonic()
    neighbours = chosen()
    with World(REDLOCKD_CLIENT) as first, World(REDLOCKD_CLIENT) as second:
        five, one = Place(score, first, 5), Place(score, second, 1)
        for neighbour in neighbours:
            if neighbour.name == "rslock" and not RSLOCK.exists():
                skipped.append(neighbour.name)
                continue
            began = time.monotonic()
            try:
                play(neighbour, five, one, tables)
            except Exception as error:  # the others can still be played
                traceback.print_exc()
                score.check(False, f"{neighbour.name}: {error!r}")
            print(f"{neighbour.name} [{time.monotonic() - began:.1f} s]",
                  flush=True)
    for header, rows in tables.items():
        page.show(header, rows)
    if os.environ.get("WRITE"):
        if len(tables[page.REDLOCK] + tables[page.SINGLE]) < len(NEIGHBOURS):
            sys.exit("WRITE=1: not all were played, nothing is written")
        page.write(tables)
    page.check(score, tables, {one.name for one in neighbours} - set(skipped))
    print(f"in {time.monotonic() - start:.0f} s; skipped: {skipped or 'none'}")
    print(f"{score.counts['passed']} passed, {score.counts['failed']} failed")
    sys.exit(score.counts["failed"] > 0 or not score.counts["passed"])


main()
