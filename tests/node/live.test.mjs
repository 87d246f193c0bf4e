// SPDX-License-Identifier: MIT
// The package over five Redis masters and real redlockd; see servers.py.
import assert from "node:assert/strict";
import test from "node:test";

import { acquire, Client, LockHeld, LockLost, withLock } from "redlockd-client";
import {
  aborted, all, catchWarnings, eventually, rejection, sleep, withEnv,
} from "./lib.mjs";

catchWarnings();

const { urls, nodes } = JSON.parse(process.env.SERVERS);
const client = new Client({ urls });
const other = new Client({ urls: [...urls].reverse() });
const TURNS = 12;
const WORKERS = 8;

async function whilePaused(count, work) {
  const some = nodes.slice(0, count);
  for (const { pid } of some) process.kill(pid, "SIGSTOP");
  try {
    return await work();
  } finally {
    for (const { pid } of some) process.kill(pid, "SIGCONT");
  }
}

test("several at once, and any characters", async () => {
  const odd = 'a/b ü?#% "\\';
  await client.withLock(["b", "a", odd], async () => {
    for (const held of [["a"], "b", ["c", "b"], odd])
      await rejection(other.acquire(held, { waitMs: 0 }), LockHeld);
    assert.deepEqual((await client.get(["b", "a", odd])).resources,
      ["a", odd, "b"]);
  });
  await client.withLock(odd, { waitMs: 0 }, async () =>
    assert.deepEqual((await client.get(odd)).resources, [odd]));
  assert.equal(await client.get("~"), null);
});

test("listed, and released by force", async () => {
  const lock = await client.acquire(["force:b", "force:a"], {
    owner: "me", ttlMs: 3000 });
  let found = [];
  await eventually(async () => { // a lock so young may be missing
    found = await all(other.locks({ prefix: "force:" }));
    return found.length > 1;
  }, "both are listed");
  assert.deepEqual(found.map((one) => one.resources[0]).sort(),
    ["force:a", "force:b"]);
  for (const one of found) {
    assert.deepEqual([one.owner, one.fencingToken], ["me", lock.fencingToken]);
    assert.equal(await other.forceRelease(one.id, lock.fencingToken - 1), false);
    assert.equal(await other.forceRelease(one.id, lock.fencingToken), true);
    await eventually( // three nodes are enough for the answer
      async () => !await other.forceRelease(one.id, lock.fencingToken),
      "it is gone from all nodes");
  }
  const reader = await client.acquire("force:all", {
    shared: true, ttlMs: 3000 });
  assert.equal(await client.forceRelease("force:all", "all"), true);
  for (const one of [lock, reader]) { // the next renewal finds it out
    await aborted(one.signal);
    await rejection(one.release(), LockLost);
  }
});

test("workers take turns, with a node paused", () => whilePaused(1, async () => {
  let inside = 0;
  let highest = 0;
  let turns = 0;
  await Promise.all(Array.from({ length: WORKERS }, async (_, worker) => {
    for (let turn = 0; turn < TURNS; turn++)
      await (worker % 2 ? client : other).withLock("turns", { ttlMs: 4000 },
        async (lock) => {
          assert.equal(++inside, 1);
          assert.ok(lock.fencingToken > highest);
          highest = lock.fencingToken;
          await sleep(1);
          inside -= 1;
          turns += 1;
        });
  }));
  assert.equal(turns, WORKERS * TURNS);
}));

test("who aborts while it waits leaves the queue", async () => {
  const lock = await client.acquire("left", { ttlMs: 30000 });
  const signal = AbortSignal.timeout(300);
  const error = await rejection(
    client.acquire("left", { ttlMs: 30000, signal }), Error);
  assert.deepEqual([error.name, error.cause.name], ["AbortError", "TimeoutError"]);
  await lock.release();
  // else the server would grant it to the one that has left. That one may ask once
  // more, so as to leave nothing behind, and have the lock for a moment.
  await client.withLock("left", { waitMs: 5000 }, () => {});
});

test("readers share it and keep writers out", async () => {
  const first = await client.acquire("read", { shared: true });
  const second = await other.acquire("read", { shared: true, waitMs: 0 });
  await eventually(async () => (await client.get("read")).readers === 2,
    "two readers");
  const error = await rejection(client.acquire("read", { waitMs: 0 }), LockHeld);
  assert.equal(error.readers, 2);
  await Promise.all([first.release(), second.release()]);
  await client.withLock("read", { waitMs: 2000 }, async (writer) => {
    assert.ok(writer.fencingToken >
      Math.max(first.fencingToken, second.fencingToken));
    await rejection(client.acquire("read", { shared: true, waitMs: 0 }), LockHeld);
  });
});

test("a downgrade lets readers in, and is kept beyond its TTL", async () => {
  const lock = await client.acquire("down", { ttlMs: 2000 });
  const shared = { shared: true, waitMs: 0 };
  await rejection(client.acquire("down", shared), LockHeld);
  const { token, fencingToken } = lock;
  await lock.downgrade();
  assert.notEqual(lock.token, token);
  assert.equal(lock.fencingToken, fencingToken);
  await other.withLock("down", shared, () =>
    rejection(client.acquire("down", { waitMs: 2500 }), LockHeld));
  lock.check();
  await lock.release();
});

test("a watch sees each holder, at either server", async () => {
  const controller = new AbortController();
  const seen = [[], []];
  const watches = [client, other].map(async (one, number) => {
    for await (const holder of one.watch("watched", controller))
      seen[number].push(holder && holder.owner);
  });
  const both = async (what) => eventually(
    () => seen.every((owners) => owners.at(-1) === what), `they see ${what}`);
  await both(null);
  for (const owner of ["one", "two", "three"])
    await client.withLock("watched", { owner }, () => both(owner));
  await both(null);
  controller.abort();
  for (const { status } of await Promise.allSettled(watches))
    assert.equal(status, "rejected");
  for (const owners of seen)
    assert.deepEqual(owners.filter(Boolean), ["one", "two", "three"]);
});

test("the environment names servers", () =>
  withEnv({ REDLOCKD_URL: urls.join() }, () => withLock("named", (lock) =>
    lock.check())));
