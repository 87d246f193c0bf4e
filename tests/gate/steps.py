# SPDX-License-Identifier: MIT
"""The tables of steps: what `make test`, the gate of each change, and the
nightly run consist of. Each step is a command that anybody can type.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Step:
    name: str
    command: str
    kind: str = "waits"            # or "computes"
    after: tuple[str, ...] = ()    # the steps that must have passed
    limit_s: float = 45 * 60       # then it is killed, and has failed
    is_alone: bool = False         # no other step that waits runs beside it
    has_second_try: bool = False   # at the end, when nothing runs beside it


def make(name: str, target: str = "", kind: str = "waits",
         after: tuple[str, ...] = ("build",), **more: Any) -> Step:
    """`make NAME`, or another target, with its variables."""
    return Step(name, f"make --no-print-directory {target or name}", kind,
                after, **more)


def timed(name: str, target: str = "",
          after: tuple[str, ...] = ("build",)) -> Step:
    """One whose tests can fail because the machine is too busy to keep up. The
    nemesis, the simulator and the model are none of these: they may not fail
    once."""
    return make(name, target, after=after, has_second_try=True)


def computes(name: str, target: str = "",
             after: tuple[str, ...] = ("build",)) -> Step:
    return make(name, target, "computes", after)


# In the order in which they start: the longest first.
TEST = [
    make("integration", after=()),
    make("sim", after=()),
    make("unit", after=()),
    timed("readme", after=()),
    make("tls-test", after=()),
    make("rights", after=()),
]

FIRST = [
    Step("deps", "scripts/deps.sh build run test readme lint analyse model redigo "
         "fuzz nemesis tls openapi generators go php phpredis ruby rubyredis java rust "
         "clients release ctl examples node page kube alerts rotate bench peers profile "
         "bench-node mutate deb debootstrap fresh"),  # check-tools
    make("build", "-j$(nproc) build tests manual", after=("deps",)),
]

# The tests keep both cores busy; what follows has clocks of its own to keep up
# with. The random numbers are the same each time: a change is to blame for what
# fails. The nights look for what is new.
GATE = [
    *FIRST,
    make("test", "test SEED=20000", is_alone=True),
    make("asan", "asan SHORT=1 SEED=20000", after=("asan-build",)),
    timed("ctl-test"),
    timed("proxies-test", "proxies-test SHORT=1"),
    timed("rotate-test"),
    timed("examples"),
    timed("compose-test"),
    timed("neighbours"),
    timed("check-tools"),
    timed("python-test"),
    timed("node-test"),
    timed("go-test"),
    timed("php-test"),
    timed("ruby-test"),
    timed("java-test"),
    timed("rust-test"),
    timed("page-test"),
    make("nemesis", "nemesis SECONDS=30 SEED=2"),
    make("nemesis-tls", "nemesis SECONDS=30 TLS=1 SEED=2"),
    timed("runbooks"),
    timed("openapi-test", "openapi-test SEED=1"),
    timed("generators", "generators SHORT=1"),
    timed("kube-test"),
    timed("alerts-test"),
    make("nemesis-kept", "nemesis KEPT=1"),
    computes("asan-build", "-j$(nproc) FLAVOUR=asan tests"),
    computes("lint"),
    computes("analyse", "analyse SHORT=1 FOLDERS='server api cli'"),
    computes("model", "model SHORT=1"),
    computes("fuzz", "fuzz FUZZ_SECONDS=3 SEED=1"),
]


def night(name: str, target: str = "", kind: str = "computes",
          hours: float = 1) -> Step:
    """A step that may take long."""
    return make(name, target, kind, limit_s=hours * 3600)


# Another number each night; what fails tells it.
SEED = "SEED=$(date +%Y%m%d)"

# In full what the gate runs in part, and what takes too long for it.
NIGHTLY = [
    *FIRST,
    night("model", hours=3),
    night("asan", "asan AGAIN=no", hours=2),
    night("analyse", hours=2),
    night("fuzz", f"fuzz FUZZ_SECONDS=60 {SEED}"),
    night("openapi-test", f"openapi-test EXAMPLES=500 {SEED}", "waits"),
    night("generators", kind="waits"),
    night("nemesis", f"nemesis SECONDS=900 {SEED}", "waits"),
    night("nemesis-tls", f"nemesis SECONDS=900 {SEED} TLS=1", "waits"),
    night("sim-long", hours=3),
    night("mutants", hours=4),
    night("mutate", f"mutate COUNT=70 {SEED}", hours=5),
    # all make trees of Debian, one after the other
    night("deb-test", hours=2),
    night("fresh", hours=2),
    night("release-test", hours=2),
    night("production"),
    night("valkey", "unit integration kube-test nemesis VALKEY=1 AGAIN=no "
          f"SECONDS=300 {SEED}", "waits", hours=2),
    night("compose-valkey", "compose-test VALKEY=1", "waits"),
    night("interop", kind="waits"),
    night("examples-broken", kind="waits"),
    night("proxies-test", "proxies-test LONG=1", "waits"),
    night("node-test", "node-test TRIES=20", "waits"),
    night("go-test", "go-test TRIES=20", "waits"),
    night("php-test", "php-test TRIES=20", "waits"),
    night("ruby-test", "ruby-test TRIES=20", "waits"),
    night("java-test", "java-test TRIES=20", "waits"),
    night("rust-test", "rust-test TRIES=20", "waits"),
    night("starved", kind="waits"),
    night("drills", kind="waits"),
    night("long", kind="waits", hours=3),
    *(night(suite, f"integration CK_RUN_SUITE={suite} ROLLING_TTL_MS=30000 "
            "CK_TIMEOUT_MULTIPLIER=10", "waits")
      for suite in ("machines", "data_centres")),
    night("leaving", "integration CK_RUN_SUITE=leaving LEAVING_REQUESTS=2000 "
          "LEAVING_TRIES=20 CK_TIMEOUT_MULTIPLIER=20", "waits"),
    night("leavers", f"leavers {SEED}"),
    night("soak"),
    night("crowd"),
    night("bench", hours=2),
    night("bench-collected"),
    night("bench-contention", hours=2),
    night("bench-fairness"),
    night("bench-permits"),
    night("bench-readers"),
    night("bench-batch"),
    night("bench-watches"),
    night("bench-peers", hours=2),
    night("bench-clients", hours=2),
    night("bench-scale", hours=2),
    night("bench-flood"),
    night("bench-options", "bench-options OPTIONS='--audit-log build/audit'"),
    night("bench-forgetting"),
    night("bench-tenants"),
    night("bench-fsync"),
    night("bench-profile"),
    night("bench-tls"),
]

TABLES = {"test": TEST, "gate": GATE, "nightly": NIGHTLY}
