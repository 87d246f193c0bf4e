"""What deploy/kubernetes describes: each overlay as `kubectl apply -k` would send
it, and the Secrets."""
from __future__ import annotations

import functools
import os
import pathlib
import subprocess
from typing import Any

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy/kubernetes"
OVERLAYS = ("five", "three", "few-machines", "tls", "monitoring")
KUBECTL = os.environ.get("KUBECTL", "kubectl")
Object = dict[str, Any]


def render(overlay: str) -> list[Object]:
    return build(FOLDER / "overlays" / overlay)


def build(folder: pathlib.Path) -> list[Object]:
    return list(yaml.load_all(kustomize(folder), yaml.CSafeLoader))


@functools.cache
def kustomize(folder: pathlib.Path) -> str:
    return subprocess.run([KUBECTL, "kustomize", folder], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


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
