# SPDX-License-Identifier: MIT
"""A service that answers with a status and JSON that a test has chosen."""
from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
import services  # noqa: E402

Answer = tuple[int, Any]  # status, body; 0: closes without an answer


class Handler(services.Handler):
    server: Answers

    def choose(self) -> None:
        status, body = self.server.choose(self, self.body())
        if status == 0:
            self.close_connection = True
            return
        kind = "application/problem+json" if status >= 400 else "application/json"
        self.answer(status, json.dumps(body), {"Content-Type": kind})

    do_GET = do_PUT = do_POST = do_DELETE = choose


class Answers(services.Service):
    def __init__(self, choose: Callable[[Handler, bytes], Answer]) -> None:
        self.choose = choose
        super().__init__(Handler)
