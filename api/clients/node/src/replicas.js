// The servers, and which one to ask.
"use strict";

const { now } = require("./clock.js");
const {
  Forbidden, RateLimited, RequestRefused, Unauthorized, Unavailable, Untrusted,
} = require("./errors.js");

const DEFAULT_URL = "http://127.0.0.1:8080";
// a replica that failed is asked last for this long
const AVOID_MS = 5000;
const BACKOFF_FIRST_MS = 50;
const BACKOFF_LAST_MS = 2000;

/** The URL without a user and a password. */
function shown(url) {
  return url.replace(/(?<=:\/\/)[^/?#]*@/, "");
}

/** The URL in ASCII, as it is sent, and without a / at its end. */
function normal(url) {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw new TypeError(`not an http:// or https:// URL: ${shown(url)}`);
  return new URL(url).href.replace(/\/+$/, "");
}

class Replicas {
  #avoidUntil = new Map();

  /** @param {string | Iterable<string> | undefined} urls */
  constructor(urls) {
    const all = urls ?? (process.env.REDLOCKD_URL || DEFAULT_URL);
    this.urls = (typeof all === "string" ? all.split(",") : [...all])
      .map((url) => String(url).trim()).filter(Boolean).map(normal);
    if (this.urls.length === 0)
      throw new TypeError("name at least one URL of redlockd");
  }

  /**
   * The first that did not fail just now. Waiting clients are served in order
   * only if they ask the same server.
   */
  choose() {
    const time = now();
    const from = (url) => Math.max(time, this.#avoidUntil.get(url) ?? 0);
    return this.urls.reduce((best, url) =>
      from(url) < from(best) ? url : best);
  }

  avoid(url) {
    this.#avoidUntil.set(url, now() + AVOID_MS);
  }
}

/** Random, so that clients that failed together do not retry together. */
function backoffMs(failures, answer) {
  const longest = Math.min(BACKOFF_LAST_MS,
    BACKOFF_FIRST_MS * 2 ** Math.min(failures, 10));
  const delay = longest / 2 * (1 + Math.random());
  return Math.max(delay, answer?.retryAfterMs ?? 0);
}

/** What to throw when every server denies it. */
function denial(what, answer) {
  const text = `${what}: ${answer}`;
  if (answer.status === 401) return new Unauthorized(text, 401, answer.code);
  if (answer.status === 403) return new Forbidden(text, 403, answer.code);
  return new Untrusted(text);
}

function refusal(what, answer) {
  if (answer.isDenial) return denial(what, answer);
  return new RequestRefused(`${what}: ${answer}`, answer.status, answer.code);
}

function unavailable(what, answer, why) {
  const text = `${what} (${why})`;
  if (answer?.status === 429) return new RateLimited(text, answer.retryAfterMs);
  return new Unavailable(text);
}

module.exports = { shown, Replicas, backoffMs, denial, refusal, unavailable };
