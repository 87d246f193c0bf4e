# SPDX-License-Identifier: MIT
"""Works while it holds a lock, and tells when it did: see tests/go/user/holder.

  holder.py RESOURCE TTL_MS [cancel MS]; the URLs are in REDLOCKD_URL
"""
import signal
import sys
import threading
import time

from redlockd import Client, Lock, LockLost, RedlockdError

output = threading.Lock()
told = threading.Event()  # to end


def say(what, at, *more):
    with output:
        print(what, at, *more, flush=True)


def work(what, lock, may_go_on):
    while True:
        # before the question: however long the process is stopped in between, a
        # late moment is not told
        at = time.monotonic_ns()
        if told.is_set() or lock.lost.is_set() or not may_go_on():
            return
        say(what, at)
        time.sleep(0.002)


def is_ours(lock):
    try:
        lock.check()
    except LockLost:
        return False
    return True


def hold(lock):
    works = [threading.Thread(target=work, args=row) for row in (
        ("step", lock, lambda: is_ours(lock)), ("ctx", lock, lambda: True))]
    for one in works:
        one.start()
    threading.Thread(target=lambda: (sys.stdin.read(), told.set()),
                     daemon=True).start()
    for one in works:
        one.join()
    say("lost", time.monotonic_ns(), str(lock.lost.is_set()).lower(),
        lock._held.loss)
    ended = "<nil>"
    try:
        lock.release()
    except LockLost as loss:
        ended = loss
    say("released", time.monotonic_ns(), ended)


def main():
    resource, ttl_ms, *cancel = sys.argv[1:]
    if cancel:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, int(cancel[1]) / 1000)
    try:
        lock = Lock(resource, ttl=int(ttl_ms) / 1000, owner="holder",
                    client=Client(timeout=1))
        lock.acquire()
    except (RedlockdError, KeyboardInterrupt) as error:
        say("not", time.monotonic_ns(), repr(error))
        return
    say("held", time.monotonic_ns(), lock.fencing_token)
    hold(lock)


main()
