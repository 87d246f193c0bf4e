"""The tables of steps: what `make test`, the gate of each change, and the
nightly run consist of. Each step is a command that anybody can type.
"""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    name: str
    command: str
    kind: str = "waits"            # or "computes"
    after: tuple[str, ...] = ()    # the steps that must have passed
    limit_s: float = 45 * 60       # then it is killed, and has failed


def make(name: str, target: str = "", kind: str = "waits",
         after: tuple[str, ...] = ("build",)) -> Step:
    """`make NAME`, or another target, with its variables."""
    return Step(name, f"make --no-print-directory {target or name}", kind,
                after)


def computes(name: str, target: str = "",
             after: tuple[str, ...] = ("build",)) -> Step:
    return make(name, target, "computes", after)


# In the order in which they start: the longest first.
TEST = [
    make("integration", after=()),
    computes("sim", after=()),
    make("unit", after=()),
    make("readme", after=()),
    make("tls-test", after=()),
]

# What runs without a build of its own, and mostly waits.
WITH_NODES = [
    make("ctl-test"),
    make("python-test"),
    make("openapi-test"),
    make("examples"),
    make("compose-test"),
    make("neighbours"),
    make("alarms-test"),
    make("page-test"),
    make("kube-test"),
]

FIRST = [
    Step("deps", "scripts/deps.sh build run test readme lint analyse model "
         "fuzz nemesis tls openapi ctl examples page kube alarms"),
    make("build", "-j$(nproc) build tests manual", after=("deps",)),
]

GATE = [
    *FIRST,
    make("test"),
    computes("asan", "asan SHORT=1"),
    make("nemesis", "nemesis SECONDS=40"),
    make("nemesis-tls", "nemesis SECONDS=40 TLS=1"),
    make("nemesis-kept", "nemesis KEPT=1"),
    computes("lint"),
    computes("analyse", "analyse FOLDERS='server api cli'"),
    computes("model"),
    computes("fuzz", "fuzz FUZZ_SECONDS=3"),
    *WITH_NODES,
]

TABLES = {"test": TEST, "gate": GATE}
