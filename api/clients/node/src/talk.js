// SPDX-License-Identifier: MIT
// What is asked of redlockd about one lock, and when: without I/O.
//
// Each function is a generator. It yields what to do next: an Operation, a Send, a
// Sleep or a Late. The caller passes the Answer back into it. It returns when it is
// done, or throws an error.
"use strict";

const { randomUUID } = require("node:crypto");
const { debuglog } = require("node:util");

const { readGrant, UNSENT } = require("./answer.js");
const { now } = require("./clock.js");
const { LockHeld, LockLost } = require("./errors.js");
const { Acquire, Extend, Release } = require("./operation.js");
const { OVERDUE_MS } = require("./queue.js");
const {
  backoffMs, denial, refusal, shown, told, unavailable,
} = require("./replicas.js");
const { Hold } = require("./wish.js");

/**
 * @typedef {object} Send asked for as it is, beside the queue
 * @property {string} method
 * @property {string} url
 * @property {number} timeoutMs for the connection, and for the answer
 * @property {number} [waitMs] how much later the answer may come
 *
 * @typedef {object} Sleep
 * @property {number} sleepMs
 *
 * @typedef {object} Late
 * @property {import("./operation.js").Operation} answerOf what somebody has left;
 *   its answer may still come, or undefined
 */

// proxies may cut requests after 60 s, some after 15 s
const LONGEST_WAIT_MS = 10000;
// of a lock that is acquired only to be released
const SHORTEST_TTL_MS = 100;

/** Shown with NODE_DEBUG=redlockd. */
const debug = debuglog("redlockd");

/** Shown on stderr, unless the program handles the event "warning". */
function warn(text) {
  process.emitWarning(text, { type: "RedlockdWarning" });
}

/** One acquire. Its requests have one key: if an answer with a grant was lost,
 * the next request gets the same lock. */
class Attempt {
  key = randomUUID(); // as secret as a token
  // the answer to a request with this key was lost: it may have been granted
  wasLost = false;
  /** @type {Acquire | undefined} the last one */
  asked;

  ask(wish, waitMs, timeoutMs, mustWait = false) {
    this.asked = new Acquire(wish, this.key, timeoutMs, waitMs, mustWait);
    return this.asked;
  }

  /** A try that was refused is undone on the nodes, perhaps later than the next
   * request comes: so that has another key, unless this one may have been
   * granted. */
  refused() {
    if (!this.wasLost) this.key = randomUUID();
  }

  get mayBeGranted() {
    return this.wasLost ||
      Boolean(this.asked?.wasSent && !this.asked.answer);
  }
}

/** Asks until the lock is ours or the time is up. */
function* acquire(replicas, wish, timeoutMs, attempt) {
  const deadline = now() + wish.waitMs;
  let failures = 0;
  let denials = 0;
  let mustWait = false; // others hold the lock
  while (true) {
    const waitMs = Math.min(Math.max(deadline - now(), 0), LONGEST_WAIT_MS);
    const asked = attempt.ask(wish, waitMs, timeoutMs, mustWait);
    const answer = yield asked;
    const grant = readGrant(answer, asked.sentAt);
    if (grant && grant.workUntil > now()) return grant;
    if (asked.wasSent && !answer?.grantsNothing) attempt.wasLost = true;
    const leftMs = deadline - now();
    denials = answer?.isDenial ? denials + 1 : 0;
    if (answer?.isHeld) {
      if (leftMs <= 0) throw held(wish, answer);
      mustWait = true;
      const delayMs = answer.retryAfterMs || backoffMs(0, undefined);
      if (!asked.hasWaited) attempt.refused();
      else if (!answer.body.waited_ms) // the server does not wait
        yield { sleepMs: Math.min(delayMs, leftMs) };
      continue;
    }
    mustWait = false;
    const { url } = asked;
    if (answer?.isDenial) {
      replicas.avoid(url);
      if (denials >= replicas.urls.length) throw denial(wish.name, answer);
      continue;
    }
    if (answer?.isFinal) throw refusal(wish.name, answer);
    failures += 1;
    replicas.avoid(url);
    const why = `${shown(url)}: ${answer ?? "no answer"}`;
    // each replica once, and one of them again
    if (leftMs <= 0 && failures > replicas.urls.length)
      throw unavailable(`${wish.name}: no server grants it`, answer, why);
    const tell = failures === 1 ? warn : debug;
    tell(`${wish.name}: not acquired yet, trying again (${why})`);
    const delayMs = backoffMs(failures, told(replicas, failures, answer));
    yield { sleepMs: Math.min(delayMs, Math.max(leftMs, 0)) };
  }
}

function held(wish, answer) {
  if (wish.limit !== undefined)
    return new LockHeld(
      `${wish.name}: too few of ${wish.limit} permits are free`);
  const heldBy = answer.body.held_by ?? {};
  const readers = heldBy.readers ?? 0;
  let owner = heldBy.owner ?? "somebody else";
  if (readers) owner = readers === 1 ? "a reader" : `${readers} readers`;
  return new LockHeld(`${wish.name}: the lock is held by ${owner}`, heldBy);
}

/**
 * After an acquire that was aborted while a request was under way: gets what may
 * have been granted, and releases it. If it went alone, its connection is closed;
 * the answer to a batch still comes.
 */
