// SPDX-License-Identifier: MIT
// What many tasks ask for at once goes together: against servers that fail.
import assert from "node:assert/strict";
import test from "node:test";

import { AbortError, Client, LockLost, Unavailable } from "redlockd-client";
import {
  cut, each, grant, knows, late, page, problem, silent, trickle, usual,
} from "./fake.mjs";
import {
  aborted, catchWarnings, endFakes, eventually, fake, rejection, sleep, warnings,
} from "./lib.mjs";

endFakes();
catchWarnings();

const HELD = problem(409, "lock_held", { retry_after_ms: 20 });
const TRY = { waitMs: 0 };

/** A server whose answers wait until it is told to go on. */
async function held(fields) {
  const server = await fake(fields);
  let goOn;
  const told = new Promise((done) => { goOn = done; });
  const later = (action) => async (...args) => {
    await told;
    action(...args);
  };
  for (const method of ["POST", "PUT", "DELETE"]) server.always(method, later(usual));
  server.always("BATCH", later(each));
  return { server, goOn, later };
}

/** Two acquires, which take both slots until the server goes on. */
async function fill(server, client) {
  const fillers = [];
  for (const number of [1, 2]) {
    fillers.push(client.acquire(`filler ${number}`, TRY));
    await eventually(() => server.singles + server.batches.length === number,
      "a filler is under way");
  }
  server.batches.splice(0); // the second one is a batch
  return fillers;
}

/** Locks of earlier tests, whose servers are gone, may warn, too. */
const warned = (prefix) => warnings.filter((text) => text.startsWith(prefix));

const namesOf = (request) => request.body.operations.map((one) =>
  one.resource ?? one.id);

test("tasks that ask at once share requests", async () => {
  const server = await fake();
  const client = new Client({ urls: server.url });
  const seen = new Set();
  await Promise.all(Array.from({ length: 64 }, async (_, task) => {
    for (let i = 0; i < 5; i++)
      await client.withLock(`${task} ${i}`, (lock) => {
        lock.check();
        seen.add(lock.token);
      });
  }));
  assert.equal(seen.size, 320);
  assert.deepEqual([server.of("POST").length, server.of("DELETE").length],
    [320, 320]);
  const requests = server.singles + server.batches.length;
  assert.ok(requests <= 64, `${requests} requests`);
  assert.ok(server.connections <= 2, `${server.connections} connections`);
});

test("validity counts from before the batch, not from the queue", async () => {
  const { server, goOn, later } = await held({ validity_ms: 5000 });
  const client = new Client({ urls: server.url });
  const fillers = await fill(server, client);
  server.always("BATCH", later(late(1000, each)));
  const queued = ["a", "b"].map((name) => client.acquire(name, TRY));
  await sleep(300);
  goOn();
  for (const lock of await Promise.all(queued)) {
    assert.ok(lock.remainingMs <= 3500, `${lock.remainingMs}`);
    assert.ok(lock.remainingMs > 1500, `${lock.remainingMs}`);
  }
  await Promise.all(fillers);
});

test("a batch without an answer is repeated, each with its own key", async () => {
  const [one, two] = [await fake(), await fake()];
  one.always("BATCH", cut);
  const client = new Client({ urls: [one.url, two.url] });
  const names = ["a", "b", "c"];
  await Promise.all(names.map((name) => client.acquire(name, TRY)));
  const keys = (operations) => operations.map((body) =>
    [body.resource, body.idempotency_key]).sort().join();
  const first = one.batches[0].body.operations;
  assert.equal(new Set(first.map((body) => body.idempotency_key)).size, 3);
  assert.equal(keys(two.of("POST").map(({ body, headers }) =>
    ({ ...body, idempotency_key: headers["idempotency-key"] }))), keys(first));
});

test("a kept connection that broke: the batch is sent once more", async () => {
  const server = await fake();
  const client = new Client({ urls: server.url });
  const hold = (names) => Promise.all(names.map((name) =>
    client.acquire(name, TRY)));
  const locks = await hold(["kept a", "kept b"]);
  server.on("BATCH", cut);
  locks.push(...await hold(["kept c", "kept d"]));
  assert.equal(server.batches.length, 3);
  assert.deepEqual(warned("kept "), []);
  // and a release that was perhaps done before is none that was lost
  server.on("BATCH", cut, each);
  server.always("DELETE", problem(404, "lock_not_found"));
  await Promise.all(locks.map((lock) => lock.release()));
});

