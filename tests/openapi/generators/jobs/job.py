# SPDX-License-Identifier: MIT
"""The job of README.md with the client for Python: job.py URL DEFAULT_TTL_MS NAME"""
import sys

from openapi_client import (AcquireRequest, ApiClient, ApiException,
                            BatchOperation, BatchRequest, Configuration,
                            LocksApi, LockMode, OperationKind, Problem)

url, ttl, name = sys.argv[1:]
locks = LocksApi(ApiClient(Configuration(host=url)))
MADE_UP = "1795221641865000." + "8f1c27a5" * 5


def refused(status, code, call, *args, **options):
    try:
        answer = call(*args, **options)
    except ApiException as e:
        assert isinstance(e.data, Problem), e
        assert e.status == e.data.status == status, e
        assert e.data.code == code, e
        return e.data
    raise AssertionError(f"was not refused: {answer}")


def acquire(resource, **more):
    return locks.acquire_lock(AcquireRequest(resource=resource, **more))


def extend(grant):
    return locks.extend_lock(grant.id, x_lock_token=grant.token)


def release(grant):
    assert locks.release_lock(grant.id, x_lock_token=grant.token).released


resource = f"Straße/{name}"
first = acquire(resource)
assert first.resource == resource and first.ttl_ms == int(ttl), first
held = refused(409, "lock_held", acquire, resource)
assert held.held_by.fencing_token == first.fencing_token, held
assert locks.get_lock(first.id).fencing_token == first.fencing_token
longer = extend(first)
assert longer.token == first.token and longer.ttl_ms == int(ttl), longer
wrong = refused(400, "invalid_request", acquire, resource, ttl_ms=20001)
assert wrong.errors[0].pointer == "/ttl_ms", wrong

permits = acquire(f"pool {name}", limit=3, permits=2, ttl_ms=20000)
assert len(permits.slots) == 2 and permits.ttl_ms == 20000, permits
release(permits)

one, other = (acquire(f"report {name}", mode=LockMode.SHARED) for _ in range(2))
assert one.mode == "shared" and one.token != other.token, one
release(one)
release(other)

forced = acquire(f"forced {name}")
gone = locks.release_lock(forced.id, force=str(forced.fencing_token))
assert gone.released and gone.nodes.released >= 3, gone
refused(404, "lock_not_found", extend, forced)

items = locks.run_batch(BatchRequest(operations=[
    BatchOperation(operation=OperationKind.EXTEND, id=first.id,
                   token=first.token),
    BatchOperation(operation=OperationKind.RELEASE, id="nobody",
                   token=MADE_UP),
    BatchOperation(operation=OperationKind.ACQUIRE,
                   resource=f"batch {name}")])).results
assert [item.status for item in items] == [200, 404, 201], items
assert items[0].grant.token == first.token, items
assert items[1].problem.code == "lock_not_found", items
release(items[2].grant)

release(first)
refused(404, "lock_not_found", extend, first)
