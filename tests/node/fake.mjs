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

// ---- the server ------------------------------------------------------------

/** Follows the scripts of GET, POST, PUT and DELETE, then its rest for ever. */
export class Fake {
  scripts = {};
  rest = {};
  requests = [];
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
    this.rest[method] = usual;
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
      ttl_ms: 30000, elapsed_ms: 0, validity_ms: 29000, renew_after_ms: 10000,
      ...this.fields,
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
    this.requests.push(request);
    answer.on("close", () => {
      if (!answer.writableFinished) this.left.push(request);
    });
    const script = this.scripts[request.method];
    const action = script?.length ? script.shift()
      : this.rest[request.method] ?? usual;
    action(answer, request, this);
  }
}
