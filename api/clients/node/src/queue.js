// SPDX-License-Identifier: MIT
// Which request leaves when, so that what many tasks ask for at once goes
// together. Without I/O: the caller sends what take() gives, and tells what became
// of it.
//
// At most SLOTS short requests are under way. What is asked for meanwhile waits
// here, and goes as soon as a slot is free: one operation as its single call,
// several as one batch. So nothing waits for a timer. Beside another request, an
// acquire goes in a batch even if it is the only one: there it is tried once. As a
// single call it would keep its slot while it is tried again and again, because
// others want the same lock at the same time.
//
//              ┌── it only waits for its lock, or is urgent: needs no slot ──┐
//   add() ─→ queue ── take() ──→ a request in a slot ── answered() ─→ next()
//              ↑                     │   │
//              │                     │   └─ overdue(): the slot is free again
//              └─ the batch was refused as a whole: each goes alone
"use strict";

const { Answer, NO_ANSWER } = require("./answer.js");
const { Acquire, EXCLUDES, READS } = require("./operation.js");

const SLOTS = 2;
// what a server takes is 100 and 64 KiB
const MOST = 100;
const LONGEST_BODY = 48 << 10;
// after this time, new requests had better go to another server
const OVERDUE_MS = 500;

const HEAD = '{"operations":[';
const END = "]}";

/** Why it is settled without an answer. */
function noAnswer(why) {
  return new Answer(0, { code: NO_ANSWER, detail: `no answer: ${why}` });
}

/** Whether the operations of a batch that got this can be asked for alone. */
function isWrongAsBatch({ status }) {
  return status >= 300 && status < 500 &&
    ![401, 403, 408, 421, 429].includes(status);
}

/** The answer that the single call would have got. */
function answerOf(result, whole) {
  const body = result?.grant ?? result?.problem ?? result?.release;
  if (!Number.isInteger(result?.status) || body === null ||
      typeof body !== "object")
    return noAnswer("the answer to a batch is not one");
  return new Answer(result.status, body, whole);
}

/** What the operations of one batch are about. */
class Claims {
  #manners = new Map(); // by resource
  #tokens = new Set(); // of readers

  /** False: it cannot be in a batch with those that were added. */
  add(operation) {
    const { names, manner } = operation;
    for (const name of names) {
      const other = this.#manners.get(name);
      if (other !== undefined && (other !== manner || manner === EXCLUDES))
        return false;
    }
    if (manner === READS) {
      if (this.#tokens.has(operation.token)) return false;
      this.#tokens.add(operation.token);
    }
    for (const name of names) this.#manners.set(name, manner);
    return true;
  }
}

/** One HTTP request, with one operation or with several. */
class Request {
  constructor(operations, items, hasSlot, waitMs) {
    this.operations = operations;
    this.items = items; // undefined: it is a single call
    this.hasSlot = hasSlot;
    this.waitMs = waitMs;
    this.isOverdue = false;
    this.timeoutMs = 0;
    for (const operation of operations) {
      operation.request = this;
      operation.wasSent = true;
      operation.hasWaited = waitMs > 0;
      if (operation.timeoutMs > this.timeoutMs)
        this.timeoutMs = operation.timeoutMs;
    }
  }

  /** method, path, headers and text, the body. */
  get call() {
    if (!this.items) return this.operations[0].single(this.waitMs);
    return {
      method: "POST", path: "/batch", headers: undefined,
      text: `${HEAD}${this.items.join(",")}${END}`,
    };
  }

  /** When the next operation gives up that has less time than the others;
   * undefined: none has. */
  get patienceMs() {
    let least = this.timeoutMs;
    if (!this.items) return undefined;
    for (const { request, timeoutMs } of this.operations)
      if (request === this && timeoutMs < least) least = timeoutMs;
    return least < this.timeoutMs ? least : undefined;
  }
}

class Queue {
  #waiting = []; // for a slot, in the order in which they came
  #free = []; // need none
  #busy = 0; // slots that are taken
  #underWay = 0; // requests, but for those that are overdue

  constructor(slots = SLOTS) {
    this.slots = slots;
  }

  get isEmpty() {
    return this.#waiting.length === 0 && this.#free.length === 0;
  }

  add(operation) {
    if (operation.mustWait || operation.isUrgent) this.#free.push(operation);
    else this.#waiting.push(operation);
  }

