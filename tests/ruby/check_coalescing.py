# SPDX-License-Identifier: MIT
"""The Ruby package: what its threads request together goes in batches. Over a server
that does what the test's script says, and over real ones, with faults."""
from __future__ import annotations

import os
import pathlib
import re
import subprocess
import threading
import time
import unittest

from check_faults import Case as Faulty
from fake import Fake, WithFake, batch, cut, late, problem, silent, usual
from processes import end, spawn, stopped
from waiting import wait_until

ROOT = pathlib.Path(__file__).parents[2]
LIMIT_S = 20
# Nothing under way gives up its place, unless the test says so.
PRELUDE = """
require "redlockd"
require "timeout"

$stdout.sync = true
Thread.report_on_exception = false

def change(of, name, value)
  of.send(:remove_const, name)
  of.const_set(name, value)
end
change(Redlockd::Caller, :OVERDUE_MS, 20_000)
change(Redlockd::Dispatcher, :LATE_MS, 20_000)

CLIENT = Redlockd::Client.new(timeout: 15)

def count(name)
  dispatcher = CLIENT.caller.instance_variable_get(:@dispatcher)
  coalescer = dispatcher&.instance_variable_get(:@coalescer)
  of = coalescer&.instance_variable_get(name) || 0
  of.is_a?(Array) ? of.size : of
end

def wait_for(name, expected)
  end_at = Time.now + 20
  sleep 0.005 until count(name) == expected || Time.now > end_at
  raise "#{name} is #{count(name)}" unless count(name) == expected
end

def waits(name, wait)
  Thread.new { CLIENT.lock(name, wait: wait).tap(&:acquire) }
end

def acquires(name)
  waits(name, 0)
end

# Two whose responses wait until the test opens its gate.
def take_places
  Array.new(2) { |i| acquires("busy:#{i}").tap { wait_for(:@taken, i + 1) } }
end

def collect(*names)
  names.map.with_index(1) { |name, i| acquires(name).tap { wait_for(:@collected, i) } }
end

# Something that the test does.
def event(name)
  puts name
  $stdin.gets
end

def open_gate
  event("open")
end

# What became of them: held, or the error.
def outcomes(threads)
  threads.map do |thread|
    thread.value ? "held" : "killed"
  rescue Redlockd::Error, Timeout::Error => e
    e.class.name.split("::").last
  end
end
"""


def gated(gate, action=usual):
    """Answers once the gate is open."""
    def act(handler, request):
        gate.wait(LIMIT_S)
        action(handler, request)
    return act


class Case(WithFake, unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.gate = threading.Event()
        self.addCleanup(self.gate.set)

    def held_up(self, **fields):
        """A server that answers the first two acquires once the gate is open."""
        fake = self.fake(**fields)
        fake.on("POST", gated(self.gate), gated(self.gate))
        return fake

    def play(self, fakes, program, **events):
        """Runs it with these as replicas, and calls the events that it wants. Returns
        the other lines that it prints."""
        events.setdefault("open", self.gate.set)
        fakes = [fakes] if isinstance(fakes, Fake) else fakes
        urls = ",".join(one.url for one in fakes)
        process = subprocess.Popen(
            ["ruby", "-W", "-I", ROOT / "tests/ruby",
             "-I", ROOT / "api/clients/ruby/lib", "-e", PRELUDE + program], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "REDLOCKD_URL": urls})
        self.addCleanup(process.stderr.close)
        timer = threading.Timer(3 * LIMIT_S, process.kill)
        timer.start()
        lines = []
        with process.stdout, process.stdin:
            for line in map(str.strip, process.stdout):
                if line not in events:
                    lines.append(line)
                    continue
                events[line]()
                print("done", file=process.stdin, flush=True)
        told = process.stderr.read()
        self.assertEqual((process.wait(), told), (0, ""), lines)
        timer.cancel()
        return lines

    def sizes(self, fake):
        return [len(one.body["operations"]) for one in fake.batches]


