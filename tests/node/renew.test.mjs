// SPDX-License-Identifier: MIT
// A lock while it is held, and its end, against servers that fail.
import assert from "node:assert/strict";
import test from "node:test";

import { acquire, Client, LockLost, withLock } from "redlockd-client";
import { now } from "../node_modules/redlockd-client/src/clock.js";
import {
  afterRelease, cut, late, problem, silent, trickle, usual,
} from "./fake.mjs";
import {
  aborted, catchWarnings, endFakes, eventually, fake, rejection, sleep, warnings,
} from "./lib.mjs";

endFakes();
catchWarnings();

const GONE = problem(404, "lock_not_found");
const NO_QUORUM = problem(503, "no_quorum", { retry_after_ms: 10 });

function block(ms) {
  for (const until = performance.now() + ms; performance.now() < until;);
}

test("another replica extends while the first is silent", async () => {
  const one = await fake({ renew_after_ms: 10, validity_ms: 4000 });
  const two = await fake();
  one.always("PUT", silent);
  const lock = await acquire("a", { urls: [one.url, two.url] });
  await eventually(() => two.of("PUT").length, "the other extends");
  lock.check();
  await eventually(() => lock.remainingMs > 8000, "a new validity");
  await lock.release();
});

/** Holds a lock until it is lost; how long before its end that was. */
async function lose(server) {
  const began = now();
  const lock = await acquire("a", { urls: server.url });
  const { signal } = lock;
  const reason = await aborted(signal);
  const at = now();
  assert.ok(reason instanceof LockLost, String(reason));
  assert.equal(lock.remainingMs, 0);
  assert.throws(() => lock.check(), (error) => error === reason);
  assert.equal(await rejection(lock.release(), LockLost), reason);
  assert.equal(server.of("DELETE").length, 1); // some may be left
  return began + (server.fields.validity_ms ?? 29000) - at;
}

test("gone: it is lost at once", async () => {
  for (const action of [GONE, problem(409, "not_owner")]) {
    const server = await fake({ renew_after_ms: 20 });
    server.always("PUT", action);
    assert.ok(await lose(server) > 5000);
    assert.equal(server.of("PUT").length, 1);
  }
});

test("not extended: it is lost a tenth before its validity ends", async () => {
  for (const action of [NO_QUORUM, silent, trickle, cut]) {
    let early;
    // a busy machine may wake this process late, yet not each time
    for (let i = 0; i < 5 && !(early > 0); i++) {
      const server = await fake({ renew_after_ms: 20, validity_ms: 1000 });
      server.always("PUT", action);
      early = await lose(server);
      // not before: but for the time of the acquire, which it takes for less
      assert.ok(early <= 101, `${early} ms early`);
    }
    assert.ok(early > 0, `${-early} ms late`);
  }
});

test("a block that held up the loop is told by check(), and at its end",
  async () => {
    const server = await fake({ validity_ms: 200 });
    const lock = await acquire("a", { urls: server.url });
    block(200);
    assert.equal(lock.remainingMs, 0);
    assert.throws(() => lock.check(), LockLost);
    assert.equal(lock.signal.aborted, true); // check() has found it first
    await rejection(lock.release(), LockLost);
    await rejection(withLock("a", { urls: server.url }, () => block(200)), LockLost);
  });

test("no renewal, and no loss, after the release", async () => {
  const server = await fake({ renew_after_ms: 1 });
  server.always("PUT", afterRelease(GONE));
  const client = new Client({ urls: server.url });
  const lock = await client.acquire("a");
  await eventually(() => server.of("PUT").length, "an extend");
  await lock.release();
  await sleep(300); // for the answer to the extend
  assert.match(lock.signal.reason.message, /released/);
  const calm = await fake({ renew_after_ms: 100 });
  for (let i = 0; i < 5; i++) await withLock("a", { urls: calm.url }, () => {});
  await sleep(400);
  assert.equal(calm.of("PUT").length, 0);
});

// ---- the release -----------------------------------------------------------

test("Symbol.asyncDispose releases it", async () => {
  const server = await fake();
  const lock = await acquire("a", { urls: server.url });
  await lock[Symbol.asyncDispose]();
  assert.equal(server.of("DELETE").length, 1);
  await new Client({ urls: server.url })[Symbol.asyncDispose]();
});

