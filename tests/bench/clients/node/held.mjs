// SPDX-License-Identifier: MIT
// Locks of one client of our package, held for a while. PACKAGE names its folder.
//
//   held.mjs LOCKS TTL_MS SECONDS URL
//
// It says when it has them all; then, after SECONDS, how many were lost by then,
// the CPU time since, and the least time that work had left in any of ten locks.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

import { cpuUs } from "./tally.mjs";

const { Client } = createRequire(import.meta.url)(process.env.PACKAGE);
const [count, ttlMs, seconds] = process.argv.slice(2, 5).map(Number);
const client = new Client({ urls: process.argv.slice(5) });

let lost = 0;
const locks = await Promise.all(Array.from({ length: count }, (_, number) =>
  client.acquire(`bench:held:${process.pid}:${number}`, { ttlMs })));
for (const lock of locks)
  lock.signal.addEventListener("abort", () => { lost += 1; });
console.log(`held ${count}`);

const [beforeUs, end] = [cpuUs(), performance.now() + seconds * 1000];
const some = locks.filter((_, number) => number % Math.ceil(count / 10) === 0);
let leastMs = Infinity;
while (performance.now() < end) {
  await sleep(100);
  leastMs = Math.min(leastMs, ...some.map((lock) => lock.remainingMs));
}
console.log(`lost ${lost} cpu_us ${cpuUs() - beforeUs}`,
  `least_left_ms ${leastMs.toFixed(0)}`);
await Promise.allSettled(locks.map((lock) => lock.release()));
await client.close();
