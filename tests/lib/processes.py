# SPDX-License-Identifier: MIT
"""Children, and what processes use."""
from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path


def spawn(*command: object, **options) -> subprocess.Popen:
    """A child that dies with us, and that Ctrl-C does not reach. To be called
    by the main thread only: it is the death of the thread that counts."""
    return subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)],
        start_new_session=True, **options)


def end(process: subprocess.Popen | None) -> None:
    """Ends a child that we started, stopped or not."""
    if process and process.poll() is None:
        process.kill()
    if process:
        process.wait()


@contextlib.contextmanager
def stopped(processes: Iterable[subprocess.Popen]) -> Iterator[None]:
    """Until the block ends, if they live as long."""
    processes = list(processes)
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)


def cpu_us(pids: Iterable[int]) -> int:
    """User and system time of all of them."""
    ticks = 0
    for pid in pids:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(words[11]) + int(words[12])
    return ticks * 1000000 // os.sysconf("SC_CLK_TCK")


def rss_kib(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
