// SPDX-License-Identifier: MIT
// What a process with a lock does when its own work has ended.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import test from "node:test";

import { lost, page, problem } from "./fake.mjs";
import { endFakes, eventually, fake } from "./lib.mjs";

endFakes();

/** Runs a program; its exit status and what it said. */
async function run(program, server) {
  const child = spawn(process.execPath, ["--input-type=module", "-e",
    'import { acquire, withLock } from "redlockd-client";\n' + program], {
    env: { ...process.env, REDLOCKD_URL: server.url },
    stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (piece) => { said += piece; });
  const status = await new Promise((done) => child.on("close", done));
  return { status, said };
}

test("it ends although it keeps a lock, whose renewals end, too", async () => {
  const server = await fake({ renew_after_ms: 20 });
  const began = performance.now();
  assert.deepEqual(await run('await acquire("a"); console.log("done");', server),
    { status: 0, said: "done\n" });
  assert.ok(performance.now() - began < 15000); // the lock has 29 s
});

test("while it works, the lock is renewed", async () => {
  const server = await fake({ renew_after_ms: 100, validity_ms: 1000 });
  const { status, said } = await run(`
    const lock = await acquire("a");
    await new Promise((done) => setTimeout(done, 2500));
    lock.check();
    await lock.release();`, server);
  assert.deepEqual([status, said], [0, ""]);
  assert.ok(server.of("PUT").length >= 3);
});

test("work that only waits for the signal keeps withLock() going", async () => {
  const server = await fake({ renew_after_ms: 200 });
  server.on("PUT", page(200, "{}"), problem(404, "lock_not_found"));
  const { status, said } = await run(`
    await withLock("a", (lock) => new Promise((done) =>
      lock.signal.addEventListener("abort", done))).catch((error) =>
      console.log(error.name));`, server);
  assert.equal(status, 0);
  assert.match(said, /LockLost\n$/);
});

test("after an abort it stays until nothing is left behind", async () => {
  const server = await fake();
  const all = [];
  server.on("POST", (answer, request, it) => {
    all.push("granted");
    setTimeout(() => lost(answer, request, it), 2000);
  });
  const { said } = await run(`
    const signal = AbortSignal.timeout(500);
    await acquire("a", { signal }).catch((error) =>
      console.log(error.name, error.cause.name));`,
  server);
  assert.equal(said, "AbortError TimeoutError\n");
  assert.deepEqual(all, ["granted"]);
  await eventually(() => server.of("DELETE").length === 1, "the release");
  assert.equal(server.of("POST").length, 2);
});
