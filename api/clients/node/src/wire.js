// One request and its answer.
"use strict";

const http = require("node:http");
const https = require("node:https");

// A server closes connections that are idle for 75 s. Their number has no limit:
// an extend must not wait for acquires that wait for locks.
const KEEP = { keepAlive: true, maxFreeSockets: 20, timeout: 60000 };

/** Connections to the servers. Idle ones do not keep the process running. */
class Wires {
  #plain = new http.Agent(KEEP);
  #tls;

  constructor(tlsOptions) {
    this.#tls = new https.Agent({ ...KEEP, ...tlsOptions });
  }

  close() {
    this.#plain.destroy();
    this.#tls.destroy();
  }

  request(url, options) {
    return url.protocol === "https:"
      ? https.request(url, { ...options, agent: this.#tls })
      : http.request(url, { ...options, agent: this.#plain });
  }
}

/** Calls `connected` when the request can be sent. */
function onConnected(request, connected) {
  request.once("socket", (socket) => {
    if (request.reusedSocket) connected();
    else socket.once(socket.encrypted ? "secureConnect" : "connect", connected);
  });
}

/** Whether a connection failed because of the server's certificate. */
function isUntrusted(error) {
  return Boolean(error?.isUntrusted);
}

/** Limits the time for the connection, and then for the whole answer. */
class Limit {
  #timer;

  start(ms, late) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(late, Math.max(Math.ceil(ms), 1));
  }

  end() {
    clearTimeout(this.#timer);
  }
}

/**
 * Rejects if there is no whole answer in time, or the signal aborts; then the
 * connection is closed.
 *
 * @param {Wires} wires
 * @param {import("./talk.js").Send} step
 * @param {Record<string, string>} headers
 * @param {AbortSignal} [signal]
 * @returns {Promise<{status: number, text: string, retryAfter: string}>}
 */
function exchange(wires, step, headers, signal) {
  return new Promise((resolve, reject) => {
    const text = step.body && JSON.stringify(step.body);
    const request = wires.request(new URL(step.url), {
      method: step.method,
      headers: {
        ...headers,
        ...(text && {
          "Content-Type": "application/json",
          "Content-Length": Buffer.byteLength(text),
        }),
      },
    });
    const limit = new Limit();
    const end = () => {
      limit.end();
      signal?.removeEventListener("abort", abort);
    };
    const fail = (error) => {
      end();
      reject(error);
      request.destroy();
    };
    const late = () => fail(new Error("no answer in time"));
    const abort = () => fail(signal.reason);
    signal?.addEventListener("abort", abort);
    limit.start(step.timeoutMs, late);
    onConnected(request, () =>
      limit.start(step.timeoutMs + (step.waitMs ?? 0), late));
    request.on("error", (error) => {
      error.isUntrusted = Boolean(request.socket?.authorizationError);
      fail(error);
    });
    request.on("response", (response) => {
      const pieces = [];
      response.on("data", (piece) => pieces.push(piece));
      response.on("error", fail);
      response.on("end", () => {
        end();
        resolve({
          status: response.statusCode,
          text: Buffer.concat(pieces).toString(),
          retryAfter: response.headers["retry-after"] ?? "",
        });
      });
    });
    request.end(text);
  });
}

module.exports = { Wires, isUntrusted, exchange };
