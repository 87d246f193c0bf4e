// SPDX-License-Identifier: MIT
// withLock() of our package; tasks share one client. PACKAGE names its folder.
import { createRequire } from "node:module";

import { cpuUs, Tally, TTL_MS, WHERE } from "./tally.mjs";

// what the first lock of a process costs, with what it loads
const beforeUs = cpuUs();
const { Client, withLock } =
  createRequire(import.meta.url)(process.env.PACKAGE);
await withLock("bench:first", { urls: WHERE }, () => {});
const firstUs = cpuUs() - beforeUs;

const client = new Client({ urls: WHERE });
const options = { ttlMs: TTL_MS };
const tally = new Tally();
await tally.run((name) => client.withLock(name, options, () => {}));
tally.report({ first_cpu_us: firstUs });
await client.close();
