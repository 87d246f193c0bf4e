// SPDX-License-Identifier: MIT
// What to lock, and how; what became of it.
"use strict";

const { now } = require("./clock.js");
const { LockLost } = require("./errors.js");

const ACQUIRE_OPTIONS = ["ttlMs", "waitMs", "owner", "shared", "limit",
  "permits", "signal"];

/** A mistaken option must not be ignored: `ttl: 30` would be another TTL. */
function checkOptions(options, known) {
  if (options === null || typeof options !== "object")
    throw new TypeError("options must be an object");
  for (const name of Object.keys(options))
    if (!known.includes(name)) throw new TypeError(`unknown option: ${name}`);
}

function checkNumber(options, name, least) {
  const number = options[name];
  if (number === undefined) return;
  if (typeof number !== "number" || !(number >= least))
    throw new TypeError(`${name} must be a number from ${least} on`);
}

/** One name or several. */
function namesOf(resources) {
  const names = Array.isArray(resources) ? [...resources] : [resources];
  if (names.length === 0 || !names.every((name) => typeof name === "string"))
    throw new TypeError("name at least one resource, as a string");
  return names;
}

class Wish {
  #fields;

  /** Throws a TypeError if that cannot be asked for. */
  constructor(resources, options) {
    checkOptions(options, ACQUIRE_OPTIONS);
    checkNumber(options, "ttlMs", 1);
    checkNumber(options, "waitMs", 0);
    checkNumber(options, "limit", 1);
    checkNumber(options, "permits", 1);
    this.resources = namesOf(resources);
    this.name = this.resources.join(", ");
    this.ttlMs = options.ttlMs;
    this.waitMs = options.waitMs ?? Infinity;
    this.owner = options.owner;
    this.limit = options.limit;
    this.permits = options.permits ?? 1;
    this.isShared = options.shared ?? false;
    if (this.limit !== undefined && this.resources.length > 1)
      throw new TypeError("a limit is of one resource");
    if (this.limit === undefined && this.permits !== 1)
      throw new TypeError("permits need a limit");
    if (this.limit !== undefined && this.isShared)
      throw new TypeError("a permit has one holder: it cannot be shared");
  }

  /** The same with another TTL. */
  withTtl(ttlMs) {
    const { resources, owner, limit, permits, isShared: shared } = this;
    return new Wish(resources, { ttlMs, owner, limit, permits, shared });
  }

  /** Members of the JSON that asks for it. */
  get fields() {
    return this.#fields ??= this.#write();
  }

  #write() {
    const { resources } = this;
    let text = resources.length === 1
      ? `"resource":${JSON.stringify(resources[0])}`
      : `"resources":${JSON.stringify(resources)}`;
    if (this.ttlMs !== undefined)
      text += `,"ttl_ms":${JSON.stringify(Math.round(this.ttlMs))}`;
    if (this.owner !== undefined)
      text += `,"owner":${JSON.stringify(this.owner) ?? null}`;
    if (this.limit !== undefined)
      text += `,"limit":${JSON.stringify(this.limit)}` +
        `,"permits":${JSON.stringify(this.permits)}`;
    if (this.isShared) text += ',"mode":"shared"';
    return text;
  }
}

/** A lock that was granted: until when, and whether it was lost before. */
class Hold {
  constructor(wish, grant) {
    this.name = wish.name;
    this.resources = wish.resources;
    this.grant = grant;
    this.slots = grant.slots;
    /** @type {LockLost | undefined} */
    this.loss = undefined;
    // a downgrade has begun: from now on, each extend asks for it
    this.wantsShared = grant.isShared;
  }

  /**
   * While the lock becomes a shared one, a renewal may be under way. Its answer
   * may come last, with the token from before.
   */
  extended(grant) {
    const old = this.grant;
    const token = old.isShared && !grant.isShared ? old.token : grant.token;
    this.grant = {
      ...grant,
      token,
      isShared: old.isShared || grant.isShared,
      until: Math.max(old.until, grant.until),
      workUntil: Math.max(old.workUntil, grant.workUntil),
    };
  }

  /** For how long work may go on; 0 once it may not. */
  get remainingMs() {
    return this.loss ? 0 : Math.max(0, this.grant.workUntil - now());
  }

  /** For how long others are kept out, if the servers have not said that the
   * lock ended. */
  get validMs() {
    return Math.max(0, this.grant.until - now());
  }

  /** Until the next renewal. An answer that was slow leaves less time. */
  get renewInMs() {
    return Math.max(0, this.grant.renewAt - now());
  }

  findLoss() {
    if (!this.loss && this.remainingMs <= 0)
      this.loss = new LockLost(`${this.name}: the lock's validity ended`);
    return this.loss;
  }
}

module.exports = { ACQUIRE_OPTIONS, checkOptions, namesOf, Wish, Hold };
