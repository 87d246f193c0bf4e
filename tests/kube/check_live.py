# SPDX-License-Identifier: MIT
"""The arguments, variables and probes of the pods, on loopback: all Redis and
one redlockd, in a folder that stands for their volumes."""
from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import manifests
from certificates import Certificates
from guarded import identity
from manifests import ROOT, container, environment, find
from ports import free_ports
from processes import end, spawn
from waiting import wait_until

REDLOCKD = ROOT / os.environ.get("REDLOCKD", "build/redlockd")
WAIT_S = 30
TOKEN = "a token of a test"


class World:
    """Paths of the pods lie below a folder; each pod has a port of its own."""

    def __init__(self, overlay: str, folder: pathlib.Path) -> None:
        self.folder = folder
        self.is_secure = overlay in ("tls", "all")
        objects = (manifests.all_components() if overlay == "all"
                   else manifests.render(overlay))
        self.redis = find(objects, "StatefulSet", "redis")
        self.redlockd = find(objects, "Deployment", "redlockd")
        replicas = self.redis["spec"]["replicas"]
        self.secrets = manifests.secrets(
            SCHEME="rediss" if self.is_secure else "redis", NODES=str(replicas))
        *self.ports, self.port = free_ports(replicas + 1)
        self.nodes: list[subprocess.Popen[bytes]] = []
        self.server: subprocess.Popen[bytes] | None = None
        self.mount()

    def path(self, path: str, pod: str = "") -> pathlib.Path:
        return self.folder / pod / path.lstrip("/")

    def write(self, path: str, text: str, pod: str = "") -> None:
        file = self.path(path, pod)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def mount(self) -> None:
        self.write("/etc/redis/users.acl",
                   manifests.secret(self.secrets, "redis-users"))
        urls = manifests.secret(self.secrets, "redlockd-nodes")
        for i, port in enumerate(self.ports):
            urls = urls.replace(f"redis-{i}.redis:6379", f"127.0.0.1:{port}")
            self.path("/data", f"redis-{i}").mkdir(parents=True)
        self.write("/etc/redlockd/nodes/nodes", urls)
        if self.is_secure:
            self.write("/etc/redlockd/auth/identities",
                       identity("tester", TOKEN) + "\n")
            self.make_certificates()

    def make_certificates(self) -> None:
        self.path("/made").mkdir()
        made = Certificates(self.path("/made"))
        for place in ("/etc/redis-tls", "/etc/redlockd/tls",
                      "/etc/redlockd/node-tls"):
            self.path(place).mkdir(parents=True)
            for name, file in (("ca.crt", "ca.pem"), ("tls.crt", "server.pem"),
                               ("tls.key", "server.key")):
                shutil.copy(made[file], self.path(place) / name)

    def start_node(self, i: int) -> subprocess.Popen[bytes]:
        words = []
        for word in container(self.redis)["args"]:
            if word == "6379":
                word = str(self.ports[i])
            elif word.startswith("/"):
                word = str(self.path(word, f"redis-{i}" if word == "/data"
                                     else ""))
            words.append(word)
        return spawn(*container(self.redis)["command"], *words, "--bind",
                     "127.0.0.1", stdout=subprocess.DEVNULL)

    def probe_node(self, i: int, name: str) -> bool:
        command = container(self.redis)[name]["exec"]["command"]
        return subprocess.run([command[0], "-p", str(self.ports[i]),
                               *command[1:]], capture_output=True,
                              check=False).returncode == 0

    def start(self) -> None:
        self.nodes = [self.start_node(i) for i in range(len(self.ports))]
        variables = {name: f"127.0.0.1:{self.port}" if name == "REDLOCKD_LISTEN"
                     else str(self.path(value)) if value.startswith("/")
                     else value
                     for name, value in environment(self.redlockd).items()}
        with open(self.folder / "log", "wb") as log:
            self.server = spawn(REDLOCKD, env=variables, stderr=log)

    def stop(self) -> None:
        for process in [self.server, *self.nodes]:
            end(process)

    def ask(self, method: str, path: str, body: Any = None,
            lock_token: str = "", host: str = "") -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {TOKEN}"} if self.is_secure else {}
        if body:
            headers["Content-Type"] = "application/json"
        if host:
            headers["Host"] = host
        if lock_token:
            headers["X-Lock-Token"] = lock_token
        context = ssl.create_default_context(
            cafile=self.path("/made/ca.pem")) if self.is_secure else None
        request = urllib.request.Request(
            f"http{'s' if context else ''}://127.0.0.1:{self.port}{path}",
            json.dumps(body).encode() if body else None, headers,
            method=method)
        try:
            with urllib.request.urlopen(request, timeout=10,
                                        context=context) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refusal:
            return refusal.code, json.load(refusal)
        except OSError as error:
            return 0, str(error)

    def states(self) -> list[str]:
        status, nodes = self.ask("GET", "/nodes")
        return [node["state"] for node in nodes["nodes"]] if status == 200 else []

    def probe(self, name: str) -> bool:
        path = container(self.redlockd)[name]["httpGet"]["path"]
        return self.ask("GET", path)[0] == 200


@contextlib.contextmanager
def world(overlay: str) -> Iterator[World]:
    with tempfile.TemporaryDirectory() as folder:
        one = World(overlay, pathlib.Path(folder))
        try:
            one.start()
            yield one
        finally:
            one.stop()


