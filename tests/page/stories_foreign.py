"""What pages of other origins get through the browser of somebody who reaches
the server: nothing."""
from __future__ import annotations

import functools
import http.server
import pathlib
import tempfile
import threading
from urllib.parse import urlsplit

from browser import Browser
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


def is_unharmed(service: Service) -> bool:
    names = [lock["resource"] for lock in service.call("GET", "/locks")[1]["locks"]]
    return "kept" in names and "stolen" not in names


def a_page_of_another_origin_gets_nothing(_: Browser, service: Service) -> None:
    lock = service.acquire("kept")
    host = urlsplit(service.origin).netloc
    browser = Browser(service.origin,
                      f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1")
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "index.html").write_text("<title>evil</title>")
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            page = f"http://127.0.0.1:{server.server_port}/"
            answers = attack(browser, page, service.origin, lock.fencing_token)
            assert all(status == 0 for status, _ in answers), answers
            assert is_unharmed(service)
            # its own name, which leads to the server by now
            rebound = f"http://{REBOUND}:{host.rsplit(':', 1)[1]}"
            answers = attack(browser, rebound + "/", rebound, lock.fencing_token)
            assert all(status == 421 for status, _ in answers), answers
            assert is_unharmed(service)
        finally:
            server.shutdown()
            browser.quit()
    service.release(lock)
