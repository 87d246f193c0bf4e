# SPDX-License-Identifier: MIT
"""Two clients of redlockd and a row that both change; each takes a Stage and a
database that has the order 1."""
from waiting import wait_until


def two_grants(stage):
    """The numbers of a client that slept past its lock, and of the next one."""
    late = stage.rival_acquires(ttl_ms=300)
    wait_until(stage.is_free, "the lock expires", 10)
    present = stage.rival_acquires()
    return late["fencing_token"], present["fencing_token"]


def story_late_write(stage, database):
    """a late write is refused, and changes nothing"""
    late, present = two_grants(stage)
    assert database.run("write", id=1, state="packed", fence=late), \
        "while nobody else has been there, the number must do"
    assert database.run("write", id=1, state="shipped", fence=present)
    assert not database.run("write", id=1, state="lost", fence=late)
    for _ in range(2):
        assert database.run("write", id=1, state="sent", fence=present), \
            "the holder may write again, even what is there already"
    assert database.run("read", id=1, fence=present) == ["sent"]


def story_late_read(stage, database):
    """a read raises the fence: a late write between it and the write is refused"""
    late, present = two_grants(stage)
    assert database.run("read", id=1, fence=late) == ["new"]
    assert database.run("read", id=1, fence=present) == ["new"]
    assert not database.run("write", id=1, state="lost", fence=late)
    assert not database.run("read", id=1, fence=late), "a late read is answered"
    assert database.run("write", id=1, state="shipped", fence=present)
    assert database.run("read", id=1, fence=present) == ["shipped"]


def story_late_put(stage, database):
    """a late insert does not replace the next holder's"""
    late, present = two_grants(stage)
    assert database.run("put", id=2, state="new", fence=present)
    assert not database.run("put", id=2, state="lost", fence=late)
    assert database.run("read", id=2, fence=present) == ["new"]


def story_between(stage, database):
    """the next holder writes between the look at the number and the change"""
    late, present = two_grants(stage)
    database.between(lambda: database.run("write", id=1, state="shipped",
                                          fence=present))
    assert not database.run("write", id=1, state="lost", fence=late)
    database.between(lambda: database.run("put", id=3, state="new",
                                          fence=present))
    assert not database.run("put", id=3, state="lost", fence=late)
    assert database.run("read", id=1, fence=present) == ["shipped"]
    assert database.run("read", id=3, fence=present) == ["new"]


# the others look and change in one step
story_between.languages = {"etag.py"}
