"""A service that answers with JSON that a test has chosen."""
from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
import services  # noqa: E402


class Handler(services.Handler):
    server: Answers

    def choose(self) -> None:
        text = json.dumps(self.server.choose(self, self.body()))
        self.answer(200, text, {"Content-Type": "application/json"})

    do_GET = do_PUT = do_POST = do_DELETE = choose


class Answers(services.Service):
    def __init__(self, choose: Callable[[Handler, bytes], Any]) -> None:
        self.choose = choose
        super().__init__(Handler)
