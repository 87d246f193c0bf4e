#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""openapi.yaml against the code, both ways, and by the rules of good specs.

spec.py REDLOCKD TABLES. Paths and methods, statuses, codes and titles, members,
limits, alphabets and the names of votes against the tables that tests/lint/
tables.c prints, --help and VERSION; the examples' details against the texts in
the code. The rules are the essentials of what Spectral's and Redocly's
recommended sets check.
"""
import base64
import functools
import re
import subprocess
import sys

import jsonschema
import yaml

import findings
from findings import ROOT, source
from tables import answers, members_of, tables

sys.path.insert(0, str(ROOT / "tests/lib"))
from openapi import operations as operations_of, resolve

complain = functools.partial(findings.complain, "openapi.yaml")
same = functools.partial(findings.same, "openapi.yaml")


class Loader(yaml.SafeLoader):
    """Complains of a key that occurs twice: PyYAML takes the last of them."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep) for key, _ in node.value]
        for key in {key for key in keys if keys.count(key) > 1}:
            complain(f"line {node.start_mark.line + 1}: {key} occurs twice")
        return super().construct_mapping(node, deep)


spec = yaml.load(source("openapi.yaml"), Loader)
OF_THE_LIBRARY = ("414", "431")  # answered by libmicrohttpd alone
# of POSIX (sys/types.h, and those whose names are in reach of ours)
TYPES_OF_C = {"blkcnt", "blksize", "clock", "clockid", "dev", "div", "gid", "id",
              "ino", "key", "list", "mode", "nlink", "off", "pid", "size",
              "ssize", "time", "timer", "uid", "wchar"}
whole = resolve(spec, spec)
schemas = whole["components"]["schemas"]
operations = operations_of(whole)


def objects(where, node, *but):
    """(where, object), however deep, but for what these keys lead to."""
    if isinstance(node, dict):
        yield where, node
        for key, value in node.items():
            if key not in but:
                yield from objects(f"{where}/{key}", value, *but)
    for item in node if isinstance(node, list) else ():
        yield from objects(where, item, *but)


# ---- the code ---------------------------------------------------------------

# what is for browsers and generators, and no API
PAGES = {"/", "/docs", "/openapi.yaml", "/page.css", "/page.js", "/page.svg"}


def check_routes():
    """HEAD follows from GET (RFC 9110 §9.3.2), OPTIONS is on every path."""
    routes = set()
    for path, row in tables["paths"].items():
        if path in PAGES:
            continue
        names = set(row["methods"])
        routes |= {(path, name.lower()) for name in names - {"HEAD", "OPTIONS"}}
        if set(row["allow"].split(", ")) != names or "OPTIONS" not in names:
            complain(f"{path}: Allow and methods differ in api/message/http.c")
        if ("HEAD" in names) != ("GET" in names):
            complain(f"{path}: HEAD and GET do not go together in api/message/http.c")
    same("paths", set(operations), routes)


def words(schema):
    """What its description lists. It is no enum: that would close it to what
    later versions know, and generated clients fail at a value that is new."""
    if "enum" in schema:
        complain(f"an enum is closed: {schema['enum']}")
    return set(re.findall(r"`(\w+)`", schema["description"]))


def check_codes():
    kinds = {code: (kind["status"], kind["title"])
             for code, kind in tables["codes"].items()}
    shown = set()
    for where, status, value in examples():
        if "code" not in value:
            continue
        shown.add(value["code"])
        want = kinds.get(value["code"])
        if (value["status"], value["title"]) != want or \
                int(status) != value["status"]:
            complain(f"{where}: status or title is not that of "
                     f"{value['code']} there")
    # what other methods get is told in the description
    same("examples", shown, set(kinds) - {"method_not_allowed"})


def names_of(schema):
    for name, member in schema.get("properties", {}).items():
        yield name
        yield from names_of(member)
        yield from names_of(member.get("items", {}))