def knows(option: str) -> bool:
    return f"--{option} " in subprocess.run(
        [REDLOCKD, "--help"], check=True, text=True, capture_output=True).stdout


class Live(unittest.TestCase):
    def lock_and_release(self, one: World) -> None:
        wait_until(lambda: one.states() == ["voting"] * len(one.ports),
                   "all nodes vote", WAIT_S)
        for name in ("readinessProbe", "livenessProbe"):
            self.assertTrue(one.probe(name), name)
            for i in range(len(one.ports)):
                self.assertTrue(one.probe_node(i, name), name)
        ttl = {"ttl_ms": 5000}
        status, lock = one.ask("POST", "/locks", {"resource": "a", **ttl})
        self.assertEqual(status, 201, lock)
        path, token = f"/locks/{lock['id']}", lock["token"]
        self.assertEqual(one.ask("PUT", f"{path}/extend", ttl, token)[0], 200)
        status, page = one.ask("GET", "/locks")
        self.assertEqual((status, len(page["locks"])), (200, 1), page)
        self.assertEqual(one.ask("DELETE", path, lock_token=token)[0], 200)

    def test_five_nodes_serve(self) -> None:
        with world("five") as one:
            self.lock_and_release(one)
            self.only_redlockd_may(one)
            self.names_of_the_service_are_answered(one)
            self.a_restarted_node_votes(one)
            self.a_node_with_a_new_volume_votes(one)
            self.it_drains(one)

    @unittest.skipUnless(all(map(knows, ("tls-cert", "auth-file", "node-ca"))),
                         "of a build without TLS")
    def test_three_nodes_serve_over_tls(self) -> None:
        with world("all") as one:
            self.lock_and_release(one)
            end(one.nodes[2])
            wait_until(lambda: one.states()[2] != "voting",
                       "the node is missed", WAIT_S)
            self.assertEqual(one.ask("POST", "/locks",
                                     {"resource": "b", "ttl_ms": 5000})[0], 201)

    def test_tls_nodes_speak_tls_only(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            one = World("tls", pathlib.Path(folder))
            self.addCleanup(one.stop)
            one.nodes = [one.start_node(0)]
            wait_until(lambda: one.probe_node(0, "readinessProbe"),
                       "the node is ready", WAIT_S)
            plain = subprocess.run(["redis-cli", "-p", str(one.ports[0]),
                                    "ping"], capture_output=True, check=False)
            self.assertNotIn(b"PONG", plain.stdout)

    def only_redlockd_may(self, one: World) -> None:
        for user, refusal in (("", "NOAUTH"), ("--user probe --pass x",
                                               "NOPERM")):
            for command in ("GET a", "INFO", "CONFIG GET dir", "FLUSHALL",
                            "ACL LIST", "PUBLISH redlockd:released:a 1"):
                said = subprocess.run(
                    ["redis-cli", "-p", str(one.ports[0]), *user.split(),
                     *command.split()],
                    check=False, text=True, capture_output=True).stdout
                self.assertIn(refusal, said, command)

    def names_of_the_service_are_answered(self, one: World) -> None:
        """From its own namespace, from another one, and no other names."""
        for name, status in (("redlockd", 200), ("redlockd.redlockd", 200),
                             ("redlockd.redlockd.svc", 200),
                             ("redlockd.redlockd.svc.cluster.local", 200),
                             ("10.1.2.3", 200), ("redlockd.example.com", 421)):
            self.assertEqual(one.ask("GET", "/livez", host=f"{name}:8080")[0],
                             status, name)

    def a_restarted_node_votes(self, one: World) -> None:
        """At once, by its append-only file, and not after a quarantine."""
        end(one.nodes[0])
        wait_until(lambda: one.states()[0] != "voting", "the node is missed",
                   WAIT_S)
        self.assertTrue(one.probe("readinessProbe"))
        one.nodes[0] = one.start_node(0)
        wait_until(lambda: one.states()[0] == "voting", "the node votes",
                   WAIT_S)

    def a_node_with_a_new_volume_votes(self, one: World) -> None:
        """Under the same name, and nothing else is changed."""
        end(one.nodes[3])
        wait_until(lambda: one.states()[3] != "voting", "the node is missed",
                   WAIT_S)
        self.assertTrue(one.probe("readinessProbe"))
        shutil.rmtree(one.path("/data", "redis-3"))
        one.path("/data", "redis-3").mkdir()
        one.nodes[3] = one.start_node(3)
        wait_until(lambda: one.states()[3] == "voting", "the node votes",
                   WAIT_S)

    def it_drains(self, one: World) -> None:
        assert one.server
        began = time.monotonic()
        one.server.send_signal(signal.SIGTERM)
        wait_until(lambda: not one.probe("readinessProbe"), "it drains",
                   WAIT_S)
        self.assertTrue(one.probe("livenessProbe"))
        grace_s = one.redlockd["spec"]["template"]["spec"][
            "terminationGracePeriodSeconds"]
        self.assertEqual(one.server.wait(timeout=grace_s), 0)
        self.assertGreater(time.monotonic() - began, int(
            environment(one.redlockd)["REDLOCKD_DRAIN_MS"]) / 1000 - 1)


if __name__ == "__main__":
    unittest.main()
