// SPDX-License-Identifier: MIT
// What a server answers.
"use strict";

/** The codes of an Answer that no server gave: its detail says why. */
const UNTRUSTED = "untrusted";
const NO_ANSWER = "no_answer";
const UNSENT = "unsent"; // no server has got the request
/** The codes that say that a lock is no longer ours. */
const ENDED = ["lock_not_found", "not_owner"];
const HEADER_SHOWN = 80; // characters
const NONE = Object.freeze([]);

/** Whether it can be sent as it is, within a path or a header. */
function isWord(text) {
  return typeof text === "string" && /^[!-~]+$/.test(text);
}

class Answer {
  /** isRepeated: the server may have got the request twice. isOverdue: it took
   * its time. url: of the server. */
  constructor(status, body, { isRepeated = false, isOverdue = false, url = "",
    contentType = "" } = {}) {
    this.status = status;
    this.body = body;
    this.isRepeated = isRepeated;
    this.isOverdue = isOverdue;
    this.url = url;
    this.contentType = contentType;
  }

  /** The text may be no JSON: a proxy may have answered. */
  static read(raw) {
    const { status, text, retryAfter } = raw;
    let body;
    try {
      body = JSON.parse(text);
    } catch {
      // nothing that we can read
    }
    if (body === null || typeof body !== "object" || Array.isArray(body))
      body = {};
    if (!("retry_after_ms" in body) && /^\d{1,9}$/.test(retryAfter))
      body.retry_after_ms = Number(retryAfter) * 1000;
    return new Answer(status, body, raw);
  }

  get code() {
    return String(this.body.code ?? "");
  }

  /** Whether the request is wrong, here and at every other replica. */
  get isFinal() {
    return this.status >= 300 && this.status < 500 &&
      this.status !== 408 && this.status !== 429;
  }

  /**
   * By redlockd or by a gateway in front. Another replica may know other
   * identities.
   */
  get isDenial() {
    return this.status === 401 || this.status === 403 ||
      this.code === UNTRUSTED;
  }

  /** Whether the server can be asked for other things, too. */
  get isTimely() {
    return this.status > 0 && this.status < 500 && this.status !== 408 &&
      this.status !== 429 && !this.isDenial && !this.isOverdue;
  }

  /** Whether others hold the lock, and it can be waited for. */
  get isHeld() {
    return this.code === "lock_held" || this.code === "too_many_readers";
  }

  /** Whether an acquire with this answer certainly was not granted. */
  get grantsNothing() {
    return !this.isRepeated && (this.isFinal || this.isDenial ||
      this.status === 429 || this.code === UNSENT);
  }

  /** Whether it is what was asked for, and no page of a proxy. */
  has(member) {
    return this.status === 200 && member in this.body;
  }

  get hasEnded() {
    return ENDED.includes(this.code);
  }

  get retryAfterMs() {
    const ms = Number(this.body.retry_after_ms ?? 0);
    return ms > 0 ? ms : 0;
  }

  /** Whether a gateway has refused it, or whatever is there in place of redlockd,
   * whose problems have a code. */
  get isForeign() {
    return this.status >= 300 && !this.code;
  }

  get detail() {
    if (!this.isForeign) return this.body.detail ?? "";
    const kind = this.contentType.slice(0, HEADER_SHOWN)
      .replace(/[^ -~]/g, "?");
    return `not from redlockd (${kind || "no Content-Type"})`;
  }

  toString() {
    return `${this.status || ""} ${this.detail}`.trim();
  }
}

/**
 * @typedef {object} Grant
 * @property {string} id
 * @property {string} token a secret
 * @property {number} fencingToken
 * @property {number} ttlMs
 * @property {number} renewAt on our clock, as the next
 * @property {number} until then the lock may be another's
 * @property {number} workUntil by then, work must have ended
 * @property {readonly number[]} slots of a permit
 * @property {boolean} isShared
 */

/**
 * `sent` is the moment before the request was sent.
 *
 * @returns {Grant | undefined} undefined: no grant, or one that was cut off
 */
function readGrant(answer, sent) {
  if (answer?.status !== 200 && answer?.status !== 201) return undefined;
  const { body } = answer;
  if (!isWord(body.id) || !isWord(body.token) ||
      !Number.isFinite(body.fencing_token) || !Number.isFinite(body.ttl_ms) ||
      !Number.isFinite(body.renew_after_ms) ||
      !Number.isFinite(body.elapsed_ms) || !Number.isFinite(body.validity_ms))
    return undefined;
  const granted = sent + body.elapsed_ms;
  const until = granted + body.validity_ms;
  return {
    id: body.id,
    token: body.token,
    fencingToken: body.fencing_token,
    ttlMs: body.ttl_ms,
    renewAt: granted + body.renew_after_ms,
    until,
    workUntil: until - body.ttl_ms / 10, // a tenth of the TTL to end the work
    slots: body.slots ? Object.freeze([...body.slots]) : NONE,
    isShared: body.mode === "shared",
  };
}

module.exports = { NO_ANSWER, UNSENT, UNTRUSTED, ENDED, Answer, readGrant };
