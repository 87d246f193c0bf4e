# SPDX-License-Identifier: MIT
"""What a client of redlockd goes through; each story takes a Stage."""
import pathlib

from cut import AnswerLost
from gate import RETRY_MS, TOKEN, Gate
from program import now_ms
from stage import RENEWAL_MS, TTL_MS
from waiting import wait_until
from world import MAX_TTL_MS

LONG_MS = 2 * TTL_MS  # work that needs renewals


def story_plain(stage):
    """acquire, renew, release"""
    program = stage.start(work_ms=LONG_MS)
    program.completes()
    assert len(program.fences()) == 1
    assert stage.is_free(), "it did not release the lock"


def story_contended(stage):
    """wait for another holder; give up when the time is up"""
    stage.steal()
    impatient = stage.start(wait_ms=300)
    assert impatient.result() != 0, "it says that it got a lock that was held"
    assert not impatient.stamps_ms(), "it worked without the lock"
    stage.vacate("r", stage.nodes)
    stage.rival_acquires()
    program = stage.start(wait_ms=10000, work_ms=200)
    stage.wait_for_waiter()
    assert not program.stamps_ms(), "it worked before it had the lock"
    released_ms = now_ms()
    stage.rival_releases()
    program.completes()
    assert program.stamps_ms()[0] >= released_ms
    assert min(program.fences()) > stage.grant["fencing_token"]


def story_node_paused(stage):
    """one node is paused all the time"""
    stage.nodes[0].pause()
    program = stage.start(work_ms=LONG_MS)
    program.completes()
    stage.nodes[0].resume()


def story_replica_killed(stage):
    """the first replica is killed while the lock is held"""
    program = stage.start(work_ms=LONG_MS)
    program.has_worked()
    stage.kill_server(0)
    program.completes()
    assert stage.is_free(), "it did not release at the other replica"


def story_replica_stopped(stage):
    """the first replica hangs while the lock is held"""
    # it takes a part of the TTL, and a busy machine another one
    program = stage.start(work_ms=LONG_MS, ttl_ms=MAX_TTL_MS)
    program.has_worked()
    stage.stop_server(0)
    program.completes()
    assert stage.is_free(), "it did not release at the other replica"


def story_no_quorum(stage):
    """the first replica answers 503, the second acquires"""
    lonely = stage.start_lonely_server()
    program = stage.start(wait_ms=500, work_ms=200,
                          urls=[f"http://{lonely.address}", stage.urls[0]])
    program.completes()


def story_lost(stage):
    """the lock is lost to another client: work ends at the next renewal"""
    program = stage.start()
    program.has_worked()
    stage.wait_for_renewal()
    stolen_ms = stage.steal()
    program.loses()
    # it would stand for TTL_MS yet, had nobody asked
    program.quiet_after(stolen_ms + RENEWAL_MS * 2, "after the loss")
    assert stage.holders("r") == 5, "it deleted the other client's lock"


def story_all_dead(stage):
    """no replica answers any more: work ends before the lock does"""
    stage.rival_acquires()
    program = stage.start()
    stage.wait_for_waiter()
    stage.sleep_ms(1500)  # a client that counts this wait wrongly is found out
    stage.rival_releases()
    program.has_worked()
    stage.kill_server(0)
    stage.stop_server(1)
    expiry_ms = stage.expiry_ms()
    program.loses()
    program.quiet_after(expiry_ms, "after the lock had ended")


def story_asleep(stage):
    """the client sleeps past the end of its lock: no step after that"""
    program = stage.start()
    program.has_worked()
    program.pause()
    wait_until(stage.is_free, "the lock expires", 10)
    woken_ms = stage.steal()
    program.resume()
    program.loses()
    program.quiet_after(woken_ms, "after it woke up")
    assert stage.holders("r") == 5, "it released the other client's lock"


def story_answer_lost(stage):
    """the answer to the acquire is lost: a repeat gets the lock back"""
    with AnswerLost(stage.servers[0].address) as proxy:
        program = stage.start(wait_ms=1000, work_ms=200,
                              urls=[f"http://{proxy.address}", stage.urls[1]])
        program.completes()
        assert proxy.lost == 1


