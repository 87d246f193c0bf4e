// SPDX-License-Identifier: MIT
// POST /orders/<id>/ship ships an order; two requests never work on the same
// order at once.  node web.mjs [PORT]
import http from "node:http";
import { Client, LockHeld, LockLost, Unavailable } from "redlockd-client";

const ttlMs = 1000 * (process.env.LOCK_TTL_S ?? 10);
const states = ["new", "picked", "packed", "shipped"];
const store = process.env.STORE ?? "http://127.0.0.1:8090";
const locks = new Client(); // all requests share its connections

class StoreError extends Error {
  constructor(status) {
    super(`the store says ${status}`);
    this.status = status;
  }
}

async function ask(path, options) {
  const answer = await fetch(store + path, options);
  if (!answer.ok) throw new StoreError(answer.status);
  return answer.text();
}

function ship(order, left) {
  const path = `/orders/${order}`;
  const options = { ttlMs, waitMs: 2_000, signal: left };
  return locks.withLock(`order:${order}`, options, async (lock) => {
    const { signal } = lock; // aborts what we await when the lock is lost
    // an earlier holder may have done some steps: read the state under the lock
    const done = states.indexOf(await ask(path, { signal }));
    for (const state of states.slice(done + 1)) {
      lock.check(); // throws LockLost
      const headers = { "X-Fencing-Token": lock.fencingToken };
      await ask(path, { method: "PUT", body: state, headers, signal });
    }
  });
}

function explain(error) {
  if (error instanceof LockHeld) return [409, "another request ships it"];
  // some steps may be done: the next request continues
  if (error instanceof LockLost) return [503, "not finished, try again"];
  // nothing was done
  if (error instanceof Unavailable) return [503, "no lock service, try again"];
  // 409: a later holder has written
  if (error instanceof StoreError) return [error.status === 404 ? 404 : 503, error.message];
  console.error(error);
  return [500, "a bug"];
}

http
  .createServer(async (request, response) => {
    const left = new AbortController(); // stop waiting when the caller disconnects
    response.on("close", () => left.abort());
    const [, , order] = request.url.split("/");
    const [status, text] = await ship(order, left.signal).then(() => [200, "shipped"], explain);
    response.writeHead(status, [409, 503].includes(status) ? { "Retry-After": 1 } : {});
    response.end(`${text}\n`);
  })
  .listen(Number(process.argv[2] ?? 8091), "127.0.0.1");
