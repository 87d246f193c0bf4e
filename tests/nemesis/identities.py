# SPDX-License-Identifier: MIT
"""Who may ask the servers of a run, and for what."""
from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from pathlib import Path

# not reached, but counted: idle, nobody may be taken to hold a lock
LIMITS = "rate=100000 locks=100000"


@dataclass(frozen=True)
class Identity:
    name: str
    token: str
    scopes: str = "lock,read"
    prefixes: tuple[str, ...] = ()

    def head(self) -> str:
        return f"Authorization: Bearer {self.token}\r\n" if self.token else ""

    def may_ask(self, resources: tuple[str, ...]) -> bool:
        return not self.prefixes or all(name.startswith(self.prefixes)
                                        for name in resources)

    def line(self) -> str:
        digest = hashlib.sha256(self.token.encode()).hexdigest()
        words = [self.name, f"sha256:{digest}", self.scopes, LIMITS]
        return " ".join(words + [f"prefix={one}" for one in self.prefixes or ("*",)])


ANYBODY = Identity("", "")  # where there is no auth file
WIDE = Identity("wide", "token-of-the-wide", "lock,read,metrics")
ADMIN = Identity("admin", "token-of-the-admin", "lock,read,metrics,admin")
# of twelve resources: r0 to r5, r10 and r11
NARROW = Identity("narrow", "token-of-the-narrow", prefixes=tuple(
    f"r{i}" for i in range(6)))
STRANGER = Identity("stranger", "token-of-the-wide-")  # in no file


class Identities:
    """Those of an auth file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.renew(random.Random())

    def renew(self, rng: random.Random) -> None:
        """The same three among others, elsewhere in the file."""
        others = [Identity(f"other-{rng.getrandbits(16):x}",
                           f"{rng.getrandbits(96):x}")
                  for _ in range(rng.randrange(4))]
        lines = sorted((one.line() for one in (WIDE, NARROW, ADMIN, *others)),
                       key=lambda _: rng.random())
        fresh = self.file.with_suffix(".new")
        fresh.touch(0o600)
        fresh.write_text("\n".join(lines) + "\n")
        fresh.replace(self.file)

    def of_server(self) -> list[str]:
        """The options of a redlockd."""
        return ["--auth-file", str(self.file)]

    @staticmethod
    def of_client(index: int) -> Identity:
        return (WIDE, NARROW)[index % 2]
