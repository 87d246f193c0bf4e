# SPDX-License-Identifier: MIT
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
AVOID_FIRST_S, AVOID_LAST_S = 1.0, 60.0
# A request that has no answer so long after it should have one marks its
# replica: others ask another one meanwhile.
OVERDUE_S = 0.5
PROBE_S = 1.0  # how long a probe waits for its answer


def shown(url: str) -> str:
    """The URL without a user and a password."""
    return re.sub(r"(?<=://)[^/?#]*@", "", url)


class _Mark:
    """Of a replica that failed, until it answers a request in time."""

    def __init__(self) -> None:
        self.failures = 0
        self.failed_at = 0.0
        self.until = 0.0
        self.is_avoided = False
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
        # probed(). Without it, requests of users find that out.
        self.probe: Callable[[str], None] | None = None

    def choose(self) -> str:
        """The first that is not avoided; if all are, the one that failed first.
        Waiting clients are served in order only if they ask the same server."""
        if not self._marks:
            return self.urls[0]
        time = now()
        due: list[str] = []
        with self._mutex:
            free = [u for u in self.urls if not self._is_avoided(u, time, due)]
            best = (
                free[0]
                if free
                else min(self.urls, key=lambda u: self._marks[u].failed_at)
            )
        for url in due:
            if self.probe:
                self.probe(url)
        return best

    def _is_avoided(self, url: str, time: float, due: list[str]) -> bool:
        mark = self._marks.get(url)
        if not mark or not mark.is_avoided:
            return False
        if time < mark.until:
            return True
        if not self.probe or len(self.urls) == 1:
            return False
        if not mark.is_probed:
            mark.is_probed = True
            due.append(url)
        return True

    def avoid(self, url: str) -> None:
        """It failed, or an answer is overdue. Requests that fail together
        count once. "": nobody was asked."""
        if not url:
            return
        with self._mutex:
            mark = self._marks.setdefault(url, _Mark())
            time = mark.failed_at = now()
            if not mark.is_avoided or time >= mark.until:
                avoid_s = min(AVOID_LAST_S, AVOID_FIRST_S * 2.0**mark.failures)
                # random, so that clients do not probe together
                mark.until = time + uniform(avoid_s * 0.75, avoid_s)
                mark.failures = min(mark.failures + 1, 10)
            mark.is_avoided = True

    def works(self, url: str) -> None:
        """It answered a request, in time."""
        if url in self._marks:
            with self._mutex:
                self._marks.pop(url, None)

    def probed(self, url: str, is_back: bool) -> None:
        with self._mutex:
            mark = self._marks.get(url)
            if not mark:
                return
            mark.is_probed = False
            if is_back:
                mark.is_avoided = False  # if it fails again, for longer
        if not is_back:
            self.avoid(url)
