# SPDX-License-Identifier: MIT
"""Rules and dashboard in a real Prometheus, over servers with clients and with
troubles: nothing fires without, the right alerts do with."""
from __future__ import annotations

import json
import re
import time
import unittest

import yaml

from processes import stopped
from prometheus import DEPLOY, RULES
from waiting import wait_until
from world import WAIT_S, World, clients, running


def panels() -> dict[str, list[str]]:
    """The queries of each panel, with values for its variables."""
    board = json.loads((DEPLOY.parent / "grafana/redlockd.json").read_text())
    found: dict[str, list[str]] = {}
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            text = target["expr"]
            for name, value in (("job", "redlockd"), ("instance", ".*"),
                                ("__rate_interval", "8s")):
                text = text.replace(f"${name}", value)
            found.setdefault(panel["title"], []).append(text)
    return found


def metrics_in(text: str) -> set[str]:
    return set(re.findall(r"\b(?:redlockd|process)_\w+", text))


# of a server that speaks TLS, or has an auth file
ELSEWHERE = {"redlockd_tls_certificate_expiry_timestamp_seconds",
             "redlockd_node_tls_certificate_expiry_timestamp_seconds",
             "redlockd_tls_client_crl_next_update_timestamp_seconds",
             "redlockd_file_refused"}
# neither alert nor panel: for tests, or for who looks for a cause
UNSHOWN = {"redlockd_http_requests_accepted_total",
           "redlockd_http_requests_answered_total", "redlockd_node_info",
           "redlockd_tls_handshakes_total",
           "redlockd_file_read_timestamp_seconds"}


class Live(unittest.TestCase):
    def test_queries_and_alarms(self) -> None:
        with running() as world:
            self.every_metric_is_there(world)
            with clients(world):
                self.calm(world)
                with stopped(world.nodes[:1]):
                    wait_until(lambda: "RedlockdNodeNotVoting" in world.alerts(),
                               "a paused node is reported", WAIT_S)
                    self.assertNotIn("RedlockdNoQuorum", world.alerts())
                self.every_panel_has_data(world)
                self.no_quorum(world)
                self.a_server_dies(world)

    def every_metric_is_there(self, world: World) -> None:
        told = world.metrics(world.server_ports[0])
        known = set(re.findall(r"^# TYPE (\w+)", told, re.M))
        groups = yaml.safe_load(RULES.read_text())["groups"]
        used = {name for group in groups for rule in group["rules"]
                for name in metrics_in(rule["expr"])}
        for queries in panels().values():
            for query in queries:
                used |= metrics_in(query)
        used = {re.sub("_(bucket|sum|count)$", "", name) for name in used}
        self.assertLessEqual(used - ELSEWHERE, known)
        self.assertEqual(known - used - UNSHOWN, set())

    def calm(self, world: World) -> None:
        """Clients at work, and no alert for a while. A busy machine may stop a
        node for the second after which this copy of the rules complains."""
        query = "sum(redlockd_operations_total{outcome='released'}) > 50"
        wait_until(lambda: world.query(query), "clients work", WAIT_S)

        def is_calm() -> bool:
            for _ in range(8):
                if world.alerts():
                    return False
                time.sleep(0.5)
            return True
        wait_until(is_calm, "no alert fires", WAIT_S)

    def every_panel_has_data(self, world: World) -> None:
        for title, queries in panels().items():
            for query in queries:
                with self.subTest(title):
                    wait_until(lambda q=query: world.query(q), query, WAIT_S)

    def no_quorum(self, world: World) -> None:
        for node in world.nodes[:3]:
            node.kill()
        wait_until(lambda: {"RedlockdNoQuorum", "RedlockdNodeNotVoting",
                            "RedlockdServerErrors"} <= world.alerts(),
                   "the quorum is lost", WAIT_S)
        rules = yaml.safe_load(RULES.read_text())
        self.assertLessEqual(world.alerts(), {
            rule["alert"] for group in rules["groups"]
            for rule in group["rules"]})

    def a_server_dies(self, world: World) -> None:
        world.servers[0].kill()
        wait_until(lambda: "RedlockdDown" in world.alerts(), "one is down",
                   WAIT_S)
        self.assertNotIn("RedlockdAllDown", world.alerts())
        world.servers[1].kill()
        wait_until(lambda: "RedlockdAllDown" in world.alerts(), "all are down",
                   WAIT_S)


if __name__ == "__main__":
    unittest.main()