def check_members():
    for call, names in (("acquire", ["AcquireRequest"]),
                        ("extend", ["ExtendRequest"])):
        same(" and ".join(names),
             {name for schema in names for name in schemas[schema]["properties"]},
             set(tables["members"][call]))
    same("BatchOperation", set(schemas["BatchOperation"]["properties"]),
         set().union(*(names for call, names in tables["members"].items()
                       if call.endswith(" in a batch"))))
    for name in sorted({key.split()[0] for key in answers}):
        written = [value for key, value in answers.items()
                   if key.split()[0] == name]
        same(name, set(names_of(schemas[name])), members_of(written))


def check_limits():
    limits = tables["limits"]
    flags = dict(re.findall(
        r"^  --([a-z-]+).*\[(\d+)\]$",
        subprocess.run([sys.argv[1], "--help"], check=True, text=True,
                       capture_output=True).stdout, re.M))
    ttl, total = schemas["Ttl"], schemas["Total"]
    wanted = {
        "the least ttl_ms": (ttl["minimum"], limits["ttl_min_ms"]),
        "the greatest wait_ms": (schemas["Wait"]["maximum"],
                                 limits["wait_max_ms"]),
        "the greatest limit": (schemas["Limit"]["maximum"], limits["slots"]),
        "the greatest slot": (schemas["Slot"]["maximum"] + 1, limits["slots"]),
        "permits": (schemas["AcquireRequest"]["properties"]["permits"]["maximum"],
                    limits["resources"]),
        "waiters": (schemas["Lock"]["properties"]["waiters"]["maximum"],
                    limits["waiters_each"]),
        "resource": (schemas["Resource"]["maxLength"], limits["resource_chars"]),
        "resources": (schemas["Resources"]["maxItems"], limits["resources"]),
        "resources in requests": (
            schemas["AcquireRequest"]["properties"]["resources"]["maxItems"],
            limits["resources"]),
        "the shortest key": (schemas["IdempotencyKey"]["minLength"],
                             limits["key_min"]),
        "the longest key": (schemas["IdempotencyKey"]["maxLength"],
                            limits["key_max"]),
        "operations of a batch": (
            schemas["BatchRequest"]["properties"]["operations"]["maxItems"],
            limits["batch_operations"]),
        "token": (schemas["LockToken"]["maxLength"], limits["token"]),
        "owner": (schemas["Owner"]["maxLength"], limits["owner"]),
        "id": (schemas["Id"]["maxLength"], limits["id"]),
        "nodes": (total["maximum"], limits["nodes"]),
        "a quorum": (schemas["Quorum"]["maximum"], limits["quorum"]),
        "X-Request-Id": (
            whole["components"]["headers"]["X-Request-Id"]["schema"]["maxLength"],
            limits["request_id"]),
        "the version": (spec["info"]["version"],
                        source("VERSION").strip()),
    }
    for what, (in_spec, in_code) in wanted.items():
        if in_spec != in_code:
            complain(f"{what} is {in_code} in the code, not {in_spec}")
    for name in ("body", "batch_body"):
        if f"{limits[name]} bytes" not in str(spec["components"]["responses"]):
            complain(f"BodyTooLarge does not tell {limits[name]} bytes")
    if f"{limits['resources_bytes']:,} bytes" not in \
            schemas["Resources"]["description"]:
        complain(f"Resources does not tell {limits['resources_bytes']:,} bytes")
    for flag in ("default-ttl-ms", "max-ttl-ms"):
        if not re.search(rf"`--{flag}`[^`]* {int(flags[flag]):,} unless",
                         ttl["description"].replace("\n", " ")):
            complain(f"Ttl does not tell --{flag}, {int(flags[flag]):,}")
    for name in ("waiters_each", "waiters"):
        if f"{limits[name]:,}" not in schemas["Wait"]["description"]:
            complain(f"Wait does not tell {limits[name]:,} clients")