test("those that wait hold up nobody", async () => {
  const server = await fake();
  server.always("POST", silent, ...Array(6).fill(HELD));
  const client = new Client({ urls: server.url });
  const controller = new AbortController();
  const { signal } = controller;
  const waiting = Array.from({ length: 6 }, (_, i) =>
    client.acquire(`waits ${i}`, { signal }));
  await eventually(() => server.of("POST").filter(({ body }) =>
    body.wait_ms > 0).length === 6, "they wait");
  server.always("POST", usual);
  for (let i = 0; i < 10; i++) await client.withLock("a", TRY, () => {});
  controller.abort();
  for (const one of waiting) await rejection(one, AbortError);
});

test("an abort in the queue takes it out", async () => {
  const { server, goOn } = await held();
  const client = new Client({ urls: server.url });
  const fillers = await fill(server, client);
  const controller = new AbortController();
  const queued = client.acquire("a", { signal: controller.signal });
  const other = client.acquire("b", TRY);
  await sleep(50);
  controller.abort();
  await rejection(queued, AbortError);
  goOn();
  await Promise.all([...fillers, other]);
  await client.close();
  assert.ok(!server.of("POST").some(({ body }) => body.resource === "a"));
  assert.equal(server.of("DELETE").length, 0);
});

/** Aborts one of three acquires whose batch is under way. */
async function abortInBatch(server, client, answer) {
  const controller = new AbortController();
  let goOn;
  const told = new Promise((done) => { goOn = done; });
  server.on("BATCH", async (...args) => {
    await told;
    answer(...args);
  });
  const aborting = client.acquire("aborted", { signal: controller.signal });
  const others = ["a", "b"].map((name) => client.acquire(name, TRY));
  await eventually(() => server.batches.length, "the batch is under way");
  const began = performance.now();
  controller.abort();
  await rejection(aborting, AbortError);
  assert.ok(performance.now() - began < 1000, "it does not wait for the answer");
  goOn();
  await Promise.all(others);
  return server.batches[0].body.operations.find(({ resource }) =>
    resource === "aborted").idempotency_key;
}

const tokenOf = (server, wanted) => server.tokens.get(wanted);

/** Grants as usual, and writes down the tokens by resource. */
function noteTokens(server) {
  server.tokens = new Map();
  const { grant: make } = server;
  server.grant = (request) => {
    const body = make.call(server, request);
    server.tokens.set(request.body.resource, body.token);
    return body;
  };
}

test("an abort in a batch: what it then brings is released", async () => {
  const server = await fake();
  noteTokens(server);
  const client = new Client({ urls: server.url });
  await abortInBatch(server, client, each);
  await client.close(); // which waits for that
  const [release, ...more] = server.of("DELETE");
  assert.equal(release.headers["x-lock-token"], tokenOf(server, "aborted"));
  assert.deepEqual([more.length, server.of("POST").length, server.left.length],
    [0, 3, 0]);
});

test("an abort in a batch without an answer: asked again with its key, released",
  async () => {
    const server = await fake();
    noteTokens(server);
    const client = new Client({ urls: server.url });
    const key = await abortInBatch(server, client, cut);
    await client.close();
    const again = server.of("POST").find(({ body }) => body.resource === "aborted");
    assert.equal(again.headers["idempotency-key"], key);
    assert.deepEqual(server.of("DELETE").map(({ headers }) =>
      headers["x-lock-token"]), [tokenOf(server, "aborted")]);
  });

test("an overdue request frees its slot, and its server is left", async () => {
  const [one, two] = [await fake(), await fake()];
  one.always("POST", silent).always("BATCH", silent).always("GET", silent);
  const client = new Client({ urls: [one.url, two.url] });
  const began = performance.now();
  const first = client.acquire("x", TRY);
  await eventually(() => one.singles === 1, "the first is under way");
  const second = ["y", "z"].map((name) => client.acquire(name, TRY));
  await eventually(() => one.batches.length === 1, "and a batch");
  await Promise.all(["a", "b", "c"].map((name) => client.acquire(name, TRY)));
  const took = performance.now() - began;
  assert.ok(took >= 450 && took < 3000, `${took}`);
  assert.deepEqual(two.batches.map(namesOf), [["a", "b", "c"]]);
  await Promise.all([first, ...second]); // each is asked for again, there
  assert.equal(two.of("POST").length, 6);
});

