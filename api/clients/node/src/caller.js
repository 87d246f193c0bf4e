// Carries out what talk.js and ops.js ask for.
"use strict";

const { alarms } = require("./alarms.js");
const { Answer, NO_ANSWER, UNTRUSTED } = require("./answer.js");
const { now } = require("./clock.js");
const { AbortError } = require("./errors.js");
const { Identity } = require("./identity.js");
const { Replicas, shown } = require("./replicas.js");
const { debug } = require("./talk.js");
const { exchange, isUntrusted, reasonOf, Wires } = require("./wire.js");

// for the connection of a probe, and for its answer
const PROBE_MS = 1000;

/** Ends a talk at once. An AbortSignal would do the same, but costs more than a
 * request. */
class Cancel {
  isCancelled = false;
  #stop;

  /** What ends the step that is under way; undefined: there is none. */
  onCancel(stop) {
    this.#stop = stop;
  }

  cancel() {
    if (this.isCancelled) return;
    this.isCancelled = true;
    this.#stop?.();
  }
}

/** Resolves when the time is up or it is cancelled. */
function sleep(ms, cancel, keepsRunning) {
  return new Promise((resolve) => {
    const alarm = alarms.set(now() + ms, () => {
      cancel.onCancel(undefined);
      resolve(undefined);
    }, keepsRunning);
    cancel.onCancel(() => {
      alarms.clear(alarm);
      resolve(undefined);
    });
  });
}

/** Knows the servers, and who we are. */
class Caller {
  #identity;
  #wires;
  #background = new Set();

  constructor({ urls, timeoutMs = 5000, ...identity }) {
    if (!(timeoutMs > 0)) throw new TypeError("timeoutMs must be above 0");
    this.replicas = new Replicas(urls);
    this.replicas.onDue = (url) => this.#probe(url);
    this.timeoutMs = timeoutMs;
    this.#identity = new Identity(identity);
  }

  /**
   * Plays a talk to its end. Throws an AbortError as soon as the signal aborts or
   * it is cancelled. what: the talk's subject, for this error.
   * keepsRunning: whether sleeping keeps the process from ending.
   */
  async run(talk, how = {}) {
    const { what, signal, cancel = new Cancel(), keepsRunning = true } = how;
    const abort = () => cancel.cancel();
    signal?.addEventListener("abort", abort);
    try {
      let step = talk.next();
      while (!step.done) {
        if (signal?.aborted) cancel.cancel();
        if (cancel.isCancelled) throw new AbortError(what, signal);
        const answer = "sleepMs" in step.value
          ? await sleep(step.value.sleepMs, cancel, keepsRunning)
          : await this.#ask(step.value, cancel);
        if (cancel.isCancelled) throw new AbortError(what, signal);
        step = talk.next(answer);
      }
      return step.value;
    } finally {
      signal?.removeEventListener("abort", abort);
    }
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
    this.#wires?.close();
    this.#wires = undefined;
  }

  /** Whether a replica is back that was avoided, before a lock depends on it. */
  async #probe(url) {
    const answer = await this.#send({ method: "GET", url: `${url}/readyz`,
      timeoutMs: PROBE_MS, isProbe: true }, new Cancel());
    const { status } = answer;
    this.replicas.probed(url, status > 0 && status < 500 && status !== 429);
  }

  /** Sends it, and tells the replicas whether the answer comes in time. */
  async #ask(step, cancel) {
    const { replicas } = this;
    const asked = replicas.urls.find((url) => step.url.startsWith(`${url}/`));
    step.onOverdue = () => replicas.avoid(asked);
    const answer = await this.#send(step, cancel);
    if (answer?.isTimely) replicas.worked(asked);
    return answer;
  }

  /** Undefined: it was cancelled. */
  async #send(step, cancel) {
    try {
      let sent = this.#headersOf(step);
      let answer = await this.#exchange(step, sent, cancel);
      if (answer.status === 401 && this.#identity.refresh(sent.Authorization)) {
        sent = this.#headersOf(step);
        answer = await this.#exchange(step, sent, cancel);
      }
      return Answer.read(answer);
    } catch (error) {
      if (cancel.isCancelled) return undefined;
      const reason = reasonOf(error);
      debug(`${shown(step.url)}: ${reason}`);
      if (isUntrusted(error))
        return new Answer(0, { code: UNTRUSTED, detail: reason });
      return new Answer(0, { code: NO_ANSWER, detail: `no answer: ${reason}` });
    }
  }

  #headersOf(step) {
    return { ...step.headers, ...this.#identity.headers };
  }

  async #exchange(step, sent, cancel) {
    try {
      return await exchange(this.#openWires(), step, sent, cancel);
    } catch (error) {
      if (cancel.isCancelled || !step.url.startsWith("https:") ||
          !this.#identity.refreshTls())
        throw error;
      this.#wires?.retire();
      this.#wires = undefined;
      if (!isUntrusted(error)) throw error;
      return exchange(this.#openWires(), step, sent, cancel);
    }
  }

  #openWires() {
    this.#wires ??= new Wires(this.#identity.tls);
    return this.#wires;
  }
}

module.exports = { Caller, Cancel };
