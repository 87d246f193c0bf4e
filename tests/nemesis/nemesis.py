#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real servers, real nodes, faults at random, and a proof of what it did.

  nemesis.py [--seconds 60] [--seed N] [--faults KIND,… | harmless | all]
             [--clients 16] [--resources 12] [--keep] [--kept]

Three redlockd over five Redis masters behind a proxy. Which faults come when,
and what clients do, comes from the seed; timing does not. plan.py tells which
faults there are; checker.py, register.py and finish() below what must hold.
--faults all,-step,-race leaves two out. REDLOCKD names the binary. --tls: nodes
and servers speak TLS and nothing else, and clients need tokens. Without --seed
the seed is new. --kept plays one that failed once, see kept.py.

  undisturbed  a mistaken server takes no node's vote
  alive        no request and no signal ends a server, but SIGTERM and SIGKILL;
               SIGTERM ends it with 0 and within the time that the docs give
  whole        made whole again, each server grants within a quarantine, and all
               nodes vote for it
  mortal       no lock outlives its TTL
  descriptors  idle, the servers have as many as in the beginning
  waiters      idle, nobody is taken for one that waits
  holders      idle, no identity is taken to hold a lock
  watched      what watched.py says
  spread       what spread.py says
  renewed      no server refuses the new files that it is told to read
  crash        no assertion failed, and no sanitizer reported anything
  drawn        everything in drawn.py was asked