class Together(Case):
    def test_what_comes_while_two_are_under_way_is_one_batch(self):
        fake = self.held_up()
        told = self.play(fake, """
            busy = take_places
            more = collect(*Array.new(20) { |i| "more:#{i}" })
            open_gate
            locks = (busy + more).map(&:value)
            puts locks.map(&:fencing_token).uniq.size
            locks.map { |lock| Thread.new { lock.release } }.each(&:join)""")
        self.assertEqual(told, ["22"])
        self.assertEqual(self.sizes(fake)[:2], [1, 20])
        self.assertEqual(len({one.headers["idempotency-key"]
                              for one in fake.of("POST")}), 22)
        self.assertEqual(len({one.headers["x-lock-token"]
                              for one in fake.of("DELETE")}), 22)

    def test_each_operation_has_its_own_error(self):
        fake = self.held_up()
        fake.scripts["POST"] += [
            usual, problem(409, "lock_held", held_by={"owner": "web-3"}),
            problem(403, "forbidden"), problem(400, "invalid_request"),
            problem(503, "no_quorum"), problem(429, "rate_limited"), usual]
        # the last two are repeated
        fake.rest["POST"] = problem(503, "no_quorum")
        told = self.play(fake, """
            busy = take_places
            more = collect(*"a".."g")
            open_gate
            puts outcomes(busy + more)
            begin
              more[1].value
            rescue Redlockd::LockHeld => e
              puts e.owner
            end""")
        self.assertEqual(told, ["held", "held", "held", "LockHeld", "Forbidden",
                                "RequestRefused", "Unavailable", "Unavailable", "held",
                                "web-3"])

    def test_renewals_go_together(self):
        fake = self.fake(renew_after_ms=2000)
        self.play(fake, """
            locks = Array.new(40) { |i| acquires("#{i}") }.map(&:value)
            event("acquired")
            sleep 3
            puts locks.count(&:owned?)
            exit!(true)""", acquired=fake.batches.clear)
        self.assertGreaterEqual(len(fake.of("PUT")), 40)
        together = [one for one in self.sizes(fake) if one > 1]
        self.assertLess(len(fake.of("PUT")) - sum(together) + len(together), 25)

    def test_an_urgent_extend_waits_for_nothing(self):
        fake = self.fake(ttl_ms=1500, validity_ms=1500, renew_after_ms=700)
        told = self.play(fake, """
            lock = acquires("urgent").value
            event("hang")
            take_places
            collect("a", "b")
            sleep 3
            puts lock.owned?
            exit!(true)""", hang=lambda: fake.on("POST", rest=gated(self.gate)))
        self.assertEqual(told, ["true"])
        self.assertGreater(len(fake.of("PUT")), 2)

    def test_one_that_waits_is_tried_first_and_takes_no_place_then(self):
        fake, freed = self.held_up(), threading.Event()
        self.addCleanup(freed.set)
        fake.scripts["POST"] += [problem(409, "lock_held")] * 2
        fake.rest["POST"] = lambda handler, request: (
            gated(freed) if request.body.get("wait_ms") else usual)(handler, request)
        told = self.play(fake, """
            busy = take_places
            more = %w[a b].map.with_index(1) do |name, i|
              waits(name, 9).tap { wait_for(:@collected, i) }
            end
            open_gate
            puts outcomes(busy)
            wait_for(:@under_way, 2)
            puts outcomes(Array.new(4) { |i| acquires("c#{i}") })
            event("free")
            puts outcomes(more)""", free=freed.set)
        self.assertEqual(told, ["held"] * 8)
        of = {name: [one for one in fake.of("POST") if one.body["resource"] == name]
              for name in "ab"}
        for tried, waited in of.values():
            self.assertNotIn("wait_ms", tried.body)
            self.assertGreater(waited.body["wait_ms"], 7000)
            self.assertNotEqual(tried.headers, waited.headers)


