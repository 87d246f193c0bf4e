"""Five Redis, two redlockd with clients at work, and a Prometheus that has our
rules: all on loopback, in one folder."""
from __future__ import annotations

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

import yaml

from ports import free_ports
from waiting import wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
REDLOCKD = ROOT / os.environ.get("REDLOCKD", "build/redlockd")
PROMETHEUS = ROOT / "deploy/prometheus"
NODES = 5
SERVERS = 2
WAIT_S = 60


class World:
    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        ports = free_ports(NODES + SERVERS + 1)
        self.node_ports = ports[:NODES]
        self.server_ports = ports[NODES:-1]
        self.prometheus_port = ports[-1]
        self.nodes: list[subprocess.Popen[bytes]] = []
        self.servers: list[subprocess.Popen[bytes]] = []
        self.prometheus: subprocess.Popen[bytes] | None = None

    def spawn(self, name: str, *words: object) -> subprocess.Popen[bytes]:
        (self.folder / name).mkdir()
        with open(self.folder / name / "log", "wb") as log:
            return subprocess.Popen([str(word) for word in words],
                                    cwd=self.folder / name, stdout=log,
                                    stderr=subprocess.STDOUT)

    def start(self) -> None:
        for port in self.node_ports:
            self.nodes.append(self.spawn(
                f"node-{port}", "redis-server", "--port", port, "--bind",
                "127.0.0.1", "--save", ""))
        names = ",".join(f"127.0.0.1:{port}" for port in self.node_ports)
        for port in self.server_ports:
            self.servers.append(self.spawn(
                f"server-{port}", REDLOCKD, "--listen", f"127.0.0.1:{port}",
                "--nodes", names, "--first-start", "yes"))
        wait_until(lambda: all(self.is_whole(port)
                               for port in self.server_ports),
                   "all nodes vote", WAIT_S)

    def is_whole(self, port: int) -> bool:
        try:
            return f"redlockd_quorum_margin {NODES - NODES // 2 - 1}\n" \
                in self.metrics(port)
        except OSError:
            return False

    def metrics(self, port: int) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics",
                                    timeout=5) as answer:
            return str(answer.read().decode())

    def start_prometheus(self) -> None:
        """Our configuration, but faster: whatever lasts minutes takes 1 s."""
        config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        (job,) = config["scrape_configs"]
        del job["dns_sd_configs"]
        job["static_configs"] = [{"targets": [
            f"127.0.0.1:{port}" for port in self.server_ports]}]
        rules = (PROMETHEUS / "rules.yml").read_text()
        (self.folder / "rules.yml").write_text(
            re.sub(r"^( +for: ).*", r"\g<1>1s", rules, flags=re.M))
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        self.prometheus = self.spawn(
            "prometheus", "prometheus",
            f"--config.file={self.folder}/prometheus.yml",
            f"--storage.tsdb.path={self.folder}/data",
            f"--web.listen-address=127.0.0.1:{self.prometheus_port}")
        wait_until(lambda: len(self.query('up{job="redlockd"} == 1')) == SERVERS,
                   "Prometheus reaches the servers", WAIT_S)

    def ask(self, path: str, **words: str) -> Any:
        with urllib.request.urlopen(
                f"http://127.0.0.1:{self.prometheus_port}/api/v1/{path}?"
                + urllib.parse.urlencode(words), timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[float]:
        """The values of the series that there are, but no NaN."""
        try:
            result = self.ask("query", query=expression)["result"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it is about to start
                return []
            raise AssertionError(f"{expression}: {error.read()!r}") from error
        except OSError:
            return []
        return [float(series["value"][1]) for series in result
                if series["value"][1] != "NaN"]

    def alarms(self) -> set[str]:
        """Those that fire."""
        return {alert["labels"]["alertname"]
                for alert in self.ask("alerts")["alerts"]
                if alert["state"] == "firing"}

    @contextlib.contextmanager
    def paused(self, node: int) -> Iterator[None]:
        self.nodes[node].send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.nodes[node].send_signal(signal.SIGCONT)

    def stop(self) -> None:
        for process in [self.prometheus, *self.servers, *self.nodes]:
            if process:
                process.kill()
                process.wait()


class Clients:
    """Two at each server: cycles of acquire, extend and release, locks that
    somebody holds, waits for them, permits, and now and then one that
    leaves."""

    def __init__(self, world: World) -> None:
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(port, n))
                        for port in world.server_ports for n in range(2)]

    def work(self, port: int, client: int) -> None:
        turn = 0
        while not self.ended.wait(0.02):
            turn += 1
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.cycle(port, f"{client}:{turn % 50}")

    def cycle(self, port: int, name: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)

        def call(method: str, path: str, body: Any = None,
                 token: str = "") -> tuple[int, Any]:
            connection.request(
                method, path, json.dumps(body) if body else None,
                {"Content-Type": "application/json", "X-Lock-Token": token}
                if token else {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.load(answer)
        try:
            what: dict[str, Any] = {
                "resource": "shared" if name.endswith("7") else name}
            if name.endswith("5"):
                what = {"resource": "pool", "limit": 1}
            status, lock = call("POST", "/locks", {
                **what, "ttl_ms": 2000, "wait_ms": 500})
            if status != 201:
                return
            path = f"/locks/{lock['id']}"
            call("POST", "/locks", what)
            call("PUT", f"{path}/extend", token=lock["token"])
            call("DELETE", path, token=lock["token"])
        finally:
            connection.close()

    def __enter__(self) -> Clients:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        for thread in self.threads:
            thread.join()


@contextlib.contextmanager
def running() -> Iterator[World]:
    with tempfile.TemporaryDirectory() as folder:
        one = World(pathlib.Path(folder))
        try:
            one.start()
            one.start_prometheus()
            yield one
        finally:
            one.stop()
