"""Feeds the checker with readers and writers; imported by selftest.py."""
from __future__ import annotations

from collections.abc import Callable

from checker import check, most_readers
from history import (ACQUIRE, EXCLUSIVE, EXTEND, MS, RELEASE, SHARED, UPGRADE,
                     Call, History)
from register import Register
from script import BASE, Script


def _reader(s: Script, sent: float, done: float, number: int,
            validity: int = 100) -> Call:
    call = s.grant(sent, done, number, validity)
    call.mode = SHARED
    return call


def _again(s: Script, sent: float, done: float, number: int,
           status: int = 200) -> Call:
    """A reader with a key; all have the same."""
    call = s.keyed(sent, done, number, status)
    call.mode, call.is_repeat = SHARED, sent > 0
    return call


def _extend(s: Script, sent: float, done: float, lock: Call, mode: str,
            status: int = 200, code: str = "") -> Call:
    """Of an exclusive lock to a shared one: a downgrade."""
    call = s.call(EXTEND, sent, done, status, code,
                  100 if status == 200 else 0, lock)
    call.mode = mode
    return call


# ---- exclusion ---------------------------------------------------------------

def readers(s: Script) -> None:
    one = _reader(s, 0, 1, 2)
    _reader(s, 2, 3, 1)
    _reader(s, 4, 5, 2)
    _extend(s, 50, 51, one, SHARED)
    s.call(ACQUIRE, 60, 61, 409, "lock_held")
    s.call(RELEASE, 110, 111, lock=one)
    s.grant(110, 112, 3)


def reader_and_writer(s: Script) -> None:
    _reader(s, 0, 1, 1)
    s.grant(2, 3, 2)


def writer_and_reader(s: Script) -> None:
    s.grant(0, 1, 1)
    _reader(s, 2, 3, 2)


def extended_reader_and_writer(s: Script) -> None:
    one = _reader(s, 0, 1, 1)
    _extend(s, 90, 91, one, SHARED)
    s.grant(150, 151, 2)


def one_of_several_read(s: Script) -> None:
    one = s.several("rs", 0, 1, 1)
    one.mode = SHARED
    s.several("st", 2, 3, 2)


def several_read(s: Script) -> None:
    s.several("rs", 0, 1, 1).mode = SHARED
    s.several("st", 2, 3, 1).mode = SHARED


# ---- downgrades --------------------------------------------------------------

def downgraded(s: Script) -> None:
    one = s.grant(0, 1, 1)
    _extend(s, 10, 20, one, SHARED)
    _reader(s, 11, 12, 2)  # while it is under way
    _extend(s, 30, 31, one, SHARED)
    _reader(s, 32, 33, 3)
    s.call(RELEASE, 40, 41, lock=one)
    s.grant(134, 135, 4)


def downgraded_without_answer(s: Script) -> None:
    one = s.grant(0, 1, 1)
    _extend(s, 10, 11, one, SHARED, 0, "vanished")
    _reader(s, 12, 13, 2)


def downgraded_in_vain(s: Script) -> None:
    one = s.grant(0, 1, 1)
    _extend(s, 10, 11, one, SHARED, 503, "no_quorum")
    _reader(s, 12, 13, 2)
    _extend(s, 14, 15, one, EXCLUSIVE, 409, "not_owner")  # nor is it exclusive
    _extend(s, 16, 17, one, SHARED)


def downgraded_after_a_repeat(s: Script) -> None:
    """The first answer counts no longer, either."""
    s.keyed(0, 1, 1)
    _extend(s, 10, 11, s.keyed(2, 3, 2, 200), SHARED)
    _reader(s, 12, 13, 3)


def downgraded_by_the_old_token(s: Script) -> None:
    one = s.keyed(0, 1, 1)
    s.keyed(2, 3, 2, 200)
    _extend(s, 10, 11, one, SHARED, 409, "not_owner")
    _reader(s, 12, 13, 3)


def reader_before_the_downgrade(s: Script) -> None:
    one = s.grant(0, 1, 1)
    _reader(s, 2, 9, 2)
    _extend(s, 10, 11, one, SHARED)


def downgraded_and_another_writer(s: Script) -> None:
    one = s.grant(0, 1, 1)
    _extend(s, 10, 11, one, SHARED)
    s.grant(20, 21, 2)


def downgraded_in_vain_and_another_writer(s: Script) -> None:
    one = s.grant(0, 1, 1)
    _extend(s, 10, 11, one, SHARED, 0, "vanished")
    s.grant(20, 21, 2)


def shared_one_beside_a_later_writer(s: Script) -> None:
    one = _reader(s, 0, 1, 1)
    _extend(s, 10, 11, one, EXCLUSIVE)  # it was not asked for as one
    s.grant(20, 21, 2)


# ---- numbers -----------------------------------------------------------------

def readers_fall(s: Script) -> None:
    _reader(s, 0, 1, 7, 10)
    _reader(s, 20, 21, 6, 10)
    _reader(s, 40, 41, 6, 10)


