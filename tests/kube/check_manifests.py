# SPDX-License-Identifier: MIT
"""Schemas, and what must agree: within the manifests, with the binary, with
openapi.yaml and with the docs."""
from __future__ import annotations

import json
import os
import re
import subprocess
import unittest

import kubernetes_validate
import yaml

import manifests
import project
from manifests import OVERLAYS, ROOT, Object, container, environment, find

VERSIONS = ("1.27", kubernetes_validate.latest_version())
REDLOCKD = os.environ.get("REDLOCKD", "build/redlockd")
IN_FLIGHT_S = 8  # after the drain: docs/operations.md
NAMES = project.read_names()
DOCS = (ROOT / "docs/deploy/kubernetes.md").read_text()
RULES_HEAD = """# Made from deploy/prometheus/rules.yml: WRITE=1 make kube-test.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: redlockd
  namespace: redlockd
  labels: {app.kubernetes.io/name: redlockd}
spec:
"""


def each() -> list[tuple[str, list[Object]]]:
    return [(overlay, manifests.render(overlay)) for overlay in OVERLAYS]


def workloads(objects: list[Object]) -> list[Object]:
    return [find(objects, "StatefulSet", "redis"),
            find(objects, "Deployment", "redlockd")]


def selects(selector: Object, labels: Object) -> bool:
    return selector.items() <= labels.items()


def redlockd_says(*arguments: str, **variables: str) -> str:
    return subprocess.run([ROOT / REDLOCKD, *arguments], check=True, text=True,
                          capture_output=True, env=variables).stdout


class Schemas(unittest.TestCase):
    def test_each_object_is_valid_in_old_and_new_versions(self) -> None:
        seen = []
        for overlay, objects in each():
            for one in objects + manifests.secrets():
                # the operator's schemas are not those of Kubernetes
                if one in seen or one["apiVersion"].startswith("monitoring."):
                    continue
                seen.append(one)
                for version in VERSIONS:
                    with self.subTest(overlay, kind=one["kind"],
                                      version=version):
                        kubernetes_validate.validate(one, version, strict=True)

    def test_a_wrong_object_is_not(self) -> None:
        objects = manifests.render("five")
        find(objects, "Deployment", "redlockd")["spec"]["replica"] = 2
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(
                find(objects, "Deployment", "redlockd"), VERSIONS[1], True)


class Overlays(unittest.TestCase):
    def test_each_has_its_nodes(self) -> None:
        for overlay, objects in each():
            self.assertEqual(
                find(objects, "StatefulSet", "redis")["spec"]["replicas"],
                3 if overlay == "three" else 5, overlay)

    def test_the_docs_name_them_all_and_no_others(self) -> None:
        self.assertEqual(
            set(re.findall(r"deploy/kubernetes/overlays/([\w-]+)", DOCS)),
            set(OVERLAYS))
        self.assertEqual({path.name for path in
                          (manifests.FOLDER / "overlays").iterdir()},
                         set(OVERLAYS))

    def test_the_image_has_our_version(self) -> None:
        version = (ROOT / "VERSION").read_text().strip()
        for overlay, objects in each():
            self.assertEqual(
                container(find(objects, "Deployment", "redlockd"))["image"],
                f"{NAMES['IMAGE']}:{version}", overlay)

    def test_the_docs_own_overlay_names_another_registry(self) -> None:
        blocks = re.findall(r"^mkdir -p (\S+) .*\ncat >kustomization.yaml "
                            r"<<'END'\n(.*?)^END$", DOCS, re.M | re.S)
        self.assertEqual(len(blocks), 1)
        objects = manifests.own(*blocks[0])
        image = container(find(objects, "Deployment", "redlockd"))["image"]
        version = (ROOT / "VERSION").read_text().strip()
        self.assertEqual(image, f"registry.internal/redlockd:{version}")

    def test_all_components_go_together(self) -> None:
        objects = manifests.all_components()
        redis = find(objects, "StatefulSet", "redis")
        self.assertEqual(redis["spec"]["replicas"], 3)
        self.assertNotIn("affinity", redis["spec"]["template"]["spec"])
        self.assertIn("--tls-port", container(redis)["args"])
        (endpoint,) = find(objects, "PodMonitor", "redlockd")["spec"][
            "podMetricsEndpoints"]
        mounted = {volume["name"]: volume["secret"]["secretName"]
                   for volume in find(objects, "Deployment", "redlockd")[
                       "spec"]["template"]["spec"]["volumes"]}
        self.assertEqual(endpoint["scheme"], "https")
        self.assertEqual(endpoint["tlsConfig"]["ca"]["secret"]["name"],
                         mounted["tls"])
        self.assertIn("authorization", endpoint)


