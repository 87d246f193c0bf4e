// SPDX-License-Identifier: MIT
// Locks over connections that they share, or over their own.
"use strict";

const { Caller } = require("./caller.js");
const { take, within } = require("./lock.js");
const { forceRelease, inspect, listPage, nextHolder } = require("./ops.js");
const { checkOptions, namesOf } = require("./wish.js");

const CLIENT_OPTIONS = ["urls", "timeoutMs", "authToken",
  "authTokenFile", "caFile", "certFile", "keyFile"];
// the process may end between two renewals, unless withLock() waits for work
const HELD = { keepsRunning: false };
const WORKING = { keepsRunning: true };

/** Connections to the servers, for any number of locks. */
class Client {
  #caller;

  constructor(options = {}) {
    checkOptions(options, CLIENT_OPTIONS);
    this.#caller = new Caller(options);
  }

  /** Resolves with a Lock as soon as it is ours. */
  acquire(resources, options = {}) {
    return take(this.#caller, resources, options, HELD, () => {});
  }

  /** Does work(lock) under a lock. */
  async withLock(resources, ...rest) {
    const [options = {}, work] = splitWork(rest);
    const lock = await take(this.#caller, resources, options, WORKING,
      () => {});
    return within(lock, work);
  }

  /** Who holds the lock; null: nobody. */
  get(resources, { signal } = {}) {
    const { replicas, timeoutMs } = this.#caller;
    const names = namesOf(resources);
    return this.#run(inspect(replicas, names, timeoutMs), names.join(", "),
      signal);
  }

  /** The holder, and then each new one; null while nobody holds the lock. Readers
   * who join others, or leave some behind, are no change. */
  async *watch(resources, { signal } = {}) {
    const { replicas, timeoutMs } = this.#caller;
    const names = namesOf(resources);
    let holder;
    while (true) {
      holder = await this.#run(
        nextHolder(replicas, names, holder, timeoutMs), names.join(", "), signal);
      yield holder;
    }
  }

  /**
   * The locks that are held, with resources that begin with prefix. A lock that
   * is granted or ends meanwhile may be listed or not.
   */
  async *locks({ prefix = "", signal } = {}) {
    const { replicas, timeoutMs } = this.#caller;
    const seen = new Set(); // a lock may be on two pages
    let page = { locks: [], cursor: undefined };
    do {
      page = await this.#run(
        listPage(replicas, prefix, page.cursor, timeoutMs), "the list", signal);
      for (const lock of page.locks) {
        if (seen.has(lock.id)) continue;
        seen.add(lock.id);
        yield lock;
      }
    } while (page.cursor);
  }

  /**
   * Releases the lock of a dead holder; locks() has its id and its fencingToken.
   * "all": the locks of all readers. The holder is not told.
   */
  forceRelease(id, fencingToken) {
    const { replicas, timeoutMs } = this.#caller;
    return this.#run(forceRelease(replicas, id, fencingToken, timeoutMs), id);
  }

  /** Closes the connections; the next call opens new ones. */
  close() {
    return this.#caller.close();
  }

  [Symbol.asyncDispose]() {
    return this.close();
  }

  async #run(talk, what, signal) {
    return this.#caller.run(talk, { what, signal });
  }
}

function splitWork(rest) {
  const work = rest.pop();
  if (typeof work !== "function")
    throw new TypeError("withLock: the last argument is the work, a function");
  return [rest[0], work];
}

/** A client for one lock, unless the options name one. */
function split(all) {
  if (all === null) throw new TypeError("options must be an object");
  const { client, urls, ...options } = all;
  if (client === undefined) return { caller: new Caller({ urls }), options };
  if (!(client instanceof Client)) throw new TypeError("client is no Client");
  if (urls !== undefined) throw new TypeError("give either a client or urls");
  return { client, options };
}

/** Resolves with a Lock as soon as it is ours. */
async function acquire(resources, options = {}) {
  const { client, caller, options: wish } = split(options);
  if (client) return client.acquire(resources, wish);
  return take(caller, resources, wish, HELD, () => caller.close());
}

/** Does work(lock) under a lock. */
async function withLock(resources, ...rest) {
  const [options = {}, work] = splitWork(rest);
  const { client, caller, options: wish } = split(options);
  if (client) return client.withLock(resources, wish, work);
  const lock = await take(caller, resources, wish, WORKING,
    () => caller.close());
  return within(lock, work);
}

module.exports = { CLIENT_OPTIONS, Client, acquire, withLock };
