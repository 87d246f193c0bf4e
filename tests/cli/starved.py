#!/usr/bin/env python3
"""redlockctl without memory: whichever allocation of a request fails, the
request leaves with all of its headers, or not at all.

starved.py [TEST...]
"""
from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ID = "b3JkZXI6NDI"
HEADERS = {"Authorization": "Bearer our-token", "X-Lock-Token": "of-the-lock",
           "Content-Type": "application/json"}
ANSWER = json.dumps({"id": ID, "token": "of-the-lock", "fencing_token": 1,
                     "validity_ms": 2000, "elapsed_ms": 1,
                     "renew_after_ms": 700}).encode()
PAGE = "<q?7xq"  # struct starved_page: left, lasts, failed
ALL = 1 << 40    # more allocations than there are
LAST = 200       # allocations, from before the request to the end
STEP = 8         # fewer than a request needs before it leaves
AROUND = 16
JOBS = 4


class Handler(BaseHTTPRequestHandler):
    """Notes what a request lacks, and says that the lock was extended."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        lacks = [name for name, value in HEADERS.items()
                 if self.headers.get(name) != value]
        if "Expect" in self.headers:
            lacks.append("no Expect")
        self.server.requests.append(lacks)  # type: ignore[attr-defined]
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            pass  # it has left

    def log_message(self, format: str, *words: object) -> None:
        pass


class Service(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[list[str]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Command:
    """`redlockctl extend`, with one allocation that fails."""

    def __init__(self, service: Service, folder: Path) -> None:
        ctl = Path(os.environ.get("REDLOCKCTL", "build/release/redlockctl"))
        shim = ctl.resolve().parent / "starved-shim.so"
        assert shim.exists(), shim
        self.folder = folder
        self.words = [str(ctl), "extend", "--ttl", "3", ID]
        kept = {name: text for name, text in os.environ.items()
                if not name.startswith("REDLOCKD_")}
        self.environment = {
            **kept, "LD_PRELOAD": str(shim),
            "REDLOCKD_URL": f"http://127.0.0.1:{service.server_port}",
            "REDLOCKD_AUTH_TOKEN": "our-token", "REDLOCKD_TOKEN": "of-the-lock"}

    def run(self, number: int) -> tuple[str, int]:
        """What it says, and how many more allocations there might be."""
        page = self.folder / f"page{number:020}"  # as long for each number
        page.write_bytes(struct.pack(PAGE, number, False, 0))
        ended = subprocess.run(self.words, text=True, timeout=60,
                               stdin=subprocess.DEVNULL, capture_output=True,
                               env={**self.environment, "STARVED": str(page)})
        left = struct.unpack(PAGE, page.read_bytes())[0]
        return ended.stdout + ended.stderr, left


def main() -> int:
    service = Service()
    with tempfile.TemporaryDirectory() as folder, \
            ThreadPoolExecutor(JOBS) as pool:
        command = Command(service, Path(folder))
        said, left = command.run(ALL)
        count = ALL - left
        is_well = said.startswith("yours for") and service.requests == [[]]
        # roughly, then each of those around the headers
        tried = list(range(max(count - LAST, 1), count + 1, STEP))
        said_each = [said for said, _ in pool.map(command.run, tried)]
        middles = [number for number, said in zip(tried, said_each)
                   if "out of memory" in said] or [count]
        tried = list(range(middles[0] - AROUND, middles[-1] + AROUND))
        said_each = [said for said, _ in pool.map(command.run, tried)]
    lacking = [lacks for lacks in service.requests if lacks]
    stopped = sum("out of memory" in said for said in said_each)
    print(f"{count} allocations; of {len(said_each)}, {stopped} let no request "
          f"leave; {len(service.requests)} left")
    passed = [is_well, not lacking, stopped > 0]
    if not all(passed):
        print("FAILED", *passed, said, lacking[:3])
    print(f"{sum(passed)} passed, {3 - sum(passed)} failed")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
