#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The table api/vocabulary against all places that use its names, both ways.

vocabulary.py REDLOCKD TABLES. openapi.yaml and the server (what tests/lint/
tables.c prints, and the tables of its sources) have the same members,
parameters, headers and codes as the table, in the same places; docs/api.md
the same parameters and codes. The names that redlockctl, the status page and the
packages send and read are in the table.
First a test shows that a wrong name is noticed in each of these places.
"""
from __future__ import annotations

import ast
import copy
import functools
import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from findings import ROOT, source, table, tell
from tables import answers, members_of, tables

sys.path.insert(0, str(ROOT / "tests/lib"))
from openapi import operations, resolve

TABLE = "api/vocabulary"
CLIENTS = "docs/api.md"
UNITS = ("ms", "us", "s")
TYPES = {"string": "text", "array": "list"}  # others have the same name
# OpenAPI says these elsewhere, or leaves them to HTTP
OF_HTTP = {"Allow", "Authorization", "Connection", "Content-Encoding",
           "Content-Length", "Content-Security-Policy", "Content-Type",
           "Expect", "Host", "Origin", "Sec-Fetch-Dest", "Sec-Fetch-Mode",
           "Sec-Fetch-Site", "traceparent", "Transfer-Encoding",
           "X-Content-Type-Options"}
# what the packages and the page have of this form that no server sends
OWN = {"no_answer", "retry_after", "releases_pending", "rounds_widened_total",
       "process_start_time_seconds"}
# headers that redlockd neither sends nor reads, but proxies do
OF_PROXIES = {"keep-alive", "proxy-authorization", "user-agent"}
SNAKE = re.compile(r"\b(?!redlockd_)[a-z]+(?:_[a-z0-9]+)+\b")
QUERY = re.compile(r"[?&]([a-z_]+)=(?!=)")
HEADER = re.compile(r"[\"'`]([A-Za-z]+(?:-[A-Za-z]+)+)[\"'`:]")


class Given(NamedTuple):
    table: str
    spec: dict[str, Any]     # openapi.yaml without references
    tables: dict[str, Any]   # of tests/lint/tables.c
    answers: dict[str, Any]  # a sample of each answer
    texts: dict[str, str]    # files, by their paths


class Row(NamedTuple):
    type: set[str]
    where: set[str]


def rows(table: str) -> dict[tuple[str, str], Row]:
    """By kind and name."""
    found: dict[tuple[str, str], Row] = {}
    for line in table.splitlines():
        if not line or line.startswith("#"):
            continue
        kind, name, kinds, where, _ = re.split(r"  +", line, maxsplit=4)
        assert (kind, name) not in found, f"{kind} {name} occurs twice"
        found[kind, name] = Row(set(kinds.split("/")), set(where.split(", ")))
    return found


def of(table: dict[tuple[str, str], Row], kind: str) -> dict[str, Row]:
    return {name: row for (one, name), row in table.items() if one == kind}


def names_at(have: dict[str, Row], *where: str) -> set[str]:
    return {name for name, row in have.items() if row.where & set(where)}


def differ(place: str, kind: str, there: set[Any], here: set[Any],
           ) -> Iterator[str]:
    for one in sorted(there - here, key=str):
        yield f"{place}: {kind} {shown(one)} is not in {TABLE}"
    for one in sorted(here - there, key=str):
        yield f"{place}: {kind} {shown(one)} of {TABLE} is missing"


def shown(one: Any) -> str:
    return " ".join(one) if isinstance(one, tuple) else str(one)


# ---- openapi.yaml -----------------------------------------------------------

def walk(schema: dict[str, Any], where: str) -> Iterator[tuple[str, str, str]]:
    """(name, type, where) of all members, however deep."""
    for kind in ("oneOf", "anyOf", "allOf"):
        for one in schema.get(kind, []):
            yield from walk(one, where)
    yield from walk(schema["items"], where) if "items" in schema else ()
    for name, member in schema.get("properties", {}).items():
        kind = member.get("type", "object")
        yield name, TYPES.get(kind, kind), where
        # that of one lock in the answer to many
        yield from walk(member, "problem" if name == "problem" else where)


def in_spec(spec: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """(kind, name, type, where), many of them again and again."""
    for operation in operations(spec).values():
        for one in operation["parameters"]:
            kind = one["schema"]["type"]
            if one["in"] in ("query", "header"):
                yield (one["in"], one["name"], TYPES.get(kind, kind),
                       operation["operationId"] if one["in"] == "query"
                       else "request")
        body = operation.get("requestBody", {}).get("content", {})
        for content in body.values():
            for one in walk(content["schema"], "request"):
                yield "member", *one
        for response in operation["responses"].values():
            for name, header in response.get("headers", {}).items():
                kind = header["schema"]["type"]
                yield "header", name, TYPES.get(kind, kind), "answer"
            for form, content in response.get("content", {}).items():
                where = "problem" if "problem" in form else "answer"
                for one in walk(content["schema"], where):
                    yield "member", *one


def of_spec(spec: dict[str, Any], have: dict[tuple[str, str], Row],
            ) -> Iterator[str]:
    there: dict[tuple[str, str], Row] = {}
    for kind, name, what, where in in_spec(spec):
        row = there.setdefault((kind, name), Row(set(), set()))
        row.type.add(what)
        row.where.add(where)
    here = {key for key in have
            if key[0] != "code" and key[1] not in OF_HTTP}
    yield from differ("openapi.yaml", "name", set(there), here)
    for key in sorted(here & set(there)):
        kinds = {"integer" if one in UNITS else one for one in have[key].type}
        # a header that is answered may be one that was sent
        where = have[key].where if key[0] != "header" else \
            have[key].where & there[key].where
        for what, one, other in (("type", there[key].type, kinds),
                                 ("where", there[key].where, where)):
            if one != other:
                yield (f"openapi.yaml: {what} of {shown(key)} is "
                       f"{', '.join(sorted(one))}, in {TABLE} it is "
                       f"{', '.join(sorted(other))}")
    problem = spec["components"]["schemas"]["Problem"]
    yield from differ(
        "openapi.yaml", "code",
        set(re.findall(r"`(\w+)`",
                       problem["properties"]["code"]["description"])),
        set(of(have, "code")))


def of_units(have: dict[tuple[str, str], Row]) -> Iterator[str]:
    for (kind, name), row in have.items():
        end = name.rpartition("_")[2]
        if kind in ("member", "query") and \
                row.type & set(UNITS) != {end} & set(UNITS):
            yield f"{TABLE}: {kind} {name} does not end with its unit"


# ---- the server -------------------------------------------------------------

def of_server(given: Given, have: dict[tuple[str, str], Row]) -> Iterator[str]:
    members, headers = of(have, "member"), of(have, "header")
    text = given.texts
    yield from differ("api/message/problem.c", "code",
                      {(code, str(kind["status"]))
                       for code, kind in given.tables["codes"].items()},
                      {(code, *row.where) for code, row in
                       of(have, "code").items()})
    yield from differ("api/message/body.c", "member",
                      set().union(*given.tables["members"].values()),
                      names_at(members, "request"))
    problems = [one for name, one in given.answers.items()
                if name.startswith("Problem")]
    others = [one for name, one in given.answers.items()
              if not name.startswith("Problem")]
    batch = set(re.findall(r'"(\w+)"', " ".join(re.findall(
        r"(?:json_(?:put|open)\w*\(|\*name = )[^;]*;", text["api/batch.c"]))))
    yield from differ("api/message/render.c", "member of an answer",
                      members_of(others) | batch, names_at(members, "answer"))
    yield from differ("api/message/problem.c", "member",
                      members_of(problems), names_at(members, "problem"))
    yield from differ("api/message/http.c", "query",
                      set(re.findall(r'\[QUERY_\w+\] = "(\w+)"',
                                     text["api/message/http.c"])),
                      set(of(have, "query")))
    yield from differ("api/message/head.c", "header",
                      set(re.findall(r'\[HEAD_\w+\] = (?:ONCE\(|\{)"([\w-]+)"',
                                     text["api/message/head.c"])),
                      names_at(headers, "request"))
    yield from differ("api/front.c", "header",
                      set(re.findall(r'\{"([A-Z][\w-]+)",',
                                     text["api/front.c"])),
                      names_at(headers, "answer"))


# ---- docs/api.md --------------------------------------------------------

def of_docs(given: Given, have: dict[tuple[str, str], Row]) -> Iterator[str]:
    page = given.texts[CLIENTS]
    yield from differ(CLIENTS, "code",
                      {(row[1].strip("`"), row[0]) for row in
                       table(page, "status", "`code`", "means", "do")},
                      {(code, *row.where)
                       for code, row in of(have, "code").items()})
    calls = set()
    for row in table(page, "call", "success"):
        method, path = re.findall(r"`(\w+) (/[^`?]*)", row[0])[0]
        item = given.spec["paths"].get(
            path.replace("<", "{").replace(">", "}"), {})
        operation = item.get(method.lower(), {}).get("operationId")
        calls |= {(name, operation)
                  for name in re.findall(r"[?&](\w+)", " ".join(row))
                  if operation}
    yield from differ(CLIENTS, "query", calls,
                      {(name, one) for name, row in of(have, "query").items()
                       for one in row.where})
    listed = {row[0].strip("`") for row in
              table(page, "query parameter", "meaning")}
    yield from differ(CLIENTS, "parameter of a list", listed,
                      names_at(of(have, "query"), "listLocks"))


# ---- clients ----------------------------------------------------------------

@functools.lru_cache(maxsize=None)
def words_of(path: str, text: str) -> set[str]:
    """Names on the wire. JavaScript and Go have no others with underscores;
    in Python and C, a text may be one, but for those of __slots__."""
    if path.endswith(".py"):
        nodes = list(ast.walk(ast.parse(text)))
        slots = {part for node in nodes if isinstance(node, ast.Assign) and
                 ast.unparse(node.targets[0]) == "__slots__"
                 for part in ast.walk(node)}
        return {node.value for node in nodes
                if isinstance(node, ast.Constant) and node not in slots and
                isinstance(node.value, str) and SNAKE.fullmatch(node.value)}
    if path.endswith(".c"):
        return set(re.findall(rf'"({SNAKE.pattern})"', text))
    return set(SNAKE.findall(re.sub(r"//.*|/\*(?s:.*?)\*/", "", text)))


def of_clients(given: Given, have: dict[tuple[str, str], Row],
               ) -> Iterator[str]:
    names = {name for kind, name in have if kind != "header"}
    headers = {name.lower() for name in of(have, "header")}
    states = {*given.tables["states"],
              *(vote["name"] for vote in given.tables["votes"])}
    for path, text in given.texts.items():
        if path.startswith(("api/clients/", "api/page/", "cli/")):
            known = names | OWN
            if path.startswith("api/page/"):
                known |= states
            for word in sorted(words_of(path, text) - known):
                yield f"{path}: {word} is not in {TABLE}"
            for word in sorted(set(QUERY.findall(text)) -
                               set(of(have, "query"))):
                yield f"{path}: query {word} is not in {TABLE}"
        if path.startswith("api/clients/"):
            for word in HEADER.findall(text):
                if word.lower() not in headers | OF_PROXIES:
                    yield f"{path}: header {word} is not in {TABLE}"


# ---- all of them ------------------------------------------------------------

def complaints(given: Given) -> list[str]:
    have = rows(given.table)
    return [*of_units(have), *of_spec(given.spec, have),
            *of_server(given, have), *of_docs(given, have),
            *of_clients(given, have)]


def test(given: Given) -> None:
    """Takes one row away at a time; and puts a wrong name into each place."""
    def notices(text: str, changed: Given) -> None:
        found = complaints(changed)
        assert any(text in one for one in found), (text, found)

    def elsewhere(path: str, old: str, new: str, text: str) -> None:
        assert old in given.texts[path], (path, old)
        other = given.texts[path].replace(old, new)
        notices(f"{path}: {text} is not in {TABLE}",
                given._replace(texts={**given.texts, path: other}))

    for line in given.table.splitlines():
        if line and not line.startswith("#"):
            kind, name = line.split()[:2]
            without = given.table.replace(line + "\n", "", 1)
            notices(f"{kind} {name} ", given._replace(table=without))
    notices("member wait_x does not end with its unit", given._replace(
        table=re.sub(r"member( +)wait_ms", r"member\1wait_x ", given.table)))
    notices("code new_code of", given._replace(
        table=given.table + "code  new_code  text  499  nobody has this\n"))

    spec = copy.deepcopy(given.spec)
    get = spec["paths"]["/new"] = {"get": copy.deepcopy(
        spec["paths"]["/nodes"]["get"])}
    get["get"]["operationId"] = "getNew"
    get["get"]["parameters"] = [
        {"name": "newly", "in": "query", "schema": {"type": "string"}},
        {"name": "prefix", "in": "query", "schema": {"type": "integer"}},
        {"name": "New-Header", "in": "header", "schema": {"type": "string"}}]
    get["get"]["requestBody"] = {"content": {"application/json": {"schema": {
        "allOf": [{"properties": {"list": {"type": "array", "items": {
            "properties": {"deep": {"type": "string"}}}}}}]}}}}
    spec["components"]["schemas"]["Problem"]["properties"]["code"][
        "description"] += " `new_code`"
    for text in ("name query newly is not", "type of query prefix is",
                 "where of query prefix is", "name header New-Header is not",
                 "name member list is not", "name member deep is not",
                 "code new_code is not"):
        notices(f"openapi.yaml: {text}", given._replace(spec=spec))

    code = {**given.tables, "codes": {
        **given.tables["codes"], "new_code": {"status": 400}}}
    notices("problem.c: code new_code 400 is not", given._replace(tables=code))
    body = {**given.tables, "members": {
        **given.tables["members"], "extend": ["newly"]}}
    notices("body.c: member newly is not", given._replace(tables=body))
    for name, where in (("Grant", "render.c: member of an answer newly is not"),
                        ("Problem", "problem.c: member newly is not")):
        notices(where, given._replace(answers={
            **given.answers, name: [{"newly": 1}, given.answers[name]]}))
    elsewhere("api/message/http.c", '"page_size"', '"page_length"',
              "query page_length")
    elsewhere("api/message/head.c", '"X-Lock-Token"', '"X-Token"',
              "header X-Token")
    elsewhere("api/front.c", '"Retry-After"', '"Again-After"',
              "header Again-After")
    elsewhere(CLIENTS, "| 410 | `cursor_expired` |", "| 400 | `cursor_end` |",
              "code cursor_end 400")
    elsewhere(CLIENTS, "&page_size=", "&size=", "query size listLocks")
    elsewhere(CLIENTS, "| `page_size` |", "| `size` |", "parameter of a list size")
    for path, old, new in (
            ("api/clients/python/src/redlockd/_talk.py", '"too_many_readers"',
             '"many_readers"'),
            ("api/clients/node/src/answer.js", '"too_many_readers"',
             '"many_readers"'),
            ("api/clients/go/answer.go", '"too_many_readers"',
             '"many_readers"'),
            ("cli/answer.c", '"too_many_readers"', '"many_readers"'),
            ("api/page/locks.js", "next_cursor", "last_cursor"),
            ("api/page/nodes.js", "clock_stepped", "clock_jumped")):
        elsewhere(path, old, new, new.strip('"'))
    elsewhere("cli/commands.c", "?page_size=", "?page_length=",
              "query page_length")
    for path in ("api/clients/python/src/redlockd/_talk.py",
                 "api/clients/node/src/operation.js", "api/clients/go/send.go"):
        elsewhere(path, "X-Lock-Token", "X-Token", "header X-Token")


def read() -> Given:
    paths = [CLIENTS, "api/batch.c", "api/front.c", "api/message/head.c",
             "api/message/http.c"]
    for pattern in ("api/clients/python/src/redlockd/*.py",
                    "api/clients/node/src/*.js", "api/clients/go/*.go",
                    "api/page/*.js", "cli/*.c"):
        paths += [path.relative_to(ROOT).as_posix()
                  for path in sorted(ROOT.glob(pattern))
                  if not path.name.endswith("_test.go")]
    spec = yaml.load(source("openapi.yaml"), yaml.CSafeLoader)
    return Given(source(TABLE), resolve(spec, spec),
                 tables, answers,
                 {path: source(path) for path in paths})


given = read()
found = complaints(given)
if not found:  # a wrong name is noticed only among right ones
    test(given)
tell(found, f"vocabulary: {len(rows(given.table))} names")