class Chart(unittest.TestCase):
    """The Helm chart makes the very objects of the overlays."""

    def same(self, overlay: list[Object], chart: list[Object]) -> None:
        def by_name(objects: list[Object]) -> dict[str, Object]:
            return {f"{one['kind']}/{one['metadata']['name']}": one
                    for one in objects}
        wanted = by_name(overlay)
        del wanted["Namespace/redlockd"]  # helm install --create-namespace
        self.maxDiff = None
        self.assertEqual(by_name(chart), wanted)

    def test_its_values_choose_the_overlays(self) -> None:
        for overlay, value in (("five", "replicas=2"),
                               ("three", "redis.nodes=3"),
                               ("few-machines", "redis.shareMachines=true"),
                               ("tls", "tls=true"),
                               ("monitoring", "monitoring.enabled=true")):
            with self.subTest(overlay):
                self.same(manifests.render(overlay), manifests.chart(value))

    def test_all_of_them_together_do(self) -> None:
        self.same(manifests.all_components(), manifests.chart(
            "redis.nodes=3", "redis.shareMachines=true", "tls=true",
            "monitoring.enabled=true"))

    def test_another_namespace_is_everywhere(self) -> None:
        objects = manifests.chart("tls=true", "monitoring.enabled=true",
                                  namespace="other")
        self.assertEqual({one["metadata"]["namespace"] for one in objects},
                         {"other"})
        variables = environment(find(objects, "Deployment", "redlockd"))
        self.assertEqual(variables["REDLOCKD_ALLOWED_HOSTS"].split(",")[0],
                         "redlockd.other")

    def test_the_other_values_arrive(self) -> None:
        objects = manifests.chart(
            "image.repository=a/b", "image.tag=c", "replicas=4",
            "maxTtlMs=3600000", "env.REDLOCKD_LOG_LEVEL=debug",
            "resources.limits.memory=1Gi", "redis.image=valkey/valkey:8",
            "redis.storage=2Gi", "redis.storageClassName=fast",
            "redis.minReadySeconds=3700", "redis.maxmemory=1gb",
            "redis.resources.limits.memory=3Gi", "monitoring.enabled=true",
            "monitoring.labels.release=ours")
        servers = find(objects, "Deployment", "redlockd")
        redis = find(objects, "StatefulSet", "redis")["spec"]
        claim = redis["volumeClaimTemplates"][0]["spec"]
        node = container({"spec": redis})
        self.assertEqual(
            [container(servers)["image"], servers["spec"]["replicas"],
             environment(servers)["REDLOCKD_MAX_TTL_MS"],
             environment(servers)["REDLOCKD_LOG_LEVEL"],
             container(servers)["resources"]["limits"]["memory"]],
            ["a/b:c", 4, "3600000", "debug", "1Gi"])
        self.assertEqual(
            [node["image"], claim["resources"]["requests"]["storage"],
             claim["storageClassName"], redis["minReadySeconds"],
             node["args"][node["args"].index("--maxmemory") + 1],
             node["resources"]["limits"]["memory"]],
            ["valkey/valkey:8", "2Gi", "fast", 3700, "1gb", "3Gi"])
        for kind in ("PodMonitor", "PrometheusRule"):
            labels = find(objects, kind, "redlockd")["metadata"]["labels"]
            self.assertEqual(labels["release"], "ours")
        for one in objects:
            if not one["apiVersion"].startswith("monitoring."):
                kubernetes_validate.validate(one, VERSIONS[0], strict=True)

    def test_wrong_values_are_refused(self) -> None:
        for value, why in (
                ("redis.node=3", "'node' not allowed"),
                ("redis.nodes=4", "value must be one of 1, 3, 5, 7, 9"),
                ("redis.nodes=null", "missing property 'nodes'"),
                ("replicas=0", "replicas"),
                ("image.tag=2026", "want string"),
                ("env.REDLOCKD_MAX_TTL_MS=1", "set maxTtlMs"),
                ("env.redlockd_listen=a", "does not match pattern"),
                ("maxTtlMs=68400", "redis.minReadySeconds must be at least 76"),
                ("redis.minReadySeconds=66", "must be at least 67")):
            with self.subTest(value), self.assertRaisesRegex(RuntimeError, why):
                manifests.chart(value)
        for value in "redis.shareMachines=false", "tls=false", "replicas=2":
            with self.subTest(value), self.assertRaisesRegex(RuntimeError, "want"):
                manifests.chart(strings=(value,))
        manifests.chart("maxTtlMs=68300", "redis.nodes=1")

    def test_values_of_a_file_keep_their_form(self) -> None:
        # where Helm reads each number as one with a fraction
        objects = manifests.chart(file="""
            maxTtlMs: 3600000
            image: {repository: "a/b", tag: "1.10"}
            env:
              REDLOCKD_MAX_HOLD_MS: 3600000
              REDLOCKD_DRIFT_FACTOR: 0.02
              REDLOCKD_ALLOW_ANONYMOUS: no
              REDLOCKD_KEY_PREFIX: 'a"b":{c}#d'
            redis: {minReadySeconds: 3700, maxmemory: 268435456, storage: 1073741824}
            """)
        servers = find(objects, "Deployment", "redlockd")
        variables = environment(servers)
        self.assertEqual(
            [container(servers)["image"], variables["REDLOCKD_MAX_HOLD_MS"],
             variables["REDLOCKD_DRIFT_FACTOR"], variables["REDLOCKD_ALLOW_ANONYMOUS"],
             variables["REDLOCKD_KEY_PREFIX"]],
            ["a/b:1.10", "3600000", "0.02", "false", 'a"b":{c}#d'])
        redis = find(objects, "StatefulSet", "redis")
        self.assertEqual(container(redis)["args"][-1], "268435456")
        claim = redis["spec"]["volumeClaimTemplates"][0]["spec"]
        self.assertEqual(claim["resources"]["requests"]["storage"], "1073741824")
        redlockd_says("--check-config", "--nodes=redis-0.redis", **{
            name: value for name, value in variables.items()
            if name not in ("REDLOCKD_NODES_FILE", "REDLOCKD_LISTEN")})

    def test_no_variable_is_there_twice(self) -> None:
        objects = manifests.chart("env.REDLOCKD_DRAIN_MS=5000", "tls=true",
                                  "env.REDLOCKD_NODE_CA=/etc/ssl/ca.pem")
        servers = find(objects, "Deployment", "redlockd")
        names = [entry["name"] for entry in container(servers)["env"]]
        self.assertEqual(sorted(names), sorted(set(names)))
        self.assertEqual(environment(servers)["REDLOCKD_DRAIN_MS"], "5000")
        self.assertEqual(environment(servers)["REDLOCKD_NODE_CA"], "/etc/ssl/ca.pem")

    def test_helm_finds_no_fault(self) -> None:
        self.assertIn("0 chart(s) failed",
                      manifests.helm("lint", "--strict", str(manifests.CHART)))

    def test_its_versions_are_ours(self) -> None:
        described = yaml.safe_load(
            (manifests.CHART / "Chart.yaml").read_text())
        version = (ROOT / "VERSION").read_text().strip()
        self.assertEqual([described["version"], described["appVersion"]],
                         [version] * 2)


