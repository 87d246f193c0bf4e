# SPDX-License-Identifier: MIT
"""HTTP/1.1 without I/O: requests as bytes, and answers from bytes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring_ascii

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

# A page of 1,000 locks has some hundred KiB.
LONGEST_HEAD = 64 * 1024
LONGEST_BODY = 16 * 1024 * 1024
# A server closes connections that are idle for 75 s.
LONGEST_IDLE_S = 60.0
# Kept connections to each replica. Of a client with more locks than this, many
# renewals open connections at once, which a full backlog delays by a second.
MOST_IDLE = 256
# A kept connection that ends so soon after a request had ended before, or while
# the request was on its way. If it ends later, its server has failed.
SOON_S = 0.5

quoted = encode_basestring_ascii  # as JSON
_DEFAULT_PORTS = {"http": 80, "https": 443}
LAST_PORT = 65535
# In ASCII: other names and paths are to be written as xn--… and %C3%…
_URL = re.compile(
    r"(?P<scheme>https?)://(?:(?P<user>[!-~]*)@)?"
    r"(?P<host>[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._~-]+)?\])"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<path>(?:/[!-\"$->@-~]*)?)"
)


def is_word(text: str) -> bool:
    """Whether a header and a path may have it as it is. Compiling a pattern for
    that takes longer."""
    return (
        text != "" and text.isascii() and text.isprintable() and " " not in text
    )


# Codes of an answer that no server gave. The request may have been carried out,
# except after the first two.
UNTRUSTED = "untrusted"
UNSENT = "unsent"
NO_ANSWER = "no_answer"
STALE = "stale"  # no server is to blame: try again at once


class Failure(Exception):
    """There is no answer; the text says why."""

    code = NO_ANSWER


class Unsent(Failure):
    code = UNSENT


class Untrusting(Failure):
    """The server's certificate is not one that we trust."""

    code = UNTRUSTED


class Stale(Failure):
    """A kept connection had ended, and nothing of an answer came."""

    code = STALE


# ---- where requests go -------------------------------------------------------


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.startswith("127."):
        return True
    return ":" in host and host.partition("%")[0] in ("::1", "0:0:0:0:0:0:0:1")


def _basic(user: str | None) -> str:
    """Of a user and a password, as URLs have them."""
    if user is None:
        return ""
    name, _, password = user.partition(":")
    if "%" in user:
        from urllib.parse import unquote  # noqa: PLC0415 - it loads slowly

        name, password = unquote(name), unquote(password)
    from binascii import b2a_base64  # noqa: PLC0415

    pair = f"{name}:{password}"
    return "Basic " + b2a_base64(pair.encode(), newline=False).decode()


def _split(url: str) -> re.Match[str]:
    parts = _URL.fullmatch(url)
    if not parts:
        raise ValueError("not a URL such as http://host:8080")
    labels = parts["host"].removesuffix(".").split(".")
    port = int(parts["port"] or 0)
    if port > LAST_PORT or not all(0 < len(one) < 64 for one in labels):
        raise ValueError("the URL's host or port is too long")
    return parts


def _proxy(scheme: str, host: str, port: int) -> re.Match[str] | None:
    """Which the environment names; none on this machine, where a proxy would
    see the token for nothing."""
    if _is_loopback(host):
        return None
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib import request  # noqa: PLC0415 - few need it, it is slow

    proxies = request.getproxies_environment()
    url = proxies.get(scheme) or proxies.get("all")
    is_bypassed = request.proxy_bypass_environment(  # type: ignore[attr-defined]
        f"{host}:{port}", proxies
    )
    if not url or is_bypassed:
        return None
    parts = _URL.fullmatch(url if "://" in url else f"http://{url}")
    if not parts or parts["scheme"] != "http":
        raise ValueError(
            "only proxies with an http:// URL are supported; NO_PROXY names "
            "hosts that need none"
        )
    return parts


