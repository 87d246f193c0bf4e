# SPDX-License-Identifier: MIT
"""A server of a later version: passes requests on, and adds a member to each
object of an answer. Clients must ignore fields that they do not know."""
import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

HOP_BY_HOP = {"connection", "content-length", "date", "keep-alive",
              "transfer-encoding", "host"}


def with_more(value):
    if isinstance(value, list):
        return [with_more(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {"of_a_later_version": {"a": [1]},
            **{name: with_more(member) for name, member in value.items()}}


class Later(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        server = http.client.HTTPConnection(self.server.behind, timeout=30)
        server.request(self.command, self.path, body or None, {
            name: value for name, value in self.headers.items()
            if name.lower() not in HOP_BY_HOP})
        answer = server.getresponse()
        text = json.dumps(with_more(json.loads(answer.read()))).encode()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        server.close()

    do_GET = do_PUT = do_POST = do_DELETE = pass_on

    def log_message(self, *_):
        pass


def start_later(url):
    """Its URL. It ends with the process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Later)
    server.daemon_threads = True
    server.behind = urlsplit(url).netloc
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
