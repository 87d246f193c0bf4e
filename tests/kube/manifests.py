# SPDX-License-Identifier: MIT
"""What deploy/kubernetes describes: each overlay as `kubectl apply -k` would send
it, and the Secrets; and what the Helm chart makes."""
from __future__ import annotations

import functools
import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import Any

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy/kubernetes"
OVERLAYS = ("five", "three", "few-machines", "tls", "monitoring")
CHART = ROOT / "deploy/helm/redlockd"
KUBECTL = os.environ.get("KUBECTL", "kubectl")
HELM = os.environ.get("HELM", "helm")
Object = dict[str, Any]


def render(overlay: str) -> list[Object]:
    return build(FOLDER / "overlays" / overlay)


def build(folder: pathlib.Path) -> list[Object]:
    return list(yaml.load_all(kustomize(folder), yaml.CSafeLoader))


@functools.cache
def kustomize(folder: pathlib.Path) -> str:
    return subprocess.run([KUBECTL, "kustomize", folder], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def own(name: str, text: str) -> list[Object]:
    """What an overlay of somebody else's renders, beside deploy/."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(FOLDER, pathlib.Path(folder, "deploy/kubernetes"))
        pathlib.Path(folder, name).mkdir()
        pathlib.Path(folder, name, "kustomization.yaml").write_text(text)
        return build(pathlib.Path(folder, name))


def all_components() -> list[Object]:
    return own("ours", """
        resources: [../deploy/kubernetes/overlays/three]
        components:
          - ../deploy/kubernetes/components/few-machines
          - ../deploy/kubernetes/components/monitoring
          - ../deploy/kubernetes/components/tls
        """)


def helm(command: str, *arguments: str) -> str:
    """What it prints; on success, nothing else is of interest."""
    done = subprocess.run([HELM, command, *arguments], check=False, text=True,
                          capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr)
    return done.stdout


def chart(*values: str, namespace: str = "redlockd", file: str = "",
          strings: tuple[str, ...] = ()) -> list[Object]:
    """With name=value…, strings of the same form, and the text of a file."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as given:
        given.write(file)
        given.flush()
        text = helm("template", "locks", str(CHART), "--namespace", namespace,
                    "--values", given.name,
                    *(word for value in values for word in ("--set", value)),
                    *(word for one in strings for word in ("--set-string", one)))
    return [one for one in yaml.load_all(text, yaml.CSafeLoader) if one]


def find(objects: list[Object], kind: str, name: str) -> Object:
    for one in objects:
        if one["kind"] == kind and one["metadata"]["name"] == name:
            return one
    raise KeyError(f"{kind}/{name}")


def secrets(**environment: str) -> list[Object]:
    out = subprocess.run([FOLDER / "secrets.sh"], check=True, text=True,
                         capture_output=True,
                         env={**os.environ, **environment}).stdout
    return list(yaml.safe_load_all(out))


def secret(objects: list[Object], name: str) -> str:
    """Of a Secret with one file: its text."""
    (text,) = find(objects, "Secret", name)["stringData"].values()
    assert isinstance(text, str)
    return text


def container(workload: Object) -> Object:
    (one,) = workload["spec"]["template"]["spec"]["containers"]
    assert isinstance(one, dict)
    return one


def environment(workload: Object) -> dict[str, str]:
    return {entry["name"]: entry["value"]
            for entry in container(workload)["env"]}
