# SPDX-License-Identifier: MIT
"""Answers that the page gets in place of the server's: what a person sees in
moments that are hard to bring about."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from browser import Browser

# {beginning of a path: [answers, one after the other; the last one stays]}; an
# answer is null if none ever comes, false if there is no connection, or the
# status, the type, the body and after how long it comes
FAKE = """
window.reallyFetch ??= window.fetch;
window.fakes = arguments[0];
window.hung ??= [];
window.fetch = (path, options) => {
  const begin = Object.keys(fakes).find((it) => path.startsWith(it));
  if (begin === undefined) {
    return reallyFetch(path, options);
  }
  const answers = fakes[begin];
  const answer = answers.length > 1 ? answers.shift() : answers[0];
  if (answer === false) {
    return Promise.reject(new TypeError('Failed to fetch'));
  }
  if (answer === null) {
    return new Promise((_, reject) => {
      hung.push(reject);
      options.signal.addEventListener(
        'abort', () => reject(options.signal.reason));
    });
  }
  const [status, type, body, delayMs = 0] = answer;
  return new Promise((resolve) => setTimeout(() => resolve(new Response(
    typeof body === 'string' ? body : JSON.stringify(body),
    {status, headers: {'Content-Type': type}})), delayMs));
};"""
AHEAD = """
window.readNow ??= Date.now;
Date.now = () => readNow() + arguments[0];"""
REAL = """
if (window.reallyFetch) {
  window.fetch = window.reallyFetch;
  hung.splice(0).forEach((reject) => reject(new TypeError('Failed to fetch')));
}"""
# as if somebody had just come to see it
WAKE = "document.dispatchEvent(new Event('visibilitychange'));"

SILENCE, REFUSED_CONNECTION = None, False


def as_json(body: Any, status: int = 200) -> list[Any]:
    return [status, "application/json", body]


def problem(status: int, code: str, detail: str) -> list[Any]:
    return [status, "application/problem+json", {
        "status": status, "code": code, "detail": detail}]


def node(name: str, state: str = "voting", detail: str = "admitted",
         **fields: Any) -> dict[str, Any]:
    return {"node": name, "address": name, "state": state, "detail": detail,
            "voting": state == "voting", "state_age_ms": 12000, **fields}


def node_list(*nodes: dict[str, Any]) -> list[Any]:
    return as_json({"voting": sum(it["voting"] for it in nodes),
                 "quorum": len(nodes) // 2 + 1, "total": len(nodes),
                 "nodes": list(nodes)})


@contextlib.contextmanager
def ahead(browser: Browser, seconds: float) -> Iterator[None]:
    """The clock of the page, as if so much time had passed."""
    browser.run(AHEAD, seconds * 1000)
    try:
        yield
    finally:
        browser.run(AHEAD, 0)


@contextlib.contextmanager
def faked(browser: Browser, **paths: list[Any]) -> Iterator[None]:
    """nodes=[…] stands for /nodes. The page that is open asks at once, and the
    server again at the end."""
    browser.run(FAKE + WAKE,
                {f"/{path}": answers for path, answers in paths.items()})
    try:
        yield
    finally:
        browser.run(REAL + WAKE)
