// Holds many short locks in one process while all cores are busy with something
// else, and tells what that costs, and how many were lost; see held.py.
//
//   held.mjs LOCKS TTL_MS SECONDS URL
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { cpus } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

import { cpuUs } from "./tally.mjs";

const { Client } = createRequire(import.meta.url)(process.env.PACKAGE);
const [count, ttlMs, seconds] = process.argv.slice(2, 5).map(Number);
const client = new Client({ urls: process.argv.slice(5) });

const busy = cpus().map(() => spawn(process.execPath, ["-e", "for (;;);"]));
let lost = 0;
try {
  const locks = await Promise.all(Array.from({ length: count }, (_, number) =>
    client.acquire(`held:${process.pid}:${number}`, { ttlMs })));
  for (const lock of locks)
    lock.signal.addEventListener("abort", () => { lost += 1; });
  const [beganUs, began] = [cpuUs(), performance.now()];
  const some = locks.filter((_, number) => number % 100 === 0);
  let leastMs = Infinity;
  while (performance.now() < began + seconds * 1000) {
    await sleep(100);
    for (const lock of some) leastMs = Math.min(leastMs, lock.remainingMs);
  }
  const usedUs = cpuUs() - beganUs;
  const tookMs = performance.now() - began;
  console.log(`locks ${count} lost ${lost} least_left_ms ${leastMs.toFixed(0)}`,
    `cpu_percent ${(usedUs / tookMs / 10).toFixed(1)}`);
  await Promise.allSettled(locks.map((lock) => lock.release()));
} finally {
  for (const one of busy) one.kill();
}
await client.close();
