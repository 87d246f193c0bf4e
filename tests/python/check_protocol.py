# SPDX-License-Identifier: MIT
"""The transcripts of tests/protocol, played without I/O; docs/client-authors.md says
what is in them."""
from __future__ import annotations

import json
import logging
import os
import pathlib
import subprocess
import sys
import unittest
from unittest import mock

from redlockd import (Forbidden, LockHeld, LockLost, RateLimited, RequestRefused,
                      Unauthorized, Unavailable, Untrusted, _ops, _replicas,
                      _talk)
from redlockd._base import Caller, probe
from redlockd._batch import Call, Queue, Trip, share
from redlockd._talk import Answer, Attempt, Grant, Hold, Send, Sleep, Wish
from redlockd._wire import Failure, Reply, Stale, Unsent, Untrusting

FOLDER = pathlib.Path(__file__).parents[1] / "protocol"
FAILURES = {"lost": Failure, "unsent": Unsent, "untrusted": Untrusting,
            "stale": Stale}
# the first that fits; they are subclasses of each other
ERRORS = {"held": LockHeld, "lost": LockLost, "rate_limited": RateLimited,
          "unavailable": Unavailable, "untrusted": Untrusted,
          "unauthorized": Unauthorized, "forbidden": Forbidden,
          "refused": RequestRefused}
# what a step may say beside its first word
STEPS = {"send": "of server headers body timeout_ms wait_ms",
         "again": "of timeout_ms",
         "answer": "of after_ms body grant text retry_after overdue",
         "pause_ms": "of", "end": "*", "hold": "", "leave": "of",
         "cancel": "gives_back", "pass_ms": "", "choose": "probes",
         "failed": "", "worked": "", "probed": "works", "busy": ""}
# where calls go together
TOGETHER = {"ask": "operation wait_ms must_wait urgent more",
            "leaves": "wait_ms batch",
            "lands": "answer results told stale", "overdue": "", "gives_up": ""}
MEMBERS = {"name", "why", "servers", "talk", "options", "begins", "steps"}


class Running:
    """A talk, and what it asks for now."""

    def __init__(self, generator):
        self.generator = generator
        self.asked = None  # the expected request
        self.proceed(None)

    def proceed(self, answer):
        self.now = self.result = self.error = None
        try:
            self.now = self.generator.send(answer)
        except StopIteration as end:
            self.result = end.value
        except Exception as error:  # which the transcript names
            self.error = error


def close(actual, expected):
    """An exact time may be rounded; a range is of times drawn at random."""
    least, most = expected if isinstance(expected, list) else [expected] * 2
    return least - 1 <= actual <= most + 1


