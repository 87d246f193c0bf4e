// SPDX-License-Identifier: MIT
// One of several processes leads, and counts the seconds of its term. When it
// ends or loses its lock, another one leads.  node leader.mjs NAME
import { setTimeout as sleep } from "node:timers/promises";
import { LockLost, withLock } from "redlockd-client";

const ttlMs = 1000 * (process.env.LOCK_TTL_S ?? 10);
const store = process.env.STORE ?? "http://127.0.0.1:8090";
const owner = process.argv[2] ?? "127.0.0.1:9000";
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());

async function lead(lock) {
  const signal = AbortSignal.any([lock.signal, stop.signal]);
  console.log("leads, with fencing token", lock.fencingToken);
  for (let second = 1; ; second++) {
    lock.check(); // throws LockLost
    const answer = await fetch(`${store}/leader/${second % 10}`, {
      method: "PUT", body: owner, signal, headers: { "X-Fencing-Token": lock.fencingToken },
    });
    if (!answer.ok) throw new Error(`the store says ${answer.status}`);
    await sleep(1000, undefined, { signal });
  }
}

while (!stop.signal.aborted) {
  try {
    // without waitMs, it waits without a limit
    await withLock("leader", { ttlMs, owner, signal: stop.signal }, lead);
  } catch (error) {
    if (stop.signal.aborted) break; // withLock has released the lock
    console.log(error instanceof LockLost ? "leads no more:" : "failed:", error.message);
    await sleep(1000, undefined, { signal: stop.signal }).catch(() => {});
  }
}
