# SPDX-License-Identifier: MIT
"""Ships the orders that are not shipped yet. Start as many workers as you like, on
any machines; SIGTERM ends a worker when it has finished its order."""
import os
import signal
import threading

import httpx
from redlockd import Client, Lock, LockHeld, LockLost, Unavailable

TTL_S = float(os.environ.get("LOCK_TTL_S", 10))
STATES = ["new", "picked", "packed", "shipped"]
store = httpx.Client(base_url=os.environ.get("STORE", "http://127.0.0.1:8090"))
stop = threading.Event()


def work(order: str, lock: Lock) -> None:
    path = f"/orders/{order}"
    # the list may be stale: another worker may have shipped the order meanwhile
    state = store.get(path).raise_for_status().text
    for state in STATES[STATES.index(state) + 1 :]:
        lock.check()  # raises LockLost
        headers = {"X-Fencing-Token": str(lock.fencing_token)}
        store.put(path, content=state, headers=headers).raise_for_status()
        print(order, state, flush=True)


def try_order(order: str, locks: Client) -> None:
    try:
        with Lock(f"order:{order}", ttl=TTL_S, wait=0, client=locks) as lock:
            work(order, lock)
    except LockHeld:
        pass  # another worker has the order: try the next one
    except (LockLost, httpx.HTTPError) as error:
        # the order stays in the list: the next holder of its lock continues
        print(order, "given up:", repr(error), flush=True)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with Client() as locks:
        while not stop.is_set():
            try:
                for line in store.get("/orders/").raise_for_status().text.splitlines():
                    order, state = line.split()
                    if state != STATES[-1] and not stop.is_set():
                        try_order(order, locks)
            except (Unavailable, httpx.HTTPError) as error:
                print("store or lock service failed:", repr(error), flush=True)
            stop.wait(1)


if __name__ == "__main__":
    main()