def story_known(stage):
    """a token with each request; a refusal of one who asks too often"""
    with Gate(stage.servers[0].address) as gate:
        stranger = stage.start(urls=[gate.url], REDLOCKD_AUTH_TOKEN="wrong")
        assert stranger.result() != 0, "it works without being known"
        assert not stranger.stamps_ms(), "it worked without the lock"
        assert gate.unknown <= 2, "it asks again and again"
        gate.moments.clear()
        gate.unknown = 0
        # a renewal is refused once: time is left for another on a busy machine
        program = stage.start(work_ms=LONG_MS, ttl_ms=MAX_TTL_MS,
                              urls=[gate.url], REDLOCKD_AUTH_TOKEN=TOKEN)
        program.completes()
        assert gate.unknown == 0, "it does not send the token each time"
        assert stage.is_free(), "it did not release the lock"
        assert gate.paused_ms() >= RETRY_MS, \
            f"it came back after {gate.paused_ms():.0f} ms"


def story_refused(stage):
    """the service refuses the request: it says why, and asks no more"""
    program = stage.start(ttl_ms=10 * MAX_TTL_MS, wait_ms=60000)
    assert program.result() != 0, "it says that it got what was refused"
    said = "\n".join(program.lines)
    assert "400" in said and "ttl_ms is" in said, \
        f"it hides why it was refused: {program.tail()}"
    assert "timeout" not in said.lower(), \
        f"it blames the time: {program.tail()}"


def story_quoted(stage):
    """a name with all that JSON, URLs, shells and databases quote"""
    name = "it's \"a\\b\" {c,d} [e]: $f %41 a%2Fb ü $(id) `id` '; DROP TABLE x"
    program = stage.start(work_ms=LONG_MS, resource=name)
    program.has_worked()
    assert stage.holders(name) >= 3, "it locked something else"
    program.completes()
    assert len(program.fences()) == 1
    assert stage.holders(name) == 0, "it did not release the lock"


def story_imported(stage):
    """a program of somebody else imports it: it does nothing of its own"""
    program = stage.start(command=stage.imports())
    assert program.result() == 0, f"it fails: {program.tail()}"
    assert not program.lines, f"it says {program.tail()}"
    assert stage.is_free(), "it took a lock"


# what the programs below share: the lock is asked for as their arguments say,
# and work(lock) goes on under it
PROGRAM = {
    "python3": """
import os, sys, threading, time
urls, (ttl_ms, wait_ms, work_ms) = os.environ["URLS"].split(), map(int, sys.argv[2:])
def lock_of(name, **more):
    return example["Lock"](urls, name, ttl_ms, wait_ms, **more)
def work(lock):
    for _ in range(work_ms // 50):
        time.sleep(0.05)
        lock.check()
        print("working", time.time_ns() // 10**6, lock.fence, *(lock.slots or ()), flush=True)
""",
}
# programs that hold the lock in another thread than the main one, which holds
# the lock "beside" meanwhile; when they lose one of them, they say "lock lost"
ASIDE = {
    "python3": """
def work_aside():
    try:
        with lock_of(sys.argv[1]) as lock:
            work(lock)
    except example["LockLost"]:
        print("lock lost", flush=True)
with lock_of("beside") as beside:
    thread = threading.Thread(target=work_aside)
    thread.start()
    thread.join()
    beside.check()
print("all well", flush=True)
""",
}


def uses(stage, programs):
    """The command of the one in the example's language; if there is none, that
    of the example."""
    tool = pathlib.Path(stage.command[0]).name
    if tool not in programs:
        return stage.command
    return stage.imports(PROGRAM.get(tool, "") + programs[tool])


def start_aside(stage):
    program = stage.start(work_ms=LONG_MS, command=uses(stage, ASIDE))
    program.has_worked()
    assert stage.holders("beside") >= 3, "the main thread has no lock"
    return program


def story_aside(stage):
    """another thread than the main one uses it, beside a second lock"""
    program = start_aside(stage)
    program.completes()
    assert "all well" in program.lines, program.tail()
    assert stage.is_free(), "it keeps a lock that nobody uses"
    assert stage.holders("beside") == 0, "it keeps the lock beside"


