// SPDX-License-Identifier: MIT
// Many tasks of one client, over five Redis masters and real redlockd; see
// servers.py. A proxy in between counts requests, and fails as a test says.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import net from "node:net";
import test, { afterEach } from "node:test";

import {
  AbortError, Client, LockHeld, LockLost, RequestRefused, Unavailable,
} from "redlockd-client";
import {
  all, catchWarnings, eventually, rejection, sleep, warnings,
} from "./lib.mjs";

catchWarnings();

const { urls } = JSON.parse(process.env.SERVERS);
const direct = new Client({ urls });
const TRY = { waitMs: 0, ttlMs: 30000 };
const range = (count, of) => Array.from({ length: count }, (_, i) => of(i));
const open = [];
afterEach(() => { for (const one of open.splice(0)) one.close(); });

/** In front of the first server. react(head) is asked for each request: "pass",
 * "lose" its answer, be "silent", or answer this text. */
async function proxy(react = () => "pass") {
  const it = { heads: [], react, sockets: new Set() };
  const { hostname, port } = new URL(urls[0]);
  const server = net.createServer((client) => {
    const link = net.connect(Number(port), hostname);
    let what = "pass";
    for (const socket of [client, link]) {
      it.sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => { client.destroy(); link.destroy(); });
    }
    client.on("data", (piece) => {
      const [head] = String(piece).split("\r\n");
      if (/HTTP\/1\.1$/.test(head)) { // else it is more of a body
        it.heads.push(head);
        what = it.react(head);
      }
      if (what === "pass" || what === "lose") link.write(piece);
      else if (what !== "silent") client.write(what);
    });
    link.on("data", (piece) => {
      if (what === "lose") client.destroy();
      else client.write(piece);
    });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  it.url = `http://127.0.0.1:${server.address().port}`;
  it.of = (words) => it.heads.filter((head) => head.startsWith(words));
  it.close = () => {
    for (const socket of it.sockets) socket.destroy();
    server.close();
  };
  open.push(it);
  return it;
}

const isBatch = (head) => head.startsWith("POST /batch ");

const isFree = (prefix) => eventually(async () =>
  (await all(direct.locks({ prefix }))).length === 0, `${prefix} is free`, 10000);

test("tasks share requests, whatever they ask for", async () => {
  const front = await proxy();
  const client = new Client({ urls: front.url });
  const kinds = [
    (task, i) => [`share:${task}:${i}`, {}],
    (task, i) => [[`share:b:${task}:${i}`, `share:a:${task}:${i}`], {}],
    () => ["share:read", { shared: true }],
    () => ["share:pool", { limit: 100 }]];
  const slots = new Set();
  await Promise.all(range(40, async (task) => {
    for (let i = 0; i < 5; i++) {
      const [names, options] = kinds[task % kinds.length](task, i);
      await client.withLock(names, { ttlMs: 30000, ...options }, (lock) => {
        lock.check();
        if (lock.slot === undefined) return;
        assert.ok(!slots.has(lock.slot));
        slots.add(lock.slot);
        setImmediate(() => slots.delete(lock.slot));
      });
    }
  }));
  assert.ok(front.heads.length <= 200, `${front.heads.length} requests of 400`);
  assert.ok(front.of("POST /batch ").length >= 5);
  assert.deepEqual(warnings.filter((text) => text.startsWith("share:")), []);
  await isFree("share:");
});

test("each gets what it would alone", async () => {
  const client = new Client({ urls });
  const held = await direct.acquire("alone:held", { ttlMs: 30000, owner: "web-3" });
  const names = ["alone:a", "", "alone:held", "alone:b", "x".repeat(10000)];
  const ended = await Promise.allSettled(names.map((name) =>
    client.acquire(name, TRY)));
  assert.deepEqual(ended.map(({ reason }) => reason?.constructor),
    [undefined, RequestRefused, LockHeld, undefined, RequestRefused]);
  assert.equal(ended[2].reason.owner, "web-3");
  const [one, two] = [ended[0].value, ended[3].value];
  await direct.forceRelease(one.id, one.fencingToken);
  const released = await Promise.allSettled([one.release(), two.release()]);
  assert.ok(released[0].reason instanceof LockLost);
  assert.equal(released[1].status, "fulfilled");
  await held.release();
});

test("aborts at any moment leave no lock behind", async () => {
  const front = await proxy();
  const client = new Client({ urls: front.url });
  let granted = 0;
  for (let round = 0; round < 8; round++)
    await Promise.all(range(40, async (i) => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 8 * Math.random());
      await sleep(2 * Math.random());
      await client.acquire(`left:${round}:${i}`, { ttlMs: 30000,
        signal: controller.signal }).then((lock) => {
        granted += 1;
        return lock.release();
      }, (error) => assert.ok(error instanceof AbortError, String(error)));
    }));
  assert.ok(granted < 320, "none was aborted");
  assert.ok(front.of("POST /batch ").length > 0);
  await client.close();
  await isFree("left:");
});

test("batches without an answer are repeated; nothing stays behind", async () => {
  let losses = 0;
  const front = await proxy((head) =>
    isBatch(head) && ++losses <= 3 ? "lose" : "pass");
  const client = new Client({ urls: front.url });
  const locks = await Promise.all(range(30, (i) =>
    client.acquire(`lost:${i}`, { ttlMs: 30000 })));
  assert.equal(new Set(locks.map((lock) => lock.token)).size, 30);
  losses = 2;
  await Promise.all(locks.map((lock) => lock.release()));
  assert.ok(losses >= 3);
  await isFree("lost:");
});

test("a replica that hangs: the tasks go to the other one", async () => {
  const front = await proxy();
  const client = new Client({ urls: [front.url, urls[1]] });
  const ask = (name) => Promise.all(range(20, (i) =>
    client.withLock(`${name}:${i}`, TRY, () => {})));
  await ask("hang");
  front.react = () => "silent";
  const hanging = ask("hangs"); // these wait for their answers, for 5 s
  await sleep(700); // by now it is overdue
  const began = performance.now();
  await ask("goes on");
  assert.ok(performance.now() - began < 3500);
  await hanging;
});

test("close() while many ask", async () => {
  const front = await proxy(() => "silent");
  const client = new Client({ urls: front.url });
  const all = range(30, (i) => client.acquire(`close:${i}`, TRY));
  await eventually(() => front.heads.length, "some are under way");
  front.close();
  await client.close();
  for (const one of all) await rejection(one, Unavailable);
});

test("a thousand locks are kept while the machine is busy", async () => {
  const busy = spawn(process.execPath, ["-e", "for (;;);"]);
  try {
    const front = await proxy();
    const client = new Client({ urls: front.url });
    const locks = await Promise.all(range(1000, (i) =>
      client.acquire(`kept:${i}`, { ttlMs: 9000 })));
    const before = front.heads.length;
    await sleep(10000);
    for (const lock of locks) lock.check();
    const requests = front.heads.length - before;
    assert.ok(requests < 1000, `${requests} requests for 3,000 extends`);
    await Promise.all(locks.map((lock) => lock.release()));
  } finally {
    busy.kill();
  }
});
