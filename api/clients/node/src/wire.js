// SPDX-License-Identifier: MIT
// Requests over connections that are kept.
//
// This is not node:http, which costs five times the processor time and gets a
// third of the requests through. What it gives up is what no request here needs:
// pipes, upgrades, proxies, bodies longer than a buffer.
"use strict";

const net = require("node:net");
const tls = require("node:tls");

const { alarms } = require("./alarms.js");
const { now } = require("./clock.js");
const { BadAnswer, Reader } = require("./http1.js");

// a server closes connections that are idle for 75 s
const IDLE_MS = 60000;
const IDLE_AT_MOST = 256;
// A server that closes an idle connection does not yet know of a request that is
// on its way. What breaks later than this is something else.
const RACE_MS = 1000;

const REASONS = {
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the connection was reset",
  EPIPE: "the connection was reset",
  ENOTFOUND: "the host has no address",
  EAI_AGAIN: "the host's address was not found out",
  EHOSTUNREACH: "the host is unreachable",
  ENETUNREACH: "the network is unreachable",
  ETIMEDOUT: "the connection timed out",
};

/** Why there is no answer, in words. */
function reasonOf(error) {
  return REASONS[error.code] ?? error.message;
}

/** Whether a connection failed because of the server's certificate. */
function isUntrusted(error) {
  return Boolean(error?.isUntrusted);
}

/** One connection, which carries one request at a time. */
class Link {
  /** @type {Exchange | undefined} */
  exchange;
  isUp = false;
  idleUntil = 0;
  #origin;
  #socket;
  #reader = new Reader();
  #isUsed = false; // it has brought an answer before

  constructor(origin) {
    this.#origin = origin;
    const socket = origin.dial();
    this.#socket = socket;
    socket.once(origin.isTls ? "secureConnect" : "connect", () => {
      this.isUp = true;
      // not before: a server without a good certificate must not see a token
      if (this.exchange) socket.write(this.exchange.text);
      this.exchange?.connected();
    });
    socket.on("data", (piece) => this.#take(piece));
    socket.on("end", () => this.#end(this.#reader.end()));
    socket.on("error", (error) => {
      error.isUntrusted = Boolean(socket.authorizationError);
      this.#break(error);
    });
    socket.on("close", () => this.#end());
  }

  send(exchange) {
    this.exchange = exchange;
    if (exchange.isProbe) this.#socket.unref();
    else this.#socket.ref();
    if (this.isUp) this.#socket.write(exchange.text);
  }

  get isOpen() {
    return this.#socket.writable && now() < this.idleUntil;
  }

  destroy() {
    this.#origin.links.delete(this);
    this.#socket.destroy();
  }

  /** Ends it, and its request without an answer. */
  fail(error, isStale = false) {
    const { exchange } = this;
    this.exchange = undefined;
    this.destroy();
    exchange?.failed(error, isStale);
  }

  /** It ended by itself. If it was idle before, the server may have closed it
   * before the request came: nobody knows. */
  #break(error) {
    this.fail(error, this.#isUsed && !this.#reader.hasBegun);
  }

  #take(piece) {
    if (!this.exchange) {
      this.destroy(); // what nobody asked for
      return;
    }
    let answer;
    try {
      answer = this.#reader.take(piece);
    } catch (error) {
      if (!(error instanceof BadAnswer)) throw error;
      this.fail(new Error(`not an answer of HTTP/1.1: ${error.message}`));
      return;
    }
    if (answer) this.#finish(answer);
  }

  #end(answer) {
    if (answer && this.exchange) this.#finish(answer);
    else this.#break(new Error(this.#reader.hasBegun ? "the answer was cut short"
      : "the connection was closed"));
  }

  #finish(answer) {
    const { exchange } = this;
    this.exchange = undefined;
    if (answer.isLast || !this.#origin.keeps(this)) {
      this.destroy();
    } else {
      this.#isUsed = true;
      this.#reader = new Reader();
      this.idleUntil = now() + Math.min(IDLE_MS, answer.idleMs - 1000);
      this.#socket.unref();
    }
    exchange.succeeded(answer);
  }
}

/** A server, and the connections to it. */
class Origin {
  links = new Set();
  isRetired = false;
  #idle = []; // the one used last is the last
  #where;

