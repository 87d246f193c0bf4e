# SPDX-License-Identifier: MIT
"""Calls that go together: which, when, and what comes of each. First the rules,
played without any I/O; check_together.py has the drivers."""
from __future__ import annotations

import json
import unittest

from redlockd._batch import (LONGEST, MOST, Call, Queue, has_to_be_undone,
                             share)
from redlockd._clock import now
from redlockd._replicas import Replicas
from redlockd._talk import (Answer, Attempt, Grant, Hold, Wish,
                            acquire, extend, release, undo)

GRANT = {"id": "a", "token": "7.0", "fencing_token": 7, "ttl_ms": 30000,
         "elapsed_ms": 0, "validity_ms": 29000, "renew_after_ms": 10000}
HELD = Answer(409, {"code": "lock_held", "held_by": {}, "retry_after_ms": 20})
NO_ANSWER = Answer(0, {"code": "no_answer"}, "http://one")


REPLICAS = Replicas(["http://one"])


def wish(*names, **how):
    return next(acquire(REPLICAS, Wish(names, **how), 0, 5, Attempt()))


def held(token, *names, method="DELETE", timeout_s=5.0, slots=(), left_ms=29000,
         **how):
    """What is asked about a lock with this token."""
    grant = Grant.read(Answer(201, {**GRANT, "token": token, "slots": slots,
                                    "validity_ms": left_ms,
                                    "mode": how.get("shared") and "shared"},
                              sent=now()))
    hold = Hold(Wish(names, **how), grant)
    if method == "PUT":
        return next(extend(REPLICAS, hold, timeout_s, 1000))
    return next(release(REPLICAS, hold, timeout_s))


class Played(unittest.TestCase):
    def setUp(self):
        self.queue = Queue(2)
        self.busy = [self.set_out(), self.set_out()]

    def set_out(self):
        return self.queue.set_out(held("0.0", "other"))

    def add(self, *sends):
        calls = [Call(send, None) for send in sends]
        for call in calls:
            self.queue.add(call)
        return calls

    def go(self):
        """The next request, once one has ended."""
        if self.busy:
            self.queue.end(self.busy.pop())
        trip = self.queue.next_trip()
        return trip and self.queue.form(trip)

    def sent(self, *sends):
        """What goes together, request by request; as indices."""
        calls = self.add(*sends)
        found = []
        while trip := self.go():
            found.append([calls.index(call) for call in trip.calls])
            self.queue.end(trip)
        return found


class When(Played):
    def test_what_comes_meanwhile_goes_together_once_a_slot_is_free(self):
        calls = self.add(wish("a"), wish("b"), wish("c"))
        self.assertIsNone(self.queue.next_trip())
        self.queue.end(self.busy.pop())
        trip = self.queue.next_trip()
        self.assertIs(trip.leader, calls[0])
        self.assertIsNone(self.queue.next_trip())
        late, = self.add(wish("d"))  # before it is formed
        self.assertEqual(self.queue.form(trip).calls, [*calls, late])
        self.assertFalse(self.queue.is_waiting)

    def test_nobody_overtakes_those_that_wait(self):
        self.add(wish("a"))
        self.queue.end(self.busy.pop())
        self.assertIsNone(self.set_out())

    def test_a_request_that_is_overdue_gives_its_slot_back_once(self):
        self.add(wish("a"))
        hung = self.busy.pop()
        look_at = self.queue.find_hanging(hung.hangs_at - 0.1)
        self.assertLessEqual(look_at, hung.hangs_at)
        self.assertIsNone(self.queue.next_trip())
        self.queue.find_hanging(hung.hangs_at)
        trip = self.queue.form(self.queue.next_trip())
        self.queue.end(hung)  # its answer comes after all
        self.queue.end(trip)
        self.assertIsNotNone(self.set_out())
        self.queue.end(self.busy.pop())
        self.assertIsNotNone(self.set_out())
        self.assertIsNone(self.set_out())

    def test_an_acquire_beside_others_goes_in_a_batch(self):
        """Also one that may wait; a lone one does not."""
        patient = acquire(REPLICAS, Wish(["a"]), 5, 5, Attempt())
        queue = Queue(2)
        for send, is_batch in ((wish("x"), False), (next(patient), True)):
            queue.add(Call(send, None))
            trip = queue.form(queue.next_trip())
            self.assertEqual((trip.send.path == "/batch", trip.has_slot),
                             (is_batch, True))
            self.assertEqual(trip.send.wait_s, 0)
        queue.end(trip)
        self.assertIsNone(queue.set_out(wish("b")))  # it is to queue
        self.assertIsNotNone(queue.set_out(held("1.0", "b")))

    def test_one_that_is_longer_than_a_batch_is_a_single_call(self):
        queue = Queue(2)
        queue.set_out(held("1.0", "b"))
        self.assertIsNotNone(queue.set_out(wish("x" * LONGEST)))

    def test_extends_that_have_no_time_to_wait_go_together(self):
        sends = []
        for left_ms, is_urgent in ((5000, False), (3900, True), (3800, True)):
            # a tenth of the TTL of 30 s is for ending the work
            send = held(f"{left_ms}.0", f"a{left_ms}", method="PUT",
                        left_ms=left_ms)
            self.assertEqual(send.is_urgent, is_urgent, left_ms)
            sends.append(send)
        calls = self.add(*sends)  # no slot is free
        trip = self.queue.form(self.queue.next_trip())
        self.assertEqual((trip.calls, trip.has_slot), (calls[1:], False))
        self.assertIsNone(self.queue.next_trip())
        self.queue.end(trip)
        self.assertIsNone(self.queue.next_trip())

    def test_an_urgent_one_that_has_left_is_taken_out(self):
        first, second = self.add(*(
            held(f"{name}.0", name, method="PUT", left_ms=3900)
            for name in "ab"))
        trip = self.queue.next_trip()
        self.assertIs(trip.leader, first)
        self.queue.leave(first)
        trip = self.queue.form(self.queue.next_trip())
        self.assertEqual(trip.calls, [second])

    def test_one_that_leaves_as_it_was_to_lead_hands_its_slot_on(self):
        first, second = self.add(wish("a"), wish("b"))
        self.queue.end(self.busy.pop())
        self.assertIs(self.queue.next_trip().leader, first)
        self.queue.leave(first)
        trip = self.queue.next_trip()
        self.assertIs(trip.leader, second)
        self.assertEqual(self.queue.form(trip).calls, [second])

    def test_two_slots_get_free_at_once(self):
        calls = self.add(wish("a"), wish("b"), wish("a"), wish("b"))
        self.queue.end(self.busy.pop())
        self.queue.end(self.busy.pop())
        trip = self.queue.next_trip()
        self.assertIsNone(self.queue.next_trip())
        self.assertEqual(self.queue.form(trip).calls, calls[:2])
        # what it could not take along has the other slot
        trip = self.queue.next_trip()
        self.assertEqual(self.queue.form(trip).calls, calls[2:])


