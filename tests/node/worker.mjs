// Works under a lock for faults.py: writes down the time by the monotonic clock,
// again and again, into a file.
//   worker.mjs HOW RESOURCE FILE TTL_MS; the URLs are in REDLOCKD_URL
import { openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

import { acquire, LockLost, withLock } from "redlockd-client";

const [how, resource, file, ttlMs] = process.argv.slice(2);
const out = openSync(file, "w");
const options = { ttlMs: Number(ttlMs), waitMs: 20000 };

// The moment is read before the question whether the lock is ours, and written
// after it: however long this process is stopped in between, a late moment is
// not written.
const WORK = {
  async checks(lock) {
    for (;;) {
      const at = process.hrtime.bigint();
      lock.check();
      record(at);
      await sleep(1);
    }
  },
  async listens({ signal }) {
    while (!signal.aborted) {
      const at = process.hrtime.bigint();
      record(at);
      await sleep(1);
    }
    throw signal.reason;
  },
  /** Holds up its event loop, so that no timer runs, when told by a signal. */
  async blocks(lock) {
    let isTold = false;
    process.once("SIGUSR2", () => { isTold = true; });
    for (;;) {
      if (isTold)
        for (const until = performance.now() + 2 * ttlMs; performance.now() < until;);
      const at = process.hrtime.bigint();
      lock.check();
      record(at);
      await sleep(1);
    }
  },
};

function record(at) {
  writeSync(out, String(at).padStart(20), 0);
}

function tell(lock) {
  console.log(JSON.stringify({ token: lock.token, number: lock.fencingToken }));
}

try {
  if (how === "listens")
    await withLock(resource, options, (lock) => (tell(lock), WORK[how](lock)));
  else {
    const lock = await acquire(resource, options);
    tell(lock);
    await WORK[how](lock);
  }
} catch (error) {
  console.error(error);
  process.exit(error instanceof LockLost ? 70 : 1);
}
