# SPDX-License-Identifier: MIT
"""What a lock of redlockd protects, in a store that writes on a condition: HTTP
with ETag, If-Match and If-None-Match, as S3, Azure Blob Storage, CouchDB and
WebDAV have it. Each object has the highest fencing token that it has seen."""
import json
import urllib.error
import urllib.request


class Late(Exception):
    """A later holder of the lock has been there: stop."""


def ask(method, url, body=None, **headers):
    """The answer's status, its ETag and its text."""
    request = urllib.request.Request(url, body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers["ETag"], answer.read()
    except urllib.error.HTTPError as error:
        if error.code not in (404, 409, 412):
            raise
        return error.code, None, b""


def write(url, fence, state=None):
    """Writes the state; without one, only raises the number, for what a later
    write depends on. Returns the state; raises Late."""
    while True:
        status, etag, text = ask("GET", url)
        order = json.loads(text) if status == 200 else {"fence": 0}
        if order["fence"] > fence:
            raise Late(f"{url}: number {order['fence']} was here, not {fence}")
        order["fence"] = fence
        if state:
            order["state"] = state
        condition = {"If-Match": etag} if status == 200 else {"If-None-Match": "*"}
        # else somebody has written since the GET: look again at the number
        if ask("PUT", url, json.dumps(order).encode(), **condition)[0] < 300:
            return order.get("state")
