"""A client that openapi-python-client made acquires, extends, inspects and
releases on the server at argv[1], and understands what is refused."""
import sys

from client import Client
from client.api.locks import (acquire_lock, extend_lock, get_lock, get_pool,
                              release_lock, run_batch)
from client.api.operations import get_readiness, list_nodes
from client.models import (AcquireRequest, BatchAnswer, BatchOperation,
                           BatchRequest, ExtendRequest, Grant, Lock, LockMode,
                           NodeList, OperationKind, Problem, Pool, Readiness,
                           Release)

RESOURCE = "generated client/ü"
MADE_UP = "1795221641865000.8f1c27a5b9d04e6e8f1c27a5b9d04e6e8f1c27a5"


def expect(answer, status, kind):
    assert answer.status_code == status, answer
    assert isinstance(answer.parsed, kind), answer
    return answer.parsed


with Client(base_url=sys.argv[1]) as client:
    ready = expect(get_readiness.sync_detailed(client=client), 200, Readiness)
    assert ready.voting >= ready.quorum
    nodes = expect(list_nodes.sync_detailed(client=client), 200, NodeList)
    assert len(nodes.nodes) == nodes.total

    wish = AcquireRequest(resource=RESOURCE, ttl_ms=20000, owner="generated")
    answer = acquire_lock.sync_detailed(client=client, body=wish)
    grant = expect(answer, 201, Grant)
    assert answer.headers["Location"] == f"/locks/{grant.id}"
    assert grant.resource == RESOURCE and 0 < grant.validity_ms < 20000

    held = expect(acquire_lock.sync_detailed(client=client, body=wish), 409,
                  Problem)
    assert held.code == "lock_held" and held.retry_after_ms > 0
    assert held.held_by.fencing_token == grant.fencing_token

    wait = AcquireRequest(resource=RESOURCE, wait_ms=300)
    waited = expect(acquire_lock.sync_detailed(client=client, body=wait), 409,
                    Problem)
    assert waited.code == "lock_held" and waited.waited_ms >= 300

    some = AcquireRequest(resource="generated pool", limit=3, permits=2)
    permit = expect(acquire_lock.sync_detailed(client=client, body=some), 201,
                    Grant)
    assert permit.resource == "generated pool" and len(permit.slots) == 2
    pool = expect(get_pool.sync_detailed("generated pool", client=client,
                                         limit=3), 200, Pool)
    assert [one.slot for one in pool.slots] == permit.slots
    assert len(pool.free) == 1 and pool.waiters == 0
    expect(release_lock.sync_detailed(permit.id, client=client,
                                      x_lock_token=permit.token), 200, Release)

    # the token in the header, without a body; then in the body
    for how in ({"x_lock_token": grant.token},
                {"body": ExtendRequest(token=grant.token, ttl_ms=30000)}):
        longer = expect(extend_lock.sync_detailed(grant.id, client=client,
                                                  **how), 200, Grant)
        assert longer.token == grant.token and longer.ttl_ms == 30000

    batch = BatchRequest(operations=[
        BatchOperation(operation=OperationKind.EXTEND, id=grant.id,
                       token=grant.token),
        BatchOperation(operation=OperationKind.RELEASE, id="nobody",
                       token=MADE_UP),
        BatchOperation(operation=OperationKind.ACQUIRE, ttl_ms=1000,
                       resource="generated batch")])
    results = expect(run_batch.sync_detailed(client=client, body=batch), 200,
                     BatchAnswer).results
    assert [item.status for item in results] == [200, 404, 201]
    assert results[0].grant.token == grant.token
    assert results[1].problem.code == "lock_not_found"

    lock = expect(get_lock.sync_detailed(grant.id, client=client), 200, Lock)
    assert lock.owner == "generated" and lock.remaining_ms > 20000
    assert lock.waiters == 0

    other = expect(release_lock.sync_detailed(grant.id, client=client,
                                              x_lock_token=MADE_UP), 409,
                   Problem)
    assert other.code == "not_owner"
    wrong = expect(release_lock.sync_detailed(grant.id, client=client,
                                              x_lock_token="1"), 400, Problem)
    assert wrong.errors[0].pointer == "/token"
    expect(release_lock.sync_detailed(grant.id, client=client,
                                      x_lock_token=grant.token), 200, Release)
    gone = expect(extend_lock.sync_detailed(grant.id, client=client,
                                            x_lock_token=grant.token), 404,
                  Problem)
    assert gone.code == "lock_not_found"

    again = expect(acquire_lock.sync_detailed(client=client, body=wish), 201,
                   Grant)
    assert again.fencing_token > grant.fencing_token
    expect(release_lock.sync_detailed(again.id, client=client,
                                      x_lock_token=again.token), 200, Release)

    several = AcquireRequest(resources=["client:b", "client:a"])
    both = expect(acquire_lock.sync_detailed(client=client, body=several), 201,
                  Grant)
    assert both.resources == ["client:a", "client:b"] and not both.resource
    expect(release_lock.sync_detailed(both.id, client=client,
                                      x_lock_token=both.token), 200, Release)

    reader = AcquireRequest(resource="generated readers", mode=LockMode.SHARED)
    first, second = (expect(acquire_lock.sync_detailed(
        client=client, body=reader), 201, Grant) for _ in range(2))
    assert first.mode == "shared" and first.token != second.token
    lock = expect(get_lock.sync_detailed(first.id, client=client), 200, Lock)
    assert lock.mode == "shared" and 1 <= lock.readers <= 2
    writer = AcquireRequest(resource="generated readers")
    held = expect(acquire_lock.sync_detailed(client=client, body=writer), 409,
                  Problem)
    assert held.held_by.readers == 2
    refused = expect(extend_lock.sync_detailed(
        first.id, client=client, x_lock_token=first.token,
        body=ExtendRequest(mode=LockMode.EXCLUSIVE)), 409, Problem)
    assert refused.code == "upgrade_refused"
    for grant in (first, second):
        expect(release_lock.sync_detailed(grant.id, client=client,
                                          x_lock_token=grant.token), 200,
               Release)

    alone = expect(acquire_lock.sync_detailed(client=client, body=writer), 201,
                   Grant)
    assert alone.mode == "exclusive"
    shared = expect(extend_lock.sync_detailed(
        alone.id, client=client, x_lock_token=alone.token,
        body=ExtendRequest(mode=LockMode.SHARED)), 200, Grant)
    assert shared.mode == "shared" and shared.token != alone.token
    assert shared.fencing_token == alone.fencing_token
    expect(release_lock.sync_detailed(shared.id, client=client,
                                      x_lock_token=shared.token), 200, Release)

    key = "9f1c27a5-b9d0-4e6e-8f1c-27a5b9d04e6e"
    first, second = (expect(acquire_lock.sync_detailed(
        client=client, body=wish, idempotency_key=key), status, Grant)
        for status in (201, 200))
    assert second.token != first.token
    assert second.fencing_token > first.fencing_token
    expect(release_lock.sync_detailed(second.id, client=client,
                                      x_lock_token=second.token), 200, Release)

    short = expect(acquire_lock.sync_detailed(
        client=client, body=AcquireRequest(resource=RESOURCE, ttl_ms=1)), 400,
        Problem)
    assert short.errors[0].pointer == "/ttl_ms"

    later = Problem.from_dict({**short.to_dict(), "code": "of_a_later_version"})
    assert later.code == "of_a_later_version"