class Trouble(Case):
    def test_without_a_response_each_acquire_is_repeated_with_its_key(self):
        # a kept connection that is closed says nothing
        fake = self.held_up().on("BATCH", batch, cut, cut)
        told = self.play(fake, """
            busy = take_places
            more = %w[a b c].map.with_index(1) do |name, i|
              waits(name, 5).tap { wait_for(:@collected, i) }
            end
            open_gate
            puts outcomes(busy + more)""")
        self.assertEqual(told, ["held"] * 5)
        sent = {one["resource"]: one["idempotency_key"]
                for one in fake.batches[1].body["operations"]}
        got = {one.body["resource"]: one.headers["idempotency-key"]
               for one in fake.of("POST")[2:]}
        self.assertEqual(got, sent)

    def test_a_release_without_a_response_is_not_reported_as_lost(self):
        gone = problem(404, "lock_not_found")
        for times in 1, 2:
            self.gate.clear()
            fake = self.fake().on("BATCH", batch, *[cut] * times)
            told = self.play(fake, """
                locks = %w[a b].map { |name| acquires(name).value }
                event("hold")
                busy = take_places
                ends = locks.map.with_index(1) do |lock, i|
                  Thread.new { lock.release || 1 }.tap { wait_for(:@collected, i) }
                end
                open_gate
                puts outcomes(busy + ends)""", hold=lambda: fake.on(
                    "POST", gated(self.gate), gated(self.gate)).on("DELETE", rest=gone))
            self.assertEqual(told, ["held"] * 4)

    def test_a_batch_that_is_refused_goes_in_single_calls(self):
        fake = self.held_up().on("BATCH", batch, problem(404, "not_found"))
        told = self.play(fake, """
            busy = take_places
            more = collect("a", "b", "c")
            open_gate
            puts outcomes(busy + more)""")
        self.assertEqual(told, ["held"] * 5)
        self.assertEqual(self.sizes(fake), [1, 3])

    def test_a_request_that_is_overdue_holds_nobody_up(self):
        hung, good = self.fake(), self.fake()
        hung.on("POST", rest=silent).on("BATCH", rest=silent)
        told = self.play([hung, good], """
            change(Redlockd::Caller, :OVERDUE_MS, 500)
            take_places
            began = Time.now
            puts outcomes(Array.new(8) { |i| acquires("#{i}") })
            puts Time.now - began < 5
            exit!(true)""")
        self.assertEqual(told, ["held"] * 8 + ["true"])
        self.assertEqual(len(hung.of("POST") + hung.batches), 2)

    def test_what_is_wrong_with_an_operation_is_raised_by_its_thread(self):
        fake = self.held_up()
        told = self.play(fake, """
            busy = take_places
            more = collect("a", "b")
            bad = acquires(255.chr.force_encoding("UTF-8"))
            begin
              bad.value
            rescue JSON::GeneratorError
              puts "refused"
            end
            open_gate
            puts outcomes(busy + more)""")
        self.assertEqual(told, ["refused"] + ["held"] * 4)


