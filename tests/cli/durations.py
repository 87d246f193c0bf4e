#!/usr/bin/env python3
"""redlockctl and answers with durations that no redlockd tells: they count as
no answer. It does not run the command, and no signal ends it.

durations.py
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PLAIN = {"id": "order", "resource": "order", "token": "of-the-lock",
         "fencing_token": 1, "validity_ms": 2000, "elapsed_ms": 1,
         "renew_after_ms": 700}
WRONG = [{"elapsed_ms": -9_000_000_000_000_000}, {"elapsed_ms": -1},
         {"elapsed_ms": 2**63 - 1}, {"validity_ms": 2**63 - 1},
         {"validity_ms": -1}, {"renew_after_ms": -2**63},
         {"renew_after_ms": 2**40}]
TRY_AGAIN = 75  # sysexits.h: EX_TEMPFAIL


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status: int) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.dumps(self.server.answer).encode()  # type: ignore[attr-defined]
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.answer(201)

    def do_DELETE(self) -> None:
        self.answer(200)

    def log_message(self, format: str, *words: object) -> None:
        pass


def run(port: int) -> tuple[int, str]:
    ctl = os.environ.get("REDLOCKCTL", "build/release/redlockctl")
    ended = subprocess.run(
        [ctl, "run", "-w", "0.5", "--ttl", "3", "order", "--", "echo", "ran"], text=True,
        timeout=60, stdin=subprocess.DEVNULL, capture_output=True,
        env={**os.environ, "REDLOCKD_URL": f"http://127.0.0.1:{port}"})
    return ended.returncode, ended.stdout + ended.stderr


def main() -> int:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    passed = failed = 0
    for change in [{}, *WRONG]:
        server.answer = {**PLAIN, **change}  # type: ignore[attr-defined]
        status, said = run(server.server_port)
        is_well = (status == 0 and "ran" in said if not change else
                   status == TRY_AGAIN and "no lock" in said)
        passed, failed = passed + is_well, failed + (not is_well)
        if not is_well:
            print("FAILED", change, status, said)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
