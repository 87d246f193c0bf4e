# SPDX-License-Identifier: MIT
"""Threads beside a test. What one of them raises is raised where it is waited
for: a test does not pass because nobody did anything.
"""
from __future__ import annotations

import contextlib
import queue
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator


class Job(threading.Thread):
    """Runs a function once it is started; or what a subclass has for work()."""

    def __init__(self, work: Callable[..., object] | None = None,
                 *arguments: object, name: str | None = None) -> None:
        super().__init__(name=name, daemon=True)
        self.function, self.arguments = work, arguments
        self.error: BaseException | None = None
        self.ended: queue.SimpleQueue[Job] = queue.SimpleQueue()

    def work(self) -> None:
        assert self.function
        self.function(*self.arguments)

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:  # for whoever joins it, and for all others
            self.error = error
            traceback.print_exc()
        self.ended.put(self)

    def join(self, timeout: float | None = None) -> None:
        super().join(timeout)
        self.check()

    def check(self) -> None:
        """Whether or not it goes on."""
        if self.error:
            raise RuntimeError(f"{self.name}: {self.error!r}") from self.error


def together(jobs: Iterable[Callable[[], object]]) -> None:
    """All at once; returns when all have ended, or raises when one has failed."""
    ended: queue.SimpleQueue[Job] = queue.SimpleQueue()
    started = [Job(one) for one in jobs]
    for job in started:
        job.ended = ended
        job.start()
    for _ in started:
        ended.get().join()


@contextlib.contextmanager
def at_work(work: Callable[[int, threading.Event], object],
            count: int) -> Iterator[None]:
    """So many threads, with numbers from 0, until the block has ended: then the
    event is set."""
    has_ended = threading.Event()
    jobs = [Job(work, number, has_ended) for number in range(count)]
    for job in jobs:
        job.start()
    try:
        yield
    finally:
        has_ended.set()
        for job in jobs:
            job.join()
