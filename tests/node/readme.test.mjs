// SPDX-License-Identifier: MIT
// The blocks of the README, as they are, and the program of types/, over real
// servers; see servers.py.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

import { Client } from "redlockd-client";
import { eventually } from "./lib.mjs";

const ROOT = process.env.ROOT;
const { urls } = JSON.parse(process.env.SERVERS);
const HERE = fileURLToPath(new URL(".", import.meta.url));
const PAGE = "api/clients/node/README.md";

const blocks = [...readFileSync(join(ROOT, PAGE), "utf8")
  .matchAll(/^```js\n(.*?)^```$/gms)].map(([, text]) => text);

/** Starts a program in the folder of the tests. */
function start(file) {
  const child = spawn(process.execPath, [file], {
    cwd: HERE, stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, REDLOCKD_URL: urls.join() },
  });
  const said = { out: "", error: "" };
  child.stdout.on("data", (piece) => { said.out += piece; });
  child.stderr.on("data", (piece) => { said.error += piece; });
  return { child, said, ended: once(child, "close") };
}

async function completes({ said, ended }) {
  const [status] = await ended;
  assert.deepEqual([status, said.error], [0, ""]);
  return said.out;
}

function write(text) {
  mkdirSync(join(HERE, "blocks"), { recursive: true });
  const file = join(HERE, "blocks", `${blocks.indexOf(text)}.mjs`);
  // where the page says that the server is
  writeFileSync(file, text.replaceAll("http://127.0.0.1:8080", urls[0]));
  return file;
}

const isLeader = (text) => text.includes("SIGTERM");

test("each block runs", async () => {
  const some = blocks.filter((text) => !isLeader(text));
  assert.ok(some.length >= 7, String(some.length));
  for (const text of some) await completes(start(write(text)));
});

test("the leader leads again after a loss, and resigns when told", async () => {
  const [text, ...more] = blocks.filter(isLeader);
  assert.equal(more.length, 0);
  const program = start(write(text));
  const client = new Client({ urls });
  const numbers = () => [...program.said.out.matchAll(/fencing token (\d+)/g)]
    .map(([, number]) => Number(number));
  await eventually(() => numbers().length, "it leads");
  const holder = await client.get("leader");
  assert.deepEqual([holder.owner, holder.fencingToken], ["web-3:8080",
    numbers()[0]]);
  assert.equal(await client.forceRelease(holder.id, holder.fencingToken), true);
  await eventually(() => numbers().at(-1) > numbers()[0], "it leads again");
  assert.equal((await client.get("leader")).fencingToken, numbers().at(-1));
  program.child.kill("SIGTERM");
  await completes(program);
  assert.equal(await client.get("leader"), null);
});

test("what the types say is so", async () => {
  execFileSync("tsc", ["--target", "es2022", "--module", "nodenext",
    "--outDir", "typed", "types/good.mts"], { cwd: HERE });
  assert.equal(await completes(start("typed/good.mjs")), "typed\n");
});
