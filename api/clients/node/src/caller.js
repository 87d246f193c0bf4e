// Carries out what talk.js and ops.js ask for.
"use strict";

const { Answer, UNTRUSTED } = require("./answer.js");
const { Identity } = require("./identity.js");
const { Replicas, shown } = require("./replicas.js");
const { debug } = require("./talk.js");
const { exchange, isUntrusted, Wires } = require("./wire.js");

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Resolves when the time is up or the signal aborts. */
function sleep(ms, signal, keepsRunning) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve(undefined);
    };
    const timer = setTimeout(done, Math.min(Math.ceil(ms), LONGEST_TIMER_MS));
    if (!keepsRunning) timer.unref();
    signal?.addEventListener("abort", done);
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
    this.timeoutMs = timeoutMs;
    this.#identity = new Identity(identity);
  }

  /**
   * Plays a talk to its end. Throws the signal's reason as soon as it aborts.
   * keepsRunning: whether sleeping keeps the process from ending.
   */
  async run(talk, { signal, keepsRunning = true } = {}) {
    let step = talk.next();
    while (!step.done) {
      signal?.throwIfAborted();
      const answer = "sleepMs" in step.value
        ? await sleep(step.value.sleepMs, signal, keepsRunning)
        : await this.#send(step.value, signal);
      signal?.throwIfAborted();
      step = talk.next(answer);
    }
    return step.value;
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

  /** Undefined: no answer. */
  async #send(step, signal) {
    try {
      let answer = await this.#exchange(step, signal);
      const refused = answer.sent.Authorization;
      if (answer.status === 401 && this.#identity.refresh(refused))
        answer = await this.#exchange(step, signal);
      return Answer.read(answer.status, answer.text, answer.retryAfter);
    } catch (error) {
      signal?.throwIfAborted();
      debug(`${shown(step.url)}: ${error.message}`);
      if (!isUntrusted(error)) return undefined;
      return new Answer(0, { code: UNTRUSTED, detail: error.message });
    }
  }

  async #exchange(step, signal) {
    const sent = { ...step.headers, ...this.#identity.headers };
    try {
      const answer = await exchange(this.#openWires(), step, sent, signal);
      return { ...answer, sent };
    } catch (error) {
      if (signal?.aborted || !step.url.startsWith("https:") ||
          !this.#identity.refreshTls())
        throw error;
      // those that wait for answers keep the old ones
      this.#wires = undefined;
      if (!isUntrusted(error)) throw error;
      return { ...await exchange(this.#openWires(), step, sent, signal), sent };
    }
  }

  #openWires() {
    this.#wires ??= new Wires(this.#identity.tls);
    return this.#wires;
  }
}

module.exports = { Caller };
