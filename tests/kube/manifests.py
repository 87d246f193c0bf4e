"""What deploy/kubernetes describes: each overlay as kubectl would apply it, and
the Secrets.

Of kustomize only what the overlays use: resources, strategic merge patches, and
JSON patches that add. KUBECTL names a kubectl whose `kustomize` must render the
same; see check_manifests.
"""
from __future__ import annotations

import copy
import os
import pathlib
import subprocess
from typing import Any

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy/kubernetes"
OVERLAYS = ("base", "few-machines", "secure")
# what names an entry of a list that a strategic merge patch merges
MERGE_KEYS = {"containers": "name", "env": "name", "ports": "containerPort",
              "volumeMounts": "mountPath", "volumes": "name",
              "topologySpreadConstraints": "topologyKey"}
Object = dict[str, Any]


def render(overlay: str) -> list[Object]:
    return build(FOLDER / overlay)


def build(folder: pathlib.Path) -> list[Object]:
    described = yaml.safe_load((folder / "kustomization.yaml").read_text())
    objects: list[Object] = []
    for name in described["resources"]:
        path = (folder / name).resolve()
        objects += build(path) if path.is_dir() else list(
            yaml.safe_load_all(path.read_text()))
    for patch in described.get("patches", []):
        apply(objects, patch, folder)
    return objects


def apply(objects: list[Object], patch: Object, folder: pathlib.Path) -> None:
    text = patch.get("patch") or (folder / patch["path"]).read_text()
    change = yaml.safe_load(text)
    if isinstance(change, list):
        target = find(objects, patch["target"]["kind"], patch["target"]["name"])
        for step in change:
            add(target, step)
        return
    target = find(objects, change["kind"], change["metadata"]["name"])
    merged = merge(target, change, "")
    target.clear()
    target.update(merged)


def add(target: Any, step: Object) -> None:
    assert step["op"] == "add" and step["path"].endswith("/-"), step
    for part in step["path"].split("/")[1:-1]:
        target = target[int(part) if isinstance(target, list) else part]
    target.append(step["value"])


def merge(old: Any, new: Any, name: str) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        result = dict(old)
        for key, value in new.items():
            result[key] = merge(old.get(key), value, key)
            if value is None:
                del result[key]
        return result
    key = MERGE_KEYS.get(name)
    if isinstance(old, list) and key:
        entries = {entry[key]: entry for entry in old}
        for entry in new:
            entries[entry[key]] = merge(entries.get(entry[key]), entry, "")
        return list(entries.values())
    return copy.deepcopy(new)


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
