// SPDX-License-Identifier: MIT
// Carries out what talk.js and ops.js ask for.
"use strict";

const { alarms } = require("./alarms.js");
const { Answer, NO_ANSWER, UNSENT, UNTRUSTED } = require("./answer.js");
const { now } = require("./clock.js");
const { AbortError } = require("./errors.js");
const { Identity } = require("./identity.js");
const { Operation } = require("./operation.js");
const { OVERDUE_MS, Queue } = require("./queue.js");
const { Replicas, shown } = require("./replicas.js");
const { debug } = require("./talk.js");
const { Exchange, isUntrusted, reasonOf, Wires } = require("./wire.js");

// for the connection of a probe, and for its answer
const PROBE_MS = 1000;
const NOW = Promise.resolve();

/** Ends a talk at once. An AbortSignal would do the same, but costs more than a
 * request. */
class Cancel {
  isCancelled = false;
  /** What ends the talk. */
  onCancel;

  cancel() {
    if (this.isCancelled) return;
    this.isCancelled = true;
    this.onCancel?.();
  }
}

/** A talk that is played to its end. */
class Play {
  #caller;
  #talk;
  #how;
  #resolve;
  #reject;
  #onAbort;
  // what is under way
  #operation;
  #alarm;
  #sending;
  #isOver = false;

  constructor(caller, talk, how, resolve, reject) {
    this.#caller = caller;
    this.#talk = talk;
    this.#how = how;
    this.#resolve = resolve;
    this.#reject = reject;
    const { signal, cancel } = how;
    if (signal) {
      this.#onAbort = () => this.#leave();
      signal.addEventListener("abort", this.#onAbort);
    }
    if (cancel) cancel.onCancel = () => this.#leave();
    if (signal?.aborted || cancel?.isCancelled) this.#leave();
    else this.next(undefined);
  }

  /** Passes on an answer, and begins the next step. */
  next(answer) {
    if (this.#isOver) return;
    let step;
    try {
      step = this.#talk.next(answer);
    } catch (error) {
      this.#end();
      this.#reject(error);
      return;
    }
    if (!step.done) {
      this.#begin(step.value);
      return;
    }
    this.#end();
    this.#resolve(step.value);
  }

  #begin(step) {
    if (step instanceof Operation) {
      step.owner = this;
      this.#operation = step;
      this.#caller.ask(step);
    } else if ("sleepMs" in step) {
      this.#alarm = alarms.set(now() + step.sleepMs, () => this.next(undefined),
        this.#how.keepsRunning ?? true);
    } else if (!("answerOf" in step)) {
      this.#sending = this.#caller.send(step, (answer) => this.next(answer));
    } else if (step.answerOf.request) {
      step.answerOf.owner = this;
    } else {
      this.next(step.answerOf.answer);
    }
  }

  #leave() {
    if (this.#isOver) return;
    this.#end();
    if (this.#operation && !this.#operation.answer)
      this.#caller.leave(this.#operation);
    alarms.clear(this.#alarm);
    this.#sending?.cancel();
    const { what, signal } = this.#how;
    this.#reject(new AbortError(what, signal));
  }

  #end() {
    this.#isOver = true;
    if (this.#onAbort)
      this.#how.signal.removeEventListener("abort", this.#onAbort);
  }
}

/** A request until its Answer, with another access token or other files for TLS
 * if the server wants them. */
class Sending {
  #caller;
  #step;
  #done;
  #headers;
  #exchange;
  #isCancelled = false;
  #isRefreshed = false; // it is the second one
  #isRepeated = false; // and the server may have got the first one twice

  constructor(caller, step, done) {
    this.#caller = caller;
    this.#step = step;
    this.#done = done;
    this.#start();
  }

  #start() {
    this.#headers = this.#caller.headersOf(this.#step);
    try {
      this.#exchange = new Exchange(this.#caller.openWires(), this.#step,
        this.#headers, this);
    } catch (error) {
      queueMicrotask(() => this.failed(error));
    }
  }

  get authorization() {
    return this.#headers.Authorization;
  }

  cancel() {
    this.#isCancelled = true;
    this.#exchange?.cancel();
  }

  succeeded(raw) {
    if (raw.status === 401 && !this.#isRefreshed &&
        this.#caller.identity.refresh(this.authorization)) {
      this.#refresh(raw);
      return;
    }
    raw.url = this.#step.url;
    raw.isRepeated ||= this.#isRepeated;
    this.#done(Answer.read(raw));
  }

  failed(error) {
    if (this.#isCancelled) return;
    if (!this.#isRefreshed && this.#step.url.startsWith("https:") &&
        this.#caller.refreshTls() && isUntrusted(error)) {
      this.#refresh(error);
      return;
    }
    const isRepeated = this.#isRepeated || error.isRepeated;
    const reason = reasonOf(error);
    debug(`${shown(this.#step.url)}: ${reason}`);
    const code = error.isUnsent ? UNSENT : NO_ANSWER;
    this.#done(isUntrusted(error)
      ? new Answer(0, { code: UNTRUSTED, detail: reason }, { isRepeated })
      : new Answer(0, { code, detail: `no answer: ${reason}` },
        { isRepeated }));
  }

  #refresh({ isRepeated }) {
    this.#isRefreshed = true;
    this.#isRepeated = isRepeated;
    this.#start();
  }
}

/** Knows the servers, and who we are. */
class Caller {
  #wires;
  #queue = new Queue();
  #isFlushDue = false;
  #background = new Set();

