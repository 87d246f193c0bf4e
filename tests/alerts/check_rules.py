# SPDX-License-Identifier: MIT
"""The alerts: each fires and does not, and says where the runbook is; the
dashboard's form; all metrics are those of the binary."""
from __future__ import annotations

import json
import pathlib
import re
import subprocess
import tempfile
import unittest
from typing import Any

import yaml

from prometheus import DEPLOY, RULES
from scenarios import OUTAGE, OUTAGE_S, PLANNED, SCENARIOS, Series, samples

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNBOOK = ROOT / "docs/runbook.md"
METRICS = ROOT / "docs/reference/metrics.md"


def alerts() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"]
            for rule in group["rules"]]


def promtool(config: dict[str, Any], *words: str) -> None:
    """It takes what has been written to a file."""
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        yaml.safe_dump(config, file)
        file.flush()
        done = subprocess.run(["promtool", *words, file.name], check=False,
                              text=True, capture_output=True)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)


def firing(name: str, series: Series, expected: dict[int, list[str]],
           among: str = "") -> dict[str, Any]:
    """A test in promtool's format: which alerts fire after so many seconds, of all
    or of this one."""
    return {
        "name": name, "interval": "15s",
        "input_series": [{"series": key, "values": values}
                         for key, values in series.items()],
        "promql_expr_test": [{
            "expr": "count by (alertname) (ALERTS{alertstate='firing',"
                    f"alertname=~'{among or '.*'}'}})",
            "eval_time": f"{time_s}s",
            "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1}
                            for alert in alerts]}
            for time_s, alerts in expected.items()]}


def test_rules(*tests: dict[str, Any]) -> None:
    promtool({"rule_files": [str(RULES)], "evaluation_interval": "15s",
              "tests": list(tests)}, "test", "rules")


def table(page: pathlib.Path) -> dict[str, str]:
    """alert: severity, as the page's table has it"""
    return dict(re.findall(r"^\| \[?(Redlockd\w+)\S* \| (\w+) \|",
                           page.read_text(), re.M))


