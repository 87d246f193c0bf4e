# SPDX-License-Identifier: MIT
"""What OpenAPI cannot say, put right before a valid request leaves.

Only requests that the spec says are valid are touched, and only in these ways;
requests that are meant to be refused go out as they were generated.
"""
import base64
import itertools
import re
from urllib.parse import quote, unquote, urlencode

import schemathesis
from schemathesis import GenerationMode
from schemathesis.generation.meta import TestPhase
from schemathesis.specs.openapi.checks import use_after_free

LONG_TTL_MS = 20000
TTL_MAX_MS = 60000  # of this server: an option
SHORT_WAIT_MS = 50
TOKEN = "1795221641865000.8f1c27a5b9d04e6e8f1c27a5b9d04e6e8f1c27a5"
NUMBER_MAX = 2 ** 53 - 1
URL_MAX = 5500
NAMES_MAX = 16
NAMES_BYTES = 4096
SLOT = "\x1f"   # in the name of a slot, before its number
SLOT_CHARS = 4  # of that and of 999
one_reader = map("reader-{}".format, itertools.count())


def is_valid(case):
    return case.meta is not None and \
        case.meta.generation.mode == GenerationMode.POSITIVE


def encode(names):
    code = base64.urlsafe_b64encode("\n".join(names).encode()).rstrip(b"=")
    return ("~" if len(names) == 1 else "~~") + code.decode()


def is_resource(text):
    return 0 < len(text) <= 255 and \
        not re.search(r"redlockd:|[\x00-\x1f\x7f-\x9f]", text)


def pool_of(name):
    """Of a slot's name; empty: it is none."""
    slot = re.fullmatch(f"(.+){SLOT}(0|[1-9][0-9]{{0,2}})", name, re.DOTALL)
    return slot[1] if slot and is_pool(slot[1]) else ""


def are_names(names):
    """Of resources, or of slots of one pool."""
    pools = set(map(pool_of, names))
    return all(map(is_resource, names)) or (len(pools) == 1 and "" not in pools)


def is_canonical(lock_id):
    """As those are that come from an answer."""
    text = lock_id.lstrip("~")
    try:
        code = text + "=" * (-len(text) % 4)
        names = base64.urlsafe_b64decode(code).decode().split("\n")
    except ValueError:
        return False
    if encode(names) != lock_id or not are_names(names):
        return False
    if len(names) == 1:
        return not re.fullmatch(r"[A-Za-z0-9._:-]*", names[0])
    return len(names) <= NAMES_MAX and fits(names) and \
        names == sorted(set(names), key=str.encode)


def fits(names):
    return len("\n".join(names).encode()) <= NAMES_BYTES


def canonical(lock_id):
    """Base64 has several forms of one text, and codes of no text; a pattern
    cannot tell which is the one that redlockd answers. The blank makes sure
    that the resource needs to be encoded."""
    if is_canonical(lock_id):
        return lock_id
    if lock_id.startswith("~~"):
        return encode([lock_id[2:200] + " ", lock_id[2:200] + "a"])
    return encode([lock_id[1:255] + " "])


def resource_of(text):
    """The pattern lets some names pass that are no resources."""
    while not is_resource(text):
        text = re.sub("redlockd:|[\x00-\x1f\x7f-\x9f]", "", text)[:255] or "r"
    return text


def one_kind(body):
    """Of a lock, several or a pool; each with what goes with it."""
    names = [resource_of(name) for name in body.get("resources", ())]
    if "resource" in body:
        body["resource"] = resource_of(body["resource"])
    elif not names:
        body["resource"] = "r"
    if names and "resource" not in body:
        body["resources"] = list(dict.fromkeys(names))
        shorten(body["resources"])
        body.pop("limit", None)
    else:
        body.pop("resources", None)
    if "limit" in body:
        body.pop("mode", None)
    else:
        body.pop("permits", None)


def put_right(lock_id):
    """What stands in a path, encoded: an id, or a resource."""
    if lock_id.startswith("~"):
        return canonical(lock_id)
    text = unquote(lock_id)
    name = resource_of(text)
    if name in (".", "..") or name.startswith("~"):
        name = "r"
    return lock_id if name == text else quote(name, safe="")


def shorten(names):
    """The schema does not tell how many bytes they may have together."""
    while not fits(names):
        names.pop()


def one_token(case):
    """The token comes in the header or in the body; in both it is the same."""
    headers = case.headers if case.headers is not None else {}
    body = case.body if isinstance(case.body, dict) else {}
    if "token" in body:
        headers.pop("X-Lock-Token", None)
    elif "X-Lock-Token" not in headers:
        headers["X-Lock-Token"] = TOKEN
    case.headers = headers


def token_or_force(case):
    """A release has either the token or a number."""
    headers = case.headers if case.headers is not None else {}
    query = case.query if case.query is not None else {}
    if "force" in query:
        headers.pop("X-Lock-Token", None)
    elif "X-Lock-Token" not in headers:
        headers["X-Lock-Token"] = TOKEN
    case.headers = headers


def begin_list(case):
    """A cursor that comes from no page is one of no list."""
    query = case.query if case.query is not None else {}
    query.pop("cursor", None)
    if query.get("prefix"):
        query["prefix"] = resource_of(str(query["prefix"]))


def number_tokens(case):
    """A token begins with a fencing token; a pattern does not tell which of
    16 digits are one."""
    for holder, name in ((case.headers, "X-Lock-Token"), (case.body, "token")):
        token = holder.get(name) if hasattr(holder, "get") else None
        if token and not 0 < int(token[:16]) <= NUMBER_MAX:
            holder[name] = TOKEN[:16] + token[16:]


def is_pool(name):
    return is_resource(name) and len(name) <= 255 - SLOT_CHARS