class Which(Played):
    def test_a_hundred_at_most(self):
        sends = [wish(f"a{number}") for number in range(2 * MOST + 1)]
        self.assertEqual([len(one) for one in self.sent(*sends)], [100, 100, 1])

    def test_48_kib_at_most(self):
        sends = [wish(f"{number}" + "x" * 1000) for number in range(100)]
        calls = self.add(*sends)
        seen = []
        while trip := self.go():
            self.assertLessEqual(len(trip.send.body), 48 * 1024)
            seen += trip.calls
            self.queue.end(trip)
        self.assertEqual(seen, calls)

    def test_one_that_is_longer_goes_alone(self):
        self.assertEqual(self.sent(wish("a"), wish("x" * LONGEST), wish("b")),
                         [[0, 2], [1]])

    def test_two_of_one_lock_do_not_go_together(self):
        self.assertEqual(self.sent(
            wish("a"), wish("b"), wish("b", "a"), wish("a"), wish("c")),
            [[0, 1, 4], [2], [3]])
        self.assertEqual(self.sent(held("1.0", "a"), wish("a"),
                                   held("2.0", "b")), [[0, 2], [1]])
        self.assertEqual(self.sent(
            held("1.0", "a", method="PUT"), held("1.0", "a")), [[0], [1]])

    def test_readers_do(self):
        self.assertEqual(self.sent(
            wish("a", shared=True), wish("a", shared=True),
            held("1~0", "a", shared=True), held("2~0", "a", shared=True),
            held("2~0", "a", shared=True), wish("a")), [[0, 1, 2, 3], [4], [5]])
        self.assertEqual(self.sent(wish("a"), wish("a", shared=True)),
                         [[0], [1]])

    def test_permits_do(self):
        self.assertEqual(self.sent(
            wish("a", limit=3), wish("a", limit=3),
            held("1.0", "a", limit=3, slots=(0,)),
            held("2.0", "a", limit=3, slots=(1,)),
            held("3.0", "a", limit=3, slots=(1, 2)), wish("a")),
            [[0, 1, 2, 3], [4, 5]])

    def test_a_timeout_that_is_much_shorter_is_not_that_of_all(self):
        self.assertEqual(self.sent(
            wish("a"), held("1.0", "b", timeout_s=0.1, method="PUT"),
            held("2.0", "c", timeout_s=3, method="PUT"),
            held("3.0", "d", timeout_s=0.15, method="PUT")), [[0, 2], [1, 3]])
        trip = Queue().set_out(wish("other"))
        trip.calls = self.add(wish("a"), held("2.0", "c", timeout_s=3))
        trip.is_batch = True
        self.assertEqual(trip.send.timeout_s, 3)

    def test_what_is_sent(self):
        asked = wish("a", ttl=3, owner="web")
        self.add(asked, held("1.0", "b"), held("2.0", "c", method="PUT"))
        send = self.go().send
        self.assertEqual((send.method, send.path), ("POST", "/batch"))
        self.assertEqual(json.loads(send.body), {"operations": [
            {"operation": "acquire", "resource": "a", "ttl_ms": 3000,
             "owner": "web",
             "idempotency_key": asked.headers["Idempotency-Key"]},
            {"operation": "release", "id": "a", "token": "1.0"},
            {"operation": "extend", "id": "a", "token": "2.0", "ttl_ms": 1000}]})

    def test_names_of_any_kind(self):
        self.add(wish("ä\"\\"), wish("a", "b", shared=True),
                 wish("c", limit=3, permits=2))
        one, two, three = json.loads(self.go().send.body)["operations"]
        self.assertEqual(one["resource"], "ä\"\\")
        self.assertEqual((two["resources"], two["mode"]), (["a", "b"], "shared"))
        self.assertEqual((three["limit"], three["permits"]), (3, 2))


