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
  acquire, Client, Forbidden, LockLost, RateLimited, RequestRefused,
  Unauthorized, Unavailable, Untrusted, withLock,
} from "redlockd-client";
import { cut, grant, knows, page, problem, usual } from "./fake.mjs";
import {
  aborted, catchWarnings, endFakes, eventually, fake, rejection, withEnv,
} from "./lib.mjs";

endFakes();
catchWarnings();

const TOKEN = "first+token/of~2026==";
const NEXT = "second.token";
const LIMITED = problem(429, "rate_limited", { retry_after_ms: 1000 });
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

async function all(iterable) {
  const found = [];
  for await (const one of iterable) found.push(one);
  return found;
}

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

test("who is unknown is told at once, although the wait has no end", async () => {
  const server = await knowing({}, TOKEN);
  for (const how of [{}, { authToken: NEXT }]) {
    const client = new Client({ urls: server.url, ...how });
    const error = await rejection(client.acquire("a"), Unauthorized);
    assert.deepEqual([error.status, error instanceof RequestRefused], [401, true]);
    await rejection(all(client.locks()), Unauthorized);
    await rejection(client.get("a"), Unauthorized);
    await rejection(all(client.watch("a")), Unauthorized);
    await rejection(client.forceRelease("a", 7), Unauthorized);
  }
  assert.equal(server.of("POST").length, 2);
});

test("who is forbidden is told at once, also by a gateway", async () => {
  for (const action of [problem(403, "forbidden"), page(403, "<h1>no</h1>")]) {
    const server = await fake();
    server.always("POST", action);
    await rejection(use(new Client({ urls: server.url })), Forbidden);
    assert.equal(server.requests.length, 1);
  }
});

test("another replica may know it", async () => {
  const [old, dead, fresh] = [await knowing({}, NEXT), await fake(),
    await knowing({}, TOKEN)];
  dead.always("POST", cut);
  await use(new Client({ urls: [old.url, dead.url, fresh.url], authToken: TOKEN }));
  assert.equal(fresh.of("POST").length, 1);
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

test("an identity that was removed loses the lock", async () => {
  const server = await knowing({ renew_after_ms: 20, validity_ms: 1000 }, TOKEN);
  const client = new Client({ urls: server.url, authToken: TOKEN });
  const lock = await client.acquire("a");
  server.always("PUT", knows(NEXT));
  assert.ok(await aborted(lock.signal) instanceof LockLost);
  await rejection(lock.release(), LockLost);
});

test("a refused release is no loss, but a 404 after it is one", async () => {
  const server = await fake();
  const refused = problem(401, "unauthorized");
  server.on("DELETE", refused, usual);
  await withLock("a", { urls: server.url }, () => {});
  server.on("DELETE", refused, problem(404, "lock_not_found"));
  await rejection(withLock("a", { urls: server.url }, () => {}), LockLost);
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

// ---- limits ----------------------------------------------------------------

test("who is limited comes back when told", async () => {
  for (const action of [LIMITED, page(429, "<h1>no</h1>", { "Retry-After": "1" })]) {
    const server = await fake();
    server.on("POST", action, action);
    const began = performance.now();
    await withLock("a", { urls: server.url }, () => {});
    assert.ok(performance.now() - began >= 1990);
    assert.equal(server.of("POST").length, 3);
  }
});

test("another replica has a limit of its own", async () => {
  const [one, two] = [await fake(), await fake()];
  one.always("POST", problem(429, "rate_limited", { retry_after_ms: 60000 }));
  await withLock("a", { urls: [one.url, two.url] }, () => {});
  assert.equal(two.of("POST").length, 1);
});

test("a limit is told in the end, and costs no lock", async () => {
  const server = await fake({ renew_after_ms: 20, validity_ms: 4000 });
  server.always("POST", LIMITED).always("GET", LIMITED);
  const client = new Client({ urls: server.url });
  const error = await rejection(client.acquire("a", { waitMs: 0 }), RateLimited);
  assert.deepEqual([error.retryAfterMs, error instanceof Unavailable],
    [1000, true]);
  await rejection(all(client.locks()), RateLimited);
  server.on("POST").on("PUT", LIMITED, LIMITED, grant({ validity_ms: 90000 }));
  server.on("DELETE", LIMITED);
  await client.withLock("a", (lock) =>
    eventually(() => lock.remainingMs > 30000, "extended"));
  assert.equal(server.of("DELETE").length, 2);
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

test("it trusts the CA it is told, also by the environment", async () => {
  const server = await serving();
  await use(new Client({ urls: server.url, ...CA }));
  await withEnv({ REDLOCKD_CACERT: CA.caFile }, () =>
    withLock("a", { urls: server.url }, () => {}));
  assert.equal(server.of("POST").length, 2);
});

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

test("a good replica is found behind a bad one", async () => {
  const [bad, good] = [await serving("expired"), await serving()];
  await use(new Client({ urls: [bad.url, good.url], ...CA }));
  assert.equal(good.of("POST").length, 1);
});

test("both sides have certificates", async () => {
  const server = await serving("server", "ca.pem");
  await use(new Client({ urls: server.url, ...CA, ...mine() }));
  for (const how of [{}, mine("stranger")])
    await rejection(new Client({ urls: server.url, ...CA, ...how })
      .acquire("a", { waitMs: 0 }), Unavailable);
  await withEnv({ REDLOCKD_CACERT: CA.caFile, REDLOCKD_CERT: mine().certFile,
    REDLOCKD_KEY: mine().keyFile }, () =>
    withLock("a", { urls: server.url }, () => {}));
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