def passes(schema, texts):
    pattern = re.compile(schema["pattern"])
    return {text for text in texts if pattern.search(text)}


def check_alphabets():
    """What a pattern lets through, character by character."""
    lets = tables["characters"]
    characters = {chr(c) for c in range(lets["below"])}
    headers = whole["components"]["headers"]
    for name, schema, wanted in (
            ("Owner", schemas["Owner"], lets["owner"]),
            ("X-Request-Id", headers["X-Request-Id"]["schema"],
             lets["request_id"]),
            ("Resource", schemas["Resource"], lets["resource"]),
            ("Id", schemas["Id"], lets["id"])):
        lets_pass = passes(schema, characters)
        if name == "Resource":  # the description tells the rest
            lets_pass &= set(wanted)
        if name == "Id":
            lets_pass -= {"."}
        same(f"characters of {name}", lets_pass, set(wanted))
        if schema["minLength"] != 1 or "" in passes(schema, {""}):
            complain(f"{name} may be empty")
    same("characters of IdempotencyKey",
         passes(schemas["IdempotencyKey"], characters), set(lets["key"]))


def check_ids():
    """Ids are made of resources here as api/message/id.c makes them. Patterns
    let all of them pass; they have no lookaheads and no characters above
    ASCII, which not each language has, so they let some pass that are none."""
    def encoded(text):
        code = base64.urlsafe_b64encode(text.encode())
        return "~" + code.decode().rstrip("=")
    good = {"...", "a..", "order:42", "redlockd"}
    good |= {encoded("/" * n) for n in range(1, 9)} | {encoded("redlockd;/")}
    good |= {"~" + encoded("a\nb" + "c" * n) for n in range(4)}
    bad = {"a/b", "~", "~~", "~~~AA", "a b"}
    same("ids", passes(schemas["Id"], good | bad), good)
    good = {"a", "\u2028", "Straße", "a/b c"}
    same("resources", passes(schemas["Resource"], good | {"a\nb", ""}), good)


def check_patterns():
    for where, node in objects("#", spec):
        if re.search(r"\(\?|\\x[7-9a-f]", str(node.get("pattern", ""))):
            complain(f"{where}: not each language has such a pattern")


def check_tokens():
    """Tokens are made here as server/engine/port/token.c makes them."""
    length = tables["token"]
    number = "1" * length["number"]
    code = "a" * length["code"]
    key = "+" + "_" * length["key"]
    owner = "." + "/" * length["owner"]
    shortest, longest = f"{number}.{code}", f"{number}.{code}{key}{owner}"
    good = {shortest, longest, shortest + key, shortest + owner}
    good |= {token.replace(".", "~", 1) for token in good}
    bad = {f"{number}!{code}", f"{shortest}~/"}
    bad |= {"1", number, code, "1" + shortest, shortest + ".", shortest + "a",
           shortest + "+a", longest + "a", shortest + key[:-1],
           shortest + owner + "/", shortest + ".!", shortest.upper()}
    same("tokens", passes(schemas["LockToken"], good | bad), good)
    same("lengths of a token", {len(shortest), len(longest)},
         {schemas["LockToken"]["minLength"],
          schemas["LockToken"]["maxLength"]})


def check_words():
    """The names of votes, and of the states that are no vote."""
    names = {vote["name"] for vote in tables["votes"]}
    states = set(tables["states"])
    own = words(schemas["NodeState"]["properties"]["state"]) - {"vote"}
    same("votes", words(schemas["ProblemNode"]["properties"]["vote"]),
         names - own)
    same("states", own, own & states | states - names)


