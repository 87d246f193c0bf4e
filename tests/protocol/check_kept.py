# SPDX-License-Identifier: MIT
"""What a package makes of a kept connection that ends when a request comes: the
server may have carried it out, whatever becomes of the repeat over a new
connection. HOLDER: as check_faults.py says. Servers answer as these tests like."""
from __future__ import annotations

import json
import os
import pathlib
import socket
import ssl
import tempfile
import threading
import time
import unittest

from certificates import Certificates
from check_faults import Holder
from odd import Last, OddServer, answer, grant
from processes import end

CODES = {401: "unauthorized", 403: "forbidden", 404: "lock_not_found",
         429: "rate_limited"}
# what becomes of the repeat: there is no server any more, another one is there, or
# it refuses
REPEATS = "gone", "untrusted", 401, 403, 429


def problem(status, code, **more):
    return answer(status, {"status": status, "code": code, **more})


GONE = problem(404, CODES[404])
RELEASED = answer(200, {"released": True})
HELD = problem(409, "lock_held", retry_after_ms=60_000)


class First(OddServer):
    """Answers, and then ends the kept connection when a request with this method
    comes. The repeat gets what `repeat` says."""

    def __init__(self, method, repeat, earlier, contexts):
        super().__init__(self.respond)
        self.method, self.repeat, self.earlier = method, repeat, earlier
        self.foreign = contexts["foreign"]
        if repeat == "untrusted":
            self.serves_tls(contexts["server"])

    def respond(self, method, number):
        if method != self.method:
            return answer(201, grant()) if method == "POST" else RELEASED
        if number <= len(self.earlier):
            return self.earlier[number - 1]
        if number > len(self.earlier) + 1:
            return problem(self.repeat, CODES[self.repeat])
        if self.repeat == "gone":
            self.leave()
        if self.repeat == "untrusted":
            self.serves_tls(self.foreign)
        return None


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="kept.")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        certificates = Certificates(cls.folder)
        cls.contexts = {}
        for name in "server", "foreign", "elsewhere":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificates[f"{name}.pem"],
                                    certificates[f"{name}.key"])
            cls.contexts[name] = context

    def holder(self, servers, *more, **variables):
        os.environ.update(variables, REDLOCKD_CACERT=str(self.folder / "ca.pem"))
        try:
            holder = Holder([one.url for one in servers], "a", *more, ttl_ms=9000)
        finally:
            for name in *variables, "REDLOCKD_CACERT":
                del os.environ[name]
        self.addCleanup(end, holder.process)
        return holder

    def released(self, *servers, **variables):
        """What comes of a release."""
        holder = self.holder(servers, **variables)
        holder.wait("held")
        holder.finish()
        return holder.text("released")


class Kept(Case):
    def test_a_release_may_have_been_carried_out(self):
        """That replica or the next one does not know the lock any more: that is no
        loss."""
        for repeat in (404, *REPEATS):
            with self.subTest(repeat), \
                    First("DELETE", repeat, [], self.contexts) as first, \
                    OddServer(lambda *_: GONE) as second:
                self.assertEqual(self.released(first, second), "<nil>")
                count = 1 if repeat in ("gone", "untrusted") else 2
                self.assertEqual(first.seen, ["POST"] + ["DELETE"] * count)
                self.assertEqual(second.seen, ["DELETE"] * (repeat != 404))

    def test_a_release_with_a_new_access_token(self):
        """The repeat finds the old one out of date, and goes once more."""
        file = self.folder / "token"
        file.write_text("first")

        def responds(method, number):
            if method == "POST":
                return answer(201, grant())
            file.write_text("second")
            return [None, problem(401, "unauthorized"), GONE][number - 1]
        with OddServer(responds) as server:
            told = self.released(server, REDLOCKD_AUTH_TOKEN_FILE=str(file))
        self.assertEqual(told, "<nil>")
        self.assertEqual(server.seen, ["POST"] + ["DELETE"] * 3)

    def test_a_release_that_never_arrived_has_found_a_loss(self):
        """No kept connection: the lock had ended before."""
        def responds(method, _):
            first.leave()
            return answer(201, grant()).replace(b"So\r\n",
                                                b"So\r\nConnection: close\r\n")
        with OddServer(responds) as first, OddServer(lambda *_: GONE) as second:
            self.assertNotEqual(self.released(first, second), "<nil>")
        self.assertEqual((first.seen, second.seen), (["POST"], ["DELETE"]))

    def test_a_connection_that_ended_while_it_was_idle(self):
        """Nothing is sent over it: there is no repeat, and the lock had ended."""
        def responds(method, _):
            return Last(answer(201, grant())) if method == "POST" else GONE
        for is_tls in False, True:
            with self.subTest(is_tls), OddServer(responds) as server:
                if is_tls:
                    server.serves_tls(self.contexts["server"])
                holder = self.holder([server])
                holder.wait("held")
                time.sleep(0.5)
                holder.finish()
                self.assertNotEqual(holder.text("released"), "<nil>")
                self.assertEqual(server.seen, ["POST", "DELETE"])

    def test_a_repeat_over_tls(self):
        """The end of the connection is not announced, as when a server was killed.
        That is no failure of the replica: no other one is asked."""
        def responds(method, number):
            if method == "POST":
                return answer(201, grant())
            return None if number == 1 else GONE
        with OddServer(responds) as first, OddServer(lambda *_: GONE) as second:
            first.serves_tls(self.contexts["server"])
            self.assertEqual(self.released(first, second), "<nil>")
        self.assertEqual(first.seen, ["POST", "DELETE", "DELETE"])
        self.assertEqual(second.seen, [])

    def test_an_acquire_may_have_been_granted(self):
        """The next replica finds the lock held, maybe by this acquire. When that is
        cancelled, it is given back."""
        def responds(method, _):
            if method == "DELETE":
                return RELEASED
            is_given_back = json.loads(second.bodies[-1]).get("ttl_ms") == 100
            return answer(201, grant(ttl_ms=100)) if is_given_back else HELD
        for repeat in REPEATS:
            # so that there is a kept connection
            held = [problem(409, "lock_held", retry_after_ms=1)]
            with self.subTest(repeat), \
                    First("POST", repeat, held, self.contexts) as first, \
                    OddServer(responds) as second:
                holder = self.holder([first, second], "cancel", 2000)
                holder.wait("not")
                holder.finish()
                count = 2 if repeat in ("gone", "untrusted") else 3
                self.assertEqual(first.seen[:count], ["POST"] * count)
                # by then, the first one may have been probed
                seen = first.seen + second.seen
                self.assertEqual(seen.count("DELETE"), 1, seen)


