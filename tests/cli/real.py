#!/usr/bin/env python3
"""redlockctl and a redlockd that authenticates: secure.py tries more than
redlockd does, here both have to understand each other.

real.py [TEST...]
"""
from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from secure import DENIED, NEXT, NO_ANSWER, TOKEN, TTL, Desk, play

from guarded import Guarded, identity  # in ../lib

CLIENT = ("--cert", "client.pem", "--key", "client.key")


def guarded(desk: Desk, *identities: str, client_ca: str = "") -> Guarded:
    return Guarded(desk.world.redlockd,
                   Path(tempfile.mkdtemp(dir=desk.folder)) / "guarded",
                   desk.certificates, *identities, client_ca=client_ca)


def token_lets_in(desk: Desk) -> None:
    with guarded(desk, identity("batch", TOKEN, "lock,read prefix=b/"),
                 identity("reader", NEXT, "read")) as guard:
        url = ("--url", guard.url, *desk.ca)
        run = ("run", *url, *TTL, "b/1", "--", "echo", "mine")
        desk.gives(0, "mine", *run, REDLOCKD_AUTH_TOKEN=TOKEN)
        desk.gives(0, "mine", *run,
                   REDLOCKD_AUTH_TOKEN_FILE=desk.write("token", TOKEN))
        desk.gives(0, "voting", "nodes", *url, REDLOCKD_AUTH_TOKEN=NEXT)
        desk.gives(DENIED, "not authenticated (401)", *run)
        desk.gives(DENIED, "not authenticated (401)", *run,
                   REDLOCKD_AUTH_TOKEN="somebody-elses")
        # without the scope lock, and outside of the prefix
        desk.gives(DENIED, "not allowed (403)", *run, REDLOCKD_AUTH_TOKEN=NEXT)
        desk.gives(DENIED, "not allowed (403)", "run", *url, *TTL, "c/1", "--",
                   "true", REDLOCKD_AUTH_TOKEN=TOKEN)


def token_lets_in_again(desk: Desk) -> None:
    """It is not in the environment of the command, but of the next start."""
    with guarded(desk, identity("batch", TOKEN)) as guard:
        script = ('test -z "$REDLOCKD_AUTH_TOKEN" && echo run >>"$0" && '
                  'test "$(wc -l <"$0")" -ge 2 && echo twice')
        desk.gives(0, "twice", "run", "--again", "--url", guard.url, *desk.ca,
                   *TTL, "again", "--", "sh", "-c", script, "again.notes",
                   REDLOCKD_AUTH_TOKEN=TOKEN)


def certificate_lets_in(desk: Desk) -> None:
    with guarded(desk, "gate cert:dns:gateway lock,read prefix=*", identity("batch", TOKEN),
                 client_ca="ca.pem") as guard:
        url = ("--url", guard.url, *desk.ca)
        run = ("run", *url, *TTL, "a", "--", "echo", "mine")
        desk.gives(0, "mine", *run[:1], *CLIENT, *run[1:])
        ctl = desk.run([guard], *CLIENT, ttl="3")
        desk.gives(0, "gate", "show", *url, *CLIENT, "kept")
        desk.stop(ctl)
        # a token takes precedence
        desk.gives(DENIED, "(401)", *run[:1], *CLIENT, *run[1:],
                   REDLOCKD_AUTH_TOKEN=NEXT)
        desk.gives(NO_ANSWER, guard.url, "nodes", *url,
                   REDLOCKD_AUTH_TOKEN=TOKEN)
        desk.gives(NO_ANSWER, guard.url, "nodes", *url, "--cert",
                   "stranger.pem", "--key", "stranger.key")


def token_is_rotated_while_a_lock_is_held(desk: Desk) -> None:
    with guarded(desk, identity("batch", TOKEN)) as guard:
        desk.write("token", TOKEN)
        ctl = desk.run([guard], "--auth-token-file", "token", ttl="3")
        guard.admit(identity("batch", NEXT))
        desk.write("token", NEXT)
        desk.stop(ctl, 4)
        desk.gives(1, "", "show", "--url", guard.url, *desk.ca, "kept",
                   REDLOCKD_AUTH_TOKEN=NEXT)
        desk.gives(DENIED, "(401)", "nodes", "--url", guard.url, *desk.ca,
                   REDLOCKD_AUTH_TOKEN=TOKEN)


def certificate_is_replaced_while_a_lock_is_held(desk: Desk) -> None:
    """By one of another CA: clients that trust that CA connect, and open
    connections go on."""
    with guarded(desk, identity("batch", TOKEN)) as guard:
        ctl = desk.run([guard], ttl="3", REDLOCKD_AUTH_TOKEN=TOKEN)
        guard.serve("foreign")
        nodes = ("nodes", "--url", guard.url, "--cacert")
        desk.gives(DENIED, "certificate", *nodes, "ca.pem",
                   REDLOCKD_AUTH_TOKEN=TOKEN)
        desk.gives(0, "voting", *nodes, "other-ca.pem",
                   REDLOCKD_AUTH_TOKEN=TOKEN)
        desk.stop(ctl, 4)


def limited_client_waits(desk: Desk) -> None:
    """A run makes two requests; after a 429 it waits as long as it says."""
    with guarded(desk, identity("batch", TOKEN, "lock rate=1 burst=2"),
                 identity("few", NEXT, "lock,read locks=1")) as guard:
        url = ("--url", guard.url, *desk.ca)
        began = time.monotonic()
        for _ in range(3):
            desk.gives(0, "mine", "run", *url, *TTL, "-w", "60", "a", "--",
                       "echo", "mine", REDLOCKD_AUTH_TOKEN=TOKEN)
        assert time.monotonic() - began >= 2, "it did not wait"
        ctl = desk.run([guard], REDLOCKD_AUTH_TOKEN=NEXT)
        desk.gives(NO_ANSWER, "gave up after 0.5 s", "run", *url, *TTL, "-w",
                   "0.5", "another", "--", "true", REDLOCKD_AUTH_TOKEN=NEXT)
        desk.stop(ctl)
        desk.gives(0, "mine", "run", *url, *TTL, "another", "--", "echo",
                   "mine", REDLOCKD_AUTH_TOKEN=NEXT)


TESTS: list[Callable[[Desk], None]] = [
    token_lets_in, token_lets_in_again, certificate_lets_in,
    token_is_rotated_while_a_lock_is_held,
    certificate_is_replaced_while_a_lock_is_held, limited_client_waits,
]

if __name__ == "__main__":
    sys.exit(play(TESTS))