def story_aside_lost(stage):
    """that thread loses its lock: its work ends, and the other lock stays"""
    program = start_aside(stage)
    stage.wait_for_renewal()
    stolen_ms = stage.steal()
    program.completes()
    program.quiet_after(stolen_ms + RENEWAL_MS * 2, "after the loss")
    assert {"lock lost", "all well"} <= set(program.lines), program.tail()
    assert stage.holders("beside") == 0, "it keeps the lock beside"


# programs that hold the lock within another one, "beside"
NESTED = {
    "python3": """
with lock_of("beside"):
    with lock_of(sys.argv[1]) as lock:
        work(lock)
""",
}
# work for lock.sh that no signal but KILL ends
STUBBORN = ("bash", "-c", """
trap "" TERM
while sleep 0.05; do echo "working $((${EPOCHREALTIME/./} / 1000)) $FENCE"; done
""")


def lose_outer(stage, command):
    program = stage.start(command=command)
    program.has_worked()
    stolen_ms = stage.steal("beside")
    program.loses()
    program.quiet_after(stolen_ms + RENEWAL_MS * 2, "after the loss")
    wait_until(stage.is_free, "the inner lock is released, or ends", 10)
    assert stage.holders("beside") == 5, "it deleted the other client's lock"


def story_nested(stage):
    """two locks, one within the other: when the outer one is lost, work ends"""
    if uses(stage, NESTED) != stage.command:
        lose_outer(stage, uses(stage, NESTED))
        return
    *lock, place, tool, work = stage.command
    outer = (*lock, "beside", TTL_MS, 5000)
    lose_outer(stage, (*outer, *lock, place, tool, work))
    stage.vacate("beside", stage.nodes)
    lose_outer(stage, (*outer, *lock, place, *STUBBORN))


# programs that ask for more than the example does when it is run
PERMITS = {
    "python3": """
with lock_of(sys.argv[1], limit=2) as lock:
    work(lock)
""",
}
READERS = {
    "python3": """
with lock_of(sys.argv[1], mode="shared") as lock:
    work(lock)
""",
}


def story_permits(stage):
    """a pool of two: each has a slot, which it renews; a third one waits"""
    def start(work_ms):
        # three at a time: a busy machine needs time to renew them
        return stage.start(wait_ms=20000, work_ms=work_ms, ttl_ms=MAX_TTL_MS,
                           resource="pool", LIMIT="2",
                           command=uses(stage, PERMITS))
    holders = start(LONG_MS), start(LONG_MS)
    for program in holders:
        program.has_worked()
    third = start(200)
    for program in (*holders, third):
        program.completes()
    slots = [program.slots() for program in (*holders, third)]
    assert slots[0] | slots[1] == {0, 1} and slots[2] < {0, 1}, slots
    assert third.stamps_ms()[0] > min(program.stamps_ms()[-1]
                                      for program in holders), "three at once"
    assert not any(stage.holders(f"pool\x1f{slot}") for slot in range(2))


def story_readers(stage):
    """two readers at once, which renew; a writer waits for both"""
    def start():
        return stage.start(wait_ms=20000, work_ms=LONG_MS, ttl_ms=MAX_TTL_MS,
                           MODE="shared", command=uses(stage, READERS))
    readers = start(), start()
    for program in readers:
        program.has_worked()
    writer = stage.start(wait_ms=20000, work_ms=200)
    for program in (*readers, writer):
        program.completes()
    first, second = (program.stamps_ms() for program in readers)
    assert first[0] < second[-1] and second[0] < first[-1], "one by one"
    assert writer.stamps_ms()[0] > max(first[-1], second[-1]), \
        "it wrote while somebody read"
    assert min(writer.fences()) > max(*readers[0].fences(),
                                      *readers[1].fences())
    assert stage.is_free(), "it did not release the lock"


# these are told of some languages only
story_permits.languages = {"shell", "requests"}
story_readers.languages = {"shell", "requests"}
story_imported.languages = {"requests"}
story_aside.languages = story_aside_lost.languages = {"requests"}
story_nested.languages = story_aside.languages | {"shell"}
