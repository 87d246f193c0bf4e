"""The job of README.md with the client that openapi-python-client makes:
job_client.py URL DEFAULT_TTL_MS NAME [LONGEST_TTL_MS]"""
import sys

from client import Client
from client.api.locks import (acquire_lock, extend_lock, get_lock,
                              release_lock, run_batch)
from client.models import (AcquireRequest, BatchAnswer, BatchOperation,
                           BatchRequest, Grant, Lock, LockMode, OperationKind,
                           Problem, Release)

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


def extend(grant):
    return extend_lock.sync_detailed(grant.id, client=client,
                                     x_lock_token=grant.token)


def release(grant):
    assert expect(release_lock.sync_detailed(
        grant.id, client=client, x_lock_token=grant.token), 200,
        Release).released


resource = f"Straße/{name}"
first = expect(acquire(resource), 201, Grant)
assert first.resource == resource and first.ttl_ms == int(ttl), first
held = refused(acquire(resource), 409, "lock_held")
assert held.held_by.fencing_token == first.fencing_token, held
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
release(permits)

one, other = (expect(acquire(f"report {name}", mode=LockMode.SHARED), 201, Grant)
              for _ in range(2))
assert one.mode == "shared" and one.token != other.token, one
release(one)
release(other)

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