  /** @param {string} text such as "https://user:password@host:8443" */
  constructor(text, tlsOptions) {
    const url = new URL(text);
    const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
    this.isTls = url.protocol === "https:";
    this.#where = {
      host, port: Number(url.port) || (this.isTls ? 443 : 80),
      noDelay: true, keepAlive: true, keepAliveInitialDelay: 1000,
      ...(this.isTls && {
        ALPNProtocols: ["http/1.1"], ...tlsOptions,
        servername: net.isIP(host) ? "" : host,
      }),
    };
    this.head = `Host: ${url.host}\r\n`;
    this.basic = undefined;
    if (url.username || url.password) {
      const text = `${decodeURIComponent(url.username)}:` +
        decodeURIComponent(url.password);
      this.basic = `Basic ${Buffer.from(text).toString("base64")}`;
    }
  }

  dial() {
    return this.isTls ? tls.connect(this.#where) : net.connect(this.#where);
  }

  send(exchange, isNew) {
    let link = isNew ? undefined : this.#idle.pop();
    while (link && !link.isOpen) {
      link.destroy();
      link = this.#idle.pop();
    }
    if (!link) {
      link = new Link(this);
      this.links.add(link);
    }
    link.send(exchange);
    return link;
  }

  /** Whether a connection that has brought its answer is kept. */
  keeps(link) {
    if (this.isRetired) return false;
    if (this.#idle.length > 0 && !this.#idle[0].isOpen)
      this.#idle.shift().destroy();
    if (this.#idle.length >= IDLE_AT_MOST) return false;
    this.#idle.push(link);
    return true;
  }

  close() {
    this.retire();
    for (const link of this.links)
      link.fail(new Error("the client was closed"));
  }

  /** Requests that wait for their answers keep their connections until then. */
  retire() {
    this.isRetired = true;
    for (const link of this.#idle.splice(0)) link.destroy();
  }
}

/** Where in the URL the path begins. */
function pathAt(url) {
  const at = url.indexOf("/", url.indexOf("://") + 3);
  return at < 0 ? url.length : at;
}

/** Connections to the servers. Idle ones do not keep the process running. */
class Wires {
  #origins = new Map();
  #tlsOptions;

  constructor(tlsOptions) {
    this.#tlsOptions = tlsOptions;
  }

  origin(url) {
    const text = url.slice(0, pathAt(url));
    let origin = this.#origins.get(text);
    if (!origin) {
      origin = new Origin(text, this.#tlsOptions);
      this.#origins.set(text, origin);
    }
    return origin;
  }

  close() {
    for (const origin of this.#origins.values()) origin.close();
  }

  retire() {
    for (const origin of this.#origins.values()) origin.retire();
  }
}

/** Parts of it come from servers: none may begin another line, or a request. */
function textOf(origin, step, headers) {
  const path = step.url.slice(pathAt(step.url)) || "/";
  if (!/^[!-~]+$/.test(path)) throw new Error("the path is malformed");
  let head = `${step.method} ${path} HTTP/1.1\r\n${origin.head}`;
  for (const name in headers) {
    const value = headers[name];
    if (!/^[ -~]*$/.test(value)) throw new Error(`${name} is malformed`);
    head += `${name}: ${value}\r\n`;
  }
  if (origin.basic && !headers.Authorization)
    head += `Authorization: ${origin.basic}\r\n`;
  if (step.text === undefined) return `${head}\r\n`;
  return `${head}Content-Type: application/json\r\n` +
    `Content-Length: ${Buffer.byteLength(step.text)}\r\n\r\n${step.text}`;
}

/**
 * @typedef {object} Step what is sent
 * @property {string} method
 * @property {string} url
 * @property {string} [text] the body, JSON
 * @property {number} timeoutMs for the connection, and for the answer
 * @property {number} [waitMs] how much later the answer may come
 * @property {number} [overdueMs] when it should have come
 * @property {() => void} [onOverdue] it has not come by then
 * @property {boolean} [isProbe] the process does not wait for it
 *
 * @typedef {object} Raw an answer
 * @property {number} status
 * @property {string} text
 * @property {string} retryAfter
 * @property {string} contentType
 * @property {boolean} isRepeated the server may have got the request twice
 * @property {boolean} isOverdue
 */

/** A request until its answer, or until it is known that there will be none. */
class Exchange {
  text;
  #origin;
  #step;
  #owner;
  #link;
  #alarm;
  #began = now();
  #isRepeated = false;
  #isOverdue = false;

  /**
   * @param {Wires} wires
   * @param {Step} step
   * @param {Record<string, string>} headers
   * @param {{succeeded(raw: Raw): void, failed(error: Error): void}} owner
   *   one of both is called once, unless it is cancelled before. The error has
   *   isUnsent: there was no connection; and isRepeated: there was one before
   */
  constructor(wires, step, headers, owner) {
    this.#origin = wires.origin(step.url);
    this.text = textOf(this.#origin, step, headers);
    this.#step = step;
    this.isProbe = Boolean(step.isProbe);
    this.#owner = owner;
    this.#start();
  }

  #start() {
    this.#link = this.#origin.send(this, this.#isRepeated);
    if (this.#link.isUp) this.connected();
    else this.#limit(this.#step.timeoutMs, 0, "no connection");
  }

  /** Closes the connection, so that the server notices. */
  cancel() {
    this.#owner = undefined;
    this.#link.fail(new Error("cancelled"));
  }

  connected() {
    const { timeoutMs, waitMs = 0 } = this.#step;
    this.#limit(timeoutMs, waitMs, "no answer");
  }

  /** A repeat has no more time than the longest first try. */
  #limit(ms, waitMs, what) {
    const { timeoutMs, waitMs: wholeWaitMs = 0, overdueMs, onOverdue } =
      this.#step;
    const time = now();
    const end = Math.min(time + ms + waitMs,
      this.#began + 2 * timeoutMs + wholeWaitMs);
    const overdue = time + overdueMs + waitMs;
    const late = () => this.#link.fail(
      new Error(`${what} within ${Math.round(ms + waitMs)} ms`));
    alarms.clear(this.#alarm);
    if (!onOverdue || overdue >= end || this.#isOverdue) {
      this.#alarm = alarms.set(end, late);
      return;
    }
    this.#alarm = alarms.set(overdue, () => {
      this.#isOverdue = true;
      this.#alarm = alarms.set(end, late);
      onOverdue();
    });
  }

  succeeded(answer) {
    alarms.clear(this.#alarm);
    answer.isRepeated = this.#isRepeated;
    answer.isOverdue = this.#isOverdue;
    this.#owner?.succeeded(answer);
  }

  /** isStale: over a connection that was idle before, and that ended without a
   * byte of an answer. That is tried once more, over a new one. */
  failed(error, isStale) {
    alarms.clear(this.#alarm);
    if (isStale && !this.#isRepeated && now() - this.#began < RACE_MS) {
      this.#isRepeated = true;
      this.#start();
    } else {
      error.isUnsent = !this.#link.isUp;
      error.isRepeated = this.#isRepeated;
      this.#owner?.failed(error);
    }
  }
}

module.exports = { Wires, Exchange, isUntrusted, reasonOf };
