"""What is drawn, forced releases, and how servers end; imported by selftest.py."""
from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from changes import ended
from checker import check
from drawn import DRAWN, PAGES, Drawn, asked
from history import (EXTEND, FORCE, LIST, MS, PAGE, SECOND, SHARED, Call,
                     History)
from script import BASE, Script
from visits import ALL


def _force(s: Script, sent: float, done: float, what: int | str,
           status: int = 200, name: str = "r") -> Call:
    call = s.call(FORCE, sent, done, status)
    call.number = 0 if what == ALL else int(what)
    call.resources = (name,)
    return call


def _reader(s: Script, sent: float, done: float, number: int) -> Call:
    call = s.grant(sent, done, number)
    call.mode = SHARED
    return call


def forced(s: Script) -> None:
    one = s.grant(0, 1, 1)
    _force(s, 10, 12, 1)
    two = s.grant(11, 13, 2)
    s.call(EXTEND, 20, 21, 409, "not_owner", lock=one)
    s.call(EXTEND, 20, 21, validity=100, lock=two)


def forced_without_answer(s: Script) -> None:
    s.grant(0, 1, 1)
    _force(s, 10, 12, 1, 503).code = "no_quorum"
    s.grant(50, 51, 2)


def forced_another(s: Script) -> None:
    s.grant(0, 1, 1)
    _force(s, 10, 11, 7)
    s.grant(12, 13, 2)


def forced_too_late(s: Script) -> None:
    s.grant(0, 1, 1)
    s.grant(12, 13, 2)
    _force(s, 14, 15, 1)


def forced_repeat(s: Script) -> None:
    """Its answer is lost, but others see its number."""
    s.keyed(0, 1, 1)
    s.keyed(2, 4, 0, 0, "vanished")
    _force(s, 10, 11, 2)
    s.grant(12, 13, 3)


def forced_before_a_repeat(s: Script) -> None:
    s.keyed(0, 1, 2)
    s.keyed(2, 4, 0, 0, "vanished")
    _force(s, 10, 11, 1)
    s.grant(12, 13, 3)


def forced_part(s: Script) -> None:
    one = s.several("rs", 0, 1, 1)
    _force(s, 10, 11, 1)
    s.grant(12, 13, 2)
    s.call(EXTEND, 20, 21, 404, "lock_not_found", lock=one)


def forced_part_and_another(s: Script) -> None:
    s.several("rs", 0, 1, 1)
    _force(s, 10, 11, 1)
    s.several("s", 12, 13, 2)


def forced_readers(s: Script) -> None:
    _reader(s, 0, 1, 1)
    two = _reader(s, 0, 1, 2)
    _force(s, 10, 11, ALL)
    s.grant(12, 13, 3)
    s.call(EXTEND, 14, 15, 404, "lock_not_found", lock=two).mode = SHARED


def forced_a_writer_with_all(s: Script) -> None:
    s.grant(0, 1, 1)
    _force(s, 10, 11, ALL)
    s.grant(12, 13, 3)


def forced_later_reader(s: Script) -> None:
    _force(s, 0, 1, ALL)
    two = _reader(s, 2, 3, 2)
    s.call(EXTEND, 14, 15, 404, "lock_not_found", lock=two).mode = SHARED


def forced_later_writer(s: Script) -> None:
    s.grant(0, 1, 1)
    _force(s, 2, 3, 1)
    two = s.grant(4, 5, 2)
    s.call(EXTEND, 14, 15, 409, "not_owner", lock=two)


def forced_for_a_writer(s: Script) -> None:
    _force(s, 0, 1, ALL)
    _reader(s, 2, 3, 2)
    s.grant(12, 13, 3)


def forced_downgraded(s: Script) -> None:
    one = s.grant(0, 1, 1)
    s.call(EXTEND, 2, 3, validity=100, lock=one).mode = SHARED
    _force(s, 10, 11, ALL)
    s.grant(12, 13, 3)


def lists(s: Script) -> None:
    s.call(LIST, 0, 1).resources = ("*",)
    s.call(LIST, 2, 3, 400, "invalid_request").resources = ("1.0.0",)
    s.call(PAGE, 4, 5).resources = ("/",)


def list_refused(s: Script) -> None:
    s.call(LIST, 2, 3, 400, "invalid_request").resources = ("*",)


def page_refused(s: Script) -> None:
    s.call(PAGE, 2, 3, 404).resources = ("/",)


HISTORIES: list[tuple[Callable[[Script], None], set[str]]] = [
    (forced, set()), (forced_without_answer, set()),
    (forced_another, {"exclusion"}), (forced_too_late, {"exclusion"}),
    (forced_repeat, set()), (forced_before_a_repeat, {"exclusion"}),
    (forced_part, set()), (forced_part_and_another, {"exclusion"}),
    (forced_readers, set()), (forced_a_writer_with_all, {"exclusion"}),
    (forced_later_reader, {"forced"}), (forced_later_writer, {"forced"}),
    (forced_for_a_writer, {"exclusion"}), (forced_downgraded, set()),
    (lists, set()), (list_refused, {"answered"}), (page_refused, {"answered"}),
]


def test_forced() -> None:
    for write, expected in HISTORIES:
        script = Script()
        write(script)
        found = {one.invariant for one in check(script.calls)}
        assert found == expected, f"{write.__name__}: {found}"


def test_forgotten() -> None:
    """A forced release is remembered as long as the lock that it ended."""
    script, history = Script(), History()
    forced(script)
    history.calls = script.calls
    history.forget(BASE + 15 * MS)
    assert not check(history.snapshot())
    history.forget(BASE + 60 * SECOND)
    assert not history.calls


def test_ends() -> None:
    """Of a server that got SIGTERM."""
    server = SimpleNamespace(name="server1", last_line=lambda: "it said so")
    assert not ended(server, 0)
    for status in (1, 78, -6, -11, -15, -9):
        [found] = ended(server, status)
        assert found.invariant == "alive" and "it said so" in found.text
        assert len(ended(server, status, False)) == (status != -15)


def test_asked() -> None:
    assert asked("PUT /locks/a/extend HTTP/1.1\r\nX-Lock-Token: 1\r\n",
                 {"ttl_ms": 1}) == ("extendLock", {"X-Lock-Token", "ttl_ms"})
    assert asked("GET /locks/a?after=free&wait_ms=1 HTTP/1.1\r\n", None) == \
        ("getLock", {"after", "wait_ms"})
    assert asked("GET /readyz?verbose HTTP/1.1\r\n", None) == \
        ("getReadiness", {"verbose"})
    assert asked("DELETE /locks/a?force=all HTTP/1.1\r\n", None) == \
        ("releaseLock", {"force"})
    assert set(PAGES.values()) < set(DRAWN)


def test_missing() -> None:
    """What the table says and nobody asks is named."""
    drawn = Drawn()
    drawn.note("GET /nodes HTTP/1.1\r\n", None)
    drawn.note("PUT /locks HTTP/1.1\r\n", {"locks": []})
    missing = drawn.missing()
    assert "listNodes" not in missing and "extendLocks" not in missing
    assert "extendLocks ttl_ms" in missing and "getLiveness" in missing
    assert "extendLocks locks" not in missing


TESTS = (test_forced, test_forgotten, test_ends, test_asked, test_missing)
