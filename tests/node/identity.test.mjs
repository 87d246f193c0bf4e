// SPDX-License-Identifier: MIT
// Tokens, certificates and limits: who is let in, and what is told if not.
import assert from "node:assert/strict";
import {
  copyFileSync, mkdtempSync, readFileSync, renameSync, rmSync, unlinkSync,
  writeFileSync,
} from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";

import {
  acquire, Client, Unavailable, Untrusted, withLock,
} from "redlockd-client";
import { cut, grant, knows } from "./fake.mjs";
import {
  all, catchWarnings, endFakes, eventually, fake, rejection, withEnv,
} from "./lib.mjs";

endFakes();
catchWarnings();

const TOKEN = "first+token/of~2026==";
const NEXT = "second.token";
const CERTIFICATES = process.env.CERTIFICATES; // a folder: see run.sh
const folder = mkdtempSync(join(tmpdir(), "identity."));
after(() => rmSync(folder, { recursive: true }));

function write(text) {
  const file = join(folder, "token");
  writeFileSync(join(folder, "new"), text);
  renameSync(join(folder, "new"), file);
  return file;
}

async function knowing(fields, ...tokens) {
  const server = await fake(fields);
  for (const method of ["GET", "POST", "PUT", "DELETE"])
    server.always(method, knows(...tokens));
  return server;
}

const use = (client, options = {}) => client.withLock("a", options, () => {});

// ---- tokens ----------------------------------------------------------------

test("a token is sent with each request", async () => {
  const file = write(`${TOKEN}\n`);
  for (const how of [{ authToken: TOKEN }, { authTokenFile: file }]) {
    const server = await knowing({ renew_after_ms: 1 }, TOKEN);
    const client = new Client({ urls: server.url, ...how });
    const lock = await client.acquire("a");
    await eventually(() => server.of("PUT").length, "an extend");
    await lock.release();
    assert.deepEqual(await all(client.watch("a", {
      signal: AbortSignal.timeout(100) })).catch(() => "watched"), "watched");
    assert.deepEqual([...new Set(server.requests.map((one) =>
      one.headers.authorization))], [`Bearer ${TOKEN}`]);
  }
});

test("it comes from the environment", async () => {
  const server = await knowing({}, TOKEN);
  for (const variables of [{ REDLOCKD_AUTH_TOKEN: TOKEN },
    { REDLOCKD_AUTH_TOKEN_FILE: write(TOKEN) }])
    await withEnv(variables, () => withLock("a", { urls: server.url }, () => {}));
  await withEnv({ REDLOCKD_AUTH_TOKEN: "wrong" }, () =>
    use(new Client({ urls: server.url, authToken: TOKEN })));
});

test("a token that was replaced is read again, once for a 401", async () => {
  const file = write(TOKEN);
  const server = await knowing({}, NEXT);
  const client = new Client({ urls: server.url, authTokenFile: file });
  write(NEXT);
  await use(client);
  assert.deepEqual(server.requests.map((one) => one.headers.authorization),
    [TOKEN, NEXT, NEXT].map((token) => `Bearer ${token}`));
});

test("a lock outlives a rotation that takes a while", async () => {
  const file = write(TOKEN);
  const server = await knowing({ renew_after_ms: 20, validity_ms: 9000 }, TOKEN);
  const client = new Client({ urls: server.url, authTokenFile: file });
  const lock = await client.acquire("a");
  for (const method of ["PUT", "DELETE"]) server.always(method, knows(NEXT));
  const more = async (count, what) => {
    const before = server.of("PUT").length;
    await eventually(() => server.of("PUT").length > before + count, what);
  };
  await more(2, "401s");
  unlinkSync(file);
  await more(0, "one more");
  write(NEXT);
  const before = lock.remainingMs;
  await eventually(() => lock.remainingMs > before, "extended");
  await lock.release();
});