def writer_below_a_reader(s: Script) -> None:
    _reader(s, 0, 1, 7, 10)
    s.grant(20, 21, 6, 10)


def writer_with_the_number_of_a_reader(s: Script) -> None:
    _reader(s, 0, 1, 7, 10)
    s.grant(20, 21, 7, 10)


def reader_below_a_writer(s: Script) -> None:
    s.grant(0, 1, 7, 10)
    _reader(s, 20, 21, 6, 10)


def reader_below_an_earlier_writer(s: Script) -> None:
    s.grant(0, 1, 7, 10)
    _reader(s, 20, 21, 8, 10)
    _reader(s, 40, 41, 6, 10)


def reader_with_the_number_of_a_writer(s: Script) -> None:
    """Neither is before the other."""
    s.grant(0, 41, 7, 50)
    _reader(s, 0, 1, 7, 10)


def reader_below_one_that_was_downgraded(s: Script) -> None:
    one = s.grant(0, 1, 7, 10)
    _extend(s, 2, 3, one, SHARED)
    _reader(s, 4, 5, 6)


# ---- own, kept ---------------------------------------------------------------

def reader_extended_after_a_writer(s: Script) -> None:
    one = _reader(s, 0, 1, 1)
    s.grant(200, 201, 2, 10)
    _extend(s, 220, 221, one, SHARED)


def reader_extended_after_a_reader(s: Script) -> None:
    one = _reader(s, 0, 1, 1)
    _reader(s, 200, 201, 2, 10)
    _extend(s, 220, 221, one, SHARED)


def downgraded_after_a_reader(s: Script) -> None:
    """It had ended, or there would have been no reader."""
    one = s.grant(0, 1, 1)
    _reader(s, 200, 201, 2, 10)
    _extend(s, 220, 221, one, SHARED)


def extended_as_it_was(s: Script) -> None:
    one = s.grant(0, 1, 1)
    _extend(s, 10, 11, one, SHARED)
    _extend(s, 12, 13, one, EXCLUSIVE)


def extended_as_it_may_be(s: Script) -> None:
    one = s.grant(0, 1, 1)
    _extend(s, 10, 11, one, SHARED, 503, "no_quorum")
    _extend(s, 12, 13, one, EXCLUSIVE)


def extended_as_it_was_beside_a_reader(s: Script) -> None:
    one = s.grant(0, 1, 1)
    _extend(s, 10, 11, one, SHARED, 503, "no_quorum")
    _reader(s, 12, 13, 2)
    _extend(s, 14, 15, one, EXCLUSIVE)


def reader_not_found(s: Script) -> None:
    one = _reader(s, 0, 1, 1)
    _extend(s, 50, 51, one, SHARED, 404, "lock_not_found")


def downgraded_and_not_found(s: Script) -> None:
    one = s.grant(0, 1, 1)
    _extend(s, 10, 11, one, SHARED)
    _extend(s, 50, 51, one, SHARED, 404, "lock_not_found")


def downgrade_refused(s: Script) -> None:
    one = s.grant(0, 1, 1)
    _extend(s, 50, 51, one, SHARED, 409, "not_owner")


def downgraded_and_released_in_vain(s: Script) -> None:
    """Any of its tokens does."""
    one = s.grant(0, 1, 1)
    _extend(s, 10, 11, one, SHARED)
    s.call(RELEASE, 20, 21, 404, "lock_not_found", lock=one)


def upgraded(s: Script) -> None:
    one = _reader(s, 0, 1, 1)
    s.call(UPGRADE, 2, 3, 409, "upgrade_refused", lock=one)
    _extend(s, 4, 5, one, SHARED)


def upgrade_allowed(s: Script) -> None:
    one = _reader(s, 0, 1, 1)
    s.call(UPGRADE, 2, 3, lock=one)


def upgrade_of_another(s: Script) -> None:
    s.call(EXTEND, 2, 3, 409, "upgrade_refused", lock=s.grant(0, 1, 1))


# ---- repeats -----------------------------------------------------------------

def reader_repeated(s: Script) -> None:
    one = _again(s, 0, 1, 1, 201)
    two = _again(s, 2, 3, 2)
    _extend(s, 10, 11, one, SHARED, 404, "lock_not_found")
    s.call(RELEASE, 20, 21, lock=two)
    s.grant(22, 23, 3)


def reader_repeated_at_once(s: Script) -> None:
    """Neither need see the other."""
    one = _again(s, 0, 9, 1, 201)
    _again(s, 0, 9, 2, 201)
    _extend(s, 10, 11, one, SHARED)


def reader_repeated_as_if_it_were_free(s: Script) -> None:
    _again(s, 0, 1, 1, 201)
    _again(s, 2, 3, 2, 201)


def reader_repeated_after_a_lost_attempt(s: Script) -> None:
    """Which has replaced the first, and came late."""
    _again(s, 0, 1, 1, 201)
    _again(s, 2, 93, 2, 201).elapsed_ms = 90


def reader_repeated_after_a_lost_repeat(s: Script) -> None:
    """That one has replaced the first, and ends with its TTL."""
    _again(s, 0, 1, 1, 201)
    s.keyed(2, 4, 0, 0, "vanished").mode = SHARED
    _again(s, 5, 6, 3, 201)