def texts():
    """The texts in the code, as patterns: a conversion is any text."""
    yield from (re.escape(vote["detail"]) for vote in tables["votes"])
    for name in ("api/access/access.c",
                 "api/batch.c",
                 "api/message/body.c",
                 "api/message/head.c",
                 "api/message/problem.c",
                 "api/exchange.c", "api/handler.c", "api/locks.c"):
        code = re.sub(r'" PRId64\b(\s*")?', "d", source(name))
        for run in re.findall(r'"(?:[^"\\]|\\.)*"(?:\s+"(?:[^"\\]|\\.)*")*',
                              code):
            text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', run))
            yield re.sub(r"%(?:zu|d|s|g)", ".*", re.escape(text.replace('\\"', '"')))


def details(value):
    yield value["detail"]
    for node in value.get("errors", []) + value.get("nodes", []):
        if "state" not in node:
            yield node["detail"]


def check_details():
    known = re.compile("|".join(f"(?:{text})" for text in texts()
                                if len(text) > 12))
    for where, _, value in examples():
        for detail in details(value) if "code" in value else ():
            if not known.fullmatch(detail):
                complain(f"{where}: the code does not say: {detail}")


# ---- the rules --------------------------------------------------------------

def examples():
    """(where, status, value) of each example of each response."""
    for (path, method), operation in operations.items():
        for status, response in operation["responses"].items():
            for content in response.get("content", {}).values():
                for name, example in content.get("examples", {}).items():
                    if isinstance(example["value"], dict):
                        yield (f"{method} {path} {status} {name}", status,
                               example["value"])


def contents():
    for (path, method), operation in operations.items():
        body = operation.get("requestBody", {})
        for where, holder in [("request", body),
                              *operation["responses"].items()]:
            for content in holder.get("content", {}).values():
                yield f"{method} {path} {where}", content


def check_examples():
    for where, content in contents():
        validator = jsonschema.Draft202012Validator(content["schema"])
        if not content.get("examples") and not where.endswith("414"):
            complain(f"{where}: no example")
        for name, example in content.get("examples", {}).items():
            if not example.get("summary"):
                complain(f"{where}: {name} has no summary")
            for error in validator.iter_errors(example["value"]):
                complain(f"{where}: {name}: {error.message}")


def check_values():
    """Every example, default and enum, of the type that stands beside it."""
    for where, node in objects("#", whole, "examples", "value"):
        if not isinstance(node.get("type"), str):
            continue
        validator = jsonschema.Draft202012Validator(node)
        values = [node[key] for key in ("example", "default") if key in node]
        for value in values + node.get("enum", []):
            for error in validator.iter_errors(value):
                complain(f"{where}: {error.message}")
        if len(set(node.get("enum", []))) != len(node.get("enum", [])):
            complain(f"{where}: a value occurs twice")


def check_references():
    """References have nothing beside them: 3.0 ignores it, 3.1 does not."""
    for where, node in objects("#", spec):
        if "$ref" in node and len(node) > 1:
            complain(f"{where}: something stands beside $ref")


def check_for_generators():
    """What some of them turn into code that is wrong, or does not compile."""
    for where, node in objects("#", spec, "example", "examples", "value"):
        for key in ("oneOf", "anyOf", "default", "uniqueItems"):
            if key in node and not where.endswith("/properties"):
                complain(f"{where}: {key}")


def check_objects():
    """Each has a name here, or each generator makes up one of its own. Each
    says whether it may have more members: some generators take silence for no,
    and their clients then fail at what a later version adds."""
    asked = {"AcquireRequest", "ExtendRequest", "BatchRequest", "BatchOperation"}
    for where, node in objects("#", spec, "example", "examples", "value"):
        if node.get("type") != "object":
            continue
        name = where.removeprefix("#/components/schemas/")
        if name not in schemas:
            complain(f"{where}: an object that is no component")
        elif node.get("additionalProperties") is not (name not in asked):
            complain(f"{name}: additionalProperties must be "
                     f"{str(name not in asked).lower()}")