class Player:
    def __init__(self, transcript, grant):
        assert not set(transcript) - MEMBERS, transcript
        self.main = transcript["talk"]
        self.options = dict(transcript.get("options", {}))
        self.steps = transcript["steps"]
        self.grant = grant
        self.time = 1000.0
        self.caller = Caller([f"http://server-{number}"
                              for number in range(transcript["servers"])])
        self.replicas = self.caller._replicas
        self.due = []
        self.replicas.probe = self.due.append
        self.is_idle = True  # nothing else is under way
        self.is_repeated = False  # after a kept connection that had ended
        self.words = {}  # what $key stands for
        self.running = {}
        self.attempt = self.wish = None
        self.known = _ops.Unknown.UNKNOWN
        self.warnings = []
        self.hold = None
        if grant:
            self.hold = Hold(Wish(["a"]), Grant.read(self.read(200, grant)))

    def now(self):
        return self.time

    def read(self, status, body, retry_after=""):
        text = body if isinstance(body, str) else json.dumps(body)
        return self.caller._answer("", self.time, Reply(
            status, text.encode(), retry_after, True), True)

    def play(self):
        for number, step in enumerate(self.steps):
            try:
                self.take(step)
            except Exception as error:
                raise AssertionError(f"step {number}, {step}: {error!r}") from error
        for name, talk in self.running.items():
            assert talk.generator is None, f"{name} did not end"

    def take(self, step):
        [word] = set(step) & set(STEPS)
        others = set(step) - {word}
        assert STEPS[word] == "*" or others <= set(STEPS[word].split()), step
        getattr(self, f"do_{word}")(step)

    # ---- the talks

    def talk(self, step):
        name = step.get("of", self.main)
        if name not in self.running or self.running[name].generator is None:
            self.running[name] = Running(self.begin(name.split()[0]))
        return self.running[name]

    def begin(self, kind):
        replicas, options, timeout = self.replicas, self.options, 5.0
        if kind == "acquire":
            wait = options.get("wait_ms")
            ttl = options.get("ttl_ms")
            self.wish = Wish(options["resources"], ttl=ttl and ttl / 1000,
                             **{name: options[name] for name in options
                                if name not in ("resources", "ttl_ms", "wait_ms")})
            self.attempt = Attempt()
            return _talk.acquire(replicas, self.wish,
                                 None if wait is None else wait / 1000, timeout,
                                 self.attempt)
        if kind == "give back":
            return _talk.undo(replicas, self.attempt.asked, _talk.UNKNOWN,
                              timeout)
        if kind == "renew":
            return self.renewing()
        if kind == "extend":
            return _talk.extend(replicas, self.hold, timeout, options["ttl_ms"])
        if kind == "inspect":
            return _ops.get_holder(replicas, options["resource"], timeout)
        if kind == "watch":
            return _ops.next_holder(replicas, options["resource"], self.known,
                                    timeout)
        if kind == "force":
            return _ops.force_release(replicas, options["id"],
                                      options["fencing_token"], timeout)
        return {"downgrade": _talk.downgrade, "release": _talk.release}[kind](
            replicas, self.hold, timeout)

    def renewing(self):
        """Until each renewal, a keeper waits."""
        is_extended = True
        while is_extended:
            yield Sleep(max(0, self.hold.grant.renew_at - self.time))
            is_extended = yield from _talk.extend(self.replicas, self.hold, 5.0)

    def skip(self, talk):
        """Pauses that are none."""
        while isinstance(talk.now, Sleep) and talk.now.seconds <= 0.001:
            self.time += talk.now.seconds
            talk.proceed(None)

    # ---- the steps

    def do_send(self, step):
        talk = self.talk(step)
        self.skip(talk)
        talk.asked = step
        asked = talk.now
        assert isinstance(asked, Send), f"{asked} {talk.error!r} {talk.result}"
        if self.is_idle:
            asked.wait()
        talk.url, talk.sent = self.replicas.choose(), self.time
        assert f"{asked.method} {asked.path}" == step["send"], asked
        assert talk.url == f"http://server-{step['server']}", talk.url
        body = json.loads(asked.body) if asked.body else None
        assert body == step.get("body"), body
        assert close(asked.timeout_s * 1000, step.get("timeout_ms", 5000)), asked
        assert close(asked.wait_s * 1000, step.get("wait_ms", 0)), asked
        wanted = step.get("headers", {})
        assert set(wanted) == set(asked.headers), asked
        for name, text in wanted.items():
            if text.startswith("$"):
                text = self.words.setdefault(text, asked.headers[name])
            assert text == asked.headers[name], asked
        assert len(set(self.words.values())) == len(self.words), self.words

    def do_again(self, step):
        asked = {**self.talk(step).asked, "server": step["again"]}
        self.do_send(asked | {name: step[name] for name in step
                              if name != "again"})

    def do_answer(self, step):
        self.time += step.get("after_ms", 0) / 1000
        talk = self.talk(step)
        asked = talk.now
        assert isinstance(asked, Send), asked
        if step.get("overdue"):
            self.replicas.avoid(talk.url)
        if isinstance(step["answer"], str):
            failure = FAILURES[step["answer"]]("")
            if isinstance(failure, Stale):
                self.is_repeated = True  # by the pool
                return
            self.answer(talk, self.caller._failure(talk.url, talk.sent, failure))
            return
        body = step.get("text", step.get("body"))
        if "grant" in step:
            body = self.grant | step["grant"]
        assert body is not None, "an answer without a body"
        text = body if isinstance(body, str) else json.dumps(body)
        reply = Reply(step["answer"], text.encode(), step.get("retry_after", ""),
                      True)
        self.answer(talk, self.caller._answer(talk.url, talk.sent, reply,
                                              step.get("overdue", False)))

    def answer(self, talk, answer):
        answer.is_repeated, self.is_repeated = self.is_repeated, False
        talk.proceed(answer)

    def do_pause_ms(self, step):
        talk = self.talk(step)
        assert isinstance(talk.now, Sleep), talk.now
        assert close(talk.now.seconds * 1000, step["pause_ms"]), talk.now
        self.time += talk.now.seconds
        talk.proceed(None)

    def do_busy(self, step):
        self.is_idle = not step["busy"]

    def do_pass_ms(self, step):
        self.time += step["pass_ms"] / 1000

    def do_end(self, step):
        talk = self.talk(step)
        self.skip(talk)
        assert talk.now is None, talk.now
        end, told = self.told(talk)
        assert end == step["end"], f"{end} {talk.error!r} {told}"
        for name, expected in step.items():
            if name not in ("end", "of"):
                self.compare(name, told[name], expected)
        talk.generator = None

    def told(self, talk):
        """How it ended, and what else it tells."""
        for name, kind in ERRORS.items():
            if isinstance(talk.error, kind):
                told = dict(vars(talk.error))
                for part in "remaining", "retry_after":
                    if told.get(part) is not None:
                        told[f"{part}_ms"] = told[part] * 1000
                return name, told
        if talk.error:
            raise talk.error
        if self.warnings and "not released" in self.warnings[-1]:
            return "not_released", {}
        if isinstance(talk.result, Grant):
            return "granted", self.state(Hold(self.wish, talk.result))
        if self.main in ("inspect", "watch"):
            self.known = holder = talk.result
            if holder is None:
                return "free", {}
            left = holder.remaining
            return "holder", vars(holder) | {"remaining_ms": left and left * 1000}
        return "free" if talk.result is False else "done", {}

    def state(self, hold):
        return {"token": hold.grant.token, "slots": list(hold.slots),
                "fencing_token": hold.grant.fencing_token,
                "shared": hold.grant.is_shared,
                "work_ms": hold.remaining_s * 1000,
                "validity_ms": hold.validity_s * 1000,
                "renew_ms": max(0, hold.grant.renew_at - self.time) * 1000}

    @staticmethod
    def compare(name, actual, expected):
        if name.endswith("_ms"):
            assert close(actual, expected), (name, actual)
        else:
            assert actual == expected, (name, actual)

    def do_hold(self, step):
        state = self.state(self.hold)
        for name, expected in step["hold"].items():
            self.compare(name, state[name], expected)

    def do_leave(self, step):
        talk = self.talk(step)
        self.skip(talk)
        assert talk.now is not None, (talk.error, talk.result)
        talk.generator = None

    def do_cancel(self, step):
        talk = self.talk(step)
        talk.generator = None
        # of a request that is under way, whoever has sent it knows
        is_open = self.attempt.may_be_granted or isinstance(talk.now, Send)
        assert is_open is step["gives_back"]
        if step["gives_back"]:
            self.running[self.main] = Running(self.begin("give back"))

    # ---- which replica

    def url(self, number):
        return self.replicas.urls[number]

    def do_choose(self, step):
        self.due.clear()
        assert self.replicas.choose() == self.url(step["choose"])
        assert self.due == [self.url(one) for one in step.get("probes", [])], \
            self.due

    def do_failed(self, step):
        self.replicas.avoid(self.url(step["failed"]))

    def do_worked(self, step):
        self.replicas.works(self.url(step["worked"]))

    def do_probed(self, step):
        talk = Running(probe(self.replicas, self.url(step["probed"])))
        assert talk.now.path == "/readyz"
        body = {}
        talk.proceed(self.read(200 if step["works"] else 503, body))


