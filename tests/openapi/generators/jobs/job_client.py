# SPDX-License-Identifier: MIT
"""The job of README.md, and more, with the client that openapi-python-client makes:
job_client.py URL DEFAULT_TTL_MS NAME [LONGEST_TTL_MS]"""
import sys

from client import Client
from client.api.locks import (acquire_lock, extend_lock, get_lock, get_pool,
                              release_lock, run_batch)
from client.api.operations import get_readiness, list_nodes
from client.models import (AcquireRequest, BatchAnswer, BatchOperation,
                           BatchRequest, ExtendRequest, Grant, Lock, LockMode,
                           NodeList, OperationKind, Pool, Problem, Readiness,
                           Release)

url, ttl, name, longest = (*sys.argv[1:], "20000")[:4]
client = Client(base_url=url)
MADE_UP = "1795221641865000." + "8f1c27a5" * 5


def expect(answer, status, kind):
    assert answer.status_code == status, answer
    assert isinstance(answer.parsed, kind), answer
    return answer.parsed


def refused(answer, status, code):
    problem = expect(answer, status, Problem)
    assert problem.status == status and problem.code == code, problem
    return problem


def acquire(resource, **more):
    return acquire_lock.sync_detailed(
        client=client, body=AcquireRequest(resource=resource, **more))


def acquire_again(resource):
    return acquire_lock.sync_detailed(
        client=client, body=AcquireRequest(resource=resource),
        idempotency_key=f"job-client-{name:0<16}")


def extend(grant, **how):
    return extend_lock.sync_detailed(grant.id, client=client,
                                     x_lock_token=grant.token, **how)


def becomes(mode):
    return {"body": ExtendRequest(mode=mode)}


def release(grant):
    assert expect(release_lock.sync_detailed(
        grant.id, client=client, x_lock_token=grant.token), 200,
        Release).released


ready = expect(get_readiness.sync_detailed(client=client), 200, Readiness)
assert ready.voting >= ready.quorum, ready
nodes = expect(list_nodes.sync_detailed(client=client), 200, NodeList)
assert len(nodes.nodes) == nodes.total, nodes

resource = f"Straße/{name}"
first = expect(acquire(resource), 201, Grant)
assert first.resource == resource and first.ttl_ms == int(ttl), first
held = refused(acquire(resource), 409, "lock_held")
assert held.held_by.fencing_token == first.fencing_token, held
waited = refused(acquire(resource, wait_ms=300), 409, "lock_held")
assert waited.waited_ms >= 300, waited
seen = expect(get_lock.sync_detailed(first.id, client=client), 200, Lock)
assert seen.fencing_token == first.fencing_token, seen
longer = expect(extend(first), 200, Grant)
assert longer.token == first.token and longer.ttl_ms == int(ttl), longer
wrong = refused(acquire(resource, ttl_ms=int(longest) + 1), 400,
                "invalid_request")
assert wrong.errors[0].pointer == "/ttl_ms", wrong
later = Problem.from_dict({**wrong.to_dict(), "code": "of_a_later_version"})
assert later.code == "of_a_later_version", later

permits = expect(acquire(f"pool {name}", limit=3, permits=2, ttl_ms=20000), 201,
                 Grant)
assert len(permits.slots) == 2 and permits.ttl_ms == 20000, permits
pool = expect(get_pool.sync_detailed(f"pool {name}", client=client, limit=3),
              200, Pool)
assert [one.slot for one in pool.slots] == permits.slots, pool
assert len(pool.free) == 1 and pool.waiters == 0, pool
release(permits)

one, other = (expect(acquire(f"report {name}", mode=LockMode.SHARED), 201, Grant)
              for _ in range(2))
assert one.mode == "shared" and one.token != other.token, one
held = refused(acquire(f"report {name}"), 409, "lock_held")
assert held.held_by.readers == 2, held
refused(extend(one, **becomes(LockMode.EXCLUSIVE)), 409, "upgrade_refused")
release(one)
release(other)
alone = expect(acquire(f"report {name}"), 201, Grant)
shared = expect(extend(alone, **becomes(LockMode.SHARED)), 200, Grant)
assert shared.mode == "shared" and shared.token != alone.token, shared
assert shared.fencing_token == alone.fencing_token, shared
release(shared)

lost = expect(acquire_again(f"again {name}"), 201, Grant)
again = expect(acquire_again(f"again {name}"), 200, Grant)
assert again.fencing_token > lost.fencing_token, again
refused(extend(lost), 409, "not_owner")
release(again)

both = acquire_lock.sync_detailed(
    client=client, body=AcquireRequest(resources=[f"b {name}", f"a {name}"]))
both = expect(both, 201, Grant)
assert both.resources == [f"a {name}", f"b {name}"] and not both.resource, both
release(both)

forced = expect(acquire(f"forced {name}"), 201, Grant)
gone = expect(release_lock.sync_detailed(
    forced.id, client=client, force=str(forced.fencing_token)), 200, Release)
assert gone.released and gone.nodes.released >= 3, gone
refused(extend(forced), 404, "lock_not_found")

items = expect(run_batch.sync_detailed(client=client, body=BatchRequest(operations=[
    BatchOperation(operation=OperationKind.EXTEND, id=first.id,
                   token=first.token),
    BatchOperation(operation=OperationKind.RELEASE, id="nobody",
                   token=MADE_UP),
    BatchOperation(operation=OperationKind.ACQUIRE,
                   resource=f"batch {name}")])), 200, BatchAnswer).results
assert [item.status for item in items] == [200, 404, 201], items
assert items[0].grant.token == first.token, items
assert items[1].problem.code == "lock_not_found", items
release(items[2].grant)

release(first)
refused(extend(first), 404, "lock_not_found")