def fit_permits(body):
    """There are so many, and the names of their slots are not too long."""
    body["resource"] = body["resource"][:255 - SLOT_CHARS]
    permits = min(body.get("permits", 1), body["limit"])
    slot = len(body["resource"].encode()) + SLOT_CHARS + 1
    body["permits"] = max(1, min(permits, NAMES_BYTES // slot))


def of_a_pool(case):
    """Only an id of one resource may be that of a pool."""
    lock_id = str(case.path_parameters["id"])
    if not lock_id.startswith("~"):
        return is_pool(unquote(lock_id))
    code = lock_id[1:] + "=" * (-(len(lock_id) - 1) % 4)
    return not lock_id.startswith("~~") and \
        is_pool(base64.urlsafe_b64decode(code).decode())


def one_lock_each(operations):
    """The schema does not tell that two operations must not be of one lock;
    nor what an operation of each kind has."""
    for number, one in enumerate(operations):
        if one["operation"] == "acquire":
            one_kind(one)
            if "resource" in one:
                one["resource"] = f"{number}.{one['resource']}"[:200]
            else:
                names = [f"{number}.{name}"[:60] for name in one["resources"]]
                one["resources"] = list(dict.fromkeys(names))
            continue
        one["id"] = f"{number}.{one.get('id', '').lstrip('~')}"[:200]
        one["token"] = f"{TOKEN[:17]}{number:040x}"


def is_refused_whole(body):
    """Not: what is wrong in an operation, which has an answer of its own."""
    operations = body.get("operations") if isinstance(body, dict) else None
    return not (isinstance(operations, list) and 1 <= len(operations) <= 100 and
                set(body) == {"operations"})


def has_unset(body):
    """Typed clients send what is not set, too: the server takes it, though the
    spec does not say so."""
    if not isinstance(body, dict):
        return body is None
    return None in body.values() or \
        [] in (body.get("resources"), body.get("slots"))


@schemathesis.hook
def filter_case(context, case):
    """Heads above 8 KiB get a page of the HTTP library, which has no type. And
    schemathesis takes each parameter that before_call changes for that of a
    link: an id that was put right would be one of a lock that is missing. A
    pool is there even after a release."""
    lock_id = str((case.path_parameters or {}).get("id", ""))
    if case.operation.definition.raw["operationId"] == "getPool" and \
            case.meta is not None and \
            case.meta.phase.name == TestPhase.STATEFUL:
        return False
    if is_valid(case) and case.meta.phase.name == TestPhase.STATEFUL and \
            case.path_parameters and put_right(lock_id) != lock_id:
        return False
    if not is_valid(case) and has_unset(case.body):
        return False
    if not is_valid(case) and \
            case.operation.definition.raw["operationId"] == "runBatch" and \
            not is_refused_whole(case.body):
        return False
    query = urlencode(case.query or {}, doseq=True)
    return len(quote(lock_id)) + len(query) < URL_MAX


@schemathesis.hook
def before_call(context, case, kwargs):
    if not is_valid(case):
        return
    path = case.path_parameters or {}
    name = case.operation.definition.raw["operationId"]
    if "id" in path:
        path["id"] = put_right(path["id"])
    if isinstance(case.body, dict) and "ttl_ms" in case.body:
        case.body["ttl_ms"] = min(case.body["ttl_ms"], TTL_MAX_MS)
    if name == "extendLock":
        one_token(case)
    if name == "listLocks":
        begin_list(case)
    if name == "releaseLock":
        token_or_force(case)
    if name in ("extendLock", "releaseLock"):
        number_tokens(case)
    if name == "acquireLock" and isinstance(case.body, dict):
        one_kind(case.body)
    if name == "acquireLock" and isinstance(case.body, dict) and \
            "limit" in case.body:
        fit_permits(case.body)
    if name == "runBatch" and isinstance(case.body, dict):
        one_lock_each(case.body["operations"])
    if name == "getPool" and not of_a_pool(case):
        path["id"] = "p"
    # the lock may be held for longer than anybody here wants to wait
    if name == "acquireLock" and isinstance(case.body, dict) and \
            "wait_ms" in case.body:
        case.body["wait_ms"] = min(case.body["wait_ms"], SHORT_WAIT_MS)
    if name == "getLock" and isinstance((case.query or {}).get("wait_ms"), int):
        case.query["wait_ms"] = min(case.query["wait_ms"], SHORT_WAIT_MS)
    # so that the lock is still there when a link is followed
    if name == "acquireLock" and isinstance(case.body, dict) and \
            case.meta.phase.name == TestPhase.STATEFUL:
        case.body["ttl_ms"] = LONG_TTL_MS
        # and gone after its release: another reader would hold it still
        if case.body.get("mode") == "shared":
            case.body.pop("resources", None)
            case.body.pop("limit", None)
            case.body["resource"] = next(one_reader)


@schemathesis.check
def tells_its_version(ctx, response, case):
    """Of a lock that is held or free, the version fits what else is told."""
    name = case.operation.definition.raw["operationId"]
    if name != "getLock" or response.status_code != 200:
        return
    lock = response.json()
    version, mode = lock["version"], lock.get("mode")
    fits = version == ("shared" if mode == "shared" else
                       str(lock.get("fencing_token"))) if mode else \
        version == "free" or re.match("foreign|split", version)
    assert fits and lock["held"] == (version != "free"), lock


@schemathesis.check
def released_is_free(ctx, response, case):
    """What has been released is not there any more, or is shown as free."""
    name = case.operation.definition.raw["operationId"]
    if name == "getLock" and response.status_code == 200 and \
            not response.json()["held"]:
        return None
    return use_after_free(ctx, response, case)
