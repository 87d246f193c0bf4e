// SPDX-License-Identifier: MIT
// A lock while it is held.
"use strict";

const { inspect } = require("node:util");

const { alarms } = require("./alarms.js");
const { Cancel } = require("./caller.js");
const { surely } = require("./clock.js");
const { AbortError, LockLost } = require("./errors.js");
const {
  acquire, Attempt, downgrade, giveBack, release, renew, warn,
} = require("./talk.js");
const { Hold, Wish } = require("./wish.js");

/**
 * A lock that was granted. It is extended in the background until release().
 * What is private here is not shown by console.log, nor by JSON.stringify.
 */
class Lock {
  #caller;
  #hold;
  #how;
  #end; // an AbortController, once somebody asks for its signal
  #renewals; // a Cancel, while they run
  #watching; // an alarm, and the next
  #waiting;
  #released;
  #onEnd;

  constructor(caller, hold, how, onEnd) {
    this.#caller = caller;
    this.#hold = hold;
    this.#how = how;
    this.#onEnd = onEnd;
    this.#watch();
    this.#waiting = alarms.set(hold.grant.renewAt, () => this.#renew(),
      how.keepsRunning);
  }

  /** Its name in URLs. */
  get id() {
    return this.#hold.grant.id;
  }

  /** Proves to redlockd that the lock is ours: keep it secret. A downgrade
   * changes it. */
  get token() {
    return this.#hold.grant.token;
  }

  /** Rises with every grant: the resource should refuse lower ones. */
  get fencingToken() {
    return this.#hold.grant.fencingToken;
  }

  /** Whether others may hold the lock, too, as readers. */
  get shared() {
    return this.#hold.grant.isShared;
  }

  /** With a limit: the numbers that nobody else has, from 0 on. */
  get slots() {
    return this.#hold.slots;
  }

  /** The first of them; undefined without a limit. */
  get slot() {
    return this.#hold.slots[0];
  }

  /** For how many milliseconds work may go on; 0 if it may not. */
  get remainingMs() {
    if (this.#released) return 0;
    surely(); // has the machine slept since?
    return this.#hold.remainingMs;
  }

  /** Aborts with a LockLost when the lock is lost, about to end, or released. */
  get signal() {
    if (!this.#end) {
      this.#end = new AbortController();
      const loss = this.#hold.loss ?? (this.#released && this.#releaseError());
      if (loss) this.#end.abort(loss);
    }
    return this.#end.signal;
  }

  /**
   * Throws LockLost unless the lock is still ours. Call it right before each
   * step that cannot be undone.
   */
  check() {
    if (this.#released) throw this.#releaseError();
    surely(); // has the machine slept since?
    const loss = this.#hold.findLoss();
    if (!loss) return;
    this.#lose(loss);
    throw loss;
  }

  /**
   * Makes an exclusive lock a shared one: no writer gets in between. Stop writing
   * before you call it: others may read before it resolves. The lock gets
   * another token. There is no way back.
   */
  async downgrade() {
    this.check();
    const { replicas, timeoutMs } = this.#caller;
    try {
      await this.#caller.run(downgrade(replicas, this.#hold, timeoutMs));
    } catch (error) {
      if (error instanceof LockLost) this.#lose(error);
      throw error;
    }
  }

  /**
   * Ends the renewals and lets others have the lock. Rejects with LockLost if it
   * was lost before. Called again, it tells the same.
   */
  release() {
    this.#released ??= this.#release();
    return this.#released;
  }

  [Symbol.asyncDispose]() {
    return this.release();
  }

  toJSON() {
    return {
      id: this.id,
      fencingToken: this.fencingToken,
      remainingMs: this.remainingMs,
      shared: this.shared,
      slots: this.slots,
    };
  }

  [inspect.custom](depth, options) {
    return `Lock ${inspect(this.toJSON(), options)}`;
  }

  /** Runs beside the renewals: the loss must not wait for an answer. */
  #watch() {
    const loss = this.#hold.findLoss();
    if (loss) this.#lose(loss);
    else this.#watching = alarms.set(this.#hold.grant.workUntil,
      () => this.#watch(), this.#how.keepsRunning);
  }

  async #renew() {
    const { replicas, timeoutMs } = this.#caller;
    const cancel = new Cancel();
    this.#renewals = cancel;
    const { keepsRunning } = this.#how;
    try {
      await this.#caller.run(renew(replicas, this.#hold, timeoutMs),
        { cancel, keepsRunning });
    } catch (error) {
      if (cancel.isCancelled) return;
      this.#lose(error instanceof LockLost ? error : new LockLost(
        `${this.#hold.name}: renewals failed`, { cause: error }));
    }
  }

  #lose(loss) {
    if (this.#released) return;
    this.#hold.loss ??= loss; // check() may have found it first
    this.#rest();
    this.#end?.abort(this.#hold.loss);
  }

  #releaseError() {
    return new LockLost(`${this.#hold.name}: released`);
  }

  #rest() {
    alarms.clear(this.#watching);
    alarms.clear(this.#waiting);
    this.#renewals?.cancel();
  }

  /** Also releases a lost lock: some of its resources may still be locked. */
  async #release() {
    const { replicas, timeoutMs } = this.#caller;
    let loss = this.#hold.findLoss();
    if (loss) this.#lose(loss);
    this.#rest();
    // before others can have it: what still works must stop
    this.#end?.abort(this.#releaseError());
    try {
      await this.#caller.run(release(replicas, this.#hold, timeoutMs));
    } catch (error) {
      if (!(error instanceof LockLost)) throw error;
      loss ??= error;
    } finally {
      await this.#onEnd();
    }
    if (loss) throw loss;
  }
}

/**
 * Acquires a lock. onEnd is called when the lock is not needed any more, or was
 * not granted.
 */
async function take(caller, resources, options, how, onEnd) {
  const { replicas, timeoutMs } = caller;
  const { signal } = options;
  const attempt = new Attempt();
  let wish;
  try {
    wish = new Wish(resources, options);
    if (signal?.aborted) throw new AbortError(wish.name, signal);
    const talk = acquire(replicas, wish, timeoutMs, attempt);
    const grant = await caller.run(talk, { what: wish.name, signal });
    return new Lock(caller, new Hold(wish, grant), how, onEnd);
  } catch (error) {
    if (signal?.aborted && attempt.mayBeGranted)
      caller.runInBackground(giveBack(replicas, wish, timeoutMs, attempt))
        .then(onEnd);
    else await onEnd();
    throw error;
  }
}

/** Whether work ended because the signal told it to. */
function isOf(error, loss) {
  return error === loss || error instanceof LockLost ||
    error?.name === "AbortError";
}

/** Does the work under a lock, and releases it. */
async function within(lock, work) {
  let failure;
  let result;
  try {
    result = await work(lock);
  } catch (error) {
    failure = { error };
  }
  try {
    await lock.release();
  } catch (loss) {
    if (!failure || isOf(failure.error, loss)) throw loss;
    warn(`${loss.message}; the work threw ${failure.error}`);
  }
  if (failure) throw failure.error;
  return result;
}

module.exports = { Lock, take, within };
