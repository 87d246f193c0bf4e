#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""redlockctl run --again: what starts the command anew, and what ends it.

again.py [TEST...]
"""
from __future__ import annotations

import getpass
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from world import DIES_WITH_US, WAIT_S, World, play, tests_of

from processes import stopped  # in ../lib
from waiting import wait_until

# Each start: when, and the fencing token.
NOTES = 'echo "$(date +%s%N) $REDLOCKD_FENCING_TOKEN" >>"$0"; '


def obey_signals() -> None:
    """What runs in the background may ignore them, and so would its children."""
    for number in signal.SIGHUP, signal.SIGINT, signal.SIGQUIT:
        signal.signal(number, signal.SIG_DFL)


class Leader:
    """A candidate whose command notes each start."""

    def __init__(self, world: World, name: str, script: str, *options: str,
                 notes: Path | None = None) -> None:
        self.world, self.name = world, name
        self.notes = notes or world.folder / f"{name}.notes"
        self.log = self.notes.with_suffix(".log")
        urls = [word for url in world.urls for word in ("--url", url)]
        with self.log.open("ab") as log:
            self.ctl = subprocess.Popen(
                [*DIES_WITH_US, world.redlockctl, "run", "--again", "-t", "1", *urls,
                 *options, name, "--", "sh", "-c", NOTES + script, str(self.notes)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                process_group=0, preexec_fn=obey_signals)

    def starts(self) -> list[tuple[int, int]]:
        if not self.notes.exists():
            return []
        return [(int(line.split()[0]), int(line.split()[1]))
                for line in self.notes.read_text().splitlines()]

    def wait_starts(self, count: int, most_s: float = WAIT_S) -> None:
        wait_until(lambda: len(self.starts()) >= count,
                   f"{self.name} has started {count} times", most_s)

    def holder(self) -> dict:
        return self.world.ask("GET", f"/locks/{self.name}")[1]

    def take_away(self) -> None:
        path = f"/locks/{self.name}?force={self.holder()['fencing_token']}"
        assert self.world.ask("DELETE", path)[0] == 200

    def end(self, number: int = signal.SIGTERM) -> int:
        self.ctl.send_signal(number)
        return self.ctl.wait(WAIT_S)


def a_loss_starts_it_again(world: World) -> None:
    leader = Leader(world, "loss", "exec sleep 60")
    for count in range(1, 4):
        leader.wait_starts(count)
        leader.take_away()
    leader.wait_starts(4)
    numbers = [number for _, number in leader.starts()]
    assert numbers == sorted(set(numbers)), numbers
    assert leader.end() == 128 + signal.SIGTERM
    assert "starting again" in leader.log.read_text()


def each_short_run_is_followed_later(world: World) -> None:
    leader = Leader(world, "fails", "exit 3")
    leader.wait_starts(4)
    times = [when for when, _ in leader.starts()]
    gaps = [after - before for before, after in zip(times, times[1:])]
    # at least half a second, then one, then two
    assert gaps[0] >= 5e8 and gaps[1] >= 1e9 and gaps[2] >= 2e9, gaps
    status = leader.end()
    # between two runs, in one, or when the last one has just ended by itself
    assert status in (-signal.SIGTERM, 128 + signal.SIGTERM, 3), status
    assert len(leader.starts()) == 4


def it_ends_when_its_work_is_done(world: World) -> None:
    leader = Leader(world, "done", 'test "$(wc -l <"$0")" -ge 2')
    assert leader.ctl.wait(WAIT_S) == 0
    assert len(leader.starts()) == 2
    assert leader.holder()["held"] is False


def it_ends_if_the_command_cannot_run(world: World) -> None:
    done = subprocess.run(
        [world.redlockctl, "run", "--again", "-t", "1", "--url", world.urls[0], "none",
         "--", "/nowhere"], capture_output=True, timeout=WAIT_S, check=False)
    assert done.returncode == 127, done


def a_signal_ends_it(world: World) -> None:
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
        leader = Leader(world, f"told{number}", "exec sleep 60")
        leader.wait_starts(1)
        assert leader.end(number) == 128 + number
        assert len(leader.starts()) == 1
    # the command obeys in its own way
    leader = Leader(world, "obeys", "trap 'exit 5' TERM; sleep 60 & wait")
    leader.wait_starts(1)
    assert leader.end() == 5 and len(leader.starts()) == 1
    # in the pause
    leader = Leader(world, "pauses", "exit 1")
    wait_until(lambda: "in a moment" in leader.log.read_text(), "a pause",
               WAIT_S)
    assert leader.end() == -signal.SIGTERM and len(leader.starts()) == 1


def a_terminal_ends_it(world: World) -> None:
    """Its signal goes to the command alone."""
    leader = Leader(world, "typed", "kill -INT $$")
    assert leader.ctl.wait(WAIT_S) == 128 + signal.SIGINT
    assert len(leader.starts()) == 1


def a_quorum_that_returns_starts_it_again(world: World) -> None:
    leader = Leader(world, "quorum", "exec sleep 60")
    leader.wait_starts(1)
    with stopped(world.nodes[:3]):
        wait_until(lambda: "starting again" in leader.log.read_text(), "a loss",
                   WAIT_S)
        time.sleep(3)
        assert len(leader.starts()) == 1
    leader.wait_starts(2)
    assert leader.end() == 128 + signal.SIGTERM


def one_of_several_leads(world: World) -> None:
    """Each is killed while it leads; the next one has a higher number."""
    notes = world.folder / "several.notes"
    leaders = [Leader(world, "several", "exec sleep 60", notes=notes)
               for _ in range(3)]
    for count in range(1, 4):
        leaders[0].wait_starts(count)
        owner = leaders[0].holder()["owner"]
        [leader] = [one for one in leaders if owner.endswith(f":{one.ctl.pid}")]
        assert owner == (f"{getpass.getuser()}@{socket.gethostname()[:24]}:"
                         f"{leader.ctl.pid}"), owner
        leader.end(signal.SIGKILL)
        leaders.remove(leader)
        leaders = leaders or [leader]
    numbers = [number for _, number in leaders[0].starts()]
    assert len(numbers) == 3 and numbers == sorted(set(numbers)), numbers


def what_the_command_finds_is_as_it_was(world: World) -> None:
    """Also after a second start: URLs, signals, and nothing of ours."""
    urls = " , ".join(world.urls)
    script = ('env | grep -e ^REDLOCKCTL_AGAIN -e ^REDLOCKD_URL; '
              'grep -e SigIgn -e SigBlk /proc/self/status; exit 1')
    log = world.folder / "found.log"
    with log.open("wb") as out:
        ctl = subprocess.Popen(
            [world.redlockctl, "run", "--again", "-t", "1", "found", "--", "sh",
             "-c", script], env=os.environ | {"REDLOCKD_URL": urls}, stdout=out,
            stderr=subprocess.DEVNULL)
    wait_until(lambda: log.read_text().count("SigIgn") >= 2, "two starts",
               WAIT_S)
    ctl.terminate()
    ctl.wait(WAIT_S)
    lines = log.read_text().splitlines()
    assert lines[:3] == lines[3:6] and len(lines[:3]) == 3, lines
    assert f"REDLOCKD_URL={urls}" in lines[:3], lines


if __name__ == "__main__":
    sys.exit(play(tests_of(globals(), "World")))
