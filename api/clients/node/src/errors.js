// SPDX-License-Identifier: MIT
// The errors. None of their texts contains a token or a password.
"use strict";

/** Every error of this package, but for mistaken arguments. */
class RedlockdError extends Error {}

/** Somebody else held the lock until the wait had passed. */
class LockHeld extends RedlockdError {
  constructor(message, heldBy = {}) {
    super(message);
    this.owner = heldBy.owner;
    this.remainingMs = heldBy.remaining_ms;
    this.fencingToken = heldBy.fencing_token;
    this.readers = heldBy.readers;
  }
}

/**
 * The lock ended before its holder released it. What the holder did since then
 * may have overlapped with the work of the next holder.
 */
class LockLost extends RedlockdError {}

/**
 * No server granted or refused the lock until the wait had passed. If an answer
 * was lost, the lock may be held until its TTL ends.
 */
class Unavailable extends RedlockdError {}

/** No server granted it: we ask them too often. */
class RateLimited extends Unavailable {
  constructor(message, retryAfterMs) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * No server has a certificate that we trust: signed by a known CA, for its name,
 * and not expired.
 */
class Untrusted extends RedlockdError {}

/**
 * The signal that was given aborted before it was done. The signal's reason is
 * the cause.
 */
class AbortError extends RedlockdError {
  constructor(what, signal) {
    super(`${what}: aborted`, { cause: signal?.reason });
  }

  get code() {
    return "ABORT_ERR";
  }
}

/** The request is wrong, and would be wrong again. */
class RequestRefused extends RedlockdError {
  constructor(message, status, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** 401: the servers do not know our token, or we have none. */
class Unauthorized extends RequestRefused {}

/** 403: the servers know us, but we may not do this. */
class Forbidden extends RequestRefused {}

const ALL = {
  AbortError, RedlockdError, LockHeld, LockLost, Unavailable, RateLimited,
  Untrusted, RequestRefused, Unauthorized, Forbidden,
};
// on the prototype: an own property would be printed with each error
for (const [value, type] of Object.entries(ALL))
  Object.defineProperty(type.prototype, "name", { value });

module.exports = ALL;
