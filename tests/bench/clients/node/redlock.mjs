// SPDX-License-Identifier: MIT
// Redlock over node-redis (Debian's, in NODE_PATH), written like node-redlock,
// which Debian does not have: each command goes to all nodes at once, and its
// promise resolves as soon as a quorum of them has agreed.
import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";

import { Tally, TTL_MS, WHERE } from "./tally.mjs";

const { createClient, defineScript } = createRequire(import.meta.url)("redis");

const release = defineScript({
  NUMBER_OF_KEYS: 1,
  SCRIPT: `if redis.call("get", KEYS[1]) == ARGV[1] then
    return redis.call("del", KEYS[1]) else return 0 end`,
  transformArguments: (key, value) => [key, value],
  transformReply: (reply) => reply,
});

const nodes = WHERE.map((node) =>
  createClient({ url: `redis://${node}`, scripts: { release } }));
await Promise.all(nodes.map((node) => node.connect()));
const QUORUM = (nodes.length >> 1) + 1;

/** Resolves with whether a quorum says yes, as soon as that is decided. */
function vote(ask) {
  return new Promise((resolve) => {
    let yes = 0;
    let no = 0;
    const count = (isSo) => {
      if (isSo) yes += 1;
      else no += 1;
      if (yes === QUORUM) resolve(true);
      else if (no === QUORUM) resolve(false);
    };
    for (const node of nodes) ask(node).then(count, () => count(false));
  });
}

const LOCK = { NX: true, PX: TTL_MS };

async function cycle(name) {
  const value = randomBytes(16).toString("hex");
  if (!await vote((node) => node.set(name, value, LOCK)))
    throw new Error("no quorum");
  if (!await vote((node) => node.release(name, value)))
    throw new Error("not released");
}

const tally = new Tally();
await tally.run(cycle);
tally.report();
await Promise.all(nodes.map((node) => node.quit()));
