"""What is remembered of readers and writers; imported by selftest.py."""
from __future__ import annotations

from checker import check, most_readers
from history import EXCLUSIVE, MS, SHARED, History
from register import Register
from script import BASE, HISTORIES, Script


def test_forgotten_modes() -> None:
    """Numbers that fall below forgotten ones."""
    for of_first, of_second in ((SHARED, EXCLUSIVE), (EXCLUSIVE, SHARED),
                                (SHARED, SHARED)):
        script = Script(f"grant 0..1 #7 validity_ms=10 mode={of_first}",
                        f"grant 100..101 #6 validity_ms=10 mode={of_second}")
        history = History()
        history.calls = script.calls
        history.forget(BASE + 50 * MS)
        found = check(history.snapshot(), (), history.highest,
                      history.forgotten)
        assert bool(found) == (of_first != of_second), found


def test_remembered_modes() -> None:
    """A lock that is still extended is not forgotten: it has a mode."""
    script, history = Script("one = grant 0..1 #1 mode=shared",
                             "grant 60..61 #2 mode=shared",
                             "extend one 70..71 mode=shared"), History()
    history.calls = script.calls
    history.forget(BASE + 50 * MS)
    assert len(history.calls) == 3
    assert not check(history.snapshot(), (), history.highest, history.forgotten)


def test_most_readers() -> None:
    for name, count in (("readers", 3), ("reader and writer", 1)):
        assert most_readers(HISTORIES[name].play().calls) == count, name


def test_register() -> None:
    register = Register("r")
    assert register.write(5, 1)
    assert register.read(7, SHARED) == 1 and register.read(6, SHARED) == 1
    assert register.read(6) is None and not register.write(6, 2)
    assert register.read(7) == 1 and register.write(8, 2)
    assert register.read(7, SHARED) is None and register.refusals == 3
    assert register.read(8, SHARED) == 2 and not register.check(0)


TESTS = [test_forgotten_modes, test_remembered_modes, test_most_readers,
         test_register]
