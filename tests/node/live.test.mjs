// The package over five Redis masters and real redlockd; see servers.py.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import test from "node:test";

import {
  acquire, Client, Forbidden, LockHeld, LockLost, RateLimited, Unauthorized,
  Unavailable, Untrusted, withLock,
} from "redlockd-client";
import {
  aborted, all, catchWarnings, eventually, rejection, sleep, withEnv,
} from "./lib.mjs";

catchWarnings();

const SERVERS = JSON.parse(process.env.SERVERS);
const { urls, nodes, guarded, mutual } = SERVERS;
const client = new Client({ urls });
const other = new Client({ urls: [...urls].reverse() });
const TURNS = 12;
const WORKERS = 8;

/** What a node replies to a command. */
function reply(port, ...words) {
  const bulks = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
  return new Promise((done, fail) => {
    const link = net.connect(port, "127.0.0.1", () =>
      link.write(`*${words.length}\r\n${bulks.join("")}`));
    link.on("error", fail).on("data", (text) => {
      link.destroy();
      done(String(text).trim());
    });
  });
}

/** Makes all nodes forget a lock, once all have it: two get it later. */
async function vacate(resource) {
  for (const { port } of nodes)
    await eventually(async () => await reply(port, "EXISTS", resource) === ":1",
      "it is on all nodes");
  await Promise.all(nodes.map(({ port }) => reply(port, "DEL", resource)));
}

async function whilePaused(count, work) {
  const some = nodes.slice(0, count);
  for (const { pid } of some) process.kill(pid, "SIGSTOP");
  try {
    return await work();
  } finally {
    for (const { pid } of some) process.kill(pid, "SIGCONT");
  }
}

test("a lock is kept beyond its TTL", async () => {
  const lock = await client.acquire("kept", { ttlMs: 2000, owner: "web-3" });
  const { token } = lock;
  const error = await rejection(other.acquire("kept", { waitMs: 2500 }), LockHeld);
  assert.equal(error.owner, "web-3");
  lock.check();
  assert.equal(lock.token, token);
  await lock.release();
  const later = await acquire("kept", { waitMs: 0, urls });
  assert.ok(later.fencingToken > lock.fencingToken);
  await later.release();
});

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

test("workers share a pool", async () => {
  const slots = new Set();
  let most = 0;
  await Promise.all(Array.from({ length: WORKERS }, async (_, worker) => {
    for (let turn = 0; turn < TURNS; turn++)
      await (worker % 2 ? client : other).withLock("pool", { limit: 3 },
        async ({ slot }) => {
          assert.ok(slot < 3 && !slots.has(slot));
          slots.add(slot);
          most = Math.max(most, slots.size);
          await sleep(2);
          slots.delete(slot);
        });
  }));
  assert.equal(most, 3);
});

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

