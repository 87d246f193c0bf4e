# SPDX-License-Identifier: MIT
"""A Prometheus on loopback, and what it says."""
from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from ports import free_ports
from processes import spawn

DEPLOY = Path(__file__).resolve().parents[2] / "deploy/prometheus"
RULES = DEPLOY / "rules.yml"


class Prometheus:
    """With our configuration, but it scrapes these servers, each second."""

    def __init__(self, folder: Path, servers: list[int],
                 rules: Path = RULES) -> None:
        [self.port] = free_ports(1)
        config = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
        config |= {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                   "rule_files": [str(rules)]}
        (job,) = config["scrape_configs"]
        del job["dns_sd_configs"]
        job["static_configs"] = [
            {"targets": [f"127.0.0.1:{port}" for port in servers]}]
        file = folder / "prometheus.yml"
        file.write_text(yaml.safe_dump(config))
        with (folder / "prometheus.log").open("wb") as log:
            self.process: subprocess.Popen[bytes] = spawn(
                "prometheus", f"--config.file={file}",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address=127.0.0.1:{self.port}", cwd=folder,
                stdout=log, stderr=log)

    def ask(self, path: str, **words: str) -> Any:
        """None: it is about to start."""
        try:
            with urllib.request.urlopen(
                    f"http://127.0.0.1:{self.port}/api/v1/{path}?"
                    + urllib.parse.urlencode(words), timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return None
            raise AssertionError(f"{path} {words}: {error.read()!r}") from error
        except OSError:
            return None

    def query(self, expression: str) -> list[float]:
        """The values of the series that there are, but no NaN."""
        found = self.ask("query", query=expression) or {"result": []}
        return [float(series["value"][1]) for series in found["result"]
                if series["value"][1] != "NaN"]

    def alerts(self) -> list[tuple[str, str]] | None:
        """Name and state of those that are pending or fire; None: not yet."""
        found = self.ask("alerts")
        return None if found is None else [
            (alert["labels"]["alertname"], alert["state"])
            for alert in found["alerts"]]