def check_names():
    """The generator for C makes the type `lock_t` of Lock, and keeps a lock in
    a variable `lock`: beside a member of the same name, nothing compiles."""
    for name, schema in schemas.items():
        snake = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        if schema["type"] != "object" and "enum" not in schema:
            continue
        if snake in TYPES_OF_C:
            complain(f"{name}: {snake}_t is another type in C")
        if snake in schema.get("properties", {}):
            complain(f"{name}: a member has the name of the schema")


def check_operation(where, path, operation):
    for member in ("operationId", "summary", "description", "tags"):
        if not operation.get(member):
            complain(f"{where}: no {member}")
    for tag in set(operation["tags"]) - {tag["name"] for tag in spec["tags"]}:
        complain(f"{where}: the tag {tag} is not defined")
    for parameter in operation["parameters"]:
        if not parameter.get("description") or not parameter.get("schema"):
            complain(f"{where}: {parameter['name']} needs description and schema")
    same(f"{where}: parameters of the path",
         {p["name"] for p in operation["parameters"] if p["in"] == "path"},
         set(re.findall(r"\{(\w+)\}", path)))
    statuses = operation["responses"]
    for kind in "24":
        if not any(status[0] == kind for status in statuses):
            complain(f"{where}: no {kind}xx")
    for status, response in statuses.items():
        missing = {"X-Request-Id", "Cache-Control"} - \
            set(response.get("headers", {}))
        if status in OF_THE_LIBRARY:
            missing = set()
        if missing or not response["description"]:
            complain(f"{where} {status}: no description, or no {missing}")
        if "\n" in response["description"].strip():
            complain(f"{where} {status}: the description has several lines")
        if status[0] in "45" and \
                "application/problem+json" not in response.get("content", {}):
            complain(f"{where} {status}: no problem")


def check_operations():
    ids = [operation.get("operationId") for operation in operations.values()]
    for one in set(ids):
        if ids.count(one) > 1 or not re.fullmatch(r"[a-z][A-Za-z]+", str(one)):
            complain(f"operationId {one} is no unique name")
    for (path, method), operation in operations.items():
        check_operation(f"{method} {path}", path, operation)
        for response in operation["responses"].values():
            for link in response.get("links", {}).values():
                if link["operationId"] not in ids or not link["description"]:
                    complain(f"{method} {path}: a link to nowhere")


def check_document():
    info = spec["info"]
    for member in ("title", "version", "description", "contact", "license"):
        if not info.get(member):
            complain(f"info has no {member}")
    if not info["license"].get("url") or "security" not in spec:
        complain("the license has no url, or security is not told")
    for tag in spec["tags"]:
        if not tag.get("description"):
            complain(f"tag {tag['name']} has no description")
    for url in [server["url"] for server in spec["servers"]] + list(spec["paths"]):
        if url != "/" and url.endswith("/") or "?" in url or "example.com" in url:
            complain(f"{url} is no good URL")
    text = source("openapi.yaml")
    for kind, components in spec["components"].items():
        for name in components:
            if kind == "securitySchemes" and {name: []} in spec["security"]:
                continue
            if f'"#/components/{kind}/{name}"' not in text:
                complain(f"components/{kind}/{name} is not used")


def check_schema(where, schema):
    if "type" not in schema or not (schema.get("description") or "/" in where):
        complain(f"{where}: no type or no description")
    for name in schema.get("required", []):
        if name not in schema.get("properties", {}):
            complain(f"{where}: {name} is required, but no property")
    for name, member in schema.get("properties", {}).items():
        check_schema(f"{where}.{name}", member)
    if schema.get("type") == "array":
        check_schema(f"{where}[]", schema["items"])


for check in (check_routes, check_codes, check_members, check_limits,
              check_alphabets, check_ids, check_tokens, check_words, check_details,
              check_examples, check_objects, check_names, check_operations,
              check_document, check_references, check_patterns,
              check_for_generators, check_values):
    check()
for schema_name, its_schema in schemas.items():
    check_schema(schema_name, its_schema)
findings.tell(what=f"spec: {len(operations)} operations")