class Proxy(OddServer):
    """Its tunnels lead to that server, whatever host they are asked for."""

    def __init__(self, server):
        super().__init__(self.respond)
        self.port = int(server.url.rpartition(":")[2])
        self.is_open = True
        self.variables = {"http_proxy": self.url, "https_proxy": self.url}

    def respond(self, *_):
        return b"HTTP/1.1 200 So\r\n\r\n" if self.is_open else answer(502, {})

    def answer_one(self, connection):
        if not super().answer_one(connection) or not self.is_open:
            return False
        with socket.create_connection(("127.0.0.1", self.port)) as other:
            back = threading.Thread(target=copy, args=[other, connection])
            back.start()
            copy(connection, other)
            back.join()
        return False


def copy(source, sink):
    try:
        while piece := source.recv(65536):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


class Tunnel(Case):
    """The same through a proxy of the environment, of which not all packages
    know. Opening a tunnel is no request to a server."""

    def played(self, responds, *more, sleep_s=0.5):
        """The holder's server, and the holder."""
        server = self.enterContext(OddServer(responds))
        proxy = self.enterContext(Proxy(server))
        port = server.url.rpartition(":")[2]
        server.serves_tls(self.contexts["elsewhere"])
        server.url = f"https://redlockd.example:{port}"
        holder = self.holder([server], *more, **proxy.variables)
        if not more:
            holder.wait("held")
            time.sleep(sleep_s)
        holder.finish()
        self.assertEqual(set(proxy.seen), {"CONNECT"})
        return server, holder

    def test_a_release_that_was_not_repeated(self):
        def responds(method, _):
            return Last(answer(201, grant())) if method == "POST" else GONE
        server, holder = self.played(responds)
        self.assertEqual(server.seen, ["POST", "DELETE"])
        self.assertNotEqual(holder.text("released"), "<nil>")

    def test_a_release_that_was_repeated(self):
        def responds(method, number):
            if method == "POST":
                return answer(201, grant())
            return None if number == 1 else GONE
        server, holder = self.played(responds)
        self.assertEqual(server.seen, ["POST", "DELETE", "DELETE"])
        self.assertEqual(holder.text("released"), "<nil>")

    def test_an_acquire_that_was_refused(self):
        """Nothing is given back when it is cancelled."""
        held = problem(409, "lock_held", retry_after_ms=60_000)
        server, _ = self.played(lambda *_: held, "cancel", 1000)
        self.assertEqual(server.seen, ["POST"])

    def test_a_tunnel_that_is_refused(self):
        """The request was not sent: the lock had ended before."""
        def responds(method, _):
            if method == "POST":
                proxy.is_open = False
                return Last(answer(201, grant()))
            return GONE
        with OddServer(responds) as first, Proxy(first) as proxy, \
                OddServer(lambda *_: GONE) as second:
            port = first.url.rpartition(":")[2]
            first.serves_tls(self.contexts["elsewhere"])
            first.url = f"https://redlockd.example:{port}"
            holder = self.holder([first, second], **proxy.variables)
            holder.wait("held")
            time.sleep(0.5)
            holder.finish()
        self.assertEqual((first.seen, second.seen), (["POST"], ["DELETE"]))
        self.assertNotEqual(holder.text("released"), "<nil>")