class Together:
    """Plays which calls go together; the drivers do the same with I/O."""

    def __init__(self, transcript):
        assert not set(transcript) - MEMBERS, transcript
        self.steps = transcript["steps"]
        self.queue = Queue()
        self.calls = {}
        self.trips = []  # under way
        self.departing = []

    def play(self):
        for number, step in enumerate(self.steps):
            try:
                [word] = set(step) & set(TOGETHER)
                assert set(step) - {word} <= set(TOGETHER[word].split())
                if word != "leaves":
                    assert not self.departing, self.names(self.departing[0])
                getattr(self, f"do_{word}")(step)
            except Exception as error:
                raise AssertionError(f"step {number}, {step}: {error!r}") from error
        assert not self.departing

    def names(self, trip):
        return [name for call in trip.calls for name, one in self.calls.items()
                if one is call]

    def trip(self, name):
        [trip] = [one for one in self.trips if self.names(one)[0] == name]
        return trip

    def depart(self):
        while trip := self.queue.next_trip():
            self.departing.append(self.queue.form(trip))

    def do_ask(self, step):
        wait_s = step.get("wait_ms", 0) / 1000
        send = self.send(step["ask"], step["operation"], wait_s)
        send.is_urgent = step.get("urgent", False)
        call = self.calls[step["ask"]] = Call(send, None)
        if not step.get("must_wait"):
            self.queue.add(call)
            if not step.get("more"):
                self.depart()
            return
        send.wait()
        trip = self.queue.set_out_without_slot()
        trip.calls.append(call)
        self.departing.append(trip)

    @staticmethod
    def send(name, operation, wait_s):
        of = dict(operation)
        kind = of.pop("operation")
        if kind == "acquire":
            resources = of.pop("resources", None) or [of.pop("resource")]
            wish = Wish(resources, limit=of.pop("limit", None),
                        shared=of.pop("mode", "") == "shared")
            send = Send("POST", "/locks", {"Idempotency-Key": f"key of {name}"},
                        "{}", 5, scope=wish.scope, item="{}",
                        patience=(wait_s, "{}") if wait_s else None)
        else:
            lock, token = of.pop("id"), of.pop("token")
            method = "PUT" if kind == "extend" else "DELETE"
            send = Send(method, f"/locks/{lock}", {"X-Lock-Token": token},
                        None, 5, scope=_talk.Scope((lock,)), item="{}")
            of = {} if kind == "extend" else of
        assert not of, of
        return send

    def do_leaves(self, step):
        trip = self.departing.pop(0)
        self.trips.append(trip)
        assert self.names(trip) == step["leaves"], self.names(trip)
        send = trip.send
        assert close(send.wait_s * 1000, step.get("wait_ms", 0)), send
        is_batch = len(trip.calls) > 1 or step.get("batch", False)
        assert (send.path == "/batch") is is_batch

    def do_lands(self, step):
        trip = self.trip(step["lands"])
        self.trips.remove(trip)
        answer = Answer(0, {"code": _talk.NO_ANSWER})
        if step["answer"] != "lost":
            answer = Answer(step["answer"], {"results": [
                {"status": status, "grant" if status < 300 else "problem": {"x": 1}}
                for status in step.get("results", [])]})
        answer.is_repeated = step.get("stale", False)
        self.queue.end(trip)
        answers = share(trip, answer)
        trip.end(answers)
        told = {}
        for name, one in zip(self.names(trip), answers):
            if one is None:  # it goes alone
                lone = Trip(False)
                lone.calls.append(self.calls[name])
                self.departing.append(lone)
            elif not self.calls[name].has_left:
                told[name] = one.status
        assert told == step["told"], told
        self.depart()

    def do_overdue(self, step):
        self.queue.end(self.trip(step["overdue"]))
        self.depart()

    def do_gives_up(self, step):
        self.queue.leave(self.calls[step["gives_up"]])
        self.depart()