  /** The next request to send; undefined: there is none now. */
  take() {
    if (this.#free.length > 0) {
      const [first] = this.#free;
      if (!first.mustWait) return this.#form(this.#free, false);
      return this.#leaves([this.#free.shift()], undefined, false, first.waitMs);
    }
    if (this.#waiting.length === 0 || this.#busy >= this.slots)
      return undefined;
    const [first] = this.#waiting;
    // with nothing beside it, it need not ask first whether it has to wait
    if (this.#waiting.length === 1 && this.#underWay === 0 && first.waitMs > 0)
      return this.#leaves([this.#waiting.pop()], undefined, false, first.waitMs);
    return this.#form(this.#waiting, true);
  }

  /** As many as fit, and do not clash. The others keep their places. */
  #form(list, hasSlot) {
    const [first] = list;
    const isTriedOnce = this.#underWay > 0 && first instanceof Acquire;
    if (first.isSingle || list.length === 1 && !isTriedOnce)
      return this.#leaves([list.shift()], undefined, hasSlot, 0);
    const operations = [];
    const items = [];
    const rest = [];
    const claims = new Claims();
    let length = HEAD.length + END.length;
    let next = 0;
    for (; next < list.length && operations.length < MOST; next++) {
      const operation = list[next];
      if (operation.isSingle || operation.mustWait || !claims.add(operation)) {
        rest.push(operation);
        continue;
      }
      const item = operation.item();
      length += Buffer.byteLength(item) + 1;
      if (length > LONGEST_BODY && operations.length > 0) break;
      operations.push(operation);
      items.push(item);
    }
    for (let i = rest.length - 1; i >= 0; i--) list[--next] = rest[i];
    list.splice(0, next);
    const isBatch = items.length > 1 || isTriedOnce && length <= LONGEST_BODY;
    return this.#leaves(operations, isBatch ? items : undefined, hasSlot, 0);
  }

  #leaves(operations, items, hasSlot, waitMs) {
    this.#underWay += 1;
    if (hasSlot) this.#busy += 1;
    return new Request(operations, items, hasSlot, waitMs);
  }

  /** It no longer counts as under way: the server may be hanging. */
  overdue(request) {
    if (request.isOverdue) return;
    request.isOverdue = true;
    this.#underWay -= 1;
    if (request.hasSlot) this.#busy -= 1;
  }

  /**
   * Shares out what the request got. isRetried: those that got a 401 are asked
   * for again, because we have another access token now.
   */
  answered(request, answer, isRetried = false) {
    this.overdue(request);
    const { operations, items } = request;
    request.operations = []; // else the collector of young objects keeps them
    if (!items) {
      settle(operations[0], answer);
      return;
    }
    const results = answer.status === 200 ? answer.body.results : undefined;
    const again = [];
    for (let i = 0; i < operations.length; i++) {
      const operation = operations[i];
      if (operation.request !== request) continue; // it has given up
      let own = answer;
      if (results?.length === operations.length)
        own = answerOf(results[i], answer);
      else if (answer.status === 200)
        own = noAnswer("it is not the answer to a batch");
      else if (answer.isRepeated && isWrongAsBatch(answer))
        own = noAnswer("the repeat of a batch was refused");
      const isDenied = own !== answer && own.status === 401;
      if (isDenied && answer.isRepeated)
        own = noAnswer("the repeat of a batch was denied");
      const isAgain = own === answer ? isWrongAsBatch(answer)
        : isDenied && isRetried && !answer.isRepeated;
      if (!isAgain || !operation.owner) {
        settle(operation, own);
        continue;
      }
      operation.isSingle = own === answer;
      operation.request = undefined;
      again.push(operation);
    }
    this.#waiting.unshift(...again);
  }

  /**
   * So much time has passed since it was sent: operations that have no more give
   * up. True: all have, and nobody needs the answer any more.
   */
  giveUp(request, elapsedMs) {
    this.overdue(request);
    let isNeeded = false;
    for (const operation of request.operations) {
      if (operation.request !== request) continue;
      if (operation.timeoutMs > elapsedMs) isNeeded = true;
      else settle(operation, noAnswer(
        `none within ${Math.round(operation.timeoutMs)} ms`));
    }
    return !isNeeded;
  }

  /**
   * Nobody waits for it any more. Returns the request to end; undefined: it was
   * not sent, or others wait for the same request. Then it is settled later,
   * if somebody still wants to know.
   */
  leave(operation) {
    const { request } = operation;
    operation.owner = undefined;
    if (!request) {
      for (const list of [this.#waiting, this.#free]) {
        const at = list.indexOf(operation);
        if (at >= 0) list.splice(at, 1);
      }
      return undefined;
    }
    if (request.operations.length > 1) return undefined;
    this.overdue(request);
    operation.request = undefined;
    return request;
  }

  /** The client is closed: what was not sent fails. */
  close() {
    const all = [...this.#free.splice(0), ...this.#waiting.splice(0)];
    for (const operation of all)
      settle(operation, noAnswer("the client was closed"));
  }
}

function settle(operation, answer) {
  const { owner } = operation;
  // what is not needed any more is not kept alive by what is
  operation.request = operation.owner = undefined;
  operation.answer = answer;
  owner?.next(answer);
}

module.exports = {
  SLOTS, MOST, LONGEST_BODY, OVERDUE_MS, Queue, Request,
};
