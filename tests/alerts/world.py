"""Five Redis, two redlockd with clients at work, and a Prometheus that has our
rules: all on loopback, in one folder."""
from __future__ import annotations

import contextlib
import json
import pathlib
import re
import subprocess
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

import yaml

from jobs import at_work
from ports import free_ports
from processes import end, spawn
from stack import NODES, Stack, ask, metric
from waiting import wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMETHEUS = ROOT / "deploy/prometheus"
SERVERS = 2
WAIT_S = 60


class World(Stack):
    def __init__(self, folder: pathlib.Path) -> None:
        # others are an alert
        super().__init__(folder, "--appendonly", "yes", "--appendfsync", "always")
        [self.prometheus_port] = free_ports(1)
        self.prometheus: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        for server in range(SERVERS):
            self.start_server(server)
        for port in self.server_ports.values():
            wait_until(lambda: metric(port, "redlockd_quorum_margin ") ==
                       NODES - NODES // 2 - 1, "all nodes vote", WAIT_S)

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
            f"127.0.0.1:{port}" for port in self.server_ports.values()]}]
        rules = (PROMETHEUS / "rules.yml").read_text()
        (self.folder / "rules.yml").write_text(
            re.sub(r"^( +for: ).*", r"\g<1>1s", rules, flags=re.M))
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        with open(self.folder / "prometheus.log", "wb") as log:
            self.prometheus = spawn(
                "prometheus", f"--config.file={self.folder}/prometheus.yml",
                f"--storage.tsdb.path={self.folder}/data",
                f"--web.listen-address=127.0.0.1:{self.prometheus_port}",
                cwd=self.folder, stdout=log, stderr=log)
        wait_until(lambda: len(self.query('up{job="redlockd"} == 1')) == SERVERS,
                   "Prometheus reaches the servers", WAIT_S)

    def tell(self, path: str, **words: str) -> Any:
        """What Prometheus says."""
        with urllib.request.urlopen(
                f"http://127.0.0.1:{self.prometheus_port}/api/v1/{path}?"
                + urllib.parse.urlencode(words), timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[float]:
        """The values of the series that there are, but no NaN."""
        try:
            result = self.tell("query", query=expression)["result"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it is about to start
                return []
            raise AssertionError(f"{expression}: {error.read()!r}") from error
        except OSError:
            return []
        return [float(series["value"][1]) for series in result
                if series["value"][1] != "NaN"]

    def alerts(self) -> set[str]:
        """Those that fire."""
        return {alert["labels"]["alertname"]
                for alert in self.tell("alerts")["alerts"]
                if alert["state"] == "firing"}

    def end(self) -> None:
        end(self.prometheus)
        super().end()


def cycle(port: int, name: str) -> None:
    """Acquire, extend and release; a lock that somebody holds, and a permit."""
    what: dict[str, Any] = {"resource": "shared" if name.endswith("7") else name}
    if name.endswith("5"):
        what = {"resource": "pool", "limit": 1}
    status, lock = ask(port, "POST", "/locks",
                       {**what, "ttl_ms": 2000, "wait_ms": 500})
    if status != 201:
        return
    path, token = f"/locks/{lock['id']}", {"X-Lock-Token": lock["token"]}
    ask(port, "POST", "/locks", what)
    ask(port, "PUT", f"{path}/extend", None, token)
    ask(port, "DELETE", path, None, token)


def clients(world: World) -> contextlib.AbstractContextManager[None]:
    """Two at each server: cycles of acquire, extend and release, locks that
    somebody holds, waits for them, permits, and now and then one that
    leaves."""
    def work(client: int, has_ended: threading.Event) -> None:
        port, turn = world.server_ports[client % SERVERS], 0
        while not has_ended.wait(0.02):
            turn += 1
            cycle(port, f"{client // SERVERS}:{turn % 50}")
    return at_work(work, 2 * SERVERS)


@contextlib.contextmanager
def running() -> Iterator[World]:
    with tempfile.TemporaryDirectory() as folder:
        one = World(pathlib.Path(folder))
        try:
            one.start()
            one.start_prometheus()
            yield one
        finally:
            one.end()