"""
from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import ssl
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "lib"))
import kept
import selftest
import tooltest
from balancer import MODES, Balancer
from checker import INVARIANTS, check, late_releases, most_readers
from clients import BUCKET, KEEPERS, Client, World
from changes import ended
from cluster import Cluster
from connection import Connection
from faults import Injector
from history import ACQUIRE, SECOND, SHARED, Call, History, Violation, now
from identities import ANYBODY, WIDE, Identities, Identity
from nodes import Config, Node, Redis
from keepers import POLLERS, Keeper, Poller
from plan import (ALL, HARMLESS, KINDS, SERVERS, Fault, max_ttls_ms, modes,
                  offsets_s, plan, quarantine_s, timeouts_ms)
from renewal import REFUSED, Renewal
from tls import Tls
from watched import check_watched
from watchers import Watcher

BINARY = "build/release/redlockd"
CHECK_S = 10        # between two looks at what happened
MEMORY_S = 60       # how long calls are remembered for that
IDLE_S = 75         # after which redlockd closes a connection
SLACK_S = 10        # of a noisy machine
WATCHERS = 6
DRAWN_S = 30  # a run in which everything is asked
SILENT_S = 10       # after which a machine's name may be another one's
CRASH = re.compile(r"Sanitizer|runtime error:|Assertion|assert|panic", re.I)
AT_END = ("register", "undisturbed", "alive", "whole", "mortal", "descriptors",
          "waiters", "holders", "renewed", "crash", "drawn", "watched",
          "spread")


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    """is_new: nobody said which seed."""
    parser = argparse.ArgumentParser(description="faults at random")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--faults", default="all")
    parser.add_argument("--clients", type=int, default=kept.CLIENTS)
    parser.add_argument("--resources", type=int, default=kept.RESOURCES)
    parser.add_argument("--tools", type=Path, default=Path("build/release"))
    parser.add_argument("--tls", action="store_true",
                        help="nodes and servers speak TLS and nothing else, "
                        "and there is an auth file")
    parser.add_argument("--keep", action="store_true",
                        help="keep the directory with logs and data")
    parser.add_argument("--kept", action="store_true",
                        help="play one of the seeds that failed once")
    options = parser.parse_args(words)
    options.is_new = options.seed is None
    if options.is_new:
        options.seed = random.SystemRandom().randrange(1_000_000)
    return options


def kept_one(options: argparse.Namespace) -> argparse.Namespace | None:
    """What plays one of the seeds that are kept; None: there are none."""
    words = kept.choose(kept.read(kept.FILE.read_text()), options.seed)
    if not words:
        return None
    return parse_arguments([*words, "--tools", str(options.tools),
                            *["--keep"] * options.keep])


def kinds_of(text: str) -> set[str]:
    """all, harmless, or names; a name with a minus in front is left out."""
    kinds: set[str] = set()
    for word in text.split(","):
        if word.startswith("-"):
            kinds.discard(word[1:])
        elif word != "none":
            kinds |= {"all": ALL, "harmless": HARMLESS}.get(word, {word})
    unknown = kinds - set(KINDS)
    if unknown:
        sys.exit(f"nemesis: no such fault: {', '.join(sorted(unknown))}; there "
                 f"are {', '.join(KINDS)}, all, harmless and none")
    return kinds


class Run:
    def __init__(self, options: argparse.Namespace, kinds: set[str],
                 directory: Path) -> None:
        self.options = options
        max_ttls = max_ttls_ms(options.seed)
        self.max_ttl_ms = max(max_ttls)
        self.quarantine_s = quarantine_s(self.max_ttl_ms)
        self.history = History()
        self.cluster = Cluster(Config(
            Path(os.environ.get("REDLOCKD", BINARY)).resolve(),
            (options.tools / "nemesis-proxy").resolve(),
            (options.tools / "nemesis-shim.so").resolve(),
            directory, modes(options.seed), max_ttls,
            timeouts_ms(options.seed),
            Tls(directory / "tls") if options.tls else None,
            Identities(directory / "auth") if options.tls else None))
        self.world = World(options.resources, self.cluster.max_ttls_ms,
                           self.history, kinds)
        self.injector = Injector(self.cluster, self.history, self.quarantine_s,
                                 self.world.names)
        self.renewal = Renewal(self.cluster, options.seed)
        self.balancer: Balancer | None = None
        self.clients: list[Client] = []
        self.found: dict[Violation, None] = {}  # in order
        self.late: set[int] = set()  # calls, see checker.late_releases
        self.most_readers = 0
        self.damaged: set[str] = set()  # registers that lost an update
        self.judged_windows: set[int] = set()
        self.judged = [0]  # watchers that had to be told in calm times
        self.loaded_s = 0.0
        self.begun_s = time.monotonic()
        self.phases: list[str] = []  # how long each took
        self.handovers: Counter[str] = Counter()  # of servers as they are now

    # ---- phases -------------------------------------------------------------

    def _note_phase(self, name: str) -> None:
        """That it is over."""
        seconds, self.begun_s = time.monotonic() - self.begun_s, \
            time.monotonic()
        self.phases.append(f"{name} {seconds:.0f} s")

    def begin(self) -> None:
        tooltest.run(self.cluster, self.quarantine_s)
        self._note_phase("tools")
        for its in (self.cluster.nodes, self.cluster.servers):
            for one, ahead_s in zip(its, offsets_s(self.options.seed, len(its))):
                one.clock.set(ahead_s)
        if not self.cluster.start_servers(self.quarantine_s + SLACK_S):
            sys.exit("nemesis: the servers are not ready")
        self.descriptors = self._fewest_descriptors(2)
        self.cluster.learn_names()
        addresses = [server.address for server in self.cluster.servers]
        if "balancer" in self.world.kinds:
            self.balancer = Balancer(self.cluster.config.directory, addresses,
                                     self.cluster.config.tls)
            tooltest.test_balancer(self.balancer)
        known = self.cluster.config.identities
        self.clients = [
            Client(i, self.options.seed, self.world,
                   known.of_client(i) if known else ANYBODY,
                   [self._connections(i), self._connections(i)])
            for i in range(self.options.clients)]
        self.clients += self._guests(WIDE if known else ANYBODY)
        self._note_phase("start")
        self.history.begin = now()
        for client in self.clients:
            client.start()

    def _guests(self, who: Identity) -> list[Client]:
        """Those beside the clients that there are always."""
        kinds = [Watcher] * WATCHERS + [Keeper] * KEEPERS + [Poller] * POLLERS
        guests: list[Client] = []
        for i, kind in enumerate(kinds, self.options.clients):
            guests.append(kind(i, self.options.seed, self.world, who,
                               [self._connections(i), self._connections(i)]))
        keepers = [one for one in guests if isinstance(one, Keeper)]
        for place, keeper in enumerate(keepers):
            keeper.place = place
        return guests

    def _connections(self, client: int) -> list[Connection]:
        """A third of the clients does not reach the servers themselves."""
        context = self._context(client)
        if self.balancer and client % 3 == 0:
            mode = client // 3 % len(MODES)
            return [Connection(one, is_balanced=True, context=context)
                    for one in self.balancer.addresses[mode]]
        return [Connection(one.address, context=context)
                for one in self.cluster.servers]

    def _context(self, client: int) -> ssl.SSLContext | None:
        tls = self.cluster.config.tls
        return tls.of_client(client) if tls else None

    def inject(self, faults: list[Fault]) -> None:
        """Until all faults are over. Clients go on."""
        events = sorted([(fault.begin, 1, i, fault)
                         for i, fault in enumerate(faults)] +
                        [(fault.end, 2, i, fault)
                         for i, fault in enumerate(faults)])
        next_check = CHECK_S
        while ((at := self._seconds()) < self.options.seconds or events or
               self.injector.is_busy()):
            while events and events[0][0] <= at:
                _, what, _, fault = events.pop(0)
                (self.injector.begin if what == 1 else self.injector.end)(fault)
            self.injector.look()
            if "renew" in self.world.kinds and self.renewal.look():
                self.injector.done["renew"] += 1
            self._set_quiet(self.injector.is_quiet)
            self._watch()
            if at >= next_check:
                self.check()
                self.history.forget(now() - MEMORY_S * SECOND)
                next_check = self._seconds() + CHECK_S
            due = events[0][0] if events else self.options.seconds
            pause = 0.02 if self.injector.is_busy() else 0.1
            time.sleep(max(0.001, min(pause, due - self._seconds())))

    def _set_quiet(self, is_quiet: bool) -> None:
        if is_quiet:
            self.world.goes_on.clear()
        else:
            self.world.goes_on.set()

    def finish(self) -> None:
        """Everything is whole again: what must be true then?"""
        self._note_phase("faults")
        self.injector.heal()
        self._check_whole()
        self._note_phase("whole")
        self.loaded_s = self._seconds()
        self.world.stop.set()
        for client in self.clients:
            client.join(60)
        if self.balancer:
            self.balancer.close()
            self.balancer = None
        self.check()
        self._note_phase("checks")
        self._check_mortal()
        self._note_phase("mortal")
        self._check_waiters()
        self._check_descriptors()
        self._note_phase("descriptors")
        self._watch()
        for server in self.cluster.servers:
            for violation in ended(server, server.stop()):
                self.report(violation)
        self._check_logs()
        self._check_drawn()
        self._note_phase("end")

    # ---- looking ------------------------------------------------------------

    def check(self) -> None:
        calls = self.history.snapshot()
        self.late |= late_releases(calls)
        self.most_readers = max(self.most_readers, most_readers(calls))
        for violation in check(calls, self.injector.kills(),
                               self.history.highest, self.history.forgotten):
            self.report(violation)
        self._check_watched(calls)
        for register in self.world.registers.values():
            with register.lock:
                violations = register.check(now())
            if violations and register.name not in self.damaged:
                self.damaged.add(register.name)
                self.report(violations[0])
        for found in (self.world.violations, self.injector.violations):
            while found:
                self.report(found.pop(0))

    def _check_watched(self, calls: list[Call]) -> None:
        """Each calm time once, when what came behind it is known."""
        windows = [one for one in self.injector.windows if one.is_judged and
                   one.begin not in self.judged_windows]
        self.judged_windows |= {one.begin for one in windows}
        for violation in check_watched(calls, windows, self.judged):
            self.report(violation)

    def report(self, violation: Violation) -> None:
        if violation in self.found:
            return
        if self.options.keep and not self.found:
            self._keep_history()
        self.found[violation] = None
        same = sum(one.invariant == violation.invariant for one in self.found)
        if same > 3:
            return  # three stories of each are enough to read
        print(f"\nVIOLATION of {violation.invariant}: {violation.text}")
        for line in self.history.around(violation):
            print("  " + line)
        sys.stdout.flush()

    def _keep_history(self) -> None:
        """All calls that are remembered when the first violation is found."""
        path = self.cluster.config.directory / "history"
        path.write_text("".join(f"{line}\n" for line in self.history.lines()))

    def _watch(self) -> None:
        """Ends the run if something died that should not have."""
        # a driver that is broken proves nothing
        broken = [f"{client.name}: {client.error!r}" for client in self.clients
                  if client.error]
        broken += [text for text in self.cluster.died() if "node" in text]
        if self.cluster.proxy.child.poll() is not None:
            broken.append("the proxy died")
        if self.balancer and self.balancer.died() is not None:
            broken.append("the balancer died")
        if broken:
            sys.exit("nemesis: " + "; ".join(broken))
        for server in self.cluster.servers:
            if server.died() is not None:
                self.injector.note_death(server)

    def _check_whole(self) -> None:
        begin = now()
        limit_s = self.quarantine_s + SILENT_S + SLACK_S
        for server in self.cluster.servers:
            connection, head = self.cluster.visit(server), self.cluster.head()
            status = 0
            while status != 201 and now() < begin + limit_s * SECOND:
                name = f"alive{server.index}"
                call = Call(ACQUIRE, -1, server.index, (name,))
                body = f'{{"resource":"{name}","ttl_ms":200}}'
                connection.request(call, f"POST /locks HTTP/1.1\r\n{head}",
                                   body.encode())
                status = call.status
                self.injector.look()
                time.sleep(0.05)
            connection.close()
            if status != 201:
                self.report(Violation("whole", f"{server.name} granted nothing "
                                      f"for {limit_s:.0f} s", now()))
        while (silent := self._nodes_without_vote()) and \
                now() < begin + limit_s * SECOND:
            self.injector.look()
            self._watch()
            time.sleep(0.1)
        if silent:
            self.report(Violation("whole", f"{', '.join(silent)} do not vote "
                                  f"after {limit_s:.0f} s", now()))
        self.whole_s = (now() - begin) / SECOND

    def _nodes_without_vote(self) -> list[str]:
        try:
            return [f"{server.name} {name}" for server in self.cluster.servers
                    for name, value in server.metrics().items()
                    if name.startswith("redlockd_node_voting") and not value]
        except OSError as error:
            return [f"a server that is not there ({error})"]

    def _check_mortal(self) -> None:
        """A clock that was set back makes its keys live longer by that."""
        deadline = time.monotonic() + self.max_ttl_ms / 1000 + 25
        for node in self.cluster.nodes:
            while (keys := self._keys(node)) and time.monotonic() < deadline:
                time.sleep(0.2)
            if keys:
                self.report(Violation("mortal", f"{node.name} still has {keys}",
                                      now()))

    @staticmethod
    def _keys(node: Node) -> dict[str, int]:
        with Redis(node, 10) as redis:
            return redis.keys()

    def _check_waiters(self) -> None:
        """A server counts a lock that another one released until its end."""
        deadline = time.monotonic() + self.max_ttl_ms / 1000 + 0.5
        while (busy := self._busy()) and time.monotonic() < deadline:
            time.sleep(0.2)
        for violation in busy:
            self.report(violation)
        for server in self.cluster.servers:
            for name, value in server.metrics().items():
                if name.startswith("redlockd_handovers_total"):
                    cause = name.split('"')[1]
                    self.handovers[cause] += value

    def _busy(self) -> list[Violation]:
        """What servers still count."""
        kinds = {"redlockd_waiters": "waiters",
                 "redlockd_identity_locks": "holders"}
        return [Violation(kinds[name.split("{")[0]],
                          f"{server.name}: {name} {value}", now())
                for server in self.cluster.servers
                for name, value in server.metrics().items()
                if name.split("{")[0] in kinds and value]

    def _fewest_descriptors(self, seconds: float) -> list[int]:
        """Of each server: some come and go, those that leak stay."""
        fewest = [1 << 30] * SERVERS
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            fewest = [min(a, server.descriptors()) for a, server in
                      zip(fewest, self.cluster.servers)]
            time.sleep(0.05)
        return fewest

    def _check_descriptors(self) -> None:
        """At the latest when the server's idle deadline has passed."""
        most, begin = max(self.descriptors), now()
        while max(after := self._fewest_descriptors(2)) > most:
            if now() - begin > (IDLE_S + SLACK_S) * SECOND:
                break
        self.closed_s = (now() - begin) / SECOND
        text = f"{most} before, then {after}"
        for server, count in zip(self.cluster.servers, after):
            if count > most:
                text += f"; {server.name} at {server.address[1]}: "
                text += ", ".join(server.sockets())
        if max(after) > most:
            self.report(Violation("descriptors", text, now()))

    def _check_logs(self) -> None:
        for server in self.cluster.servers:
            for line in server.log.read_text(errors="replace").splitlines():
                for name, pattern in (("crash", CRASH), ("renewed", REFUSED)):
                    if pattern.search(line):
                        self.report(Violation(name, f"{server.name}: {line}",
                                              now()))

    def _check_drawn(self) -> None:
        """A run that is long enough asks for everything."""
        if self.options.seconds < DRAWN_S:
            return
        for what in self.world.drawn.missing():
            self.report(Violation("drawn", f"{what} was never asked", now()))

    def _seconds(self) -> float:
        return (now() - self.history.begin) / SECOND

    # ---- the end ------------------------------------------------------------

    def summary(self) -> int:
        world, registers = self.world, self.world.registers.values()
        cycles = sum(world.outcomes[f"{mode}{kind} {status}"]
                     for mode in ("", f"{SHARED} ")
                     for kind in ("acquire", "wait") for status in (200, 201))
        print(f"\n{cycles} cycles, {cycles / self.loaded_s:.0f}/s; "
              f"{sum(world.outcomes.values())} calls; "
              f"{sum(one.updates for one in registers)} updates, "
              f"{sum(one.refusals for one in registers)} refused")
        for title, counts in (("outcomes", world.outcomes),
                              ("faults", self.injector.done),
                              ("handovers since the servers' last start",
                               self.handovers)):
            print(f"{title}: " + ", ".join(
                f"{name} {count}" for name, count in sorted(counts.items())))
        print(f"it took: {', '.join(self.phases)}")
        print(f"releases of locks that had ended, answered 200: "
              f"{len(self.late)}")
        print(f"readers: at most {self.most_readers} at once; "
              f"{world.downgrades} downgrades")
        spread = sum(len(one.judged) for one in self.injector.windows
                     if one.is_judged)
        print(f"calm times: {len(self.judged_windows)}, in which "
              f"{self.judged[0]} watchers had to be told, and {spread} locks "
              "to be on each node")
        without = len(world.without - world.granting)
        share = without * BUCKET / SECOND / self.loaded_s
        print(f"without quorum: {share:.0%} of the time; whole again after "
              f"{self.whole_s:.1f} s; all connections of clients closed after "
              f"{self.closed_s:.0f} s")
        failed = 0
        for name in INVARIANTS + AT_END:
            count = sum(one.invariant == name for one in self.found)
            failed += count > 0
            print(f"  {'FAIL' if count else 'ok  '} {name}" +
                  (f": {count} times" if count else ""))
        print(kept.advice(self.options, self.options.is_new) if failed else
              f"seed {self.options.seed}")
        print(f"{len(INVARIANTS + AT_END) - failed} passed, {failed} failed")
        return 1 if failed else 0


def main() -> int:
    options = parse_arguments()
    print(f"selftest: {selftest.run()} passed")
    if options.kept:
        if (one := kept_one(options)) is None:
            print("no seeds are kept")
            return 0
        options = one
    kinds = kinds_of(options.faults)
    print(f"seed {options.seed}, {options.seconds:g} s of faults: "
          f"{', '.join(sorted(kinds))}", flush=True)
    print(f"replay with: {kept.replay(options)}")
    print(f"nodes keep their data: {', '.join(modes(options.seed))}; servers "
          f"allow locks of {max_ttls_ms(options.seed)} ms, and wait for "
          f"{timeouts_ms(options.seed)} ms", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # tidy up
    directory = Path(tempfile.mkdtemp(prefix="redlockd-nemesis."))
    run = Run(options, kinds, directory)
    try:
        run.begin()
        run.inject(plan(options.seed, options.seconds, kinds, run.quarantine_s))
        run.finish()
        return run.summary()
    finally:
        if run.balancer:
            run.balancer.close()
        run.cluster.close()
        if options.keep:
            print(f"logs and data are in {directory}", file=sys.stderr)
        else:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
