# SPDX-License-Identifier: MIT
"""What openapi.yaml means: references replaced by what they stand for."""
from __future__ import annotations

from typing import Any


def target(spec: Any, node: Any) -> Any:
    """What a reference leads to, by however many others; or the node."""
    while "$ref" in node:
        found = spec
        for step in node["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        node = found
    return node


def resolve(spec: Any, node: Any) -> Any:
    """The node, without any references."""
    if isinstance(node, list):
        return [resolve(spec, item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: resolve(spec, value)
            for key, value in target(spec, node).items()}


METHODS = ("get", "put", "post", "delete", "patch", "options", "head", "trace")


def operations(spec: Any) -> dict[tuple[str, str], Any]:
    """By path and method; each with the parameters of its path, too."""
    return {(path, method): {**operation, "parameters": item.get(
                "parameters", []) + operation.get("parameters", [])}
            for path, item in spec["paths"].items()
            for method, operation in item.items() if method in METHODS}