test("extends of a batch give up in time to ask another server", async () => {
  const fields = { ttl_ms: 2000, validity_ms: 2000, renew_after_ms: 100 };
  const [one, two] = [await fake(fields), await fake(fields)];
  const client = new Client({ urls: [one.url, two.url] });
  const locks = await Promise.all(["a", "b", "c"].map((name) =>
    client.acquire(name, TRY)));
  one.always("BATCH", trickle).always("PUT", silent).always("GET", silent);
  await eventually(() => two.of("PUT").length >= 3, "the other server extends");
  for (const lock of locks) lock.check();
  await eventually(() => two.of("PUT").length >= 12, "and again");
  for (const lock of locks) lock.check();
  await Promise.all(locks.map((lock) => lock.release()));
});

test("renewals that are due together go together", async () => {
  const server = await fake({ renew_after_ms: 300 });
  const client = new Client({ urls: server.url });
  const locks = await Promise.all(Array.from({ length: 250 }, (_, i) =>
    client.acquire(`n${i}`, TRY)));
  server.batches.splice(0);
  server.singles = 0;
  await eventually(() => server.of("PUT").length >= 750, "three each");
  const requests = server.batches.length + server.singles;
  assert.ok(requests <= server.of("PUT").length / 10, `${requests}`);
  for (const { body } of server.batches)
    assert.ok(body.operations.length <= 100);
  for (const lock of locks) lock.check();
  server.always("BATCH", each);
  await Promise.all(locks.map((lock) => lock.release()));
  assert.equal(server.of("DELETE").length, 250);
});

test("one of the renewals that ends a lock ends only this one", async () => {
  const server = await fake({ renew_after_ms: 50 });
  const client = new Client({ urls: server.url });
  const locks = await Promise.all(["a", "b", "c"].map((name) =>
    client.acquire(name, TRY)));
  const { token } = locks[1];
  server.always("PUT", (answer, request, it) =>
    (request.headers["x-lock-token"] === token
      ? problem(404, "lock_not_found") : usual)(answer, request, it));
  assert.ok(await aborted(locks[1].signal) instanceof LockLost);
  const extended = server.of("PUT").length;
  await eventually(() => server.of("PUT").length > extended + 4, "the others");
  for (const lock of [locks[0], locks[2]]) {
    lock.check();
    await lock.release();
  }
});

test("a server that knows no batches: each goes alone", async () => {
  const server = await fake();
  server.always("BATCH", page(404, "<html>"));
  const client = new Client({ urls: server.url });
  await Promise.all(["alone a", "alone b", "alone c"].map((name) =>
    client.withLock(name, TRY, () => {})));
  assert.deepEqual([server.of("POST").length, server.of("DELETE").length], [3, 3]);
  assert.deepEqual(warned("alone "), []);
});

test("a 401 in a batch, after the access token was replaced", async () => {
  const { writeFileSync, mkdtempSync, rmSync } = await import("node:fs");
  const folder = mkdtempSync("token.");
  try {
    const authTokenFile = `${folder}/token`;
    writeFileSync(authTokenFile, "first\n");
    const server = await fake();
    server.always("POST", knows("first"));
    const client = new Client({ urls: server.url, authTokenFile });
    const ask = () => Promise.all(["token a", "token b", "token c"].map((name) =>
      client.acquire(name, TRY)));
    await ask();
    server.always("POST", knows("second"), usual); // one of them goes through
    writeFileSync(authTokenFile, "second\n");
    await ask();
    assert.deepEqual(server.batches.map((batch) => batch.body.operations.length),
      [3, 3, 2]);
    assert.deepEqual(warned("token "), []);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("close() with some in the queue: they fail, as those under way do",
  async () => {
    const { server } = await held();
    const client = new Client({ urls: server.url, timeoutMs: 60000 });
    const all = await fill(server, client);
    all.push(...["a", "b", "c"].map((name) => client.acquire(name, TRY)));
    await sleep(20);
    server.always("POST", problem(503, "no_quorum")).always("BATCH",
      problem(503, "no_quorum"));
    await client.close();
    for (const one of all) await rejection(one, Unavailable);
    assert.ok(warnings.some((text) => /the client was closed/.test(text)));
    assert.equal(server.left.length, 2);
  });