class Left(Case):
    """Threads that are killed, or left by Timeout.timeout."""

    LEAVE = {
        "killed": 'one = acquires("one"); leave = -> { one.kill }',
        "Error": 'one = Thread.new { Timeout.timeout(60) '
                 '{ CLIENT.lock("one", wait: 0).acquire } }; '
                 'leave = -> { one.raise(Timeout::Error, "it is time") }'}

    def each_way(self, play, *batches):
        """Plays it with how the thread "one" ends, the begin of a program, and a
        server which does that with its second batch and the next ones."""
        for way, begin in self.LEAVE.items():
            with self.subTest(way):
                self.gate.clear()
                self.second.clear()
                fake = self.held_up().on("BATCH", batch, *batches)
                play(way, f"""
                    busy = take_places
                    {begin}
                    wait_for(:@collected, 1)
                    """, fake)

    def setUp(self):
        super().setUp()
        self.second = threading.Event()
        self.addCleanup(self.second.set)

    def test_while_it_is_collected_it_is_taken_out(self):
        def play(way, begin, fake):
            told = self.play(fake, begin + """
                more = [acquires("a"), acquires("b")]
                wait_for(:@collected, 3)
                leave.call
                wait_for(:@collected, 2)
                open_gate
                puts outcomes([*busy, one, *more])""")
            self.assertEqual(told, ["held", "held", way, "held", "held"])
            self.assertEqual(self.sizes(fake), [1, 2])
            self.assertEqual(fake.of("DELETE"), [])
        self.each_way(play)

    def in_a_batch(self, ttl_ms, *actions):
        """It is left while its batch is under way. The others of the batch go on, and
        its lock is released."""
        def play(way, begin, fake):
            told = self.play(fake, begin + """
                more = %w[a b].map { |name| waits(name, 5) }
                wait_for(:@collected, 3)
                open_gate
                puts outcomes(busy)
                wait_for(:@taken, 1)
                leave.call
                sleep 0.1
                event("second")
                puts outcomes([one, *more])""", second=self.second.set)
            self.assertEqual(told, ["held", "held", way, "held", "held"])
            self.assertEqual(self.sizes(fake)[:2], [1, 3])
            wait_until(lambda: fake.of("DELETE"), "it is released")
            request, = [one for one in fake.of("POST")
                        if one.body["resource"] == "one"]
            self.assertEqual(request.body.get("ttl_ms"), ttl_ms)
            key, = [one["idempotency_key"] for one in fake.batches[1].body["operations"]
                    if one["resource"] == "one"]
            self.assertEqual(request.headers["idempotency-key"], key)
            self.assertEqual(len(fake.of("DELETE")), 1)
        self.each_way(play, *actions)

    def test_in_a_batch_what_it_was_granted_is_released(self):
        self.in_a_batch(None, gated(self.second, batch))

    def test_in_a_batch_without_a_response_its_key_is_sent_again(self):
        self.in_a_batch(100, gated(self.second, cut), cut)

    def test_in_a_batch_that_is_refused_nothing_was_granted(self):
        def play(way, begin, fake):
            told = self.play(fake, begin + """
                more = acquires("a")
                wait_for(:@collected, 2)
                open_gate
                puts outcomes(busy)
                wait_for(:@taken, 1)
                leave.call
                sleep 0.1
                event("second")
                puts outcomes([one, more])""", second=self.second.set)
            self.assertEqual(told, ["held", "held", way, "held"])
            self.assertEqual({one.body["resource"] for one in fake.of("POST")},
                             {"busy:0", "busy:1", "a"})
        self.each_way(play, gated(self.second, problem(404, "not_found")))

    def test_alone_it_closes_its_connection_and_its_place_is_free(self):
        """Also if it was collected before."""
        def play(way, begin, fake):
            fake.scripts["POST"].append(silent)

            def sent():
                wait_until(lambda: len(fake.of("POST")) > 2, "it is sent")
            told = self.play(fake, begin + """
                open_gate
                puts outcomes(busy)
                wait_for(:@taken, 1)
                event("sent")
                leave.call
                wait_for(:@taken, 0)
                puts outcomes([one, acquires("next")])""", sent=sent)
            self.assertEqual(told, ["held", "held", way, "held"])
            wait_until(lambda: fake.left, "the connection is closed")
        self.each_way(play)

    def test_in_a_thread_that_was_killed_it_is_given_back(self):
        """It acquires at its end, which Timeout.timeout ends, too."""
        fake = self.fake().on("POST", silent)
        self.play(fake, """
            one = Thread.new do
              sleep
            ensure
              Timeout.timeout(0.3) { CLIENT.lock("one", wait: 0).acquire }
            end
            sleep 0.01 until one.stop?
            one.kill
            one.join rescue nil""")
        self.assertEqual([one.body.get("ttl_ms") for one in fake.of("POST")], [None, 100])
        self.assertEqual(len(fake.of("DELETE")), 1)



class Killed(Case):
    def test_others_go_on_for_threads_of_the_package_that_are_killed(self):
        """As by a program that kills all threads but its own."""
        second = threading.Event()
        self.addCleanup(second.set)
        fake = self.held_up(ttl_ms=6000, validity_ms=6000, renew_after_ms=1000)
        fake.on("BATCH", batch, gated(second, batch))
        told = self.play(fake, """
            busy = take_places
            more = [waits("a", 5), waits("b", 5)]
            wait_for(:@collected, 2)
            open_gate
            locks = busy.map(&:value)
            event("sent")
            Thread.list.each { |one| one.kill if one.name.to_s.start_with?("redlockd") }
            locks += more.map(&:value)
            sleep 7
            puts locks.count(&:owned?)
            exit!(true)""", sent=lambda: wait_until(
                lambda: len(fake.batches) == 2, "the batch is under way"))
        self.assertEqual(told, ["4"])
        self.assertEqual(self.sizes(fake)[1], 2)


    def test_the_program_ends_while_its_threads_are_busy(self):
        fake = self.fake().on("BATCH", rest=late(0.05, batch))
        for _ in range(3):
            began = time.monotonic()
            self.play(fake, """
                Thread.report_on_exception = true
                24.times do |i|
                  Thread.new { loop { CLIENT.lock(i.to_s, ttl: 5) { sleep 0.001 } } }
                end
                sleep 0.5""")
            self.assertLess(time.monotonic() - began, 6)


