# SPDX-License-Identifier: MIT
"""When held locks are looked at: played, without threads and event loops."""
from __future__ import annotations

import unittest

from redlockd._agenda import FEW, Agenda, Kept
from redlockd._clock import now
from redlockd._talk import Answer, Grant, Hold, Wish


class Held(Kept):
    """Granted at 0; to be renewed after renew_s, and lost at 27."""

    def __init__(self, renew_s=10.0, sent=0.0):
        grant = Grant.read(Answer(201, {
            "id": "a", "token": "7.0", "fencing_token": 7, "ttl_ms": 30000,
            "elapsed_ms": 0, "validity_ms": 30000,
            "renew_after_ms": renew_s * 1000}, sent=sent))
        super().__init__(Hold(Wish(["a"]), grant))
        self.is_over = False

    @property
    def has_ended(self):
        return self.is_over or self._is_forgotten


class Due(unittest.TestCase):
    def setUp(self):
        self.agenda = Agenda()

    def add(self, *helds):
        for held in helds:
            self.agenda.add(held)
        return helds

    def test_each_at_its_moment(self):
        late, early = self.add(Held(10), Held(5))
        self.assertEqual(self.agenda.next, 5)
        self.assertEqual(self.agenda.take(4.9), [])
        self.assertEqual(self.agenda.take(5), [early])
        self.assertEqual(self.agenda.next, 10)
        self.assertEqual(self.agenda.take(10), [late])
        self.assertEqual(self.agenda.next, float("inf"))

    def test_whether_it_is_the_next_one(self):
        self.assertEqual([self.agenda.add(Held(renew_s))
                          for renew_s in (10, 12, 9)], [True, False, True])

    def test_those_that_may_be_renewed_go_with_those_that_have_to(self):
        helds = self.add(*[Held(10 + tenths / 10) for tenths in range(15)])
        self.assertEqual(self.agenda.take(9.99), [])
        due = self.agenda.take(10)
        self.assertEqual(due, list(helds[:12]))
        for held in due:
            self.assertLessEqual(held._hold.grant.renew_from, 10)

    def test_a_renewal_under_way_does_not_hide_the_loss(self):
        held, = self.add(Held())
        self.agenda.take(10)
        held.is_renewing = True
        self.add(held)
        self.assertEqual(self.agenda.next, 27)
        self.assertFalse(held.may_renew(26))

    def test_a_renewal_that_failed_goes_on_not_earlier_than_it_wants(self):
        held, other = self.add(Held(10), Held(11.5))
        self.agenda.take(10)
        held.is_renewing, held.resume_at = True, 12
        self.add(held)
        self.assertEqual(self.agenda.take(11.5), [other])
        self.assertEqual(self.agenda.take(12), [held])
        self.assertTrue(held.may_renew(12))

    def test_only_the_last_entry_counts(self):
        held, = self.add(Held(10))
        held.is_renewing, held.resume_at = True, 5
        self.add(held, held)
        self.assertEqual(self.agenda.take(5), [held])
        self.assertEqual(self.agenda.take(100), [])

    def test_those_that_ended_are_not_due(self):
        one, two, three = self.add(Held(), Held(), Held())
        one.is_over = True
        two.forget()
        self.assertEqual(self.agenda.take(10), [three])

    def test_those_that_ended_do_not_stay(self):
        helds = self.add(*[Held() for _ in range(3 * FEW)])
        for held in helds[1:]:
            held.is_over = True
            self.agenda.ended()
        self.assertLessEqual(len(self.agenda._heap), FEW + 2)
        self.assertEqual(self.agenda.take(10), [helds[0]])

    def test_late(self):
        self.assertTrue(Held(sent=now() - 28).is_late)
        self.assertFalse(Held(sent=now() - 20).is_late)


if __name__ == "__main__":
    unittest.main()
