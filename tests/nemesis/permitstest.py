"""Feeds the checker with permits; imported by selftest.py."""
from __future__ import annotations

from checker import check
from history import ACQUIRE, MS, Call
from wants import Want, lock_id, slot_name


def _grant(slots: list[int], limit: int, permits: int, sent: int = 0) -> Call:
    call = Call(ACQUIRE, 0, 0, tuple(slot_name("p", slot) for slot in slots),
                sent=(1000 + sent) * MS)
    call.of, call.limit, call.permits = call.id, limit, permits
    call.status, call.done = 201, call.sent + MS
    call.validity_ms, call.number = 50, call.id
    return call


def _found(*calls: Call) -> set[str]:
    return {violation.invariant for violation in check(list(calls))}


def test_permits() -> None:
    assert not _found(_grant([0], 2, 1), _grant([1], 2, 1, 2))
    assert not _found(_grant([0, 3], 4, 2))
    assert _found(_grant([2], 2, 1)) == {"capacity"}
    assert _found(_grant([0], 3, 2)) == {"capacity"}
    assert _found(_grant([0], 2, 1), _grant([0], 2, 1, 2)) == {"exclusion"}


def test_wishes() -> None:
    body = Want(("p",), "", "", 4, 2).body(Call(ACQUIRE, 0, 0, ("p",), 500))
    assert body == {"resource": "p", "ttl_ms": 500, "limit": 4, "permits": 2}
    assert lock_id((slot_name("p", 0),)) == "~cB8w"
    assert lock_id((slot_name("p", 0), slot_name("p", 1))) == "~~cB8wCnAfMQ"
    assert lock_id(("r1",)) == "r1"


TESTS = [test_permits, test_wishes]
