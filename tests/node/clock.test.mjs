// SPDX-License-Identifier: MIT
// The clock that runs on while the machine sleeps.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

import { makeClock, now } from "../node_modules/redlockd-client/src/clock.js";
import { sleep } from "./lib.mjs";

/** A clock whose readings the test sets. */
function machine() {
  const time = { uptimeMs: 5000000, monotonicMs: 40, wallMs: 1.8e12 };
  let looks = 0;
  const { now: read, surely } = makeClock(() => {
    looks++;
    return Math.floor(time.uptimeMs / 10) / 100;
  }, () => time.monotonicMs, () => Math.floor(time.wallMs));
  const pass = (ms, sleptMs = 0, steppedMs = 0) => {
    time.monotonicMs += ms;
    time.uptimeMs += ms + sleptMs;
    time.wallMs += ms + sleptMs + steppedMs;
  };
  return { read, surely, pass, looks: () => looks };
}

test("it runs as the monotonic clock, and does not step back", () => {
  const { read, pass } = machine();
  const began = read();
  let last = began;
  let sum = 0;
  for (let i = 0; i < 10000; i++) {
    const ms = (i % 7) * 0.3;
    sum += ms;
    pass(ms);
    const at = read();
    assert.ok(at >= last);
    last = at;
  }
  assert.ok(Math.abs(last - began - sum) <= 20, `${last - began} for ${sum}`);
});

test("it counts what the machine slept, once", () => {
  const { read, pass } = machine();
  const before = read();
  pass(100, 60000);
  assert.ok(Math.abs(read() - before - 60100) <= 20);
  pass(100);
  assert.ok(Math.abs(read() - before - 60200) <= 20);
  for (let i = 0; i < 100; i++) {
    pass(0, 9); // each is too short to be seen
    read();
  }
  assert.ok(Math.abs(read() - before - 61100) <= 40);
});

test("it looks at the uptime every 20 ms, and after a step at once", () => {
  const { read, pass, looks } = machine();
  for (let i = 0; i < 1000; i++, pass(0.1)) read();
  assert.ok(looks() <= 6, `${looks()} looks in 100 ms`);
  const before = looks();
  pass(0, 0, -3600000); // somebody sets the wall clock
  const at = read();
  assert.equal(looks(), before + 1);
  pass(0, 60000);
  assert.ok(read() - at >= 60000 - 20);
});

test("a step back of the wall clock hides a sleep for 20 ms, or not at all", () => {
  const { read, surely, pass } = machine();
  const before = read();
  pass(1, 60000, -60000);
  assert.ok(surely() - before >= 60000 - 20);
  pass(1, 60000, -60000);
  pass(20);
  assert.ok(read() - before >= 120000 - 20);
});

test("without an uptime it is the monotonic clock", () => {
  const { now: read } = makeClock(() => 0, () => 77, () => 5);
  assert.equal(read(), 77);
});

test("the real one agrees with the monotonic clock while nothing sleeps",
  async () => {
    const read = () => [performance.now(), now(), performance.now()];
    const [before, from, began] = read();
    await sleep(200);
    const [ended, to, after] = read();
    const [least, most] = [ended - began - 30, after - before + 30];
    assert.ok(to - from >= least && to - from <= most, `${to - from}`);
  });

// A lock and the machine falls asleep: /proc/uptime jumps, CLOCK_MONOTONIC and
// the timers do not.
const SLEEPER = `
import { readFileSync, writeFileSync } from "node:fs";
import { acquire, LockLost } from "redlockd-client";
import { Fake } from "./fake.mjs";
const server = await Fake.start();
const lock = await acquire("a", { urls: server.url });
lock.check();
const before = lock.remainingMs;
const [up, idle] = readFileSync("/proc/uptime", "utf8").split(" ").map(Number);
writeFileSync("/proc/uptime", (up + 20).toFixed(2) + " " + idle.toFixed(2));
const slept = before - lock.remainingMs;
lock.check();
writeFileSync("/proc/uptime", (up + 60).toFixed(2) + " " + idle.toFixed(2));
try {
  lock.check();
} catch (error) {
  console.log(error instanceof LockLost, lock.signal.aborted, Math.round(slept / 1000));
}
process.exit();
`;

test("a lock ends while the machine sleeps", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "asleep."));
  const file = join(folder, "uptime");
  writeFileSync(file, readFileSync("/proc/uptime"));
  const asleep = (...command) => execFileSync("unshare", ["--mount", "sh", "-c",
    `mount --bind ${file} /proc/uptime && exec "$@"`, "sh", ...command],
  { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  try {
    asleep("true");
  } catch {
    rmSync(folder, { recursive: true });
    t.skip("this machine lets nobody mount");
    return;
  }
  const told = asleep(process.execPath, "--input-type=module", "-e", SLEEPER);
  rmSync(folder, { recursive: true });
  assert.equal(told, "true true 20\n");
});
