"""The servers, and which one to ask."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable, Sequence

from ._clock import now, uniform
from ._wire import Target

DEFAULT_URL = "http://127.0.0.1:8080"
# A replica that failed is asked last for this long, longer each time.
AVOID_FIRST_S, AVOID_LAST_S = 2.0, 30.0
# A request that has no answer so long after it should have one marks its
# replica: others ask another one meanwhile.
OVERDUE_S = 0.4
PROBE_S = 2.0  # how long a probe waits for its answer


def shown(url: str) -> str:
    """The URL without a user and a password."""
    return re.sub(r"(?<=://)[^/?#]*@", "", url)


class _Mark:
    """Of a replica that failed, until it answers well."""

    def __init__(self) -> None:
        self.failures = 0
        self.failed_at = 0.0
        self.until = 0.0
        self.is_probed = False


class Replicas:
    """Threads may share it."""

    def __init__(self, urls: str | Iterable[str] | None) -> None:
        if urls is None:
            urls = os.environ.get("REDLOCKD_URL") or DEFAULT_URL
        if isinstance(urls, str):
            urls = urls.split(",")
        self.urls: Sequence[str] = [
            url.strip().rstrip("/") for url in urls if url.strip()
        ]
        if not self.urls:
            raise ValueError("name at least one URL of redlockd")
        self.targets: dict[str, Target] = {}
        for url in self.urls:
            if not url.startswith(("http://", "https://")):
                raise ValueError(
                    f"not an http:// or https:// URL: {shown(url)}"
                )
            try:
                self.targets[url] = Target(url)
            except ValueError as error:
                raise ValueError(f"{error}: {shown(url)}") from None
        self._mutex = threading.Lock()
        self._marks: dict[str, _Mark] = {}
        # Asks in the background whether the replica works again, and then calls
        # works() or avoid(). Without it, requests of users find that out.
        self.probe: Callable[[str], None] | None = None

    def choose(self) -> str:
        """The first that did not fail lately. Waiting clients are served in
        order only if they ask the same server."""
        if not self._marks:
            return self.urls[0]
        time = now()
        best, due = self._look(time)
        if due and self.probe:
            self.probe(due)
        return best

    def _look(self, time: float) -> tuple[str, str]:
        """The one to ask, and one to probe if that is due."""
        with self._mutex:
            marks = self._marks
            free = [
                url
                for url in self.urls
                if url not in marks
                or (not self.probe and marks[url].until <= time)
            ]
            if not free:  # the one that failed first: requests are probes
                return min(self.urls, key=lambda url: marks[url].failed_at), ""
            for url, mark in marks.items():
                if self.probe and mark.until <= time:
                    mark.until = time + AVOID_LAST_S
                    mark.is_probed = True
                    return free[0], url
            return free[0], ""

    def avoid(self, url: str) -> None:
        """It failed, or an answer is overdue. Requests that fail together
        count once. "": nobody was asked."""
        if not url:
            return
        with self._mutex:
            mark = self._marks.setdefault(url, _Mark())
            time = mark.failed_at = now()
            if mark.until > time and not mark.is_probed:
                return
            avoid_s = min(AVOID_LAST_S, AVOID_FIRST_S * 2.0**mark.failures)
            # random, so that clients do not probe together
            mark.until = time + uniform(avoid_s * 0.75, avoid_s)
            mark.failures = min(mark.failures + 1, 10)
            mark.is_probed = False

    def works(self, url: str) -> None:
        if url in self._marks:
            with self._mutex:
                self._marks.pop(url, None)