  constructor({ urls, timeoutMs = 5000, ...identity }) {
    if (!(timeoutMs > 0)) throw new TypeError("timeoutMs must be above 0");
    this.replicas = new Replicas(urls);
    this.replicas.onDue = (url) => this.#probe(url);
    this.timeoutMs = timeoutMs;
    this.identity = new Identity(identity);
  }

  /**
   * Plays a talk to its end. Throws an AbortError as soon as the signal aborts or
   * it is cancelled. what: the talk's subject, for this error.
   * keepsRunning: whether sleeping keeps the process from ending.
   */
  run(talk, how = {}) {
    return new Promise((resolve, reject) => {
      new Play(this, talk, how, resolve, reject);
    });
  }

  /** Also keeps close() waiting; the process does not end meanwhile. */
  runInBackground(talk) {
    const done = this.run(talk).catch((error) => debug(String(error)));
    this.#background.add(done);
    return done.finally(() => this.#background.delete(done));
  }

  /** Closes the connections; the next call opens new ones. */
  async close() {
    await Promise.all(this.#background);
    this.#queue.close();
    this.#wires?.close();
    this.#wires = undefined;
  }

  // ---- for a Play -----------------------------------------------------------

  /** Its owner's next() is called with the answer. */
  ask(operation) {
    this.#queue.add(operation);
    this.#flushSoon();
  }

  /** Nobody waits for the answer any more. */
  leave(operation) {
    const request = this.#queue.leave(operation);
    if (!request) return;
    request.sending.cancel();
    this.#flushSoon();
  }

  /** Sends it, and tells the replicas whether the answer comes in time. */
  send(step, done) {
    const { replicas } = this;
    const asked = step.from ??
      replicas.urls.find((url) => step.url.startsWith(`${url}/`));
    const { onOverdue } = step;
    step.overdueMs = OVERDUE_MS;
    step.onOverdue = () => {
      replicas.avoid(asked);
      onOverdue?.();
    };
    return new Sending(this, step, (answer) => {
      if (answer.isTimely) replicas.worked(asked);
      done(answer);
    });
  }

  // ---- the queue ------------------------------------------------------------

  /**
   * When all have run that were waiting for the answers that came together, so
   * that what they ask for goes together. Nothing else runs before: it is no
   * delay.
   */
  #flushSoon() {
    if (this.#isFlushDue || this.#queue.isEmpty) return;
    this.#isFlushDue = true;
    NOW.then(this.#flushNext);
  }

  #flushNext = () => process.nextTick(this.#flush);

  #flush = () => {
    this.#isFlushDue = false;
    for (let request; (request = this.#queue.take());) this.#depart(request);
  };

  #depart(request) {
    const from = this.replicas.choose();
    const { method, path, headers, text } = request.call;
    const sentAt = now();
    for (const operation of request.operations) {
      operation.url = from;
      operation.sentAt = sentAt;
    }
    const { timeoutMs, waitMs } = request;
    let patience;
    const onOverdue = () => {
      this.#queue.overdue(request);
      this.#flushSoon();
    };
    request.sending = this.send({
      from, method, url: from + path, headers, text, timeoutMs, waitMs, onOverdue,
    }, (answer) => {
      alarms.clear(patience);
      this.#queue.answered(request, answer, this.#hasNewToken(request, answer));
      this.#flushSoon();
    });
    const { patienceMs } = request;
    if (patienceMs === undefined) return;
    const ring = () => {
      const elapsedMs = now() - sentAt;
      const isIdle = this.#queue.giveUp(request, elapsedMs);
      if (isIdle) request.sending.cancel();
      else if (request.patienceMs !== undefined)
        patience = alarms.set(sentAt + request.patienceMs, ring);
      this.#flushSoon();
    };
    patience = alarms.set(sentAt + patienceMs, ring);
  }

  /** After a batch in which some have a 401. */
  #hasNewToken({ items, sending }, { status, body }) {
    return items !== undefined && status === 200 &&
      Array.isArray(body.results) &&
      body.results.some((result) => result?.status === 401) &&
      this.identity.refresh(sending.authorization);
  }

  // ---- for a Sending --------------------------------------------------------

  headersOf(step) {
    return { ...step.headers, ...this.identity.headers };
  }

  openWires() {
    this.#wires ??= new Wires(this.identity.tls);
    return this.#wires;
  }

  /** After a handshake that failed: whether there are other files. */
  refreshTls() {
    if (!this.identity.refreshTls()) return false;
    this.#wires?.retire();
    this.#wires = undefined;
    return true;
  }

  /** Whether a replica is back that was avoided, before a lock depends on it. */
  #probe(url) {
    new Sending(this, { method: "GET", url: `${url}/readyz`,
      timeoutMs: PROBE_MS, isProbe: true }, ({ status }) =>
      this.replicas.probed(url, status > 0 && status < 500 && status !== 429));
  }
}

module.exports = { Caller, Cancel };
