#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""redlockctl over TLS, with client certificates and tokens: which servers it
trusts, what it says when it is refused, and whether its secrets stay secret.

secure.py [TEST...]
"""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gate import Certificates, Gate
from world import WAIT_S, World, children, play, tests_of, wait_until

from guarded import REDLOCKD, Guarded, identity  # in ../lib

TOKEN, NEXT = "first+token/of~2026==", "second.token"
DENIED, USAGE, NO_ANSWER, FOREIGN = 77, 64, 75, 76
TTL = ("-t", "3")
SLEEP = ("sh", "-c", ": >begun; sleep 60")


class Desk:
    """Runs redlockctl in a folder of its own."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.folder = world.folder / "desk"
        self.folder.mkdir()
        self.certificates = Certificates(self.folder)
        self.ctl = str(Path(world.redlockctl).resolve())
        self.target = world.server_ports[0]
        self.ca = ("--cacert", "ca.pem")

    def gate(self, **how) -> Gate:
        return Gate(self.target, self.certificates, **how)

    def environment(self, variables: dict[str, str]) -> dict[str, str]:
        kept = {name: text for name, text in os.environ.items()
                if not name.startswith("REDLOCKD_")}
        return {**kept, **variables}

    def start(self, *words: str, **variables: str) -> subprocess.Popen:
        return subprocess.Popen(
            [self.ctl, *words], cwd=self.folder, text=True,
            env=self.environment(variables), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def gives(self, status: int, text: str, *words: str,
              **variables: str) -> str:
        """It ends with this status, and its messages contain this."""
        ctl = self.start(*words, **variables)
        try:
            said, _ = ctl.communicate(timeout=40)
        finally:
            ctl.kill()
        what = f"redlockctl {' '.join(words)}: {ctl.returncode}, {said!r}"
        assert ctl.returncode == status and text in said, what
        assert TOKEN not in said and NEXT not in said, what
        return said

    def write(self, name: str, text: str) -> str:
        """In one step, as secrets should be replaced."""
        (self.folder / "new").write_text(text)
        (self.folder / "new").rename(self.folder / name)
        return name

    def run(self, gates: list[Gate], *words: str, ttl: str = "1",
            **variables: str) -> subprocess.Popen:
        """redlockctl run; returns when its command runs."""
        (self.folder / "begun").unlink(missing_ok=True)
        urls = [word for gate in gates for word in ("--url", gate.url)]
        ctl = self.start("run", *urls, *self.ca, "-t", ttl, "--grace", "0.1",
                         *words, "kept", "--", *SLEEP, **variables)
        try:
            wait_until((self.folder / "begun").exists, "the command", WAIT_S)
        except TimeoutError:
            ctl.kill()
            raise AssertionError(ctl.communicate()[0]) from None
        return ctl

    def stop(self, ctl: subprocess.Popen, seconds: float = 0) -> None:
        """It must still run after this time, and have released the lock."""
        time.sleep(seconds)
        was_alive = ctl.poll() is None
        ctl.terminate()
        said, _ = ctl.communicate(timeout=40)
        assert was_alive and ctl.returncode == 143, (ctl.returncode, said)


# ---- TLS ----------------------------------------------------------------------

def commands_speak_tls(desk: Desk) -> None:
    with desk.gate() as gate:
        url = ("--url", gate.url)
        desk.gives(0, "mine", "run", *url, *desk.ca, *TTL, "a", "--", "echo", "mine")
        desk.gives(0, "vote", "nodes", *url, *desk.ca)
        desk.gives(0, "vote", "nodes", *url, REDLOCKD_CACERT=desk.ca[1])


def one_handshake_is_enough(desk: Desk) -> None:
    """Extends and the release use the connection of the acquire. A busy machine
    may time one extend out, which closes the connection."""
    with desk.gate() as gate:
        desk.stop(desk.run([gate], ttl="3"), 5)
        assert [method for method, _ in gate.asked].count("PUT") >= 3
        assert gate.handshakes <= 2, gate.handshakes


def bad_certificates_are_refused(desk: Desk) -> None:
    """It ends at once; without any answer, run would wait without a limit."""
    for name, reason in (("expired", "expired"), ("elsewhere", "127.0.0.1"),
                         ("foreign", "certificate")):
        with desk.gate(name=name) as gate:
            for command in ("run", "x", "--", "true"), ("show", "x"):
                desk.gives(DENIED, reason, command[0], "--url", gate.url,
                           *desk.ca, *command[1:])
            assert not gate.asked, "it has sent a request"


def system_does_not_trust_it(desk: Desk) -> None:
    with desk.gate() as gate:
        desk.gives(DENIED, "certificate", "show", "--url", gate.url, "x")


def good_replica_is_found_behind_bad_ones(desk: Desk) -> None:
    with desk.gate(name="expired") as bad, desk.gate() as good:
        desk.gives(0, "mine", "run", "--url", bad.url, "--url", good.url,
                   *desk.ca, *TTL, "a", "--", "echo", "mine")


def files_are_checked_first(desk: Desk) -> None:
    url = ("--url", "https://127.0.0.1:1")
    desk.gives(USAGE, "--cacert: none.pem cannot be read: No such file", "show",
               *url, "--cacert", "none.pem", "x")
    desk.gives(USAGE, "REDLOCKD_CERT: . cannot be read: Is a directory", "show",
               *url, "x", REDLOCKD_CERT=".")
    desk.gives(USAGE, "--key without --cert", "show", *url, "--key",
               "client.key", "x")


def both_sides_have_certificates(desk: Desk) -> None:
    with desk.gate(client_ca="ca.pem") as gate:
        url = ("--url", gate.url, *desk.ca)
        desk.gives(0, "vote", "nodes", *url, "--cert", "client.pem", "--key",
                   "client.key")
        desk.gives(0, "vote", "nodes", *url, REDLOCKD_CERT="client.pem",
                   REDLOCKD_KEY="client.key")
        both = (desk.folder / "client.pem").read_text() + \
            (desk.folder / "client.key").read_text()
        desk.write("both.pem", both)
        desk.gives(0, "vote", "nodes", *url, "--cert", "both.pem")
        desk.gives(DENIED, "key", "nodes", *url, "--cert", "client.pem",
                   "--key", "stranger.key")
        # the alert with the reason may come too late to be read
        desk.gives(NO_ANSWER, gate.url, "nodes", *url)
        desk.gives(NO_ANSWER, gate.url, "nodes", *url, "--cert",
                   "stranger.pem", "--key", "stranger.key")


def key_with_a_passphrase_asks_nobody(desk: Desk) -> None:
    """It does not ask on the terminal, where it would wait without a limit."""
    subprocess.run(["openssl", "ec", "-aes128", "-passout", "pass:x", "-in",
                    "client.key", "-out", "locked.key"], cwd=desk.folder,
                   check=True, capture_output=True)
    with desk.gate(client_ca="ca.pem") as gate:
        words = ("nodes", "--url", gate.url, *desk.ca, "--cert", "client.pem",
                 "--key", "locked.key")
        desk.gives(DENIED, "key", *words)
        script = subprocess.Popen(
            ["script", "-qec", f"{desk.ctl} {' '.join(words)}", "/dev/null"],
            cwd=desk.folder, env=desk.environment({}), stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL)
        try:
            assert script.wait(20) == DENIED, script.returncode
        finally:
            script.kill()
            script.communicate()


def replaced_certificate_is_used(desk: Desk) -> None:
    """The next connection of the same redlockctl uses it; until there is a good
    one, the command goes on."""
    with desk.gate(client_ca="ca.pem") as gate:
        for end in "pem", "key":
            desk.write(f"mine.{end}", (desk.folder / f"client.{end}").read_text())
        ctl = desk.run([gate], "--cert", "mine.pem", "--key", "mine.key",
                       ttl="3")
        (desk.folder / "mine.key").rename(desk.folder / "away.key")
        gate.cut_connections()
        before = len(gate.asked)
        time.sleep(2)
        (desk.folder / "away.key").rename(desk.folder / "mine.key")
        desk.stop(ctl, 4)
        assert len(gate.asked) > before, "it was not asked any more"


def hung_handshake_costs_no_lock(desk: Desk) -> None:
    """The other replica is asked in time, by the acquire and by extends."""
    with desk.gate() as hung, desk.gate() as good:
        hung.is_silent = True
        began = time.monotonic()
        ctl = desk.run([hung, good])
        assert time.monotonic() - began < 10, "too late"
        desk.stop(ctl, 4)
        hung.is_silent = False
        ctl = desk.run([hung, good])
        hung.is_silent = True
        hung.cut_connections()
        desk.stop(ctl, 4)


def tls_and_plain_do_not_mix(desk: Desk) -> None:
    plain = f"127.0.0.1:{desk.target}"
    desk.gives(FOREIGN, f"https://{plain} does not speak TLS", "show", "--url",
               f"https://{plain}", *desk.ca, "x")
    with desk.gate() as gate:
        url = gate.url.replace("https", "http")
        desk.gives(NO_ANSWER, f"{url}: ", "show", "--url", url, "x")


def a_probe_over_loopback_has_no_secrets(desk: Desk) -> None:
    """And needs none: the server asks itself."""
    for name in "expired", "elsewhere", "foreign":
        with desk.gate(name=name) as gate:
            desk.gives(0, "", "ready", "--url", gate.url,
                       REDLOCKD_AUTH_TOKEN=TOKEN)
            desk.gives(0, "", "ready", REDLOCKD_TLS_CERT="any",
                       REDLOCKD_LISTEN=f"0.0.0.0:{gate.server_port}")
            assert gate.asked == [("GET", "")] * 2, gate.asked
    with desk.gate(client_ca="ca.pem") as gate:
        desk.gives(1, gate.url, "ready", "--url", gate.url)
        url = gate.url.replace("127.0.0.1", "[::ffff:127.0.0.1]")
        desk.gives(1, "certificate", "ready", "--url", url)


def a_server_that_is_not_ready_is_told(desk: Desk) -> None:
    with desk.gate() as gate:
        gate.refusals = 1
        desk.gives(1, "is not ready: status 429", "ready", "--url", gate.url)
        gate.is_silent, began = True, time.monotonic()
        desk.gives(1, gate.url, "ready", "--url", gate.url)
        assert time.monotonic() - began < 6, "too late"


# ---- tokens -------------------------------------------------------------------

def token_lets_in(desk: Desk) -> None:
    with desk.gate() as gate:
        gate.tokens = [TOKEN]
        url = ("--url", gate.url, *desk.ca)
        for text in TOKEN, f"{TOKEN}\n", f"{TOKEN}\r\n":
            file = desk.write("token", text)
            desk.gives(0, "vote", "nodes", *url, "--auth-token-file", file)
        desk.gives(0, "vote", "nodes", *url, REDLOCKD_AUTH_TOKEN_FILE="token")
        desk.gives(0, "vote", "nodes", *url, REDLOCKD_AUTH_TOKEN=TOKEN)
        desk.gives(0, "mine", "run", *url, *TTL, "--auth-token-file", "token",
                   "a", "--", "echo", "mine", REDLOCKD_AUTH_TOKEN="not\nthis")


def token_that_is_missing_or_wrong(desk: Desk) -> None:
    """It ends at once, although run waits without a limit."""
    with desk.gate() as gate:
        gate.tokens = [TOKEN]
        run = ("run", "--url", gate.url, *desk.ca, "-w", "30", "x", "--",
               "true")
        file = desk.write("token", "wrong")
        desk.gives(DENIED, "give an access token with --auth-token-file", *run)
        desk.gives(DENIED, "is the access token in REDLOCKD_AUTH_TOKEN", *run,
                   REDLOCKD_AUTH_TOKEN="wrong")
        desk.gives(DENIED, "is the access token in the file of", *run,
                   REDLOCKD_AUTH_TOKEN_FILE=file)
        said = desk.gives(DENIED, "not authenticated (401): the token is not",
                          *run)
        assert "gave up after" not in said and "wrong" not in said, said
        for words in ("nodes",), ("extend", "x"), ("release", "x"):
            began = time.monotonic()
            desk.gives(DENIED, "(401)", words[0], "--url", gate.url, *desk.ca,
                       *words[1:], REDLOCKD_TOKEN="1.2")
            assert time.monotonic() - began < 5, words
        gate.is_terse = True
        desk.gives(DENIED, "not authenticated (401): ", *run)
        desk.gives(DENIED, "; give an access token", *run)


def what_is_forbidden(desk: Desk) -> None:
    with desk.gate() as gate:
        gate.is_forbidden = True
        desk.gives(DENIED, "not allowed (403): the scope lock", "run", "--url",
                   gate.url, *desk.ca, "x", "--", "true")


def token_files_are_checked(desk: Desk) -> None:
    def says(text: str, reason: str) -> None:
        file = desk.write("token", text)
        desk.gives(USAGE, f"--auth-token-file: {file}: it {reason}", "nodes",
                   "--auth-token-file", file)
    says("", "is empty")
    says("\n", "is empty")
    says(f"{TOKEN}\n\n", "has more than one line")
    says(f"{TOKEN}\n{NEXT}\n", "has more than one line")
    says(f"{TOKEN} ", "contains a character")
    says(f"{TOKEN}é", "contains a character")
    says(f"{TOKEN}\0", "contains a character")
    says("x" * 4097, "is longer than 4096")
    desk.gives(USAGE, "none: No such file", "nodes", "--auth-token-file", "none")
    desk.gives(USAGE, ".: Is a directory", "nodes", "--auth-token-file", ".")
    desk.gives(USAGE, "both set", "nodes", REDLOCKD_AUTH_TOKEN=TOKEN,
               REDLOCKD_AUTH_TOKEN_FILE="token")
    desk.gives(USAGE, "REDLOCKD_AUTH_TOKEN: it has more", "nodes",
               REDLOCKD_AUTH_TOKEN=f"{TOKEN}\n{NEXT}")
    for words in ("--auth-token", TOKEN), (f"--auth-token={TOKEN}",):
        desk.gives(USAGE, "--auth-token: everybody could see it", "nodes",
                   *words)


def token_is_rotated(desk: Desk) -> None:
    """The new file or the new list of the service may come first; meanwhile the
    lock is not lost."""
    with desk.gate() as gate:
        gate.tokens = [TOKEN]
        desk.write("token", TOKEN)
        ctl = desk.run([gate], "--auth-token-file", "token", ttl="3")
        gate.tokens = [NEXT]
        wait_until(lambda: len(gate.asked) >= 3, "a refusal", WAIT_S)
        desk.write("token", "half a tok")
        before = len(gate.asked)
        wait_until(lambda: len(gate.asked) > before, "another one", WAIT_S)
        desk.write("token", NEXT)
        desk.stop(ctl, 3)
        assert gate.asked[-1] == ("DELETE", f"Bearer {NEXT}"), gate.asked[-1]
        ctl = desk.run([gate], "--auth-token-file", "token", ttl="3")
        desk.write("token", TOKEN)
        gate.tokens = [TOKEN]
        desk.stop(ctl, 3)


def identity_that_was_removed_loses_the_lock(desk: Desk) -> None:
    with desk.gate() as gate:
        gate.tokens = [TOKEN]
        ctl = desk.run([gate], ttl="3", REDLOCKD_AUTH_TOKEN=TOKEN)
        gate.tokens = [NEXT]
        said, _ = ctl.communicate(timeout=40)
        assert ctl.returncode == 70 and "(401)" in said, (ctl.returncode, said)


# ---- secrets ------------------------------------------------------------------

def family(pid: int) -> list[int]:
    found = [pid]
    for member in found:
        found += children(member)
    return found


def token_is_not_told(desk: Desk) -> None:
    """By ps, by the command, or by readers of /proc."""
    with desk.gate() as gate:
        gate.tokens = [TOKEN]
        file = desk.write("token", TOKEN)
        for words, variables in ((("--auth-token-file", file), {}),
                                 ((), {"REDLOCKD_AUTH_TOKEN": TOKEN}),
                                 ((), {"REDLOCKD_AUTH_TOKEN_FILE": file})):
            ctl = desk.run([gate], *words, **variables)
            members = family(ctl.pid)
            assert len(members) >= 3, members
            for pid in members:
                for what in "cmdline", "environ":
                    text = Path(f"/proc/{pid}/{what}").read_bytes()
                    assert TOKEN.encode() not in text, (pid, what)
            command = Path(f"/proc/{members[2]}/environ").read_bytes()
            assert b"REDLOCKD_TOKEN=" in command, "the lock's is for it"
            assert b"REDLOCKD_AUTH_TOKEN=" not in command
            desk.stop(ctl)


# ---- limits -------------------------------------------------------------------

def limited_client_comes_back_when_told(desk: Desk) -> None:
    with desk.gate() as gate:
        url = ("--url", gate.url, *desk.ca)
        for gate.is_terse in False, True:
            gate.refusals, began = 2, time.monotonic()
            desk.gives(0, "mine", "run", *url, *TTL, "-w", "20", "a", "--",
                       "echo", "mine")
            assert time.monotonic() - began >= 2, "it did not wait"
            assert [method for method, _ in gate.asked] == \
                ["POST", "POST", "POST", "DELETE"], gate.asked
            gate.asked.clear()
        gate.refusals, gate.is_terse = 1000, False
        desk.gives(NO_ANSWER, "you ask too often; gave up after 0.5 s", "run",
                   *url, *TTL, "-w", "0.5", "a", "--", "true")
        desk.gives(NO_ANSWER, "you ask too often", "nodes", *url)


def limit_costs_no_lock(desk: Desk) -> None:
    with desk.gate() as gate:
        ctl = desk.run([gate], ttl="3")
        gate.refusals = 3
        desk.stop(ctl, 5)
        assert gate.refusals == 0


# ---- a redlockd that authenticates --------------------------------------------

CLIENT = ("--cert", "client.pem", "--key", "client.key")


def guarded(desk: Desk, *identities: str, client_ca: str = "") -> Guarded:
    return Guarded(REDLOCKD,
                   Path(tempfile.mkdtemp(dir=desk.folder)) / "guarded",
                   desk.certificates, *identities, client_ca=client_ca)


def a_real_server_knows_tokens(desk: Desk) -> None:
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


def a_token_lets_in_again(desk: Desk) -> None:
    """It is not in the environment of the command, but of the next start."""
    with guarded(desk, identity("batch", TOKEN)) as guard:
        script = ('test -z "$REDLOCKD_AUTH_TOKEN" && echo run >>"$0" && '
                  'test "$(wc -l <"$0")" -ge 2 && echo twice')
        desk.gives(0, "twice", "run", "--again", "--url", guard.url, *desk.ca,
                   *TTL, "again", "--", "sh", "-c", script, "again.notes",
                   REDLOCKD_AUTH_TOKEN=TOKEN)


def a_real_server_knows_certificates(desk: Desk) -> None:
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


if __name__ == "__main__":
    sys.exit(play(tests_of(globals(), "Desk"), Desk))
