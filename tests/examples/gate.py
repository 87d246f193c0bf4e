"""What stands before redlockd and asks for a token, and now and then refuses."""
import http.client
import http.server
import json
import threading
import time

TOKEN = "the+bearer/token=="
RETRY_MS = 1500


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def pass_on(self):
        gate = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        gate.moments.append(time.monotonic())
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            gate.unknown += 1
            self.answer(401, {"status": 401, "code": "unauthorized"})
        elif len(gate.moments) == 1:
            self.answer(429, {"status": 429, "code": "rate_limited",
                              "retry_after_ms": RETRY_MS})
        else:
            link = http.client.HTTPConnection(gate.target, timeout=20)
            link.request(self.command, self.path, body, dict(self.headers))
            reply = link.getresponse()
            self.answer(reply.status, json.loads(reply.read()))
            link.close()

    do_POST = do_PUT = do_DELETE = pass_on

    def answer(self, status, fields):
        text = json.dumps(fields, separators=(",", ":")).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Gate(http.server.ThreadingHTTPServer):
    """The first request is one too many; the others have to wait."""

    daemon_threads = True

    def __init__(self, target):
        super().__init__(("127.0.0.1", 0), Handler)
        self.target, self.moments, self.unknown = target, [], 0
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass  # the example has left

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def paused_ms(self):
        """Between the first request, which was refused, and the next one."""
        return (self.moments[1] - self.moments[0]) * 1000
