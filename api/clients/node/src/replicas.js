// SPDX-License-Identifier: MIT
// The servers, and which one to ask.
"use strict";

const { now } = require("./clock.js");
const {
  Forbidden, RateLimited, RequestRefused, Unauthorized, Unavailable, Untrusted,
} = require("./errors.js");

const DEFAULT_URL = "http://127.0.0.1:8080";
// a replica that failed is asked last for this long, and then for twice that
const AVOID_FIRST_MS = 1000;
const AVOID_LAST_MS = 60000;
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

/**
 * A replica that failed, or whose answer is overdue, is avoided: for longer each
 * time, until it answers a request. When that time has passed it is probed, so
 * that no lock waits to find out.
 */
class Replicas {
  #avoided = new Map();
  /** Is told which one to probe; undefined: the next request does it. */
  onDue;

  /** @param {string | Iterable<string> | undefined} urls */
  constructor(urls) {
    const all = urls ?? (process.env.REDLOCKD_URL || DEFAULT_URL);
    this.urls = (typeof all === "string" ? all.split(",") : [...all])
      .map((url) => String(url).trim()).filter(Boolean).map(normal);
    if (this.urls.length === 0)
      throw new TypeError("name at least one URL of redlockd");
  }

  /**
   * The first that is not avoided; if all are, the one that failed first.
   * Waiting clients are served in order only if they ask the same server.
   */
  choose() {
    if (this.#avoided.size === 0) return this.urls[0];
    const time = now();
    const usable = this.urls.filter((url) => !this.#isAvoided(url, time));
    if (usable.length > 0) return usable[0];
    const failedAt = (url) => this.#avoided.get(url).failedAt;
    return this.urls.reduce((best, url) =>
      failedAt(url) < failedAt(best) ? url : best);
  }

  #isAvoided(url, time) {
    const state = this.#avoided.get(url);
    if (!state?.isAvoided) return false;
    if (time < state.until) return true;
    if (!this.onDue || this.urls.length === 1) return false;
    if (!state.isProbed) {
      state.isProbed = true;
      this.onDue(url);
    }
    return true;
  }

  /** url: empty if none was asked. */
  avoid(url) {
    if (!url) return;
    const time = now();
    let state = this.#avoided.get(url);
    if (!state) {
      state = { isAvoided: false, isProbed: false, until: 0, times: 0 };
      this.#avoided.set(url, state);
    }
    // many requests that fail together count as one
    if (!state.isAvoided || time >= state.until) {
      const ms = Math.min(AVOID_FIRST_MS * 2 ** state.times, AVOID_LAST_MS);
      // random, so that clients do not probe together
      state.until = time + ms * (0.75 + Math.random() / 4);
      state.times = Math.min(state.times + 1, 10);
    }
    state.isAvoided = true;
    state.failedAt = time;
  }

  /** It answered a request, in time. */
  worked(url) {
    this.#avoided.delete(url);
  }

  probed(url, isAlive) {
    const state = this.#avoided.get(url);
    if (!state) return;
    state.isProbed = false;
    if (isAlive) state.isAvoided = false; // if it fails again, for longer
    else this.avoid(url);
  }
}

/** Whose delay to heed. Another replica, which is asked next, need not be busy:
 * only once each has failed. */
function told(replicas, failures, answer) {
  return failures % replicas.urls.length === 0 ? answer : undefined;
}

/** Random, so that clients that failed together do not retry together. */
function backoffMs(failures, answer) {
  const longest = Math.min(BACKOFF_LAST_MS,
    BACKOFF_FIRST_MS * 2 ** Math.min(failures, 10));
  const delay = longest / 2 * (1 + Math.random());
  return Math.max(delay, answer?.retryAfterMs ?? 0);
}

/** A refusal. One that is not from redlockd says where it is from. */
function refused(what, answer) {
  if (!answer.isForeign) return `${what}: ${answer}`;
  const url = shown(answer.url).replace(/\/(locks|batch)([/?].*)?$/, "");
  return `${what}: ${answer.status} from ${url}, ${answer.detail}`;
}

/** What to throw when every server denies it. */
function denial(what, answer) {
  const text = refused(what, answer);
  if (answer.status === 401) return new Unauthorized(text, 401, answer.code);
  if (answer.status === 403) return new Forbidden(text, 403, answer.code);
  return new Untrusted(text);
}

function refusal(what, answer) {
  if (answer.isDenial) return denial(what, answer);
  return new RequestRefused(refused(what, answer), answer.status, answer.code);
}

function unavailable(what, answer, why) {
  const text = `${what} (${why})`;
  if (answer?.status === 429) return new RateLimited(text, answer.retryAfterMs);
  return new Unavailable(text);
}

module.exports = {
  shown, Replicas, told, backoffMs, denial, refusal, unavailable,
};
