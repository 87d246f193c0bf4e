#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What can be asked is drawn: tests/sim/drawn against openapi.yaml.

drawn.py. Each operation and field of openapi.yaml has a row that tells who
draws it; the simulator has the function that is named there, and the nemesis'
table the field, if it says that the nemesis does. First a test shows that what
is missing is noticed.
"""
from __future__ import annotations

import ast
import re
import sys

import yaml

from findings import ROOT, source, tell

sys.path.insert(0, str(ROOT / "tests/lib"))
from openapi import operations, resolve

TABLE = "tests/sim/drawn"
NEMESIS = ROOT / "tests/nemesis/drawn.py"
ROW = re.compile(r"^(\w+)(?: ([\w.-]+))? +(sim|both|nemesis|none) +(.+)$")
REASON_WORDS = 3


def members(schema: dict, before: str = "") -> set[str]:
    """Of a body, those of objects in its lists included."""
    found = set()
    for kind in ("oneOf", "anyOf", "allOf"):
        for one in schema.get(kind, []):
            found |= members(one, before)
    for name, value in schema.get("properties", {}).items():
        found.add(before + name)
        found |= members(value, f"{before}{name}.")
        found |= members(value.get("items", {}), f"{before}{name}.")
    return found


def asked(spec: dict) -> set[tuple[str, str]]:
    """Each operation with "", and with each of its fields."""
    found = set()
    for operation in operations(resolve(spec, spec)).values():
        fields = {one["name"] for one in operation["parameters"]
                  if one["in"] != "path"}
        for content in operation.get("requestBody",
                                     {}).get("content", {}).values():
            fields |= members(content["schema"])
        found |= {(operation["operationId"], field) for field in ("", *fields)}
    return found


def rows(text: str) -> dict[tuple[str, str], tuple[str, str]]:
    found = {}
    for line in text.splitlines():
        if match := ROW.match(line):
            name, field, who, how = match.groups()
            found[name, field or ""] = who, how
    return found


def of_nemesis(text: str) -> set[tuple[str, str]]:
    for node in ast.parse(text).body:
        target = node.target if isinstance(node, ast.AnnAssign) else \
            node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Name) and target.id == "DRAWN":
            return {(name, field)
                    for name, fields in ast.literal_eval(node.value).items()
                    for field in ("", *fields)}
    return set()


def complaints(spec: dict, table: str, code: str,
               nemesis: str | None) -> list[str]:
    """nemesis: its table; None: there is none."""
    want, have = asked(spec), rows(table)
    drawn = of_nemesis(nemesis) if nemesis is not None else None
    found = [f"{' '.join(one).strip()}: nobody draws it"
             for one in sorted(want - set(have))]
    found += [f"{' '.join(one).strip()}: openapi.yaml has no such thing"
              for one in sorted(set(have) - want)]
    for one, (who, how) in sorted(have.items()):
        name = " ".join(one).strip()
        if who in ("sim", "both") and not re.search(rf"\b{how}\(", code):
            found.append(f"{name}: the simulator has no function {how}")
        if who in ("both", "nemesis") and drawn is not None and \
                one not in drawn:
            found.append(f"{name}: the nemesis does not draw it")
        if who == "none" and len(how.split()) < REASON_WORDS:
            found.append(f"{name}: why is it not drawn?")
    return found


def test(spec: dict, table: str, code: str, nemesis: str | None) -> None:
    """Takes one thing away at a time, and adds one."""
    def notices(text: str, *changed: object) -> None:
        assert any(text in one for one in complaints(*changed)), text

    for line in table.splitlines():
        if match := ROW.match(line):
            without = table.replace(line + "\n", "", 1)
            name = " ".join(filter(None, match.groups()[:2]))
            notices(f"{name}: nobody draws it", spec, without, code, nemesis)
    more = {**spec, "paths": {**spec["paths"], "/new": {"get": {
        "operationId": "getNew",
        "parameters": [{"name": "also", "in": "query"}],
        "requestBody": {"content": {"application/json": {"schema": {
            "properties": {"list": {"items": {
                "properties": {"deep": {}}}}}}}}}}}}}
    for name in ("getNew", "getNew also", "getNew list", "getNew list.deep"):
        notices(f"{name}: nobody draws it", more, table, code, nemesis)
    old = table + "getOld   none   it is no more\n"
    notices("getOld: openapi.yaml has no such thing", spec, old, code, nemesis)
    notices("the simulator has no function choose_victim", spec, table,
            code.replace("choose_victim(", "choose_other("), nemesis)
    notices("releaseLock force: the nemesis does not draw it", spec, table,
            code, "DRAWN = {'releaseLock': ('X-Lock-Token',)}")
    notices("getMetrics: why is it not drawn?", spec, re.sub(
        r"(getMetrics +none +).*", r"\1no", table), code, nemesis)


given = (yaml.safe_load(source("openapi.yaml")), source(TABLE),
         "".join(path.read_text()
                 for path in sorted((ROOT / "tests/sim").glob("*.c"))),
         NEMESIS.read_text() if NEMESIS.exists() else None)
test(*given)
tell((f"{TABLE}: {one}" for one in complaints(*given)),
     f"drawn: {len(rows(given[1]))} operations and fields")
