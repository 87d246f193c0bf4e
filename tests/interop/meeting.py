# SPDX-License-Identifier: MIT
"""A lock library meets redlockd on the same nodes: who keeps whom out."""
import itertools
import math
import time
from collections import Counter

from waiting import wait_until
from world import must, try_until

THEIRS_MS = 60000  # of locks that must last
OURS_MS = 20000
SHORT_MS = 300     # of locks that are to expire
LIMIT_S = 10       # for what happens at once, on a busy machine
WAIT_MS = 10000    # for a release, in redlockd
TRIES = 4


class Score:
    """What must be so whatever the library does."""

    def __init__(self):
        self.counts = Counter()

    def check(self, is_so, what):
        self.counts["passed" if is_so else "failed"] += 1
        if not is_so:
            print(f"FAIL {what}", flush=True)


class Meeting:
    """`theirs` and `ours` are clients; `world` has the nodes of redlockd. verb:
    with which ours acquires: acquire, or share, as a reader."""
    numbers = itertools.count()

    def __init__(self, score, world, server, ours, neighbour, theirs,
                 server_prefix="", verb="acquire"):
        self.score = score
        self.world = world
        self.server = server
        self.ours = ours
        self.neighbour = neighbour
        self.theirs = theirs
        self.server_prefix = server_prefix  # its --key-prefix
        self.verb = verb
        self.losses = []  # what cost redlockd a lock, what its extend said

    def check(self, is_so, what):
        self.score.check(is_so, f"{self.neighbour.name}: {self.verb}: {what}")

    def names(self, step):
        """A resource of its own for each step: the library's name, redlockd's,
        and the key on the nodes."""
        resource = f"{step}-{next(self.numbers)}"
        key = self.neighbour.key_prefix + resource
        return resource, key.removeprefix(self.server_prefix), key

    # -- what the nodes have

    def values(self, key):
        """Of readers their tokens: an extend changes what else is there."""
        return [node.do("ZRANGE", key, 0, -1)
                if node.do("TYPE", key) == "zset" else node.do("DUMP", key)
                for node in self.world.nodes]

    def longest_ms(self, key, values):
        """Of the nodes that still have these values."""
        return max(node.do("PTTL", key)
                   for node, now, then in zip(self.world.nodes,
                                              self.values(key), values)
                   if now == then)

    def clear(self, key):
        for node in self.world.nodes:
            node.do("DEL", key)

    def wait_for(self, key, is_there, what):
        wait_until(lambda: all((value is not None) == is_there
                               for value in self.values(key)), what, LIMIT_S)

    # -- steps of redlockd

    def ask_ours(self, name, ttl_ms):
        return self.ours.ask(self.verb, name, ttl_ms)

    def we_acquire(self, name, key):
        """On all nodes. A busy machine may make one of them too late, or cost it
        its vote for a while: then what the server says of the nodes is told."""
        for tries_left in range(TRIES - 1, -1, -1):
            must(self.ask_ours(name, OURS_MS), "redlockd acquires")
            try:
                self.wait_for(key, True, f"redlockd sets {key} on all nodes")
                break
            except TimeoutError as error:
                print(f"{error}: {self.server.get('/nodes')[1]}", flush=True)
                if not tries_left:
                    raise
                self.ours.release(name)
        return self.values(key)

    def we_lost(self, name, key, before, what):
        """What became of our lock, and whether redlockd tells."""
        after = self.values(key)
        quorum = len(before) // 2 + 1
        again = self.ours.extend(name, OURS_MS)
        if sum(a == b for a, b in zip(after, before)) >= quorum:
            self.check(again.said_yes, f"{what}: our extend: {again}")
            self.check(self.longest_ms(key, before) <= OURS_MS,
                       f"{what}: it lengthened our lock")
            self.ours.release(name)
            return None
        is_gone = after.count(None) >= quorum
        code = "404 lock_not_found" if is_gone else "409 not_owner"
        self.check(again.why == code, f"{what}: our extend: {again}")
        word = "deletes" if is_gone else "overwrites"
        self.losses.append((f"{what} {word}", again.why))
        self.ours.release(name)
        self.clear(key)
        return word

    # -- the questions

    def free_nodes(self, is_bare):
        """bare: those that the holder cannot lock, on just as many as it needs
        to hold; else none."""
        nodes = self.world.nodes
        return nodes[math.ceil(self.neighbour.quorum(len(nodes))):] \
            if is_bare else []

    def keeps_us_out(self, is_bare=False):
        resource, name, key = self.names("out")
        free = self.free_nodes(is_bare)
        self.world.occupy(key, free)
        must(self.theirs.acquire(resource, THEIRS_MS), "the library acquires")
        self.world.vacate(key, free)
        answer = self.ask_ours(name, OURS_MS)
        if answer.said_yes:
            self.ours.release(name)
            self.theirs.release(resource)
            return "no"
        self.check(answer.why == "409 lock_held", f"held: {answer}")
        status, body = self.server.get(f"/locks/{name}")
        self.check(status == 200, f"held, GET: {status} {body}")
        self.ours.begin(self.verb, name, OURS_MS, WAIT_MS)
        self.theirs.release(resource)
        after = self.ours.answer(WAIT_MS / 1000 + LIMIT_S)
        self.check(after and after.said_yes, f"after its release: {after}")
        self.ours.release(name)
        return "yes"

    def is_kept_out(self, is_bare=False):
        resource, name, key = self.names("in")
        free = self.free_nodes(is_bare)
        self.world.occupy(key, free)
        before = self.we_acquire(name, key)
        self.world.vacate(key, free)
        answer = self.theirs.acquire(resource, THEIRS_MS)
        self.check(self.neighbour.refusal in answer.why, f"refused: {answer}")
        word = self.we_lost(name, key, before, "acquire")
        if word or answer.said_yes:
            return word or "no"
        after = try_until(lambda: self.theirs.acquire(resource, THEIRS_MS),
                          LIMIT_S)
        self.check(after.said_yes, f"after redlockd's release: {after}")
        self.theirs.release(resource)
        return "yes"

    def late(self, verb, *ttl_ms):
        """What it does to our lock after its own has expired."""
        resource, name, key = self.names(verb)
        # a busy machine may use up so short a TTL
        must(try_until(lambda: self.theirs.acquire(resource, SHORT_MS),
                       LIMIT_S), "the library acquires")
        if self.neighbour.has_ttl:
            self.wait_for(key, False, f"{resource} expires")
        else:
            time.sleep(SHORT_MS / 1000 + 1.1)  # until its time is over
            answer = self.ask_ours(name, OURS_MS)
            self.check(answer.why == "409 lock_held", f"no TTL: {answer}")
            self.clear(key)  # as somebody must
        before = self.we_acquire(name, key)
        getattr(self.theirs, verb)(resource, *ttl_ms)
        return self.we_lost(name, key, before, f"late {verb}") or "harmless"

    def check_our_late_steps(self):
        """redlockd leaves a lock alone that the library got after its own."""
        resource, name, key = self.names("ours")
        must(try_until(lambda: self.ask_ours(name, SHORT_MS), LIMIT_S),
             "redlockd acquires")
        self.wait_for(key, False, "redlockd's lock expires")
        must(self.theirs.acquire(resource, THEIRS_MS), "the library acquires")
        self.wait_for(key, True, "the library sets it on all nodes")
        before = self.values(key)
        for answer in (self.ours.extend(name, OURS_MS),
                       self.ours.release(name)):
            self.check(answer.why == "409 not_owner", f"we, late: {answer}")
        self.check(self.values(key) == before, "our late steps changed its key")
        self.theirs.release(resource)

    def check_several(self):
        """A lock of several resources has a key for each of them."""
        resource, name, key = self.names("one")
        several = f"{name}+{self.names('other')[1]}"
        self.we_acquire(several, key)
        answer = self.theirs.acquire(resource, THEIRS_MS)
        self.check(not answer.said_yes, f"one of several: {answer}")
        self.ours.release(several)
        self.wait_for(key, False, "redlockd releases it on all nodes")
        must(self.theirs.acquire(resource, THEIRS_MS), "the library acquires")
        answer = self.ask_ours(several, OURS_MS)
        self.check(answer.why == "409 lock_held", f"several: {answer}")
        self.theirs.release(resource)

    def forced(self):
        """A release by somebody who does not hold the lock."""
        resource, name, key = self.names("forced")
        before = self.we_acquire(name, key)
        self.theirs.force_release(resource)
        self.we_lost(name, key, before, "`forceUnlock`")

    def everything(self):
        """The cells of its row."""
        cells = [self.keeps_us_out(), self.is_kept_out()]
        if not self.neighbour.is_single:
            bare = [self.keeps_us_out(True), self.is_kept_out(True)]
            self.check(bare == cells, f"{bare} on a bare majority")
        cells.append(self.late("extend", THEIRS_MS)
                     if self.neighbour.can_extend else "–")
        cells.append(self.late("release"))
        self.check_our_late_steps()
        if cells[1] == "yes":
            self.check_several()
        return cells