class What(Played):
    """What each is answered."""

    def batch(self):
        self.setUp()
        self.add(wish("a"), held("1.0", "b"), held("2.0", "c", method="PUT"))
        return self.go()

    def test_each_its_own(self):
        trip = self.batch()
        answers = share(trip, Answer(200, {"results": [
            {"status": 409, "problem": {"code": "lock_held"}},
            {"status": 200, "release": {"released": True}},
            {"status": 200, "grant": GRANT}]}, "http://one", 17))
        self.assertEqual([(one.status, one.url, one.sent) for one in answers],
                         [(409, "http://one", 17), (200, "http://one", 17),
                          (200, "http://one", 17)])
        self.assertEqual(answers[0].code, "lock_held")
        self.assertEqual(Grant.read(answers[2]).token, "7.0")

    def test_a_result_that_makes_no_sense_is_no_answer(self):
        good = {"status": 200, "release": {"released": True}}
        for bad in None, {}, {"status": 200}, {"status": "200", "grant": {}}:
            answers = share(self.batch(), Answer(200, {
                "results": [good, bad, good]}))
            self.assertEqual([one.status for one in answers], [200, 0, 200])
            self.assertFalse(answers[1].grants_nothing)
        for body in {}, {"results": [good]}, {"results": "x" * 3}:
            for one in share(self.batch(), Answer(200, body)):
                self.assertFalse(one.grants_nothing)

    def test_a_batch_that_is_refused_goes_in_single_calls(self):
        for status in 301, 400, 404, 405, 413, 422:
            self.assertEqual(share(self.batch(), Answer(status, {})), [None] * 3)

    def test_what_is_everybodys_answer(self):
        for status in 0, 401, 403, 408, 421, 429, 500, 502, 503, 504:
            answer = Answer(status, {"code": "x"})
            self.assertEqual(share(self.batch(), answer), [answer] * 3)

    def test_one_that_is_unknown_goes_alone(self):
        """And may have a newer access token then."""
        unknown = {"status": 401, "problem": {"code": "unauthorized"}}
        good = {"status": 200, "release": {"released": True}}
        answers = share(self.batch(), Answer(200, {
            "results": [unknown, good, unknown]}))
        self.assertEqual([one and one.status for one in answers],
                         [None, 200, None])

    def test_whose_lock_is_released(self):
        for answer, is_undone in (
                (Answer(201, GRANT), True), (NO_ANSWER, True),
                (Answer(0, {"code": "stale"}), True), (Answer(502, {}), True),
                (Answer(0, {"code": "unsent"}), False), (HELD, False),
                (Answer(503, {}), True), (None, False)):
            trip = self.batch()
            for call in trip.calls:
                self.queue.leave(call)
            self.assertEqual(trip.end([answer] * 3),
                             trip.calls[:1] if is_undone else [])
        trip = self.batch()
        self.assertEqual(trip.end([Answer(201, GRANT)] * 3), [])
        self.setUp()
        call, = self.add(wish("a"))
        trip = self.go()
        self.queue.leave(call)
        trip.end([NO_ANSWER])
        self.assertTrue(has_to_be_undone(call))

    def test_a_repeat_that_was_refused(self):
        """The batch before it may have been granted: that is found out, as the
        caller has left. What the second answer says counts."""
        first = Answer(409, {"code": "lock_held"}, "http://one")
        first.is_repeated = True
        trip = self.batch()
        for call in trip.calls:
            self.queue.leave(call)
        call, = trip.end([first] * 3)
        talk = undo(REPLICAS, call.send, call.answer, 5)
        asked = next(talk)
        self.assertEqual(json.loads(asked.body)["ttl_ms"], 100)
        self.assertEqual(asked.headers, call.send.headers)
        with self.assertRaises(StopIteration):
            talk.send(HELD)


class Scopes(unittest.TestCase):
    def test_of_a_lock_that_became_shared(self):
        hold = Hold(Wish(["a"]), Grant.read(Answer(201, GRANT)))
        self.assertEqual((hold.scope.names, hold.scope.group), (("a",), ""))
        hold.extended(Grant.read(Answer(200, GRANT | {"mode": "shared"})))
        self.assertEqual((hold.scope.names, hold.scope.group),
                         (("a",), "readers"))
