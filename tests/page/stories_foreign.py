# SPDX-License-Identifier: MIT
"""What pages of other origins get through the browser of somebody who reaches
the server: nothing."""
from __future__ import annotations

import functools
import http.server
import pathlib
import tempfile
import threading
from urllib.parse import urlsplit

from browser import Browser, eventually
from service import Service

REBOUND = "rebound.example"
# Asks in each way that a page has. Text is what a page may send without asking
# first; no-cors is what it may send without being told of the answer.
ATTACK = """
const [origin, token, done] = arguments;
const body = JSON.stringify({resource: 'stolen', ttl_ms: 60000});
const json = {'Content-Type': 'application/json'};
const text = {'Content-Type': 'text/plain'};
const requests = [
  ['/locks', {}],
  ['/nodes', {}],
  ['/metrics', {}],
  ['/locks', {mode: 'no-cors'}],
  ['/locks', {method: 'POST', headers: json, body}],
  ['/locks', {method: 'POST', headers: text, body}],
  ['/locks', {method: 'POST', headers: text, body, mode: 'no-cors'}],
  ['/locks/kept?force=' + token, {method: 'DELETE'}],
];
const ask = ([path, options]) => fetch(origin + path, options)
  .then(async answer => [answer.status, await answer.text()])
  .catch(error => [0, String(error)]);
Promise.all(requests.map(ask)).then(done);
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def attack(browser: Browser, page: str, origin: str, number: int) -> list:
    browser.driver.get(page)
    browser.driver.set_script_timeout(60)
    return browser.driver.execute_async_script(ATTACK, origin, str(number))


def shown_in_frame(browser: Browser, number: int) -> str:
    """The text of what the page shows in this one of its frames."""
    browser.driver.switch_to.frame(number)
    text = str(browser.run("return document.body?.textContent ?? ''"))
    browser.driver.switch_to.default_content()
    return text


def no_frame_shows_the_page(browser: Browser, page: str) -> None:
    """Or somebody could be made to press a button that they do not see."""
    browser.driver.get(page + "frames.html")
    eventually(lambda: browser.run("return document.readyState") == "complete",
               "the frames")
    assert "its own" in shown_in_frame(browser, 0)
    for number in (1, 2):
        text = shown_in_frame(browser, number)
        assert "Locks" not in text and "redlockd" not in text, text


def is_unharmed(service: Service) -> bool:
    names = [lock["resource"] for lock in service.call("GET", "/locks")[1]["locks"]]
    return "kept" in names and "stolen" not in names


def a_page_of_another_origin_gets_nothing(_: Browser, service: Service) -> None:
    lock = service.acquire("kept")
    host = urlsplit(service.origin).netloc
    browser = Browser(service.origin,
                      f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1")
    with tempfile.TemporaryDirectory() as folder:
        evil = pathlib.Path(folder)
        (evil / "index.html").write_text("<title>evil</title><p>its own")
        (evil / "frames.html").write_text(
            "<title>evil</title>" + "".join(
                f"<iframe src='{source}'></iframe>" for source in
                ("index.html", service.origin + "/", service.origin + "/docs")))
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            page = f"http://127.0.0.1:{server.server_port}/"
            answers = attack(browser, page, service.origin, lock.fencing_token)
            assert all(status == 0 for status, _ in answers), answers
            assert is_unharmed(service)
            no_frame_shows_the_page(browser, page)
            # its own name, which leads to the server by now
            rebound = f"http://{REBOUND}:{host.rsplit(':', 1)[1]}"
            answers = attack(browser, rebound + "/", rebound, lock.fencing_token)
            assert all(status == 421 for status, _ in answers), answers
            assert is_unharmed(service)
        finally:
            server.shutdown()
            browser.quit()
    service.release(lock)