class Rules(unittest.TestCase):
    def test_configurations_are_valid(self) -> None:
        promtool(yaml.safe_load(RULES.read_text()), "check", "rules")
        promtool(yaml.safe_load((DEPLOY / "prometheus.yml").read_text()),
                 "check", "config", "--syntax-only")
        # Debian's Prometheus cannot find pods: its own part is left out
        config = yaml.safe_load((DEPLOY / "kubernetes.yml").read_text())
        for scrape in config["scrape_configs"]:
            self.assertEqual(scrape.pop("kubernetes_sd_configs")[0]["role"],
                             "pod")
        promtool(config, "check", "config", "--syntax-only")

    def test_each_fires_and_does_not(self) -> None:
        self.assertEqual(set(SCENARIOS), {rule["alert"] for rule in alerts()})
        """At the last sample of the series."""
        test_rules(*[
            firing(alert, series, {(samples(series) - 1) * 15: alerts}, alert)
            for alert, both in SCENARIOS.items()
            for series, alerts in zip(both, ([alert], []))])

    def test_what_is_planned_fires_nothing(self) -> None:
        test_rules(*[
            firing(name, series, {step * 15: [] for step in
                                  range(samples(series))})
            for name, series in PLANNED.items()])

    def test_errors_end_the_alarm_soon(self) -> None:
        alert = ["RedlockdServerErrors"]
        test_rules(firing("outage", OUTAGE, {
            180: [], 240: alert, OUTAGE_S: alert, OUTAGE_S + 75: [],
            OUTAGE_S + 300: []}))

    def test_links_lead_where_the_external_label_says(self) -> None:
        for labels, base in ({}, "docs"), ({"redlockd_docs": "https://w/x"},
                                           "https://w/x"):
            test_rules({
                "interval": "15s", "external_labels": labels,
                "input_series": [{"series": 'up{job="redlockd"}',
                                  "values": "0x20"}],
                "alert_rule_test": [{
                    "eval_time": "3m", "alertname": "RedlockdAllDown",
                    "exp_alerts": [{
                        "exp_labels": {"severity": "page", "job": "redlockd"},
                        "exp_annotations": {
                            "summary": "No redlockd answers",
                            "description":
                                "Prometheus reaches no server of redlockd. Nobody "
                                "gets a lock, extends one, or releases one.",
                            "runbook_url":
                                f"{base}/runbook.md#redlockdalldown"}}]}]})

    def test_each_is_described(self) -> None:
        anchors = {heading.lower() for heading in
                   re.findall(r"^## (\w+)$", RUNBOOK.read_text(), re.M)}
        for rule in alerts():
            with self.subTest(rule["alert"]):
                self.assertIn(rule["labels"]["severity"], ("page", "ticket"))
                notes = rule["annotations"]
                self.assertEqual(set(notes),
                                 {"summary", "description", "runbook_url"})
                page, anchor = notes["runbook_url"].split("#")
                self.assertEqual(
                    page, '{{ or $externalLabels.redlockd_docs "docs" }}'
                    "/runbook.md")
                self.assertEqual(anchor, rule["alert"].lower())
                anchors.remove(anchor)
        self.assertEqual(anchors, set(), "sections without an alert")

    def test_the_tables_have_each_with_its_severity(self) -> None:
        wanted = {rule["alert"]: rule["labels"]["severity"]
                  for rule in alerts()}
        self.assertEqual(table(RUNBOOK), wanted)
        self.assertEqual(table(METRICS), wanted)

    def test_the_conditions_name_what_the_rules_use(self) -> None:
        rows = {name: (set(re.findall(r"`((?:redlockd|process)_\w+|up)`", words)),
                       time) for name, words, time in re.findall(
                           r"^\| \[(Redlockd\w+)\S* \| \w+ \| (.*) \|(?: (\w+))? \|$",
                           METRICS.read_text(), re.M)}
        for rule in alerts():
            with self.subTest(rule["alert"]):
                used = set(re.findall(r"\b(?:redlockd|process)_\w+|\bup\b",
                                      rule["expr"]))
                self.assertEqual(rows[rule["alert"]],
                                 (used, rule.get("for", "")))

    def test_the_runbook_answers_the_same_for_each(self) -> None:
        for section in RUNBOOK.read_text().split("\n## ")[1:]:
            with self.subTest(section.split("\n")[0]):
                for question in ("**Means**", "**Locks**", "**Look**", "**Do**"):
                    self.assertIn(f"- {question}: ", section)


class Dashboard(unittest.TestCase):
    def setUp(self) -> None:
        self.board = json.loads(
            (ROOT / "deploy/grafana/redlockd.json").read_text())

    def panels(self) -> list[dict[str, Any]]:
        return [panel for panel in self.board["panels"]
                if panel["type"] != "row"]

    def test_the_form(self) -> None:
        ids = [panel["id"] for panel in self.board["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual(len({panel["title"] for panel in self.panels()}),
                         len(self.panels()))
        self.assertIsNone(self.board["id"])
        self.assertEqual(
            [variable["name"] for variable in self.board["templating"]["list"]],
            ["datasource", "job", "instance"])

    def test_each_panel_has_what_a_reader_needs(self) -> None:
        source = {"type": "prometheus", "uid": "${datasource}"}
        for panel in self.panels():
            with self.subTest(panel["title"]):
                self.assertTrue(panel["description"])
                self.assertTrue(panel["fieldConfig"]["defaults"]["unit"])
                self.assertEqual(panel["datasource"], source)
                refs = [target["refId"] for target in panel["targets"]]
                self.assertEqual(len(refs), len(set(refs)))
                for target in panel["targets"]:
                    self.assertEqual(target["datasource"], source)
                    self.assertIn('job="$job"', target["expr"])

    def test_panels_lie_beside_each_other(self) -> None:
        taken: set[tuple[int, int]] = set()
        for panel in self.board["panels"]:
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                     for y in range(at["y"], at["y"] + at["h"])}
            self.assertFalse(cells & taken, panel["title"])
            self.assertLessEqual(at["x"] + at["w"], 24)
            taken |= cells


if __name__ == "__main__":
    unittest.main()