test("downgrades beside renewals", async () => {
  for (let turn = 0; turn < 8; turn++) {
    const lock = await client.acquire(["beside", "besides"], { ttlMs: 3000 });
    await sleep(996 + turn); // about when it is renewed
    await lock.downgrade();
    await sleep(200);
    lock.check();
    await lock.release();
  }
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

test("no quorum", () => whilePaused(3, async () => {
  await rejection(client.acquire("three", { ttlMs: 1000, waitMs: 0 }), Unavailable);
}));

test("a lock that the nodes forgot", async () => {
  const lock = await client.acquire("forgot", { ttlMs: 3000 });
  await vacate("forgot");
  assert.ok(await aborted(lock.signal) instanceof LockLost);
  await rejection(lock.release(), LockLost);
  await rejection(withLock("forgot", { urls }, () => vacate("forgot")), LockLost);
});

// ---- servers that ask who is there -----------------------------------------

const TOKEN = "first+token/of~2026==";
const NEXT = "second.token";
const file = (name) => join(SERVERS.certificates, name);
const caFile = file("ca.pem");
const hash = (token) => createHash("sha256").update(token).digest("hex");
const identity = (token, rest) => `batch sha256:${hash(token)} ${rest}\n`;

function put(name, text) {
  const path = join(guarded.folder, name);
  writeFileSync(`${path}.new`, text, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

async function reload() {
  const read = () => readFileSync(join(guarded.folder, "log"), "utf8")
    .split("event=auth_file_read").length;
  const before = read();
  process.kill(guarded.pid, "SIGHUP");
  await eventually(() => read() > before, "a reload");
}

const knowing = (how) => new Client({ urls: guarded.url, caFile, ...how });
async function extended(lock) {
  let least = lock.remainingMs;
  await eventually(() => {
    const more = lock.remainingMs - least;
    least = Math.min(least, lock.remainingMs);
    return more > 300;
  }, "extended");
}

test("a token lets in, a certificate too", async () => {
  await knowing({ authToken: TOKEN }).withLock("b/1", () => {});
  for (const [how, resource, type] of [[{}, "b/1", Unauthorized],
    [{ authToken: "wrong" }, "b/1", Unauthorized],
    [{ authToken: TOKEN }, "c/1", Forbidden]])
    await rejection(knowing(how).acquire(resource), type);
  const crowd = knowing({ authToken: TOKEN });
  const ended = await Promise.allSettled(["b/1", "c/1", "b/2"].map((name) =>
    crowd.acquire(name, { ttlMs: 3000, waitMs: 0 })));
  assert.deepEqual(ended.map(({ reason }) => reason?.constructor),
    [undefined, Forbidden, undefined]);
  await Promise.all([ended[0].value.release(), ended[2].value.release()]);
  const gate = { urls: mutual.url, caFile, certFile: file("client.pem"),
    keyFile: file("client.key") };
  const mine = new Client(gate);
  await mine.withLock("a", async () =>
    assert.deepEqual((await all(mine.locks())).map((one) => one.owner), ["gate"]));
  await rejection(new Client({ ...gate, authToken: NEXT }).acquire("a"),
    Unauthorized);
});

test("a token is rotated while a lock is held", async () => {
  const authTokenFile = join(guarded.folder, "mine");
  put("mine", TOKEN);
  const rotating = knowing({ authTokenFile });
  const lock = await rotating.acquire("b/2", { ttlMs: 3000 });
  put("auth", identity(NEXT, "lock,read prefix=*"));
  await reload();
  put("mine", NEXT);
  await extended(lock);
  await extended(lock);
  await lock.release();
  await rejection(knowing({ authToken: TOKEN }).acquire("b/2"), Unauthorized);
});

test("a server's certificate is replaced while a lock is held", async () => {
  put("auth", identity(TOKEN, "lock,read prefix=*"));
  await reload();
  const serve = async (name) => {
    put("cert.pem", readFileSync(file(`${name}.pem`), "utf8"));
    put("key.pem", readFileSync(file(`${name}.key`), "utf8"));
    await reload();
  };
  const lock = await knowing({ authToken: TOKEN }).acquire("b/3", { ttlMs: 3000 });
  await serve("foreign");
  await extended(lock); // over the connection that it has
  await rejection(knowing({ authToken: TOKEN }).acquire("b/4"), Untrusted);
  await knowing({ authToken: TOKEN, caFile: file("other-ca.pem") })
    .withLock("b/4", () => {});
  await lock.release();
  await serve("server");
});

test("who is limited waits", async () => {
  put("auth", identity(TOKEN, "lock prefix=* rate=1 burst=2"));
  await reload();
  const slow = knowing({ authToken: TOKEN });
  const began = performance.now();
  for (let i = 0; i < 3; i++) await slow.withLock("a", { waitMs: 60000 }, () => {});
  assert.ok(performance.now() - began >= 1990);
  put("auth", identity(TOKEN, "lock prefix=* locks=1"));
  await reload();
  await slow.withLock("a", { waitMs: 5000 }, () =>
    rejection(slow.acquire("b", { waitMs: 0 }), RateLimited));
});

test("the environment names servers", () =>
  withEnv({ REDLOCKD_URL: urls.join() }, () => withLock("named", (lock) =>
    lock.check())));
