// SPDX-License-Identifier: MIT
// Works while it holds a lock, and tells when it did: see tests/go/user/holder.
//   holder.mjs RESOURCE TTL_MS [cancel MS]; the URLs are in REDLOCKD_URL
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

import { Client } from "redlockd-client";

const [resource, ttlMs, , cancelMs] = process.argv.slice(2);
const client = new Client({ timeoutMs: 1000 });
let isTold = false; // to end

function now() {
  return process.hrtime.bigint();
}

function say(what, at, ...more) {
  writeSync(1, `${[what, at, ...more].join(" ")}\n`);
}

async function work(what, { signal }, mayGoOn) {
  while (true) {
    // before the question: however long the process is stopped in between, a
    // late moment is not told
    const at = now();
    if (isTold || signal.aborted || !mayGoOn()) return;
    say(what, at);
    await sleep(2);
  }
}

function isOurs(lock) {
  try {
    lock.check();
    return true;
  } catch {
    return false;
  }
}

async function hold(lock) {
  process.stdin.on("end", () => { isTold = true; }).resume();
  await Promise.all([work("step", lock, () => isOurs(lock)),
    work("ctx", lock, () => true)]);
  say("lost", now(), lock.signal.aborted, lock.signal.reason?.message);
  const ended = await lock.release().then(() => "<nil>", (error) => error.message);
  say("released", now(), ended);
}

const options = { ttlMs: Number(ttlMs), owner: "holder",
  ...(cancelMs && { signal: AbortSignal.timeout(Number(cancelMs)) }) };
try {
  const lock = await client.acquire(resource, options);
  say("held", now(), lock.fencingToken);
  await hold(lock);
  process.stdin.destroy();
} catch (error) {
  await client.close(); // what was granted is released
  say("not", now(), error.message);
}