def transcripts():
    for file in sorted(FOLDER.glob("*.json")):
        content = json.loads(file.read_text())
        assert not set(content) - {"grant", "request", "full", "transcripts"}, file
        for transcript in content["transcripts"]:
            steps = content.get(transcript.get("begins"), []) + transcript["steps"]
            transcript["steps"] = [whole(content, step) for step in steps]
            yield file, transcript, content.get("grant", {})


def whole(content, step):
    """asks: the request of the file, to this replica."""
    if "asks" not in step:
        return step
    more = dict(step)
    return content["request"] | {"server": more.pop("asks")} | more


class Transcripts(unittest.TestCase):
    def test_each(self):
        count = 0
        for file, transcript, grant in transcripts():
            count += 1
            with self.subTest(f"{file.name}: {transcript['name']}"):
                self.play(transcript, grant)
        self.assertGreater(count, 100)

    def test_they_notice_broken_rules(self):
        done = subprocess.run([FOLDER / "broken.py", "python"], check=False,
                              env={**os.environ, "PYTHON": sys.executable},
                              stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def play(self, transcript, grant):
        if transcript["talk"] == "together":
            Together(transcript).play()
            return
        player = Player(transcript, grant)
        log = logging.Handler(logging.WARNING)
        log.emit = lambda record: player.warnings.append(record.getMessage())
        logger = logging.getLogger("redlockd")
        logger.setLevel(logging.WARNING)
        logger.addHandler(log)
        self.addCleanup(logger.removeHandler, log)
        with mock.patch.object(_talk, "now", player.now), \
                mock.patch.object(_ops, "now", player.now), \
                mock.patch.object(_replicas, "now", player.now):
            player.play()
