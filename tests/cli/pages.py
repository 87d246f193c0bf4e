#!/usr/bin/env python3
"""A service with three pages of locks; prints its port, serves until killed.

The second page has a lock again that the first one had, as happens when it
changes hands between two requests. The prefix must come whole.
"""
import http.server
import json
import urllib.parse

PAGES = {"": (["x&1", "x&2"], "a b"), "a b": (["x&2", "x&3"], "c&d"),
         "c&d": (["x&4"], None)}


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        path, _, query = self.path.partition("?")
        fields = dict(urllib.parse.parse_qsl(query))
        page = PAGES.get(fields.get("cursor", ""))
        if path != "/locks" or fields.get("prefix") != "x&" or not page:
            self.send_error(400)
            return
        names, cursor = page
        answer = {"locks": [
            {"id": name, "resource": name, "remaining_ms": 5000,
             "fencing_token": 7, "owner": "me", "waiters": 0}
            for name in names]}
        if cursor:
            answer["cursor"] = cursor
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