test("bad token files are told", () => {
  for (const [text, reason] of [["", /empty/], ["\n", /empty/],
    [`${TOKEN}\n\n`, /more than one line/], [`${TOKEN} `, /ASCII/],
    [`${TOKEN}é`, /ASCII/], [`${TOKEN}\0`, /ASCII/], ["x".repeat(4097), /4096/]]) {
    const authTokenFile = write(text);
    assert.throws(() => new Client({ authTokenFile }), (error) => {
      assert.ok(error instanceof TypeError);
      assert.match(error.message, reason);
      return error.message.includes(authTokenFile) &&
        !error.message.includes(TOKEN);
    });
  }
  assert.throws(() => new Client({ authTokenFile: join(folder, "none") }),
    { code: "ENOENT" });
  assert.throws(() => new Client({ authToken: TOKEN, authTokenFile: write(TOKEN) }),
    /either/);
  assert.throws(() => new Client({ authToken: `${TOKEN}\r\nX-Lock-Token: 1` }),
    /more than one line/);
});

// ---- TLS -------------------------------------------------------------------

const path = (file) => join(CERTIFICATES, file);
const CA = { caFile: path("ca.pem") };

function serving(name = "server", clientCa = undefined) {
  const read = (file) => readFileSync(path(file));
  return fake({}, {
    cert: read(`${name}.pem`), key: read(`${name}.key`),
    ...(clientCa && { ca: read(clientCa), requestCert: true }),
  });
}

const mine = (name = "client") =>
  ({ certFile: path(`${name}.pem`), keyFile: path(`${name}.key`) });

test("bad certificates are told at once", async () => {
  for (const [name, how] of [["expired", CA], ["server", {}], ["elsewhere", CA],
    ["foreign", CA]]) {
    const server = await serving(name);
    const client = new Client({ urls: server.url, ...how });
    const error = await rejection(client.acquire("a"), Untrusted);
    assert.match(error.message, /certificate/i, name);
    await rejection(all(client.locks()), Untrusted);
    // the variable is for programs that verify nothing: a lock needs more
    await withEnv({ NODE_TLS_REJECT_UNAUTHORIZED: "0" }, () =>
      rejection(new Client({ urls: server.url, ...how }).acquire("a"), Untrusted));
    assert.deepEqual(server.requests, []);
  }
});

test("a certificate and CAs that were replaced are read again", async () => {
  const files = { caFile: join(folder, "ca.pem"), certFile: join(folder, "me.pem"),
    keyFile: join(folder, "me.key") };
  const put = (ca, name) => {
    copyFileSync(path(ca), files.caFile);
    copyFileSync(path(`${name}.pem`), files.certFile);
    copyFileSync(path(`${name}.key`), files.keyFile);
  };
  put("other-ca.pem", "stranger");
  const server = await serving("server", "ca.pem");
  const client = new Client({ urls: server.url, ...files });
  await rejection(client.acquire("a"), Untrusted);
  put("ca.pem", "stranger");
  await rejection(client.acquire("a", { waitMs: 0 }), Unavailable);
  put("ca.pem", "client");
  await use(client, { waitMs: 0 });
});

test("a handshake that hangs costs no lock", async (t) => {
  const hung = net.createServer(() => {});
  await new Promise((done) => hung.listen(0, "127.0.0.1", done));
  t.after(() => hung.close());
  const good = await fake({ renew_after_ms: 20, validity_ms: 4000 });
  const urls = [`https://127.0.0.1:${hung.address().port}`, good.url];
  const client = new Client({ urls, timeoutMs: 1000 });
  await client.withLock("a", async (lock) => {
    good.on("PUT", cut, grant({ validity_ms: 90000 })); // then the other is asked
    await eventually(() => lock.remainingMs > 30000, "extended");
  });
});

test("bad files for TLS are told", () => {
  assert.throws(() => new Client({ caFile: join(folder, "none.pem") }),
    { code: "ENOENT" });
  assert.throws(() => new Client({ caFile: write("nothing") }), /no certificate/);
  assert.throws(() => new Client({ ...mine(), keyFile: path("stranger.key") }),
    /key values mismatch/i);
  assert.throws(() => new Client({ keyFile: mine().keyFile }), /keyFile without/);
});
