"""What permits cost beside ordinary locks, on one server: contention.c with a
pool and without, in turns.

  full   CLIENTS (64) want a pool of ten, or ten locks, for 5 ms each
  busy   seven clients want a pool of ten, for 5 ms each: nobody has to wait
  free   one client, and CLIENTS, each with a lock of its own or a permit of a
         pool of 1,000, which it releases at once

A round is an acquire of slots or a survey of which are free.
"""
from __future__ import annotations

from collections.abc import Iterator

from measure import (Path, Run, Runs, TOOLS, in_turns, setting, output, pairs,
                     show)
from stack import metric, started

SECONDS = setting("SECONDS_RUN", 2)
CLIENTS = int(setting("CLIENTS", 64))
# name: clients, locks, slots, hold in µs; without locks, nothing is compared
CASES = {
    "full": (CLIENTS, 10, 10, 5000),
    "busy": (7, 0, 10, 5000),
    "free, one client": (1, 1, 1000, 0),
    "free": (CLIENTS, CLIENTS, 1000, 0),
}


def permits_of(port: int) -> tuple[float, float]:
    """Grants, and rounds that were needed for them."""
    grants, tries, surveys = (metric(port, f"redlockd_permit_{name}_total ")
                              for name in ("grants", "tries", "surveys"))
    return grants, tries + surveys


def run(port: int, clients: int, resources: str, hold_us: int) -> Run:
    grants, rounds = permits_of(port)
    found = output(f"{TOOLS}/contention", "wait", clients, resources, hold_us,
                   SECONDS, f"127.0.0.1:{port}")
    more_grants, more_rounds = permits_of(port)
    if more_grants > grants:
        found["rounds"] = (more_rounds - rounds) / (more_grants - grants)
    return found


def play() -> Iterator[Run]:
    with started() as stack:
        port = stack.start_server(0)
        for pair in pairs(3):
            for name, (clients, locks, slots, hold_us) in CASES.items():
                kinds = {"permits": f"pool:{slots}", "locks": str(locks)}
                for what in in_turns(list(kinds)[:1 + (locks > 0)], pair):
                    yield {"pair": pair, "case": name, "what": what,
                           **run(port, clients, kinds[what], hold_us)}


def row(name: str, runs: Runs) -> dict[str, str]:
    permits, locks = runs.of(what="permits"), runs.of(what="locks")

    def ratio(value: str) -> str:
        return f"{permits.ratio(locks, value):.2f}" if locks else ""
    clients, _, slots, _ = CASES[name]
    return {"": name, "clients": str(clients), "slots": str(slots),
            "grants/s": permits.text("grants_per_s"),
            "÷ locks": ratio("grants_per_s"),
            "hand-overs/s": permits.text("handovers_per_s"),
            "fewest ÷ most": permits.text(
                lambda run: run["fewest"] / (run["most"] or 1), 2),
            "wait p50 ms": permits.ms("wait_p50"),
            "wait ÷ locks": ratio("wait_p50_us"),
            "rounds a grant": permits.text("rounds", 2)}


def tell(runs: Runs, path: Path, is_markdown: bool) -> None:
    show([row(name, runs.of(case=name)) for (name,) in runs.each("case")],
         is_markdown, is_named=True)