// ---- withLock --------------------------------------------------------------

test("withLock resolves with what the work does, and releases", async () => {
  const server = await fake();
  const urls = server.url;
  assert.equal(await withLock("a", { urls }, async (lock) => {
    await sleep(1);
    lock.check();
    return 7;
  }), 7);
  assert.equal(await withLock("a", { urls }, () => 8), 8);
  for (const work of [async () => { throw new RangeError("x"); },
    () => { throw new RangeError("x"); }])
    await rejection(withLock("a", { urls }, work), RangeError);
  assert.equal(server.of("DELETE").length, 4);
});

test("withLock rejects with the loss, whichever way the work ends", async () => {
  const works = [
    (lock) => sleep(20000, undefined, { signal: lock.signal }), // AbortError
    (lock) => aborted(lock.signal), // it goes on
    async (lock) => { await aborted(lock.signal); lock.check(); },
    async (lock) => { throw await aborted(lock.signal); },
  ];
  for (const work of works) {
    const server = await fake({ renew_after_ms: 20 });
    server.always("PUT", GONE);
    const error = await rejection(withLock("a", { urls: server.url }, work),
      LockLost);
    assert.match(error.message, /the lock ended/);
    assert.equal(server.of("DELETE").length, 1);
  }
});

test("what the work throws goes first; the loss is a warning", async () => {
  const server = await fake({ renew_after_ms: 20 });
  server.always("PUT", GONE);
  await rejection(withLock("a", { urls: server.url }, async (lock) => {
    await aborted(lock.signal);
    throw new RangeError("mine");
  }), RangeError);
  await eventually(() => warnings.some((text) => /threw RangeError: mine/.test(text)),
    "the warning");
});

test("an AbortError of the work's own is no loss", async () => {
  const server = await fake();
  const error = await rejection(withLock("a", { urls: server.url }, () =>
    sleep(20000, undefined, { signal: AbortSignal.timeout(20) })), Error);
  assert.equal(error.name, "AbortError");
  assert.equal(server.of("DELETE").length, 1);
});

test("nested locks, and only the outer one lost", async () => {
  const outer = await fake({ validity_ms: 1000 });
  const inner = await fake();
  const error = await rejection(withLock("out", { urls: outer.url }, (out) =>
    withLock("in", { urls: inner.url }, () =>
      sleep(20000, undefined, { signal: out.signal }))), LockLost);
  assert.match(error.message, /^out: /);
  assert.equal(inner.of("DELETE").length, 1);
});

test("an answer that trickles in does not keep the release for ever", async () => {
  const server = await fake();
  server.on("DELETE", trickle, usual);
  const client = new Client({ urls: server.url, timeoutMs: 200 });
  await client.withLock("a", () => {});
  assert.equal(server.of("DELETE").length, 2);
});

// ---- downgrades -------------------------------------------------------------

test("a downgrade that finds the lock lost aborts its signal", async () => {
  for (const gone of [GONE, problem(409, "not_owner")]) {
    const server = await fake();
    server.on("PUT", gone);
    const lock = await acquire("a", { urls: server.url });
    const error = await rejection(lock.downgrade(), LockLost);
    assert.equal(await aborted(lock.signal), error);
    assert.equal(await rejection(lock.release(), LockLost), error);
  }
  const server = await fake({ validity_ms: 600 });
  server.always("PUT", NO_QUORUM);
  const lock = await acquire("a", { urls: server.url });
  await rejection(lock.downgrade(), LockLost);
  await rejection(lock.release(), LockLost);
});

test("downgrades while it is renewed", async () => {
  const server = await fake({ renew_after_ms: 1 });
  for (let i = 0; i < 20; i++) {
    const lock = await acquire("a", { urls: server.url });
    await eventually(() => server.of("PUT").length, "a renewal");
    await lock.downgrade();
    assert.match(lock.token, /~/);
    await sleep(10);
    assert.equal(lock.signal.aborted, false);
    assert.match(lock.token, /~/);
    await lock.release();
  }
});
