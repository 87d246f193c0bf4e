#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What operators do and what breaks, over real Redis servers, with clients at
work through two servers; prints what they, the log, /readyz, /nodes and the
alerts made of it, a row of a table for each drill.

  drills.py [--short] [DRILL…]     of: those whose name begins so; else all

It fails if a lock has two holders, or is lost while a majority was up; if the
log has an error although no request failed; or if a drill goes otherwise than
it says below. REDLOCKD and TOOLS name the binary and the folder of the nemesis'
shim. As root, the disk of one node is small, and is filled.
"""
from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
from clients import TTL_MS
from field import SOON_S, Field, Node
from stack import ask
from waiting import wait_until

AWHILE_S = 3
TTL_S = TTL_MS / 1000
DISK = "4m"       # of node e
MAX_GAP_S = 2     # between two grants, where nothing should be noticed
NAMESPACE = "DRILLS_MOUNTS"  # set: mounts are ours alone


class Failed(Exception):
    """What a drill saw is not what it says."""


def expect(is_so: object, what: str) -> None:
    if not is_so:
        raise Failed(what)


@dataclass
class Drill:
    name: str
    play: Callable[[Field], None]
    nodes: int = 5
    is_short: bool = False
    # what may happen
    may_fail: str = ""           # statuses, such as "0 503"
    may_lose: bool = False
    alerts: frozenset[str] = frozenset()  # that may fire
    max_gap_s: float = MAX_GAP_S
    needs_root: bool = False


@dataclass
class Seen:
    """What came of a drill."""
    failed: Counter[str] = field(default_factory=Counter)
    gap_ms: int = 0
    lost: list[str] = field(default_factory=list)
    log: Counter[str] = field(default_factory=Counter)
    ready: str = ""
    states: str = ""
    alerts: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    took_s: float = 0


# ---- the drills --------------------------------------------------------------

def kill(stack: Field, count: int) -> None:
    gone = list(stack.nodes.values())[:count]
    for node in gone:
        node.kill()
    time.sleep(AWHILE_S)
    for node in gone:
        node.start()
    stack.wait_votes()


def kill_three(stack: Field) -> None:
    gone = list(stack.nodes.values())[:3]
    for node in gone:
        node.kill()
    time.sleep(1)
    for server in stack.servers:
        status, said = ask(server.port, "POST", "/locks",
                           {"resource": "asked", "ttl_ms": 1000})
        expect((status, said.get("code")) == (503, "no_quorum"),
               f"an acquire gets {status} {said}")
        expect(server.readiness()[0] == 503, "/readyz says so")
    time.sleep(AWHILE_S - 1)
    for node in gone:
        node.start()
    began = time.monotonic()
    stack.wait_votes()
    expect(time.monotonic() - began < 15, "it recovers within 15 s")


def pause(stack: Field) -> None:
    stack.nodes["b"].signal(signal.SIGSTOP)
    time.sleep(2 * AWHILE_S)
    stack.nodes["b"].signal(signal.SIGCONT)
    stack.wait_votes()


def flush(stack: Field) -> None:
    expect(stack.nodes["c"].says("FLUSHALL") == "OK", "it is flushed")
    wait_until(lambda: stack.servers[0].readiness()[1].get("voting") == 4,
               "it does not vote")
    stack.wait_votes()


def fill_disk(stack: Field) -> None:
    node = stack.nodes["e"]
    subprocess.run(["dd", "if=/dev/zero", f"of={node.folder}/filler",
                    "bs=4k"], check=False, capture_output=True)
    wait_until(lambda: node.has_ended() or stack.servers[0].readiness()[1].get(
        "voting") == 4, "it ends, or refuses", SOON_S)
    time.sleep(AWHILE_S)
    (node.folder / "filler").unlink()
    if node.has_ended():
        node.start()
    stack.wait_votes()


def kill_server(stack: Field) -> None:
    stack.servers[0].kill()
    time.sleep(AWHILE_S)
    stack.servers[0].start(stack.nodes, *stack.options)
    stack.wait_votes()


def restart_servers(stack: Field) -> None:
    stack.roll(*stack.options)


def restart_nodes(stack: Field) -> None:
    for node in stack.nodes.values():
        node.shut()
        node.start()
        stack.wait_votes()
        time.sleep(0.2)


def change_limits(stack: Field) -> None:
    asked = {"resource": "long", "ttl_ms": 8000}
    port = stack.servers[1].port
    expect(ask(port, "POST", "/locks", asked)[0] == 400, "8 s are refused")
    stack.roll("--max-ttl-ms", "8000")
    expect(ask(port, "POST", "/locks", asked)[0] == 201, "8 s are granted")


def replace(stack: Field) -> None:
    old = stack.nodes["d"]
    stack.nodes["d"] = new = Node(stack.folder, "d2")
    new.start()
    wait_until(lambda: new.says("PING") == "PONG", "the new machine runs")
    stack.roll(*stack.options)
    old.kill()


def grow(stack: Field) -> None:
    for name in "de":
        stack.nodes[name] = node = Node(stack.folder, name)
        node.start()
        wait_until(lambda n=node: n.says("PING") == "PONG", name)
    stack.roll("--config-epoch", "2")
    for node in list(stack.nodes.values())[:2]:
        node.kill()
    expect(ask(stack.servers[0].port, "POST", "/locks",
               {"resource": "asked", "ttl_ms": 1000})[0] == 201,
           "three of five are a quorum")
    for node in list(stack.nodes.values())[:2]:
        node.start()
    stack.wait_votes()


def step_clock(stack: Field) -> None:
    stack.nodes["a"].clock.set(10)
    wait_until(lambda: stack.servers[0].readiness()[1].get("voting") == 4,
               "it loses its vote")
    stack.nodes["a"].clock.set(0)
    stack.wait_votes()


def sleep_all(stack: Field) -> None:
    """As a machine that is suspended."""
    processes = [stack.clients, *(server.process for server in stack.servers),
                 *(node.process for node in stack.nodes.values())]
    for process in processes:
        assert process
        process.send_signal(signal.SIGSTOP)
    time.sleep(2 * AWHILE_S)
    for process in processes:
        assert process
        process.send_signal(signal.SIGCONT)
    stack.wait_votes()


# it counts for a quarter of an hour, in which many drills change votes
REMEMBERED = {"RedlockdNodeFlaps"}
OUTAGE = frozenset({"RedlockdNoQuorum", "RedlockdServerErrors",
                    "RedlockdNoNodeToSpare"})
DRILLS = [
    Drill("kill one node", lambda stack: kill(stack, 1)),
    Drill("kill two nodes", lambda stack: kill(stack, 2),
          alerts=frozenset({"RedlockdNoNodeToSpare"})),
    Drill("kill three nodes", kill_three, is_short=True, may_fail="503",
          may_lose=True, max_gap_s=20,
          alerts=OUTAGE),
    Drill("pause a node", pause, is_short=True),
    Drill("FLUSHALL on a node", flush),
    Drill("fill the disk of a node", fill_disk, needs_root=True),
    Drill("kill one of two servers", kill_server, is_short=True,
          may_fail="0"),
    Drill("restart the servers one by one", restart_servers, is_short=True,
          may_fail="0 503"),
    Drill("restart the nodes one by one", restart_nodes, is_short=True),
    Drill("change a limit", change_limits, may_fail="0 503"),
    Drill("replace a node", replace, may_fail="0 503"),
    Drill("the clock of a node steps", step_clock,
          alerts=frozenset({"RedlockdNodeClockStepped"})),
    Drill("all sleep for six seconds", sleep_all, may_fail="0 503",
          may_lose=True, max_gap_s=25,
          alerts=OUTAGE),
    Drill("go from 3 nodes to 5", grow, nodes=3, may_fail="0 503",
          may_lose=True, max_gap_s=60,
          alerts=OUTAGE),
]


# ---- what came of it ---------------------------------------------------------

def told(stack: Field) -> list[dict]:
    return [json.loads(line) for line in stack.lines()]


def longest_gap_s(events: list[dict], began: float, ended: float) -> float:
    grants = sorted(event["to"] for event in events if event.get("ask") ==
                    "acquire" and event["status"] == 201 and
                    began <= event["to"] <= ended)
    times = [began, *grants, ended]
    return max(after - before for before, after in zip(times, times[1:]))


def unready_s(readyz: list[tuple[float, int, int]], number: int) -> float:
    """How long a server was not, as it said itself or did not."""
    of_it = [(at, status) for at, server, status in readyz if server == number]
    return sum(after - at for (at, status), (after, _) in
               zip(of_it, of_it[1:]) if status != 200)


def check_exclusion(events: list[dict]) -> list[str]:
    """Two that held one lock at the same time; tokens that do not rise."""
    found = []
    last: dict[str, dict] = {}
    holds = sorted((event for event in events if "hold" in event),
                   key=lambda event: event["from"])
    for hold in holds:
        before = last.get(hold["hold"])
        if before and before["fence"] != hold["fence"]:
            if hold["from"] < before["to"]:
                found.append(f"two holders: {before} {hold}")
            if hold["fence"] < before["fence"]:
                found.append(f"a lower token: {before} {hold}")
        last[hold["hold"]] = hold
    return found


def name_line(line: str) -> str:
    """An event, with what tells it from others of its name."""
    fields = dict(re.findall(r'(\w+)=("[^"]*"|\S+)', line))
    name = fields["event"]
    if name == "request":
        name = f"{fields.get('status', '')} {fields.get('code', '')}"
    elif "state" in fields:
        name += f" {fields['state']}"
    return f"{fields['level']} {name}"


def judge(drill: Drill, seen: Seen) -> None:
    bad = {key: n for key, n in seen.failed.items()
           if key.split()[0] not in drill.may_fail.split()}
    if bad:
        seen.problems.append(f"requests failed: {bad}")
    if seen.lost and not drill.may_lose:
        seen.problems.append(f"locks were lost: {seen.lost}")
    if seen.gap_ms > drill.max_gap_s * 1000:
        seen.problems.append(f"no grant for {seen.gap_ms} ms")
    errors = {line for line in seen.log if line.startswith("error ")}
    if errors and not seen.failed:
        seen.problems.append(f"no request failed, yet the log has {errors}")
    fired = {name for name, state in seen.alerts.items() if state == "firing"}
    if fired - drill.alerts - REMEMBERED:
        seen.problems.append(f"alerts fired: {fired - drill.alerts}")


def observe(drill: Drill, stack: Field, began: float, sizes: list[int],
            seen: Seen) -> None:
    ended = time.monotonic()
    events = told(stack)
    asked = [event for event in events if "ask" in event and
             event["to"] >= began]
    for event in asked:
        if event["status"] == 0 or event["status"] >= 500:
            seen.failed[f"{event['status']} {event['code']}".strip()] += 1
    seen.gap_ms = round(longest_gap_s(events, began, ended) * 1000)
    seen.lost = [f"{event['lost']}: {event['why']}" for event in events
                 if "lost" in event and event["at"] >= began]
    lines = stack.logged(sizes)
    seen.log = Counter(map(name_line, lines))
    since = [entry for entry in stack.readyz if entry[0] >= began]
    seen.ready = ", ".join(
        f"server {number + 1} not ready for {unready_s(since, number):.1f} s"
        for number in range(len(stack.servers)) if unready_s(since, number))
    # what an earlier drill has left
    already = {name for at, name, _ in stack.alerts
               if began - 2 < at < began}
    states: dict[str, set[str]] = {}
    for at, node, state in stack.states:
        if at >= began:
            states.setdefault(state, set()).add(node)
    seen.states = ", ".join(f"{state} ({''.join(sorted(nodes))})"
                            for state, nodes in sorted(states.items()))
    for at, name, state in stack.alerts:
        if at >= began and name not in already and (
                seen.alerts.get(name) != "firing"):
            seen.alerts[name] = state
    seen.problems += check_exclusion(events)
    if not asked:
        seen.problems.append("no client did anything")
    seen.took_s = ended - began
    judge(drill, seen)
    if seen.problems:
        seen.problems += lines[-20:]


def run(drill: Drill, stack: Field) -> Seen:
    seen = Seen()
    began, sizes = time.monotonic(), stack.sizes()
    try:
        drill.play(stack)
        # clients that were told to ask again have done so
        wait_until(lambda: any(event.get("status") == 201 for event in
                               told(stack)[-20:]), "grants go on")
        time.sleep(1)
    except (Failed, TimeoutError) as error:
        seen.problems.append(str(error))
    observe(drill, stack, began, sizes, seen)
    if seen.lost:
        # the extends that failed made the old lock longer where they arrived:
        # a new one is on the other nodes alone until that has expired
        time.sleep(TTL_S)
    return seen


def row(drill: Drill, seen: Seen) -> str:
    def count(of: dict[str, int]) -> str:
        return ", ".join(f"{n} × {key}" for key, n in sorted(of.items())) or "-"
    alerts = ", ".join(f"{name.removeprefix('Redlockd')} {state}" for
                       name, state in sorted(seen.alerts.items())) or "-"
    return (f"| {drill.name} | {count(seen.failed)} | {seen.gap_ms} | "
            f"{len(seen.lost)} | {count(seen.log)} | {seen.states or '-'}"
            f"{'; ' + seen.ready if seen.ready else ''} | {alerts} |")


HEAD = """\
| drill | failed requests | longest gap without a grant, ms | locks lost | the \
log, at warn and error | /nodes and /readyz | alerts |
| --- | --- | --- | --- | --- | --- | --- |"""


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--short", action="store_true")
    options.add_argument("drills", nargs="*")
    given = options.parse_args()
    is_root = os.geteuid() == 0
    if is_root and NAMESPACE not in os.environ:
        os.environ[NAMESPACE] = "yes"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])
    wanted = [drill for drill in DRILLS
              if (drill.is_short or not given.short) and
              drill.name.startswith(tuple(given.drills or [""])) and
              (is_root or not drill.needs_root)]
    results: list[tuple[Drill, Seen]] = []
    for nodes in sorted({drill.nodes for drill in wanted}, reverse=True):
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.TemporaryDirectory(prefix="redlockd-drills.",
                                         dir=memory) as folder:
            stack = Field(Path(folder), nodes)
            has_disk = is_root and "e" in stack.nodes
            if has_disk:
                disk = stack.nodes["e"].folder
                subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}",
                                "tmpfs", disk], check=True)
            try:
                stack.start()
                for drill in wanted:
                    if drill.nodes == nodes:
                        seen = run(drill, stack)
                        results.append((drill, seen))
                        print(f"  {'FAILS' if seen.problems else 'ok   '} "
                              f"{drill.name} ({seen.took_s:.0f} s)", flush=True)
            finally:
                stack.end()
                if has_disk:
                    subprocess.run(["umount", "-q", "-l", disk], check=False)
    print(HEAD)
    for drill, seen in results:
        print(row(drill, seen))
    for drill, seen in results:
        for problem in seen.problems:
            print(f"{drill.name}: {problem}")
    failed = sum(bool(seen.problems) for _, seen in results)
    print(f"drills: {len(results) - failed} passed, {failed} failed")
    sys.exit(failed > 0 or not results)


if __name__ == "__main__":
    main()
