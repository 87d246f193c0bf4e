#!/usr/bin/python3
"""openapi.yaml against the code, both ways, and by the rules of good specs.

spec.py REDLOCKD. Paths and methods against the table in api/route.c; statuses,
codes and titles against that in api/problem.c; the examples' details against
the texts in the code; members against what api/ reads and writes; limits and
alphabets against the constants, --help and VERSION; the names of votes. The
rules are the essentials of what Spectral's and Redocly's recommended sets check.
"""
import base64
import pathlib
import re
import subprocess
import sys

import jsonschema
import yaml

root = pathlib.Path(__file__).resolve().parents[2]
problems = []


def complain(text):
    problems.append(f"openapi.yaml: {text}")


class Loader(yaml.SafeLoader):
    """Complains of a key that occurs twice: PyYAML takes the last of them."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep) for key, _ in node.value]
        for key in {key for key in keys if keys.count(key) > 1}:
            complain(f"line {node.start_mark.line + 1}: {key} occurs twice")
        return super().construct_mapping(node, deep)


def same(what, in_spec, in_code):
    """Both are sets."""
    for one in sorted(in_spec - in_code, key=str):
        complain(f"{what}: the code has no {one}")
    for one in sorted(in_code - in_spec, key=str):
        complain(f"{what}: {one} is missing")


def source(name):
    return (root / name).read_text()


def resolve(node):
    """With all references replaced by what they stand for."""
    if isinstance(node, list):
        return [resolve(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = spec
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        return resolve(target)
    return {key: resolve(value) for key, value in node.items()}


spec = yaml.load(source("openapi.yaml"), Loader)
OF_THE_LIBRARY = ("414", "431")  # answered by libmicrohttpd alone
METHODS = ("get", "put", "post", "delete", "patch", "options", "head", "trace")
whole = resolve(spec)
schemas = whole["components"]["schemas"]
operations = {(path, method): {**operation, "parameters":
              item.get("parameters", []) + operation.get("parameters", [])}
              for path, item in whole["paths"].items()
              for method, operation in item.items() if method in METHODS}


# ---- the code ---------------------------------------------------------------

def check_routes():
    """HEAD follows from GET (RFC 9110 §9.3.2), OPTIONS is on every path."""
    table = source("api/route.c").split("paths[] = {")[1].split("\n};")[0]
    routes = set()
    row = re.compile(r'\{"([^"]+)",\s*(true|false),\s*(?:"(\w+)"|NULL),\s*ROUTE_\w+,\s*'
                     r'"([^"]+)",\s*\{(.*?)\}\}', re.S)
    for first, has_id, last, allow, methods in row.findall(table):
        path = f"/{first}" + ("/{id}" if has_id == "true" else "")
        path += f"/{last}" if last else ""
        names = set(re.findall(r'"([A-Z]+)"', methods))
        routes |= {(path, name.lower()) for name in names - {"HEAD"}}
        if set(allow.split(", ")) != names | {"OPTIONS"}:
            complain(f"{path}: Allow and methods differ in api/route.c")
        if ("HEAD" in names) != ("GET" in names):
            complain(f"{path}: HEAD and GET do not go together in api/route.c")
    same("paths", set(operations), routes)


def words(schema):
    """What its description lists. It is no enum: that would close it to what
    later versions know, and generated clients fail at a value that is new."""
    if "enum" in schema:
        complain(f"an enum is closed: {schema['enum']}")
    return set(re.findall(r"`(\w+)`", schema["description"]))


def check_codes():
    kinds = {code: (int(status), title) for status, code, title in
             re.findall(r'\{(\d{3}), "(\w+)",\s*"([^"]+)"\}',
                        source("api/problem.c"))}
    same("codes", words(schemas["Problem"]["properties"]["code"]), set(kinds))
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


def members_read():
    table = source("api/body.c").split("members[] = {")[1].split("};")[0]
    for route, name, reader in re.findall(r'\{LOCK_(\w+), "(\w+)", (\w+)\}',
                                          table):
        if not reader.startswith("refuse_"):
            yield route, name


def names_of(schema):
    for name, member in schema.get("properties", {}).items():
        yield name
        yield from names_of(member)
        yield from names_of(member.get("items", {}))


def check_members():
    read = list(members_read())
    for route, name in (("ACQUIRE", "AcquireRequest"),
                        ("EXTEND", "ExtendRequest")):
        same(name, set(schemas[name]["properties"]),
             {member for at, member in read if at == route})
    code = source("api/render.c") + source("api/problem.c") + source("api/ops.c")
    written = set(re.findall(r'json, "(\w+)"', code)) | {"granted", "held"}
    written |= set(re.findall(r'\{\\"(\w+)\\":', code))
    answers = ("Grant", "Release", "Lock", "Nodes", "Readiness", "Liveness",
               "Problem")
    same("the answers",
         {name for answer in answers for name in names_of(schemas[answer])},
         written)


def constant(name, path):
    match = re.search(rf"\b{name} = ([^,/}}]+)[,}}]", source(path))
    return eval(match[1], {}, {})  # numbers of our own headers


def check_limits():
    types = "server/base/types.h"
    flags = dict(re.findall(
        r"^  --([a-z-]+).*\[(\d+)\]$",
        subprocess.run([sys.argv[1], "--help"], check=True, text=True,
                       capture_output=True).stdout, re.M))
    ttl, total = schemas["Ttl"], schemas["Total"]
    bytes_max = constant("RESOURCE_MAX", types)
    wanted = {
        "the least ttl_ms": (ttl["minimum"], constant("TTL_MIN_MS", types)),
        "the greatest ttl_ms": (ttl["maximum"], int(flags["max-ttl-ms"])),
        "the default ttl_ms": (ttl["default"], int(flags["default-ttl-ms"])),
        "resource": (schemas["Resource"]["maxLength"],
                     constant("RESOURCE_CHARS", types)),
        "token": (schemas["Token"]["maxLength"], constant("TOKEN_MAX", types)),
        "owner": (schemas["Owner"]["maxLength"], constant("OWNER_MAX", types)),
        "id": (schemas["Id"]["maxLength"], 1 + (bytes_max * 4 + 2) // 3),
        "nodes": (total["maximum"], constant("NODES_MAX", types)),
        "a quorum": (schemas["Quorum"]["maximum"],
                     constant("NODES_MAX", types) // 2 + 1),
        "X-Request-Id": (
            whole["components"]["headers"]["X-Request-Id"]["schema"]["maxLength"],
            constant("REQUESTID_MAX", "api/requestid.h")),
        "the version": (spec["info"]["version"],
                        source("VERSION").strip()),
    }
    for what, (in_spec, in_code) in wanted.items():
        if in_spec != in_code:
            complain(f"{what} is {in_code} in the code, not {in_spec}")
    body_max = constant("HTTP_BODY_MAX", "api/http.h")
    if f"{body_max} bytes" not in str(spec["components"]["responses"]):
        complain(f"BodyTooLarge does not tell {body_max} bytes")


def letters(text):
    """The strings of a C initialiser, put together."""
    return set("".join(re.findall(r'"([^"]*)"', text)))


def passes(schema, texts):
    pattern = re.compile(schema["pattern"])
    return {text for text in texts if pattern.search(text)}


def check_alphabets():
    """What a pattern lets through, character by character."""
    ids = source("api/id.c")
    allowed = r"allowed\[\] =(.*?);"
    below, but = re.search(r"first < (\w+) \|\| first == (\w+)", ids).groups()
    plain = ids.split("is_plain_char")[1].split("}")[0]
    of_id = set(re.findall(r"c == '(.)'", plain))
    for first, last in re.findall(r"c >= '(.)' && c <= '(.)'", plain):
        of_id |= {chr(c) for c in range(ord(first), ord(last) + 1)}
    headers = whole["components"]["headers"]
    characters = {chr(c) for c in range(0x180)}
    for name, schema, wanted in (
            ("Owner", schemas["Owner"],
             letters(re.search(allowed, source("server/engine/token.c"), re.S)[1])),
            ("X-Request-Id", headers["X-Request-Id"]["schema"],
             letters(re.search(allowed, source("api/requestid.c"), re.S)[1])),
            ("Resource", schemas["Resource"],
             {c for c in characters if ord(c) >= int(below, 16)} -
             {chr(int(but, 16))}),
            ("Id", schemas["Id"], of_id - {"."})):
        same(f"characters of {name}", passes(schema, characters), wanted)
        if schema["minLength"] != 1 or "" in passes(schema, {""}):
            complain(f"{name} may be empty")


def check_ids():
    """Ids are made of resources here as api/id.c makes them."""
    reserved = re.search(r'RESERVED_NAME "(.*?)"', source("server/base/types.h"))[1]

    def encoded(text):
        code = base64.urlsafe_b64encode(text.encode())
        return "~" + code.decode().rstrip("=")
    good = {"...", "a..", "order:42", "redlockd"}
    good |= {encoded("/" * n) for n in range(1, 9)} | {encoded("redlockd;/")}
    bad = {".", "..", "a/b", "~", "~A", "~AB", "~AAB", "~AAAAA", reserved,
           reserved + "a", "a" + reserved, "a:" + reserved + "b"}
    same("ids", passes(schemas["Id"], good | bad), good)
    good = {"a" + reserved[:-1], reserved[1:], "\u2028"}
    bad = {reserved, reserved + "/", "a" + reserved, "\u2028" + reserved}
    same("resources", passes(schemas["Resource"], good | bad), good)


def check_tokens():
    """Tokens are made here as server/engine/token.c makes them."""
    path = "server/engine/token.c"
    number = "1" * constant("NUMBER_DIGITS", path)
    code = "a" * (2 * constant("TOKEN_RANDOM_BYTES", "server/engine/token.h"))
    key = "+" + "_" * constant("KEY_CHARS", path)
    owner = "." + "/" * constant("OWNER_MAX", "server/base/types.h")
    shortest, longest = f"{number}.{code}", f"{number}.{code}{key}{owner}"
    good = {shortest, longest, shortest + key, shortest + owner}
    bad = {"1", number, code, "1" + shortest, shortest + ".", shortest + "a",
           shortest + "+a", longest + "a", shortest + key[:-1],
           shortest + owner + "/", shortest + ".!", shortest.upper()}
    same("tokens", passes(schemas["Token"], good | bad), good)
    same("lengths of a token", {len(shortest), len(longest)},
         {schemas["Token"]["minLength"], schemas["Token"]["maxLength"]})


def check_words():
    """The names of votes, which the description of vote lists."""
    names = set()
    for file in ("vote", "state"):
        names |= set(re.findall(r'\[(?:VOTE|STATE)_\w+\] = \{"(\w+)"',
                                source(f"server/engine/{file}.c")))
    own = {"voting", "admitting"}
    same("votes", words(schemas["ProblemNode"]["properties"]["vote"]), names - own)
    state = schemas["NodeState"]["properties"]["state"]
    same("states", words(state) - {"vote"},
         own | {"connecting"})


def texts():
    """The texts in the code, as patterns: a conversion is any text."""
    for name in ("api/head.c", "api/exchange.c", "api/handler.c", "api/body.c",
                 "api/locks.c", "api/ops.c", "server/engine/vote.c",
                 "server/engine/state.c"):
        code = re.sub(r'" PRId64\b(\s*")?', "d", source(name))
        for run in re.findall(r'"(?:[^"\\]|\\.)*"(?:\s+"(?:[^"\\]|\\.)*")*',
                              code):
            text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', run))
            yield re.sub(r"%(?:zu|d|s)", ".*", re.escape(text.replace('\\"', '"')))


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
                for name, example in content["examples"].items():
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
        if not content.get("examples"):
            complain(f"{where}: no example")
        for name, example in content.get("examples", {}).items():
            if not example.get("summary"):
                complain(f"{where}: {name} has no summary")
            for error in validator.iter_errors(example["value"]):
                complain(f"{where}: {name}: {error.message}")


def check_values(where, node):
    """Every example, default and enum, of the type that stands beside it."""
    if isinstance(node, list):
        for item in node:
            check_values(where, item)
    if not isinstance(node, dict):
        return
    if isinstance(node.get("type"), str):
        validator = jsonschema.Draft202012Validator(node)
        values = [node[key] for key in ("example", "default") if key in node]
        for value in values + node.get("enum", []):
            for error in validator.iter_errors(value):
                complain(f"{where}: {error.message}")
        if len(set(node.get("enum", []))) != len(node.get("enum", [])):
            complain(f"{where}: a value occurs twice")
    for key, value in node.items():
        if key not in ("examples", "value"):
            check_values(f"{where}/{key}", value)


def check_references(where, node):
    """References have nothing beside them: 3.0 ignores it, 3.1 does not."""
    if isinstance(node, dict):
        if "$ref" in node and len(node) > 1:
            complain(f"{where}: something stands beside $ref")
        for key, value in node.items():
            check_references(f"{where}/{key}", value)
    for item in node if isinstance(node, list) else ():
        check_references(where, item)


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
        if url.endswith("/") or "?" in url or "example.com" in url:
            complain(f"{url} is no good URL")
    text = source("openapi.yaml")
    for kind, components in spec["components"].items():
        for name in components:
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
              check_examples, check_operations, check_document):
    check()
check_references("#", spec)
check_values("#", whole)
for schema_name, its_schema in schemas.items():
    check_schema(schema_name, its_schema)
for problem in problems:
    print(problem)
print(f"spec: {len(operations)} operations, {len(problems)} problems")
sys.exit(1 if problems else 0)
