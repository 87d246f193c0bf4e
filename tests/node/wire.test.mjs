// SPDX-License-Identifier: MIT
// Connections: servers that misbehave byte by byte, as a script says.
import assert from "node:assert/strict";
import net from "node:net";
import test, { afterEach } from "node:test";

import { Client, LockLost, Unavailable } from "redlockd-client";
import { cut, silent, usual } from "./fake.mjs";
import {
  catchWarnings, endFakes, eventually, fake, rejection, sleep, warnings,
} from "./lib.mjs";

endFakes();
catchWarnings();

const open = [];
afterEach(() => { for (const one of open.splice(0)) one.close(); });

const GRANT = JSON.stringify({
  id: "an~id", token: "7.0123456789abcdef", fencing_token: 7, ttl_ms: 30000,
  elapsed_ms: 0, validity_ms: 29000, renew_after_ms: 10000,
});
const answer = (text, status = 200, more = "") => `HTTP/1.1 ${status} OK\r\n` +
  `${more}Content-Length: ${text.length}\r\n\r\n${text}`;
const GONE = answer('{"code":"lock_not_found"}', 404);

/** The answers that a usual server gives. */
function right(head) {
  return answer(head.startsWith("POST") ? GRANT : "{}");
}

/** A server of bytes. Each request takes the next step of the script, a text, or
 * a function of its socket; after the script, requests are answered rightly. */
