// Shared locks, and exclusive ones that become shared, against servers that fail.
import assert from "node:assert/strict";
import test from "node:test";

import { acquire, LockHeld, LockLost, RequestRefused } from "redlockd-client";
import { grant, late, problem } from "./fake.mjs";
import {
  aborted, catchWarnings, endFakes, eventually, fake, rejection, sleep,
} from "./lib.mjs";

endFakes();
catchWarnings();

const GONE = problem(404, "lock_not_found");
const NO_QUORUM = problem(503, "no_quorum", { retry_after_ms: 10 });
const NOT_OWNER = problem(409, "not_owner");
const UNKNOWN_FIELD = problem(400, "invalid_request");

test("the mode is sent", async () => {
  const server = await fake({ renew_after_ms: 10 });
  const lock = await acquire(["a", "b"], { shared: true, urls: server.url });
  assert.equal(lock.shared, true);
  await eventually(() => server.of("PUT").length >= 2, "renewals");
  await lock.downgrade(); // it is shared already
  await lock.release();
  assert.equal(server.of("POST")[0].body.mode, "shared");
  await (await acquire("a", { urls: server.url })).release();
  assert.ok(!("mode" in server.of("POST")[1].body));
});

test("readers are told", async () => {
  const server = await fake();
  for (const [readers, text] of [[1, /by a reader/], [2, /by 2 readers/]]) {
    server.on("POST", problem(409, "lock_held", {
      held_by: { mode: "shared", readers, remaining_ms: 1500 } }));
    const error = await rejection(
      acquire("a", { waitMs: 0, urls: server.url }), LockHeld);
    assert.match(error.message, text);
    assert.deepEqual([error.readers, error.owner], [readers, undefined]);
  }
});

test("after a downgrade, the new token is used", async () => {
  const server = await fake({ ttl_ms: 1234, renew_after_ms: 100 });
  const lock = await acquire("a", { urls: server.url });
  const exclusive = lock.token;
  await lock.downgrade();
  const shared = lock.token;
  assert.equal(lock.shared, true);
  assert.notEqual(shared, exclusive);
  const begun = server.of("PUT").length;
  await eventually(() => server.of("PUT").length > begun, "a renewal");
  await lock.release();
  const [one, renewal] = server.of("PUT").slice(-2);
  assert.deepEqual(one.body, { ttl_ms: 1234, mode: "shared" });
  assert.equal(renewal.headers["x-lock-token"], shared);
  assert.equal(server.of("DELETE")[0].headers["x-lock-token"], shared);
});

/** The renewal is answered after the downgrade; what is asked later. */
async function downgradeBesideRenewal(answer) {
  const server = await fake({ renew_after_ms: 10 });
  const long = grant({ renew_after_ms: 60000, validity_ms: 90000 });
  server.always("PUT", long, late(500, answer));
  const lock = await acquire("a", { urls: server.url });
  await eventually(() => server.of("PUT").length, "a renewal");
  const exclusive = lock.token;
  await lock.downgrade();
  const shared = lock.token;
  assert.notEqual(shared, exclusive);
  assert.equal(server.of("PUT").length, 2);
  await sleep(1000);
  assert.equal(lock.signal.aborted, false);
  assert.equal(lock.token, shared);
  assert.ok(lock.remainingMs > 60000);
  await lock.release();
  const [first, second, ...more] = server.of("PUT");
  assert.equal(first.headers["x-lock-token"], exclusive);
  assert.ok(!("mode" in first.body));
  assert.equal(second.body.mode, "shared");
  assert.equal(server.of("DELETE")[0].headers["x-lock-token"], shared);
  return more;
}

test("a renewal that finds another token loses nothing", async () => {
  const [again] = await downgradeBesideRenewal(NOT_OWNER);
  assert.equal(again.body.mode, "shared");
  assert.match(again.headers["x-lock-token"], /~/);
});

test("a renewal that is answered late keeps the new token", async () => {
  assert.deepEqual(await downgradeBesideRenewal(grant({
    token: "1795221641865000.0123456789abcdef", validity_ms: 5000,
    renew_after_ms: 60000 })), []);
});

test("the new token is a renewal's if its answer is first", async () => {
  const server = await fake({ renew_after_ms: 100 });
  server.on("PUT", late(1000, grant({ validity_ms: 5000 })),
    grant({ renew_after_ms: 60000, validity_ms: 90000 }));
  const lock = await acquire("a", { urls: server.url });
  await lock.downgrade();
  assert.equal(server.of("PUT").length, 2);
  assert.ok(lock.remainingMs > 60000);
  await lock.release();
  for (const put of server.of("PUT")) assert.equal(put.body.mode, "shared");
});

test("a downgrade that finds the lock lost aborts its signal", async () => {
  for (const gone of [GONE, NOT_OWNER]) {
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

test("what servers refuse leaves the lock as it is", async () => {
  const server = await fake();
  server.on("PUT", problem(409, "max_hold_reached", { detail: "the detail" }));
  const lock = await acquire("a", { urls: server.url });
  const error = await rejection(lock.downgrade(), RequestRefused);
  assert.deepEqual([error.code, lock.shared], ["max_hold_reached", false]);
  assert.match(error.message, /409 the detail/); // names option and remedy
  lock.check();
  await lock.release();
  const [one, two] = [await fake({ renew_after_ms: 1500 }), await fake()];
  for (const other of [one, two]) other.on("PUT", UNKNOWN_FIELD);
  const old = await acquire("a", { urls: [one.url, two.url] });
  await rejection(old.downgrade(), RequestRefused);
  assert.equal(old.shared, false);
  const puts = () => [...one.of("PUT"), ...two.of("PUT")];
  await eventually(() => puts().length > 2, "a renewal");
  assert.equal(puts().filter((put) => !put.body.mode).length >= 1, true);
  old.check();
  await old.release();
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
