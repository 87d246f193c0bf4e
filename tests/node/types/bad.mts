// SPDX-License-Identifier: MIT
// Each line that is marked has a mistake, which tsc must refuse; the others have
// none.
import { acquire, Client, Lock, LockHeld, withLock } from "redlockd-client";

const client = new Client();
const lock = await acquire("a");
await acquire(); // wrong
await acquire(7); // wrong
await acquire("a", { ttl: 30 }); // wrong
await acquire("a", { ttlMs: "30" }); // wrong
await acquire("a", { wait: 5 }); // wrong
await acquire("a", { shared: "yes" }); // wrong
await acquire("a", { limit: "3" }); // wrong
await acquire("a", { client, urls: "http://a" }); // wrong
await acquire("a", { client: {} }); // wrong
await acquire("a", { signal: true }); // wrong
await client.acquire("a", { urls: "http://a" }); // wrong
await client.acquire("a", { client }); // wrong
new Client("http://a"); // wrong
new Client({ url: "http://a" }); // wrong
new Client({ caFile: 7 }); // wrong
new Lock(); // wrong
lock.fencingToken = 7; // wrong
lock.slots.push(7); // wrong
lock.extend(); // wrong
const text: string = lock.fencingToken; // wrong
const slot: number = lock.slot; // wrong
await withLock("a"); // wrong
await withLock("a", { ttlMs: 3 }); // wrong
await withLock("a", { ttlMs: 3 }, 7); // wrong
const seven: string = await withLock("a", async () => 7); // wrong
const owner: string = (await client.get("a")).owner; // wrong
for await (const one of client.watch("a")) one.owner; // wrong
for (const one of client.locks()) one.owner; // wrong
await client.forceRelease("a", "each"); // wrong
await client.forceRelease("a"); // wrong
new LockHeld("x"); // wrong