async function raw(...script) {
  const it = { requests: [], sockets: new Set(), connections: 0 };
  const server = net.createServer((socket) => {
    const number = ++it.connections;
    let text = "";
    it.sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (piece) => {
      text += piece;
      while (true) {
        const end = text.indexOf("\r\n\r\n");
        if (end < 0) return;
        const head = text.slice(0, end);
        const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
        if (text.length < end + 4 + length) return;
        const body = text.slice(end + 4, end + 4 + length);
        text = text.slice(end + 4 + length);
        it.requests.push({ head, body, number });
        const step = script.length > 0 ? script.shift() : right(head);
        if (typeof step === "function") step(socket, head);
        else socket.write(step === "" ? right(head) : step);
      }
    });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  it.url = `http://127.0.0.1:${server.address().port}`;
  it.close = () => {
    for (const socket of it.sockets) socket.destroy();
    server.close();
  };
  it.connectionsOf = () => it.requests.map((one) => one.number);
  open.push(it);
  return it;
}

const use = (client, options = {}) => client.withLock("a", options, () => {});
const drop = (socket) => socket.destroy();
const reset = (socket) => socket.resetAndDestroy();

test("a kept connection that ended is replaced, once, with the same request",
  async () => {
    for (const end of [drop, reset]) {
      const server = await raw("", "", end, "", "");
      const client = new Client({ urls: server.url });
      await use(client);
      await use(client, { waitMs: 0 });
      assert.deepEqual(server.connectionsOf(), [1, 1, 1, 2, 2]);
      const [, , lost, again] = server.requests;
      assert.equal(lost.head, again.head); // with its Idempotency-Key
      assert.deepEqual(warnings, []);
      await client.close();
    }
  });

test("a release that was sent twice may find the lock gone", async () => {
  const server = await raw("", drop, GONE);
  await use(new Client({ urls: server.url }));
  assert.deepEqual(server.connectionsOf(), [1, 1, 2]);
  const other = await raw("", GONE);
  await rejection(use(new Client({ urls: other.url })), LockLost);
});

test("it is replaced once, and the next time the talk decides", async () => {
  const server = await raw("", "", drop, drop, drop, drop);
  const client = new Client({ urls: server.url });
  await use(client);
  await rejection(use(client, { waitMs: 0 }), Unavailable);
  // over the kept one and a new one, and after a pause over another new one
  assert.deepEqual(server.connectionsOf(), [1, 1, 1, 2, 3]);
});

test("what is not a race is not repeated by itself", async () => {
  const begun = (socket) => socket.end("HTTP/1.1 2");
  const late = (socket) => setTimeout(() => socket.destroy(), 1200);
  for (const end of [begun, late]) {
    const server = await raw("", "", end);
    const client = new Client({ urls: server.url });
    await use(client);
    await use(client);
    await eventually(() => warnings.length === 1, "a warning");
    warnings.splice(0);
  }
  const server = await raw(drop); // over a new connection
  await use(new Client({ urls: server.url }));
  await eventually(() => warnings.length === 1, "a warning");
});

test("a connection that the server closed while it was idle is not used",
  async () => {
    const server = await raw("", (socket, head) => socket.end(right(head)));
    const client = new Client({ urls: server.url });
    await use(client);
    await sleep(50);
    await use(client);
    assert.deepEqual(server.connectionsOf(), [1, 1, 2, 2]);
  });

test("nor one that has brought what nobody asked for", async () => {
  for (const more of [(socket, head) => socket.write(right(head) + right(head)),
    (socket, head) => {
      socket.write(right(head));
      setTimeout(() => socket.write(GONE), 20);
    }]) {
    const server = await raw("", more);
    const client = new Client({ urls: server.url });
    await use(client);
    await sleep(100);
    await use(client);
    assert.deepEqual(server.connectionsOf(), [1, 1, 2, 2]);
  }
});

test("nor one that the server says it closes, at once or soon", async () => {
  for (const more of ["Connection: close\r\n", "Keep-Alive: timeout=1\r\n"]) {
    const server = await raw(answer(GRANT, 201, more), answer("{}", 200, more));
    await use(new Client({ urls: server.url }));
    assert.deepEqual(server.connectionsOf(), [1, 2]);
  }
});

test("answers in chunks, in pieces, and after 100", async () => {
  const chunks = `HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n` +
    `10\r\n${GRANT.slice(0, 16)}\r\n` +
    `${(GRANT.length - 16).toString(16)}\r\n${GRANT.slice(16)}\r\n0\r\n\r\n`;
  const slow = async (socket) => {
    for (const one of chunks) {
      socket.write(one);
      await new Promise(setImmediate);
    }
  };
  const server = await raw(slow, "", `HTTP/1.1 100 Continue\r\n\r\n${chunks}`);
  const client = new Client({ urls: server.url });
  await use(client);
  await use(client);
  assert.deepEqual(server.connectionsOf(), [1, 1, 1, 1]);
});

test("what is no answer is told, and closes the connection", async () => {
  const rows = [
    ["SSH-2.0-OpenSSH\r\n\r\n", /not an answer of HTTP\/1.1: the status line/],
    [`HTTP/1.1 200 OK\r\n${"X: y\r\n".repeat(4000)}`, /the head is too long/],
    [answer(GRANT, 201, "Transfer-Encoding: chunked\r\n"), /a length and a/],
    ["HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", /too long/],
    [(socket) => socket.end("HTTP/1.1 201 OK\r\nContent-Length: 9\r\n\r\n{}"),
      /the answer was cut short/],
    [drop, /the connection was closed/],
    [reset, /the connection was reset/],
    [() => {}, /no answer within 200 ms/],
  ];
  for (const [step, reason] of rows) {
    const server = await raw(step, step, step);
    const client = new Client({ urls: server.url, timeoutMs: 200 });
    const error = await rejection(client.acquire("a", { waitMs: 0 }), Unavailable);
    assert.match(error.message, reason);
    await eventually(() => [...server.sockets].every((one) => one.closed),
      `its connections are closed: ${reason}`);
  }
});

test("a server that says nothing, a closed port, and an unknown host", async () => {
  const server = await raw();
  server.close();
  for (const [urls, reason] of [
    [server.url, /no answer: the connection was refused/],
    ["http://no-such-host.invalid", /no answer: the host/]]) {
    const client = new Client({ urls });
    const error = await rejection(client.acquire("a", { waitMs: 0 }), Unavailable);
    assert.match(error.message, reason);
    await rejection(client.get("a"), Unavailable);
  }
});

test("what a server tells begins no other header and no other request",
  async () => {
    for (const fields of [{ token: "7.x\r\nX-Admin: 1" }, { id: "a b" },
      { id: "a HTTP/1.1\r\nX-Admin: 1\r\n\r\nGET /" }, { token: "ü" }]) {
      const server = await fake(fields);
      const client = new Client({ urls: server.url });
      await rejection(client.acquire("a", { waitMs: 0 }), Unavailable);
      assert.ok(server.requests.every((one) => one.path === "/locks"));
    }
  });

test("a path, a user and a password in the URL", async () => {
  const server = await fake();
  const url = server.url.replace("//", "//me:p%40ss@") + "/a/b%20ü/";
  await use(new Client({ urls: url }), { waitMs: 0 });
  const [post] = server.requests;
  assert.equal(post.path, "/a/b%20%C3%BC/locks");
  assert.equal(post.headers.authorization,
    `Basic ${Buffer.from("me:p@ss").toString("base64")}`);
  await use(new Client({ urls: url, authToken: "mine" }));
  assert.equal(server.requests.at(-1).headers.authorization, "Bearer mine");
});

test("IPv6", async (t) => {
  const server = net.createServer((socket) => socket.on("data", (piece) =>
    socket.write(right(String(piece)))));
  t.after(() => server.close());
  try {
    await new Promise((done, fail) => {
      server.on("error", fail);
      server.listen(0, "::1", done);
    });
  } catch {
    t.skip("this machine has no IPv6");
    return;
  }
  const client = new Client({ urls: `http://[::1]:${server.address().port}` });
  await use(client);
  await client.close();
});

test("many at once: as many connections as requests, and they are kept",
  async () => {
    const server = await fake();
    const client = new Client({ urls: server.url });
    const all = () => Promise.all(Array.from({ length: 100 }, () => use(client)));
    await all();
    const { connections } = server;
    assert.ok(connections <= 100, String(connections));
    for (let i = 0; i < 5; i++) await all();
    assert.ok(server.connections <= connections, String(server.connections));
    await client.close();
  });

test("close() ends what is under way; the next call opens new ones", async () => {
  const server = await fake();
  server.on("GET", silent);
  const client = new Client({ urls: server.url });
  const asking = rejection(client.get("a", { signal: AbortSignal.timeout(9000) }),
    Error);
  await eventually(() => server.requests.length, "the request");
  await client.close();
  await eventually(() => server.left.length, "it was left");
  await use(client);
  await asking.catch(() => {}); // it was asked again
});

test("a loop that is held up reads answers before it gives them up", async () => {
  const server = await fake({}, undefined);
  server.on("POST", (answer, request, it) => usual(answer, request, it));
  const { url } = server;
  // a process of its own: the fake must answer meanwhile
  const { spawn } = await import("node:child_process");
  const child = spawn(process.execPath, ["--input-type=module", "-e", `
    import { Client } from "redlockd-client";
    const client = new Client({ urls: "${url}", timeoutMs: 300 });
    await client.withLock("a", () => {});
    const lock = client.acquire("b");
    await new Promise(setImmediate);
    for (const until = performance.now() + 900; performance.now() < until;);
    await (await lock).release();`], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  child.stderr.on("data", (piece) => { said += piece; });
  await new Promise((done) => child.on("close", done));
  assert.deepEqual([said, server.of("POST").length], ["", 2]);
});

test("cut connections of a crowd do not multiply the requests", async () => {
  const server = await fake();
  const client = new Client({ urls: server.url });
  const all = () => Promise.all(Array.from({ length: 20 }, () => use(client)));
  await all();
  server.on("POST", ...Array(20).fill(cut));
  await all();
  assert.ok(server.of("POST").length <= 60, String(server.of("POST").length));
});
