# SPDX-License-Identifier: MIT
"""One deliberate defect: it removes one safeguard."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Edit:
    path: str
    old: str  # occurs exactly once
    new: str


@dataclass(frozen=True)
class Defect:
    name: str
    suite: str  # sim: the simulator finds it; nemesis: real processes do;
                # differ: so does the comparison of scripts and simulated nodes
                # unit: a unit test does; ctl: one of redlockctl
    falls: str  # the invariant that it breaks; differ: "batch"; unit: the test
    edits: list[Edit] = field(default_factory=list)
    faults: str = "all"  # the kinds that reveal it
    seed: int = 1        # the first, or the only one
    tls: bool = False    # nemesis: over TLS, and with an auth file
    tests: str = ""      # unit: the suite
    model: str = ""      # model: this one finds it, with this rule off
    rule: str = ""
    world: str = ""      # switches of the model that are always on

    def macros(self) -> list[str]:
        return [*self.world.split(), *self.rule.split()]


def plant(name: str, where: str, falls: str, path: str, old: str, new: str,
          **how: Any) -> Defect:
    """One edit. where: the suite; of unit and ctl, also which of its tests."""
    suite, _, tests = where.partition(" ")
    return Defect(name, suite, falls, [Edit(path, old, new)], tests=tests, **how)