class Forks(Case):
    def test_a_child_does_not_share_what_is_collected(self):
        fake = self.held_up()
        told = self.play(fake, """
            busy = take_places
            more = collect("a", "b")
            child = fork do
              lock = CLIENT.lock("child", wait: 0)
              lock.acquire
              lock.release
              puts "child"
            end
            Process.wait(child)
            puts $?.success?
            open_gate
            puts outcomes(busy + more)""")
        self.assertEqual(told, ["child", "true"] + ["held"] * 4)
        self.assertEqual(self.sizes(fake), [1, 2])
        sent = [one.body["resource"] for one in fake.of("POST")]
        self.assertEqual(sorted(sent), ["a", "b", "busy:0", "busy:1", "child"])


class Fibers(Case):
    """Under a fiber scheduler."""

    def test_fibers_of_one_thread_share_requests(self):
        fake = self.fake()
        told = self.play(fake, """
            require "fibers"
            tokens = []
            Thread.new do
              Fiber.set_scheduler(Loop.new)
              20.times do |i|
                Fiber.schedule do
                  3.times do
                    CLIENT.lock("#{i}", wait: 5) do |lock|
                      tokens << lock.fencing_token
                      sleep 0.001
                    end
                  end
                end
              end
            end.join
            puts tokens.uniq.size""")
        self.assertEqual(told, ["60"])
        self.assertGreater(max(self.sizes(fake)), 3)

    def test_a_place_that_no_fiber_can_take_is_free_again(self):
        """Both places are those of fibers which do not run, as their thread waits
        for a place, too."""
        fake = self.held_up()
        told = self.play(fake, """
            change(Redlockd::Dispatcher, :LATE_MS, 300)
            require "fibers"
            busy = take_places
            done = []
            acquire = lambda do |name|
              CLIENT.lock("a", wait: 0).acquire # each goes alone, as they clash
              done << name
            end
            thread = Thread.new do
              Fiber.set_scheduler(Loop.new)
              2.times { Fiber.schedule { acquire.call("fiber") } }
              Fiber.new(blocking: true) { acquire.call("blocking") }.resume
            end
            wait_for(:@collected, 3)
            open_gate
            puts outcomes(busy)
            thread.join
            puts done""")
        self.assertEqual(told, ["held", "held", "blocking", "fiber", "fiber"])


class Crowd(Faulty):
    """Many threads of one client, over real servers."""

    options = "--max-ttl-ms", "60000"

    def begin(self, *words):
        return spawn("ruby", "-W", "-I", ROOT / "api/clients/ruby/lib",
                     ROOT / "tests/ruby/crowd.rb", *words, stdout=subprocess.PIPE,
                     text=True, env={**os.environ, "REDLOCKD_URL": ",".join(self.urls)})

    def finish(self, process):
        lines, _ = process.communicate(timeout=100)
        counts = {name: int(count)
                  for name, count in map(str.split, lines.splitlines())}
        self.assertEqual(process.returncode, 0)
        return counts

    def requests(self):
        _, metrics = self.world.servers[0].get("/metrics")
        return int(re.search(rb"^redlockd_http_requests_accepted_total (\d+)", metrics,
                             re.M)[1])

    def test_64_threads_send_few_requests_and_lose_none(self):
        before = self.requests()
        counts = self.finish(self.begin(64, 64, 30_000, 3, "calm"))
        requests = self.requests() - before
        self.assertLess(requests, 2 * counts["done"] / 4, counts)
        self.assertEqual(counts, {"done": counts["done"], "killed": 0, "held": 0})

    def faults(self, break_server):
        """Locks of 20 s: those that nobody released are still held at the end."""
        began = time.monotonic()
        process = self.begin(32, 8, 20_000, 6)
        time.sleep(1.5)
        for _ in range(3):
            break_server()
            time.sleep(1)
        counts = self.finish(process)
        # nobody had to wait until a lock expired, unless its release was given up, as
        # on a machine that is too busy
        if not counts.pop("unreleased", 0):
            self.assertLess(time.monotonic() - began, 16, counts)
        self.assertGreater(counts["killed"], 50)
        self.assertGreater(counts["done"], 100)
        self.assertGreater(counts["Error"], 5)
        others = {name: count for name, count in counts.items()
                  if name not in ("killed", "done", "Error")}
        self.assertEqual(others, {"held": 0}, counts)

    def test_a_server_is_paused_under_batches(self):
        def pause():
            with stopped([self.world.servers[0].process]):
                time.sleep(1)
        self.faults(pause)

    def test_a_server_is_killed_under_batches(self):
        self.faults(lambda: end(self.world.servers[0].process))
