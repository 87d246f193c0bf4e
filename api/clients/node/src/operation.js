// SPDX-License-Identifier: MIT
// What is asked about one lock: as a call of its own, and as a part of a batch.
"use strict";

/**
 * How it stands beside others of the same resource in one batch: READS and
 * TAKES_PERMITS go with their like, EXCLUDES with nobody.
 */
const EXCLUDES = 0;
const READS = 1;
const TAKES_PERMITS = 2;

const SLOT = "\x1f"; // a permit's name is the pool's, this and the slot's number

/** The queue and the caller write down here what became of it. */
class Operation {
  /** The server that was asked, and the moment before the request was sent. */
  url = "";
  sentAt = 0;
  /** Whether a server may have got it; with its waitMs. */
  wasSent = false;
  hasWaited = false;
  /** The Request that it is a part of, until its answer. */
  request = undefined;
  answer = undefined;
  /** A batch with it was refused as a whole: it goes as its single call. */
  isSingle = false;
  /** Whose next() is called once with the Answer; undefined: nobody's. */
  owner = undefined;

  /**
   * @param {number} timeoutMs for the connection, and for the answer
   * @param {number} waitMs how much later the answer may come
   * @param {boolean} mustWait others have the lock: it goes alone
   * @param {boolean} isUrgent no time to wait for a server that may be hanging
   */
  constructor(timeoutMs, waitMs, mustWait, isUrgent) {
    this.timeoutMs = timeoutMs;
    this.waitMs = waitMs;
    this.mustWait = mustWait;
    this.isUrgent = isUrgent;
  }
}

class Acquire extends Operation {
  constructor(wish, key, timeoutMs, waitMs, mustWait) {
    super(timeoutMs, waitMs, mustWait, false);
    this.wish = wish;
    this.key = key;
  }

  get names() {
    return this.wish.resources;
  }

  get manner() {
    if (this.wish.limit !== undefined) return TAKES_PERMITS;
    return this.wish.isShared ? READS : EXCLUDES;
  }

  get token() {
    return this.key; // each acquire has its own
  }

  /** The request when it goes alone. */
  single(waitMs) {
    return {
      method: "POST", path: "/locks",
      headers: { "Idempotency-Key": this.key },
      text: `{${this.wish.fields}${waitMs > 0
        ? `,"wait_ms":${Math.trunc(waitMs)}` : ""}}`,
    };
  }

  /** Its part of a batch. */
  item() {
    return `{"operation":"acquire",${this.wish.fields},` +
      `"idempotency_key":"${this.key}"}`;
  }
}

/** An extend or a release of a lock that is held. */
class OfHold extends Operation {
  constructor(hold, timeoutMs, isUrgent = false) {
    super(timeoutMs, 0, false, isUrgent);
    this.hold = hold;
    this.id = hold.grant.id;
    this.token = hold.grant.token;
    this.manner = hold.grant.isShared ? READS : EXCLUDES;
  }

  get names() {
    const { resources, slots } = this.hold;
    return slots.length === 0 ? resources
      : slots.map((slot) => resources[0] + SLOT + slot);
  }
}

class Extend extends OfHold {
  constructor(hold, timeoutMs, isUrgent) {
    super(hold, timeoutMs, isUrgent);
    // asked with either token, a server finds the lock in either mode
    this.fields = `"ttl_ms":${hold.grant.ttlMs}` +
      (hold.wantsShared ? ',"mode":"shared"' : "");
  }

  single() {
    return {
      method: "PUT", path: `/locks/${this.id}/extend`,
      headers: { "X-Lock-Token": this.token }, text: `{${this.fields}}`,
    };
  }

  item() {
    return `{"operation":"extend","id":${JSON.stringify(this.id)},` +
      `"token":${JSON.stringify(this.token)},${this.fields}}`;
  }
}

class Release extends OfHold {
  single() {
    return {
      method: "DELETE", path: `/locks/${this.id}`,
      headers: { "X-Lock-Token": this.token }, text: undefined,
    };
  }

  item() {
    return `{"operation":"release","id":${JSON.stringify(this.id)},` +
      `"token":${JSON.stringify(this.token)}}`;
  }
}

module.exports = {
  EXCLUDES, READS, Operation, Acquire, Extend, Release,
};