class Target:
    """One replica: what its URL says."""

    def __init__(self, url: str) -> None:
        """Raises ValueError, which never shows the URL."""
        parts = _split(url)
        self.is_tls = parts["scheme"] == "https"
        name = parts["host"].lower()
        self.host = name.strip("[]")
        port = int(parts["port"] or _DEFAULT_PORTS[parts["scheme"]])
        shown = f"{name}:{port}" if parts["port"] else name
        self._path = parts["path"].rstrip("/")
        self._basic = _basic(parts["user"])
        self.authority = f"{name}:{port}"
        self.address = (self.host, port)
        proxy = _proxy(parts["scheme"], self.host, port)
        self.is_tunnel = proxy is not None and self.is_tls
        self._proxy_basic = ""
        if proxy:
            self._proxy_basic = _basic(proxy["user"])
            host = proxy["host"].strip("[]")
            self.address = (host, int(proxy["port"] or 80))
            if not self.is_tls:
                self._path = f"http://{shown}{self._path}"
        fields = (
            f"Host: {shown}\r\n"
            "Accept: application/json\r\n"
            "User-Agent: redlockd-client (Python)\r\n"
        )
        if self._proxy_basic and not self.is_tls:
            fields += f"Proxy-Authorization: {self._proxy_basic}\r\n"
        self._fields = fields

    def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        authorization: str,
        body: str | None,
    ) -> bytes:
        """authorization: instead of the user and password of the URL. body:
        JSON, in ASCII."""
        head = f"{method} {self._path}{path} HTTP/1.1\r\n{self._fields}"
        if authorization or self._basic:
            head += f"Authorization: {authorization or self._basic}\r\n"
        for name, value in headers.items():
            head += f"{name}: {value}\r\n"
        if body is None:
            return f"{head}\r\n".encode("ascii")
        return (
            f"{head}Content-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        ).encode("ascii")

    def tunnel(self) -> bytes:
        """Asks the proxy for a connection to the replica."""
        fields = f"Host: {self.authority}\r\n"
        if self._proxy_basic:
            fields += f"Proxy-Authorization: {self._proxy_basic}\r\n"
        return f"CONNECT {self.authority} HTTP/1.1\r\n{fields}\r\n".encode()


class Ask:
    """One request, and how long its answer may take."""

    __slots__ = (
        "is_repeated",
        "on_overdue",
        "overdue_s",
        "request",
        "target",
        "timeout_s",
        "wait_s",
    )

    def __init__(
        self,
        target: Target,
        request: bytes,
        timeout_s: float,
        *,
        wait_s: float,
        overdue_s: float,
        on_overdue: Callable[[], None],
    ) -> None:
        """timeout_s: for the connection, and for the answer. wait_s: how much
        later the answer may come."""
        # a kept connection ended: it may have been carried out before
        self.is_repeated = False
        self.target = target
        self.request = request
        self.timeout_s = timeout_s
        self.wait_s = wait_s
        self.overdue_s = overdue_s
        self.on_overdue = on_overdue


# ---- answers -----------------------------------------------------------------


class Reply:
    __slots__ = ("content", "content_type", "is_kept", "retry_after", "status")

    def __init__(
        self,
        status: int,
        content: bytes,
        retry_after: str,
        is_kept: bool,
        content_type: str = "",
    ) -> None:
        """is_kept: the connection may be used again."""
        self.content_type = content_type
        self.status = status
        self.content = content
        self.retry_after = retry_after
        self.is_kept = is_kept


class Reader:
    """Answers of one connection, one after the other. Interim ones (1xx) are
    skipped."""

    def __init__(self, *, is_tunnel: bool = False) -> None:
        """is_tunnel: to a CONNECT: after the head other bytes follow."""
        self._parser = HttpResponseParser(self)
        self._is_tunnel = is_tunnel
        self.begin()

    def begin(self) -> None:
        """For the next request."""
        self.has_begun = False
        self._in_body = False
        self._length = 0  # of the head, with those of interim answers
        self._body_length = 0
        self._reply: Reply | None = None
        self._has_more = False
        self._clear()

    def _clear(self) -> None:
        self._pieces: list[bytes] = []
        self._retry_after = ""
        self._content_type = ""
        self._is_framed = False

    def feed(self, data: bytes) -> Reply | None:
        """None: there is more to come. Raises Failure."""
        self.has_begun = True
        if not self._in_body:
            self._length += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if not self._reply:
                raise Failure(f"no HTTP answer: {error}") from None
            self._has_more = True  # more than was asked for
        reply = self._reply
        if not reply and not self._in_body and self._length > LONGEST_HEAD:
            raise Failure("the head of the answer is too long")
        if self._body_length > LONGEST_BODY:
            raise Failure("the answer is too long")
        if reply and self._has_more:
            reply.is_kept = False
        return reply

    def end(self) -> Reply:
        """The server has closed the connection. Raises Failure."""
        if self._in_body and not self._is_framed:
            self._finish(False)
        if self._reply:
            return self._reply
        if self.has_begun:
            raise Failure("the answer was cut short")
        raise Failure("the connection was closed without an answer")

    def _finish(self, is_kept: bool) -> None:
        self._reply = Reply(
            self._parser.get_status_code(),
            b"".join(self._pieces),
            self._retry_after,
            is_kept,
            self._content_type,
        )

    # ---- called by the parser

    def on_message_begin(self) -> None:
        self._has_more = self._reply is not None

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"content-length":
            self._is_framed = True
        elif name == b"transfer-encoding":
            self._is_framed = b"chunked" in value.lower()
        elif name == b"retry-after":
            self._retry_after = value.decode("latin-1").strip()
        elif name == b"content-type":
            self._content_type = value.decode("latin-1").strip()

    def on_headers_complete(self) -> None:
        if self._reply:
            return
        self._in_body = self._parser.get_status_code() >= 200
        if self._is_tunnel and self._in_body:
            self._finish(False)

    def on_body(self, data: bytes) -> None:
        self._body_length += len(data)
        if self._body_length <= LONGEST_BODY:
            self._pieces.append(data)

    def on_message_complete(self) -> None:
        if self._reply:
            return
        if self._in_body:
            self._finish(self._parser.should_keep_alive())
        else:
            self._clear()
