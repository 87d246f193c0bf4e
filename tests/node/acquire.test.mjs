// SPDX-License-Identifier: MIT
// acquire() against servers that fail.
import assert from "node:assert/strict";
import test from "node:test";
import { inspect } from "node:util";

import {
  AbortError, acquire, Client, LockHeld, LockLost, RequestRefused, Unavailable,
  withLock,
} from "redlockd-client";
import {
  grant, late, lost, page, problem, silent, usual,
} from "./fake.mjs";
import {
  catchWarnings, endFakes, eventually, fake, rejection, sleep, warnings, withEnv,
} from "./lib.mjs";

endFakes();
catchWarnings();

const NO_QUORUM = problem(503, "no_quorum", { retry_after_ms: 10 });

test("what is sent and what is told", async () => {
  const server = await fake();
  const lock = await acquire("order:42", {
    ttlMs: 30000, waitMs: 5000, owner: "web-3", urls: server.url });
  assert.ok(lock.fencingToken > 1795221641864999);
  assert.ok(lock.remainingMs > 20000);
  assert.equal(lock.id, "an~id");
  assert.deepEqual([lock.slots, lock.slot, lock.shared], [[], undefined, false]);
  const { token } = lock;
  lock.check();
  await lock.release();
  const [post, remove] = server.requests;
  const { wait_ms: waitMs, ...body } = post.body;
  assert.ok(waitMs > 4000 && waitMs <= 5000, String(waitMs));
  assert.deepEqual(body, { resource: "order:42", ttl_ms: 30000, owner: "web-3" });
  assert.deepEqual([post.method, post.path], ["POST", "/locks"]);
  assert.deepEqual([remove.method, remove.path], ["DELETE", "/locks/an~id"]);
  assert.equal(remove.headers["x-lock-token"], token);
});

test("mistaken arguments are told before anything is asked", async () => {
  const server = await fake();
  const urls = server.url;
  const client = new Client({ urls });
  for (const [resources, options] of [
    [[], {}], [7, {}], [undefined, {}], [["a", 7], {}],
    [["a", "b"], { limit: 2 }], ["a", { permits: 2 }],
    ["a", { limit: 2, shared: true }], ["a", { ttl: 30 }],
    ["a", { ttlMs: "30" }], ["a", { waitMs: NaN }], ["a", { waitMs: -1 }],
    ["a", { client, urls }], ["a", { client: {} }], ["a", null]]) {
    await rejection(acquire(resources, options && { urls, ...options }), TypeError);
    await rejection(withLock(resources, options && { urls, ...options },
      () => assert.fail()), TypeError);
  }
  await rejection(withLock("a", { urls }), TypeError);
  for (const bad of ["", [], "localhost:8080", ["ftp://a"], "http://"])
    assert.throws(() => new Client({ urls: bad }), TypeError);
  assert.throws(() => new Client({ url: "http://a" }), /unknown option: url/);
  assert.throws(() => new Client({ timeoutMs: 0 }), TypeError);
  assert.throws(() => client.get([]), TypeError);
  assert.equal(server.requests.length, 0);
});

test("who holds it is told", async () => {
  for (const [options, held, text] of [[{}, { owner: "web-3" }, /by web-3$/],
    [{}, { readers: 1 }, /by a reader$/], [{}, { readers: 2 }, /by 2 readers$/],
    [{ limit: 3 }, {}, /too few of 3 permits/]]) {
    const { url } = (await fake()).on("POST",
      problem(409, "lock_held", { held_by: held }));
    const { message } = await rejection(
      acquire("a", { waitMs: 0, urls: url, ...options }), LockHeld);
    assert.match(message, text);
  }
});

test("the answer may come as late as the wait ends", async () => {
  const server = await fake();
  server.on("POST", late(1500, usual));
  const client = new Client({ urls: server.url, timeoutMs: 1000 });
  await client.withLock("a", { waitMs: 30000 }, () => {});
  assert.equal(server.of("POST").length, 1);
});

test("a server that hangs holds up who asked it first, and nobody else",
  async () => {
    const [one, two] = [await fake(), await fake()];
    const client = new Client({ urls: [one.url, two.url] });
    await client.withLock("a", () => {});
    one.always("POST", silent).always("GET", silent);
    const first = client.acquire("first", { waitMs: 0 });
    await sleep(700);
    for (let i = 0; i < 5; i++) {
      const began = performance.now();
      await client.withLock("a", { waitMs: 0 }, () => {});
      assert.ok(performance.now() - began < 2000);
      await sleep(400); // the probe hangs, too
    }
    assert.ok(one.of("GET").length >= 1, "it was probed");
    assert.equal(one.of("POST").length, 2);
    await (await first).release();
    // when it is back, a probe finds out, and no lock
    one.always("POST", usual).always("GET", page(200, "{}"));
    await eventually(async () => {
      await client.withLock("a", { waitMs: 0 }, () => {});
      await sleep(100);
      return one.of("POST").length > 2;
    }, "it is asked again");
    assert.ok(one.of("GET").every((got) => got.path === "/readyz"));
  });