def reader_repeated_after_an_earlier_loss(s: Script) -> None:
    s.keyed(-3, -2, 0, 503, "no_quorum").mode = SHARED
    _again(s, 0, 1, 1, 201)
    _again(s, 5, 6, 3, 201)


def reader_extended_by_the_old_token(s: Script) -> None:
    one = _again(s, 0, 1, 1, 201)
    _again(s, 2, 3, 2)
    _extend(s, 10, 11, one, SHARED)


def repeated_reader_and_writer(s: Script) -> None:
    _again(s, 0, 1, 1, 201)
    _again(s, 2, 3, 2)
    s.grant(4, 5, 3)


HISTORIES: list[tuple[Callable[[Script], None], set[str]]] = [
    (readers, set()), (reader_and_writer, {"exclusion"}),
    (writer_and_reader, {"exclusion"}),
    (extended_reader_and_writer, {"exclusion"}),
    (one_of_several_read, {"exclusion"}), (several_read, set()),
    (downgraded, set()), (downgraded_without_answer, set()),
    (downgraded_in_vain, set()), (downgraded_after_a_repeat, set()),
    (downgraded_by_the_old_token, {"exclusion"}), (reader_before_the_downgrade,
                                  {"exclusion", "own"}),
    (downgraded_and_another_writer, {"exclusion"}),
    (downgraded_in_vain_and_another_writer, {"exclusion"}),
    (shared_one_beside_a_later_writer, {"exclusion"}),
    (readers_fall, set()), (writer_below_a_reader, {"rising"}),
    (writer_with_the_number_of_a_reader, {"rising"}),
    (reader_below_a_writer, {"rising"}),
    (reader_below_an_earlier_writer, {"rising"}),
    (reader_with_the_number_of_a_writer, {"rising"}),
    (reader_below_one_that_was_downgraded, {"rising"}),
    (reader_extended_after_a_writer, {"own"}),
    (reader_extended_after_a_reader, set()),
    (downgraded_after_a_reader, {"own"}), (extended_as_it_was, {"own"}),
    (extended_as_it_may_be, set()),
    (extended_as_it_was_beside_a_reader, {"own"}),
    (reader_not_found, {"kept"}), (downgraded_and_not_found, {"kept"}),
    (downgrade_refused, {"kept"}), (downgraded_and_released_in_vain, {"kept"}),
    (upgraded, set()), (upgrade_allowed, {"answered"}),
    (upgrade_of_another, {"answered"}),
    (reader_repeated, set()), (reader_repeated_at_once, set()),
    (reader_repeated_as_if_it_were_free, {"exclusion"}),
    (reader_repeated_after_a_lost_attempt, set()),
    (reader_repeated_after_a_lost_repeat, set()),
    (reader_repeated_after_an_earlier_loss, {"exclusion"}),
    (reader_extended_by_the_old_token, {"own"}),
    (repeated_reader_and_writer, {"exclusion"}),
]


def test_modes() -> None:
    for write, expected in HISTORIES:
        script = Script()
        write(script)
        found = {one.invariant for one in check(script.calls, script.spans)}
        assert found == expected, f"{write.__name__}: {found}"


def test_forgotten_modes() -> None:
    """Numbers that fall below forgotten ones."""
    for of_first, of_second in ((SHARED, EXCLUSIVE), (EXCLUSIVE, SHARED),
                                (SHARED, SHARED)):
        script, history = Script(), History()
        script.grant(0, 1, 7, 10).mode = of_first
        script.grant(100, 101, 6, 10).mode = of_second
        history.calls = script.calls
        history.forget(BASE + 50 * MS)
        found = check(history.snapshot(), (), history.highest,
                      history.forgotten)
        assert bool(found) == (of_first != of_second), found


def test_remembered_modes() -> None:
    """A lock that is still extended is not forgotten: it has a mode."""
    script, history = Script(), History()
    one = _reader(script, 0, 1, 1)
    _reader(script, 60, 61, 2)
    _extend(script, 70, 71, one, SHARED)
    history.calls = script.calls
    history.forget(BASE + 50 * MS)
    assert len(history.calls) == 3
    assert not check(history.snapshot(), (), history.highest, history.forgotten)


def test_most_readers() -> None:
    script = Script()
    readers(script)
    assert most_readers(script.calls) == 3
    script = Script()
    reader_and_writer(script)
    assert most_readers(script.calls) == 1


def test_register() -> None:
    register = Register("r")
    assert register.write(5, 1)
    assert register.read(7, SHARED) == 1 and register.read(6, SHARED) == 1
    assert register.read(6) is None and not register.write(6, 2)
    assert register.read(7) == 1 and register.write(8, 2)
    assert register.read(7, SHARED) is None and register.refusals == 3
    assert register.read(8, SHARED) == 2 and not register.check(0)


TESTS = [test_modes, test_forgotten_modes, test_remembered_modes,
         test_most_readers, test_register]
