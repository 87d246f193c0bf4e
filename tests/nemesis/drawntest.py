"""What is drawn, forced releases, and how servers end; imported by selftest.py."""
from __future__ import annotations

from types import SimpleNamespace

from changes import ended
from checker import check
from drawn import DRAWN, PAGES, Drawn, asked
from history import MS, SECOND, History
from script import BASE, HISTORIES


def test_forgotten() -> None:
    """A forced release is remembered as long as the lock that it ended."""
    history = History()
    history.calls = HISTORIES["forced"].play().calls
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
    drawn.note("POST /batch HTTP/1.1\r\n", {"operations": [{"id": "a"}]})
    missing = drawn.missing()
    assert "listNodes" not in missing and "runBatch" not in missing
    assert "runBatch operations.token" in missing and "getLiveness" in missing
    assert "runBatch operations.id" not in missing


TESTS = (test_forgotten, test_ends, test_asked, test_missing)