class Agreement(unittest.TestCase):
    def test_selectors_match_the_pods_and_no_others(self) -> None:
        for overlay, objects in each():
            labels = {one["metadata"]["name"]:
                      one["spec"]["template"]["metadata"]["labels"]
                      for one in workloads(objects)}
            for one in objects:
                spec = one.get("spec", {})
                selector = spec.get("selector") or spec.get("podSelector")
                if not selector:
                    continue
                with self.subTest(overlay, kind=one["kind"]):
                    chosen = {name for name, its in labels.items() if selects(
                        selector.get("matchLabels", selector), its)}
                    self.assertEqual(chosen, {one["metadata"]["name"]})

    def test_ports_and_volumes_are_there(self) -> None:
        for _, objects in each():
            for one in workloads(objects):
                pod = one["spec"]["template"]["spec"]
                ports = {port["name"]: port["containerPort"]
                         for port in container(one)["ports"]}
                service = find(objects, "Service", one["metadata"]["name"])
                for port in service["spec"]["ports"]:
                    self.assertEqual(ports[port["targetPort"]], port["port"])
                policy = find(objects, "NetworkPolicy", one["metadata"]["name"])
                for rule in policy["spec"]["ingress"]:
                    self.assertEqual([port["port"] for port in rule["ports"]],
                                     list(ports.values()))
                volumes = {volume["name"] for volume in pod["volumes"]}
                volumes |= {claim["metadata"]["name"] for claim in
                            one["spec"].get("volumeClaimTemplates", [])}
                self.assertEqual({mount["name"] for mount in
                                  container(one)["volumeMounts"]}, volumes)

    def test_files_are_in_volumes(self) -> None:
        for overlay, objects in each():
            for one in workloads(objects):
                words = container(one).get("args", []) + [
                    entry["value"] for entry in container(one).get("env", [])]
                mounts = [mount["mountPath"]
                          for mount in container(one)["volumeMounts"]]
                for path in (word for word in words if word.startswith("/")):
                    with self.subTest(overlay, path=path):
                        self.assertTrue(any(f"{path}/".startswith(f"{mount}/")
                                            for mount in mounts))

    def test_secrets_of_no_use_are_not_made(self) -> None:
        for name, value in (("NODES", "4"), ("NODES", "five"), ("NODES", "0"),
                            ("SCHEME", "https")):
            with self.subTest(value), self.assertRaises(
                    subprocess.CalledProcessError) as failed:
                manifests.secrets(**{name: value})
            self.assertEqual(failed.exception.stdout, "")

    def test_the_nodes_are_those_of_the_set(self) -> None:
        for _, objects in each():
            redis = find(objects, "StatefulSet", "redis")
            urls = manifests.secret(manifests.secrets(
                NODES=str(redis["spec"]["replicas"])), "redlockd-nodes")
            hosts = re.findall(r"@([\w.-]+):(\d+)$", urls, re.M)
            self.assertEqual(hosts, [
                (f"redis-{i}.{redis['spec']['serviceName']}",
                 str(container(redis)["ports"][0]["containerPort"]))
                for i in range(redis["spec"]["replicas"])])
            mounted = environment(find(objects, "Deployment", "redlockd"))
            self.assertEqual(mounted["REDLOCKD_NODES_FILE"].rsplit("/", 1)[1],
                             *find(manifests.secrets(), "Secret",
                                   "redlockd-nodes")["stringData"])

    def test_disruptions_leave_a_quorum(self) -> None:
        for overlay, objects in each():
            for one in workloads(objects):
                budget = find(objects, "PodDisruptionBudget",
                              one["metadata"]["name"])["spec"]
                left = one["spec"]["replicas"] - budget["maxUnavailable"]
                self.assertGreater(left, one["spec"]["replicas"] // 2 - 1)
            nodes = find(objects, "StatefulSet", "redis")["spec"]["replicas"]
            budget = find(objects, "PodDisruptionBudget", "redis")["spec"]
            # and of five, one more may fail meanwhile
            self.assertGreater(nodes - budget["maxUnavailable"] -
                               (overlay != "three"), nodes // 2)

    def test_secrets_are_nowhere_but_in_secrets(self) -> None:
        for path in manifests.FOLDER.rglob("*.yaml"):
            for one in yaml.load_all(path.read_text(), yaml.CSafeLoader):
                self.assertNotEqual(one.get("kind"), "Secret", path)
            self.assertNotRegex(path.read_text(), r"://[^/\s]*:[^/\s]*@")
        first, second = (manifests.secret(manifests.secrets(), "redlockd-nodes")
                         for _ in range(2))
        self.assertNotEqual(first, second)


class Pods(unittest.TestCase):
    def test_they_are_restricted(self) -> None:
        for overlay, objects in each():
            (space,) = [one for one in objects if one["kind"] == "Namespace"]
            self.assertEqual(space["metadata"]["labels"][
                "pod-security.kubernetes.io/enforce"], "restricted")
            for one in workloads(objects):
                with self.subTest(overlay, name=one["metadata"]["name"]):
                    pod = one["spec"]["template"]["spec"]
                    its = container(one)["securityContext"]
                    self.assertTrue(pod["securityContext"]["runAsNonRoot"])
                    self.assertGreater(pod["securityContext"]["runAsUser"], 0)
                    self.assertEqual(pod["securityContext"]["seccompProfile"],
                                     {"type": "RuntimeDefault"})
                    self.assertTrue(its["readOnlyRootFilesystem"])
                    self.assertFalse(its["allowPrivilegeEscalation"])
                    self.assertEqual(its["capabilities"], {"drop": ["ALL"]})
                    self.assertFalse(pod["automountServiceAccountToken"])
                    self.assertFalse(pod["enableServiceLinks"])
                    self.assertIn("memory", container(one)["resources"]["limits"])

    def test_the_image_runs_as_the_same_user(self) -> None:
        user = re.search(r"^USER (\d+):(\d+)$",
                         (ROOT / "Dockerfile").read_text(), re.M)
        assert user
        pod = find(manifests.render("five"), "Deployment",
                   "redlockd")["spec"]["template"]["spec"]
        self.assertEqual([str(pod["securityContext"][name])
                          for name in ("runAsUser", "runAsGroup")],
                         list(user.groups()))

    def test_probes_ask_what_openapi_describes(self) -> None:
        paths = yaml.load((ROOT / "openapi.yaml").read_text(),
                          yaml.CSafeLoader)["paths"]
        for overlay, objects in each():
            one = container(find(objects, "Deployment", "redlockd"))
            for kind, path in (("readinessProbe", "/readyz"),
                               ("livenessProbe", "/livez")):
                asked = one[kind]["httpGet"]
                self.assertEqual(asked["path"], path)
                self.assertIn("get", paths[path])
                self.assertEqual(asked.get("scheme", "HTTP") == "HTTPS",
                                 overlay == "tls")

    def test_options_are_those_of_the_binary(self) -> None:
        flags = re.findall(r"^  --([a-z-]+)", redlockd_says("--help"), re.M)
        known = {"REDLOCKD_" + flag.upper().replace("-", "_")
                 for flag in flags} | {"REDLOCKD_NODES_FILE"}
        for overlay, objects in each():
            names = set(environment(find(objects, "Deployment", "redlockd")))
            if overlay == "tls" and "tls-cert" not in flags:
                continue  # of a build without TLS
            self.assertLessEqual(names, known, overlay)

    def test_a_stop_outlasts_the_drain_and_the_drain_the_probes(self) -> None:
        for _, objects in each():
            one = find(objects, "Deployment", "redlockd")
            drain_s = int(environment(one)["REDLOCKD_DRAIN_MS"]) / 1000
            grace_s = one["spec"]["template"]["spec"][
                "terminationGracePeriodSeconds"]
            probe = container(one)["readinessProbe"]
            self.assertGreater(grace_s, drain_s + IN_FLIGHT_S)
            self.assertGreater(drain_s, probe["failureThreshold"] *
                               probe["periodSeconds"] + probe["timeoutSeconds"])

    def test_a_node_votes_before_the_next_is_restarted(self) -> None:
        for _, objects in each():
            variables = environment(find(objects, "Deployment", "redlockd"))
            printed = redlockd_says("--nodes", "a:1", "--print-config", **{
                name: value for name, value in variables.items()
                if name == "REDLOCKD_MAX_TTL_MS"})
            told = dict(re.findall(r"^(?:--)?([\w-]+)[ =](\S+)$", printed, re.M))
            # docs/internals/guarantees.md; with these numbers 4 W is less
            quarantine_s = int(told["max-ttl-ms"]) * 1.01 / 1000 + 5 + 1
            redis = find(objects, "StatefulSet", "redis")["spec"]
            self.assertGreater(redis["minReadySeconds"], quarantine_s)
            self.assertEqual(redis["updateStrategy"], {"type": "RollingUpdate"})

    def test_the_nodes_share_no_machine_unless_they_may(self) -> None:
        for overlay, objects in each():
            pod = find(objects, "StatefulSet",
                       "redis")["spec"]["template"]["spec"]
            rules = pod.get("affinity", {}).get("podAntiAffinity", {}).get(
                "requiredDuringSchedulingIgnoredDuringExecution", [])
            self.assertEqual(len(rules), overlay != "few-machines")


class Nodes(unittest.TestCase):
    def settings(self, words: list[str]) -> dict[str, str]:
        """Of arguments: --name value; none of ours has two."""
        names = [word.removeprefix("--") for word in words[::2]]
        self.assertTrue(all(word.startswith("--") for word in words[::2]))
        return dict(zip(names, words[1::2], strict=True))

    def test_they_have_all_that_the_conf_file_asks_for(self) -> None:
        asked = dict(re.findall(r"^([a-z-]+) (.*)$",
                                (ROOT / "docker/redis.conf").read_text(), re.M))
        del asked["bind"]  # to all: as without arguments
        for overlay, objects in each():
            has = self.settings(
                container(find(objects, "StatefulSet", "redis"))["args"])
            self.assertEqual(asked, {name: json.dumps(value) if value == ""
                                     else value for name, value in has.items()
                                     if name in asked}, overlay)

    def test_they_refuse_writes_before_they_are_killed(self) -> None:
        one = container(find(manifests.render("five"), "StatefulSet", "redis"))
        most = int(self.settings(one["args"])["maxmemory"].removesuffix("mb"))
        limit = int(one["resources"]["limits"]["memory"].removesuffix("Mi"))
        self.assertLessEqual(2 * most, limit)

    def test_their_user_may_do_what_the_docs_tell(self) -> None:
        docs = (ROOT / "docs/operations.md").read_text()
        told = re.search(r"ACL SETUSER redlockd on '>change-me' (.*)$", docs,
                         re.M)
        assert told
        users = manifests.secret(manifests.secrets(), "redis-users")
        rules = re.search(r"^user redlockd reset on #\w{64} (.*)$", users, re.M)
        assert rules
        self.assertEqual(sorted(rules[1].split()),
                         sorted(told[1].replace("'", "").split()))

    def test_loading_the_append_only_file_is_allowed_everything(self) -> None:
        """Redis drops transactions that its default user may not do."""
        users = manifests.secret(manifests.secrets(), "redis-users")
        self.assertRegex(users, r"(?m)^user default reset on #\w{64} "
                                r"~\* &\* \+@all$")

    def test_nobody_else_reaches_them(self) -> None:
        for _, objects in each():
            policy = find(objects, "NetworkPolicy", "redis")["spec"]
            self.assertEqual(policy.get("egress", []), [])
            self.assertEqual(sorted(policy["policyTypes"]),
                             ["Egress", "Ingress"])
            (rule,) = policy["ingress"]
            (peer,) = rule["from"]
            servers = find(objects, "Deployment", "redlockd")
            self.assertEqual(peer, {"podSelector": {
                "matchLabels": servers["spec"]["selector"]["matchLabels"]}})

    def test_name_servers_are_asked_through_a_cache_on_the_machine(
            self) -> None:
        """NodeLocal DNSCache uses the machine's network: no selector of pods
        finds it, only its address."""
        for _, objects in each():
            policy = find(objects, "NetworkPolicy", "redlockd")["spec"]
            (rule,) = [rule for rule in policy["egress"]
                       if {"protocol": "UDP", "port": 53} in rule["ports"]]
            self.assertIn({"ipBlock": {"cidr": "169.254.20.10/32"}},
                          rule["to"])
            self.assertTrue(any("podSelector" in peer for peer in rule["to"]))


class Monitoring(unittest.TestCase):
    """The PodMonitor does what kubernetes.yml does; nothing here has the
    operator's schema."""

    def setUp(self) -> None:
        self.objects = manifests.render("monitoring")
        monitor = find(self.objects, "PodMonitor", "redlockd")
        self.assertEqual(monitor["apiVersion"], "monitoring.coreos.com/v1")
        self.namespace = monitor["metadata"]["namespace"]
        self.spec = monitor["spec"]
        scraped = yaml.safe_load(
            (ROOT / "deploy/prometheus/kubernetes.yml").read_text())
        (self.job,) = scraped["scrape_configs"]

    def test_it_finds_the_servers(self) -> None:
        servers = find(self.objects, "Deployment", "redlockd")
        self.assertEqual(servers["metadata"]["namespace"], self.namespace)
        labels = servers["spec"]["template"]["metadata"]["labels"]
        wanted = self.spec["selector"]["matchLabels"]
        self.assertEqual({name: labels.get(name) for name in wanted}, wanted)
        # the alerts want this name of the job
        self.assertEqual(labels[self.spec["jobLabel"]], self.job["job_name"])
        (endpoint,) = self.spec["podMetricsEndpoints"]
        self.assertIn(endpoint["port"], [
            port["name"] for port in container(servers)["ports"]])

    def test_a_server_is_named_by_its_pod(self) -> None:
        (endpoint,) = self.spec["podMetricsEndpoints"]
        (relabel,) = endpoint["relabelings"]
        self.assertIn({"source_labels": relabel["sourceLabels"],
                       "target_label": relabel["targetLabel"]},
                      self.job["relabel_configs"])

    def test_its_rules_are_those_of_the_other_installations(self) -> None:
        rules = (ROOT / "deploy/prometheus/rules.yml").read_text()
        made = RULES_HEAD + re.sub(r"(?m)^(?=.)", "  ", rules)
        copy = manifests.FOLDER / "components/monitoring/rules.yaml"
        if os.environ.get("WRITE"):
            copy.write_text(made)
        self.assertEqual(copy.read_text(), made)
        rule = find(self.objects, "PrometheusRule", "redlockd")
        self.assertEqual(rule["spec"], yaml.load(rules, yaml.CSafeLoader))


if __name__ == "__main__":
    unittest.main()