test("an abort while it waits closes the connection, leaves nothing", async () => {
  const server = await fake();
  server.on("POST", silent, problem(409, "lock_held"));
  const controller = new AbortController();
  const client = new Client({ urls: server.url });
  const waiting = client.acquire("a", { signal: controller.signal });
  await eventually(() => server.requests.length, "the request");
  const reason = new Error("enough");
  controller.abort(reason);
  const error = await rejection(waiting, AbortError);
  assert.deepEqual([error.name, error.code, error.message, error.cause],
    ["AbortError", "ABORT_ERR", "a: aborted", reason]);
  await eventually(() => server.left.length, "the connection is closed");
  await client.close();
  assert.equal(server.of("DELETE").length, 0);
});

test("an abort as the grant comes: what was granted is released", async () => {
  for (const isOwn of [true, false]) {
    const server = await fake();
    let token;
    const controller = new AbortController();
    server.on("POST", (answer, request, it) => {
      controller.abort(); // granted, and the answer is lost
      lost(answer, request, it);
    }, (answer, request, it) => {
      const body = it.grant(request);
      token = body.token;
      page(200, JSON.stringify(body))(answer);
    });
    const how = isOwn ? { urls: server.url }
      : { client: new Client({ urls: server.url }) };
    const error = await rejection(
      acquire("a", { ...how, signal: controller.signal }), Error);
    assert.equal(error.name, "AbortError");
    await eventually(() => server.of("DELETE").length, "the release");
    const [first, again] = server.of("POST");
    assert.equal(first.headers["idempotency-key"],
      again.headers["idempotency-key"]);
    assert.equal(server.of("DELETE")[0].headers["x-lock-token"], token);
    assert.equal(server.of("PUT").length, 0);
  }
});

test("an abort while nothing is asked asks nothing more", async () => {
  const server = await fake();
  server.always("POST", problem(409, "lock_held", { retry_after_ms: 60000 }));
  const controller = new AbortController();
  const waiting = acquire("a", { urls: server.url, signal: controller.signal });
  await eventually(() => server.requests.length, "the request");
  await sleep(100); // for the answer
  controller.abort();
  await rejection(waiting, AbortError);
  await rejection(acquire("a", { urls: server.url, signal: controller.signal }),
    AbortError); // aborted before
  const text = await rejection(new Client({ urls: server.url }).get("a", {
    signal: AbortSignal.abort("no error at all") }), AbortError);
  assert.equal(text.cause, "no error at all");
  await sleep(100);
  assert.equal(server.requests.length, 1);
});

test("an abort after the grant leaves the lock alone", async () => {
  const server = await fake();
  const controller = new AbortController();
  const lock = await acquire("a", { urls: server.url, signal: controller.signal });
  controller.abort();
  await sleep(50);
  lock.check();
  assert.equal(lock.signal.aborted, false);
  await lock.release();
});

test("urls come from the environment", async () => {
  const server = await fake();
  await withEnv({ REDLOCKD_URL: `${server.url}/ , ` }, async () => {
    await withLock("a", () => {});
    await new Client().withLock("a", () => {});
  });
  assert.equal(server.of("POST").length, 2);
});

test("no secret is shown", async () => {
  const server = await fake();
  const client = new Client({ urls: server.url, authToken: "very-secret" });
  const lock = await client.acquire("a");
  const all = { depth: 20, showHidden: true, getters: true };
  for (const one of [lock, client, lock.signal]) {
    const text = inspect(one, all) + JSON.stringify(one) + String(one) +
      Object.entries(one);
    assert.ok(!text.includes(lock.token) && !text.includes("very-secret"), text);
  }
  assert.match(inspect(lock), /^Lock \{.*an~id/s);
  await lock.release();
  const key = server.of("POST")[0].headers["idempotency-key"];
  server.always("POST", problem(401, "unauthorized"));
  const error = await rejection(client.acquire("a"), RequestRefused);
  server.always("DELETE", NO_QUORUM).on("POST");
  const other = await client.acquire("a");
  await other.release();
  await eventually(() => /not released/.test(warnings.join()), "a warning");
  const text = inspect(error, all) + warnings.join();
  for (const secret of [key, other.token, "very-secret"])
    assert.ok(!text.includes(secret));
  const nobody = new Client({ urls: "http://me:password@127.0.0.1:1" });
  const failed = await rejection(nobody.acquire("a", { waitMs: 0 }), Unavailable);
  assert.ok(!(inspect(failed, all) + warnings.join()).includes("password"));
});

test("released locks tell so", async () => {
  const server = await fake();
  const lock = await acquire("a", { urls: server.url });
  const released = lock.release();
  assert.equal(lock.release(), released);
  await released;
  assert.throws(() => lock.check(), LockLost);
  await rejection(lock.downgrade(), LockLost);
  assert.equal(lock.remainingMs, 0);
  assert.ok(lock.signal.aborted); // first asked for after the release
  assert.equal(server.of("DELETE").length, 1);
});

test("a release aborts the signal, before others can have the lock", async () => {
  const server = await fake();
  const lock = await acquire("a", { urls: server.url });
  const { signal } = lock;
  const released = lock.release();
  assert.ok(signal.reason instanceof LockLost);
  assert.match(signal.reason.message, /^a: released$/);
  await released;
  let kept;
  await withLock("a", { urls: server.url }, (one) => { kept = one.signal; });
  assert.ok(kept.aborted);
});