function* giveBack(replicas, wish, timeoutMs, attempt) {
  let { asked } = attempt;
  let answer = yield { answerOf: asked };
  if (answer?.grantsNothing && !attempt.wasLost) return;
  const wished = wish.withTtl(SHORTEST_TTL_MS);
  let wasLost = false;
  for (let failures = 0; ; failures++) {
    const grant = readGrant(answer, asked.sentAt);
    if (grant) {
      try {
        return yield* release(replicas, new Hold(wish, grant), timeoutMs);
      } catch (error) {
        // the request that was given up may have come later than this one, and
        // have taken its place
        if (wasLost || !(error instanceof LockLost)) throw error;
      }
      wasLost = true;
    } else if (failures > 0) {
      if (answer?.isFinal && !answer.isDenial) return; // others hold it
      replicas.avoid(asked.url);
      if (failures > replicas.urls.length) break;
      yield { sleepMs: backoffMs(failures, undefined) };
    }
    asked = attempt.ask(wished, 0, timeoutMs);
    answer = yield asked;
  }
  warn(`${wish.name}: aborted, and not released: it may be held until its ` +
    "TTL ends");
}

/**
 * Extends the lock repeatedly, from now on until it cannot be extended any more.
 * Throws LockLost if it is no longer ours.
 */
function* renew(replicas, hold, timeoutMs) {
  while (yield* extend(replicas, hold, timeoutMs))
    yield { sleepMs: hold.renewInMs };
}

/**
 * Makes an exclusive lock a shared one. Meanwhile it may be renewed, and each of
 * both may get the answer with the new token first.
 */
function* downgrade(replicas, hold, timeoutMs) {
  if (hold.grant.isShared) return;
  hold.wantsShared = true;
  yield* extend(replicas, hold, timeoutMs, true);
}

/**
 * False: the lock cannot be extended, and ends with its validity.
 * isAskedFor: not a renewal, but a downgrade, which servers may refuse.
 */
function* extend(replicas, hold, timeoutMs, isAskedFor = false) {
  let failures = 0;
  let refusals = 0;
  while (true) {
    const leftMs = hold.remainingMs;
    if (leftMs <= 0)
      throw new LockLost(`${hold.name}: the lock's validity ended`);
    const { wantsShared } = hold;
    // connection and answer together take at most half of what is left: so
    // another replica can be asked
    const asked = new Extend(hold, Math.min(timeoutMs, leftMs / 4),
      leftMs < 2 * OVERDUE_MS);
    const answer = yield asked;
    const grant = readGrant(answer, asked.sentAt);
    if (grant) {
      hold.extended(grant);
      return true;
    }
    if (wantsShared !== hold.wantsShared) continue; // perhaps a new token
    if (answer?.hasEnded)
      throw new LockLost(`${hold.name}: the lock ended (${answer})`);
    if (answer?.code === "max_hold_reached") {
      warn(`${hold.name}: no longer extended (${answer})`);
      if (isAskedFor) throw refusal(hold.name, answer);
      return false;
    }
    if (isAskedFor && answer?.isFinal && !answer.isRepeated) {
      refusals += 1;
      if (refusals === failures + 1 && refusals >= replicas.urls.length) {
        hold.wantsShared = false; // no server has begun it
        throw refusal(hold.name, answer);
      }
    }
    failures += 1;
    replicas.avoid(asked.url);
    const tell = failures === 1 ? warn : debug;
    tell(`${hold.name}: not extended yet ` +
      `(${shown(asked.url)}: ${answer ?? "no answer"})`);
    const delayMs = backoffMs(failures, told(replicas, failures, answer));
    yield { sleepMs: Math.min(delayMs, hold.remainingMs / 4) };
  }
}

/**
 * Throws LockLost if the lock had ended. If no server answers, that is only a
 * warning: the lock expires, and other clients wait for that long.
 */
function* release(replicas, hold, timeoutMs) {
  let mayBeDone = false; // by a request without an answer that tells
  let answer;
  for (let failures = 1; failures <= replicas.urls.length + 1; failures++) {
    const asked = new Release(hold, timeoutMs);
    answer = yield asked;
    if (answer?.status === 200) return;
    if (answer?.hasEnded) {
      if (mayBeDone || answer.isRepeated) return; // that may have been our own release
      throw new LockLost(`${hold.name}: the lock had ended (${answer})`);
    }
    const isLimited = answer?.status === 429;
    const didNothing = answer?.isDenial || isLimited || answer?.code === UNSENT;
    if (!didNothing || answer.isRepeated) mayBeDone = true;
    replicas.avoid(asked.url);
    if (hold.validMs <= 0 || failures > replicas.urls.length) break;
    const limit = isLimited ? answer : undefined;
    const delayMs = backoffMs(failures, told(replicas, failures, limit));
    yield { sleepMs: Math.min(delayMs, hold.validMs) };
  }
  warn(`${hold.name}: not released; it is free in ` +
    `${(hold.validMs / 1000).toFixed(1)} s (${answer ?? "no answer"})`);
}

module.exports = {
  LONGEST_WAIT_MS, debug, warn, Attempt, acquire, giveBack, renew, downgrade,
  release,
};
