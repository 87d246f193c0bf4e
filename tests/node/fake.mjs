// SPDX-License-Identifier: MIT
// A server that answers like redlockd, or fails as the test's script says; the
// same as tests/python/fake.py.
import http from "node:http";
import https from "node:https";

import { eventually, sleep } from "./lib.mjs";

// ---- what the script can say, request by request ---------------------------
// Each is a function of (answer, request, fake).

function send(answer, status, text, headers = {}) {
  answer.writeHead(status, {
    ...headers, "Content-Length": Buffer.byteLength(text),
  });
  answer.end(text);
}

/** Grants, extends and releases whatever is asked for. */
export function usual(answer, request, fake) {
  const isNew = request.method === "POST";
  if (request.method === "DELETE") send(answer, 200, '{"released":true}');
  else if (request.method === "GET") send(answer, 200, '{"held":false,"version":"free"}');
  else send(answer, isNew ? 201 : 200, JSON.stringify(fake.grant(request)));
}

/** A grant or an extend with these fields. */
export const grant = (fields) => (answer, request, fake) =>
  send(answer, request.method === "POST" ? 201 : 200,
    JSON.stringify({ ...fake.grant(request), ...fields }));

export const problem = (status, code, fields) => (answer) =>
  send(answer, status, JSON.stringify({ status, code, detail: code, ...fields }));

/** What is not from redlockd, or not all of it. */
export const page = (status, text, headers) => (answer) =>
  send(answer, status, text, headers);

export const json = (body) => page(200, JSON.stringify(body));

/** As usual for these; 401 for everybody else. */
export const knows = (...tokens) => (answer, request, fake) => {
  const text = request.headers.authorization ?? "";
  const isKnown = tokens.some((token) => text === `Bearer ${token}`);
  (isKnown ? usual : problem(401, "unauthorized"))(answer, request, fake);
};

/** The connection breaks instead of an answer. */
export const cut = (answer) => answer.socket.destroy();

/** As usual, but the answer is lost. */
export const lost = (answer, request, fake) => {
  fake.grant(request);
  answer.socket.destroy();
};

export const late = (ms, action) => async (...args) => {
  await sleep(ms);
  action(...args);
};

export const afterRelease = (action) => async (answer, request, fake) => {
  await eventually(() => fake.of("DELETE").length, "the release");
  action(answer, request, fake);
};

/** No answer until the client leaves. */
export const silent = () => {};

/** An answer that never ends: no timeout of a single read notices. */
export const trickle = (answer) => {
  answer.writeHead(200, { "Content-Length": 100000 });
  const timer = setInterval(() => answer.write("x"), 20);
  answer.on("close", () => clearInterval(timer));
};

// ---- batches ---------------------------------------------------------------

const METHODS = { acquire: "POST", extend: "PUT", release: "DELETE" };

/** An operation as the request that it would be alone. */
function single(operation, whole) {
  const { operation: what, id, token, idempotency_key: key, ...body } = operation;
  const method = METHODS[what];
  const paths = { POST: "/locks", PUT: `/locks/${id}/extend` };
  const headers = { ...whole.headers };
  if (token !== undefined) headers["x-lock-token"] = token;
  if (key !== undefined) headers["idempotency-key"] = key;
  return { method, path: paths[method] ?? `/locks/${id}`, headers, body, whole,
    connection: whole.connection };
}

/** Takes what an action answers to one operation. An action that breaks the
 * connection, or never answers, does that to the batch. */
class Part {
  constructor(answer) {
    this.socket = answer.socket;
    this.text = "";
    this.on = (...args) => answer.on(...args);
    this.done = new Promise((done) => { this.end = (text) => {
      this.write(text);
      done();
    }; });
  }

  writeHead(status) {
    this.status = status;
  }

  write(text) {
    this.text += text;
  }

  result(request) {
    const { status } = this;
    const name = status >= 300 ? "problem"
      : request.method === "DELETE" ? "release" : "grant";
    return { status, [name]: JSON.parse(this.text) };
  }
}

/** What the scripts of POST, PUT and DELETE say of its operations. */
export async function each(answer, request, fake) {
  const parts = request.body.operations.map((operation) => {
    const alone = single(operation, request);
    const part = new Part(answer);
    fake.take(alone, part);
    return [alone, part];
  });
  for (const [, part] of parts) await part.done;
  send(answer, 200, JSON.stringify({
    results: parts.map(([alone, part]) => part.result(alone)) }));
}

// ---- the server ------------------------------------------------------------

/** Follows the scripts of GET, POST, PUT, DELETE and BATCH, then its rest for
 * ever. What is in a batch counts as what it would be alone. */
export class Fake {
  scripts = {};
  rest = {};
  requests = [];
  batches = []; // each has its operations in its body
  singles = 0; // requests that were no batches
  left = []; // whose client went before the answer
  connections = 0;
  #number = 1795221641865000;

  /** fields: of every grant, as ttl_ms. */
  static async start(fields = {}, tls = undefined) {
    const fake = new Fake();
    fake.fields = fields;
    const serve = (request, answer) => fake.#serve(request, answer);
    fake.server = tls ? https.createServer(tls, serve) : http.createServer(serve);
    fake.server.keepAliveTimeout = 60000;
    fake.server.on(tls ? "secureConnection" : "connection", (socket) => {
      socket.number = fake.connections++;
    });
    fake.server.on("tlsClientError", () => {});
    await new Promise((done) => fake.server.listen(0, "127.0.0.1", done));
    const { port } = fake.server.address();
    fake.url = `${tls ? "https" : "http"}://127.0.0.1:${port}`;
    return fake;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }

  on(method, ...actions) {
    this.scripts[method] = actions;
    this.rest[method] = method === "BATCH" ? each : usual;
    return this;
  }

  /** From now on, or when the script has ended. */
  always(method, action, ...first) {
    this.scripts[method] = first;
    this.rest[method] = action;
    return this;
  }

  of(method) {
    return this.requests.filter((one) => one.method === method);
  }

  grant(request) {
    const number = this.#number++;
    const body = {
      id: "an~id", token: `${number}.0123456789abcdef`, fencing_token: number,
      ttl_ms: Math.min(30000, this.fields.validity_ms ?? 30000), elapsed_ms: 0,
      validity_ms: 29000, renew_after_ms: 10000, ...this.fields,
    };
    if (request.method === "PUT") body.token = request.headers["x-lock-token"];
    if (request.body.mode === "shared" || body.token.includes("~")) {
      body.token = body.token.replace(".", "~");
      body.mode = "shared";
    }
    return body;
  }

  async #serve(message, answer) {
    let text = "";
    for await (const piece of message) text += piece;
    const request = {
      method: message.method,
      path: message.url,
      headers: message.headers,
      body: text ? JSON.parse(text) : {},
      connection: message.socket.number,
    };
    const isBatch = message.url.endsWith("/batch");
    if (isBatch) request.method = "BATCH";
    else this.singles += 1;
    answer.on("close", () => {
      if (!answer.writableFinished) this.left.push(request);
    });
    this.take(request, answer);
  }

  take(request, answer) {
    const { method } = request;
    (method === "BATCH" ? this.batches : this.requests).push(request);
    const script = this.scripts[method];
    const action = script?.length ? script.shift()
      : this.rest[method] ?? (method === "BATCH" ? each : usual);
    action(answer, request, this);
  }
}
