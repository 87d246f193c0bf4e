// SPDX-License-Identifier: MIT
// Which request leaves when, and what each operation of it gets: without I/O.
import assert from "node:assert/strict";
import test from "node:test";

import { Answer, readGrant } from "../node_modules/redlockd-client/src/answer.js";
import { now } from "../node_modules/redlockd-client/src/clock.js";
import {
  Acquire, Extend, Release,
} from "../node_modules/redlockd-client/src/operation.js";
import {
  LONGEST_BODY, MOST, Queue, SLOTS,
} from "../node_modules/redlockd-client/src/queue.js";
import { Hold, Wish } from "../node_modules/redlockd-client/src/wish.js";

const KEY = "0123456789abcdef";
const SILENT = new Answer(0, { code: "no_answer" });
let number = 0;

/** An operation that writes down what it gets. */
function noted(operation) {
  operation.got = [];
  operation.owner = { next: (answer) => operation.got.push(answer) };
  return operation;
}

function acquire(resources, { waitMs = 0, timeoutMs = 5000, mustWait = false,
  ...options } = {}) {
  return noted(new Acquire(new Wish(resources, options), `${KEY}${number++}`,
    timeoutMs, waitMs, mustWait));
}

function holding(resources, options = {}, fields = {}) {
  const token = `${++number}${options.shared ? "~" : "."}0123456789abcdef`;
  return new Hold(new Wish(resources, options), readGrant(new Answer(201, {
    id: [resources].flat().join("~"), token, fencing_token: number,
    ttl_ms: 3000, elapsed_ms: 0, validity_ms: 2900, renew_after_ms: 1000,
    mode: options.shared ? "shared" : undefined, ...fields }), now()));
}

const extend = (hold, timeoutMs = 5000, isUrgent = false) =>
  noted(new Extend(hold, timeoutMs, isUrgent));
const release = (hold) => noted(new Release(hold, 5000));

function queue(...operations) {
  const it = new Queue();
  for (const one of operations) it.add(one);
  return it;
}

/** All that may leave now. */
function all(it) {
  const requests = [];
  for (let one; (one = it.take());) requests.push(one);
  return requests;
}

/** Takes all slots, with something else. */
function fill(it) {
  return Array.from({ length: SLOTS }, () => {
    it.add(acquire(`filler:${number}`));
    return it.take();
  });
}

const names = (request) => request.operations.map((one) => one.names[0]);
const body = (request) => JSON.parse(request.call.text);
const result = (status, name, fields = {}) => ({ status, [name]: fields });
const whole = (...results) => new Answer(200, { results });

test("one goes as its single call", () => {
  const hold = holding("a");
  const rows = [
    [acquire("a", { ttlMs: 1000, owner: "me" }), "POST", "/locks",
      { resource: "a", ttl_ms: 1000, owner: "me" }, ["Idempotency-Key"]],
    [extend(hold), "PUT", "/locks/a/extend", { ttl_ms: 3000 }, ["X-Lock-Token"]],
    [release(hold), "DELETE", "/locks/a", undefined, ["X-Lock-Token"]]];
  for (const [operation, method, path, text, headers] of rows) {
    const { call } = queue(operation).take();
    assert.deepEqual([call.method, call.path, call.text && JSON.parse(call.text),
      Object.keys(call.headers)], [method, path, text, headers]);
  }
});

test("several go as one batch, with the fields of their single calls", () => {
  const [writer, reader] = [holding("b"), holding("c", { shared: true })];
  writer.wantsShared = true;
  const asked = acquire(["x", "y"], { ttlMs: 7, owner: 'ü"', waitMs: 9000 });
  const it = queue(asked, acquire("p", { limit: 3, permits: 2 }),
    acquire("s", { shared: true }), extend(writer), release(reader));
  const [request, ...rest] = all(it);
  assert.equal(rest.length, 0);
  assert.deepEqual([request.call.method, request.call.path, request.waitMs],
    ["POST", "/batch", 0]);
  const [first, second, third, ...others] = body(request).operations;
  assert.deepEqual(first, { operation: "acquire", resources: ["x", "y"], ttl_ms: 7,
    owner: 'ü"', idempotency_key: asked.key });
  assert.deepEqual([second.limit, second.permits, third.mode], [3, 2, "shared"]);
  assert.deepEqual(others, [
    { operation: "extend", id: "b", token: writer.grant.token, ttl_ms: 3000,
      mode: "shared" },
    { operation: "release", id: "c", token: reader.grant.token }]);
});

test("up to a hundred, and up to 48 KiB, in the order in which they came", () => {
  const it = queue();
  const [busy] = fill(it);
  const many = Array.from({ length: 2 * MOST + 7 }, (_, i) => acquire(`n${i}`));
  many.forEach((one) => it.add(one));
  const seen = [];
  for (let request = busy; request; request = it.take()) {
    if (request !== busy) seen.push(names(request));
    it.answered(request, SILENT);
  }
  assert.deepEqual(seen.map((one) => one.length), [MOST, MOST, 7]);
  assert.deepEqual(seen.flat(), many.map((one) => one.names[0]));
  const long = "ü".repeat(120); // two bytes each
  const large = queue(...Array.from({ length: 40 }, (_, i) =>
    acquire(Array.from({ length: 10 }, (_, j) => `${long}${i}.${j}`))));
  const requests = all(large);
  assert.equal(requests.length, 2);
  for (const request of requests) {
    const { length } = Buffer.from(request.call.text);
    assert.ok(length <= LONGEST_BODY && length > LONGEST_BODY - 3000, `${length}`);
  }
  // one that is too long by itself goes as its single call
  const one = acquire(Array.from({ length: 300 }, (_, i) => `${long}${i}`));
  assert.deepEqual(all(queue(one, acquire("a"))).map((request) =>
    request.call.path), ["/locks", "/batch"]);
});

test("operations of one lock are not in one batch", () => {
  const hold = holding("a");
  const reader = holding("a", { shared: true });
  const [permit, other] = [0, 1].map((slot) =>
    holding("p", { limit: 3 }, { slots: [slot] }));
  const rows = [ // whether the two go together
    [acquire("a"), acquire("b"), true],
    [acquire("a"), acquire("a"), false],
    [acquire(["a", "b"]), acquire(["c", "b"]), false],
    [acquire("a"), release(hold), false],
    [extend(hold), release(hold), false],
    [acquire("a", { shared: true }), acquire("a"), false],
    [acquire("a", { shared: true }), acquire("a", { shared: true }), true],
    [acquire("a", { shared: true }), extend(reader), true],
    [extend(reader), extend(holding("a", { shared: true })), true],
    [extend(reader), release(reader), false],
    [acquire("p", { limit: 3 }), acquire("p", { limit: 3 }), true],
    [acquire("p", { limit: 3 }), acquire("p"), false],
    [acquire("p", { limit: 3 }), extend(permit), true],
    [extend(permit), release(permit), false],
    [extend(permit), release(other), true]];
  for (const [one, two, areTogether] of rows) {
    const requests = all(queue(one, two)).map(({ operations }) => operations);
    assert.deepEqual(requests, areTogether ? [[one, two]] : [[one], [two]],
      `${one.item()} ${two.item()}`);
  }
});

test("what clashes keeps its place for the next one", () => {
  const it = queue();
  const [busy, more] = fill(it);
  for (const name of ["a", "b", "a", "c", "a", "d"]) it.add(acquire(name));
  it.answered(busy, SILENT);
  it.answered(more, SILENT);
  const [first, second] = all(it);
  assert.deepEqual([names(first), names(second)], [["a", "b", "c", "d"], ["a"]]);
  for (const name of ["e", "f"]) it.add(acquire(name));
  it.answered(first, SILENT);
  assert.deepEqual(all(it).map(names), [["a", "e", "f"]]);
});

test("each gets what its single call would have got", () => {
  const operations = [acquire("a"), release(holding("b")), extend(holding("c")),
    acquire("d")];
  const it = queue(...operations);
  const request = it.take();
  it.answered(request, whole(result(201, "grant", { id: "a" }),
    result(200, "release", { released: true }),
    result(503, "problem", { code: "no_quorum", retry_after_ms: 7 }),
    result(409, "problem", { code: "lock_held" })));
  const got = operations.map((one) => one.got);
  assert.deepEqual(got.map((one) => one.length), [1, 1, 1, 1]);
  const [[a], [b], [c], [d]] = got;
  assert.deepEqual([a.status, a.body.id, b.status, c.status, c.code,
    c.retryAfterMs, d.code], [201, "a", 200, 503, "no_quorum", 7, "lock_held"]);
  assert.equal(it.take(), undefined);
});

test("an answer to a repeated batch is that of a repeat for each", () => {
  const operations = [release(holding("a")), release(holding("b"))];
  const it = queue(...operations);
  const gone = result(404, "problem", { code: "lock_not_found" });
  it.answered(it.take(), new Answer(200, { results: [gone, gone] },
    { isRepeated: true }));
  for (const { got: [answer] } of operations) assert.ok(answer.isRepeated);
});

test("what is no answer to a batch is none to any of it", () => {
  for (const body of [{}, { results: 7 }, { results: [] },
    { results: [result(200, "grant")] }]) {
    const operations = [acquire("a"), acquire("b")];
    const it = queue(...operations);
    it.answered(it.take(), new Answer(200, body));
    for (const { got } of operations)
      assert.deepEqual(got.map((one) => one.code), ["no_answer"]);
    assert.ok(it.isEmpty);
  }
  const operations = [acquire("a"), acquire("b"), acquire("c"), acquire("d"),
    acquire("e")];
  const it = queue(...operations);
  it.answered(it.take(), whole(null, {}, { status: "201", grant: {} },
    { status: 200 }, result(201, "grant", { id: "e" })));
  assert.deepEqual(operations.map(({ got: [answer] }) => answer.code || answer.status),
    ["no_answer", "no_answer", "no_answer", "no_answer", 201]);
});

test("these answers to a batch are those of each operation", () => {
  for (const status of [401, 403, 408, 421, 429, 500, 502, 503, 504]) {
    const operations = [acquire("a"), acquire("b")];
    const it = queue(...operations);
    it.answered(it.take(), new Answer(status, { retry_after_ms: 9 }));
    for (const { got: [answer] } of operations)
      assert.deepEqual([answer.status, answer.retryAfterMs], [status, 9]);
    assert.ok(it.isEmpty);
  }
});

test("a batch that is refused as a whole: each goes alone", () => {
  for (const status of [301, 400, 404, 405, 411, 413, 415]) {
    const operations = [acquire("a"), acquire("b"), acquire("c")];
    const it = queue(...operations);
    const request = it.take();
    it.add(acquire("later"));
    it.add(acquire("and later"));
    it.answered(request, new Answer(status, {}));
    for (const { got } of operations) assert.equal(got.length, 0);
    const seen = [];
    for (let one = it.take(); one; one = it.take()) {
      seen.push([one.call.path, names(one)]);
      it.answered(one, new Answer(status, {}));
    }
    assert.deepEqual(seen, [["/locks", ["a"]], ["/locks", ["b"]], ["/locks", ["c"]],
      ["/batch", ["later", "and later"]], ["/locks", ["later"]],
      ["/locks", ["and later"]]]);
    for (const { got } of operations) assert.equal(got[0].status, status);
  }
});

test("with another access token, those that got a 401 are asked for again", () => {
  const operations = [acquire("a"), acquire("b"), acquire("c")];
  const it = queue(...operations);
  const denied = result(401, "problem", { code: "unauthorized" });
  it.answered(it.take(), whole(denied, result(201, "grant"), denied), true);
  assert.deepEqual(operations.map(({ got }) => got.length), [0, 1, 0]);
  const again = it.take();
  assert.deepEqual(names(again), ["a", "c"]);
  it.answered(again, whole(denied, denied));
  assert.deepEqual(operations.map(({ got }) => got[0].status), [401, 201, 401]);
});

test("an overdue request frees its slot, once", () => {
  const it = queue();
  const [one, two] = fill(it);
  it.add(acquire("a"));
  assert.equal(it.take(), undefined);
  it.overdue(one);
  it.overdue(one);
  assert.deepEqual(names(it.take()), ["a"]);
  it.add(acquire("b"));
  it.answered(one, SILENT); // frees nothing more
  assert.equal(it.take(), undefined);
  it.answered(two, SILENT);
  assert.deepEqual(names(it.take()), ["b"]);
});

test("who leaves a request of its own ends it, and frees its slot", () => {
  const it = queue();
  const [busy] = fill(it);
  const later = acquire("later");
  it.add(later);
  assert.equal(it.leave(busy.operations[0]), busy);
  assert.deepEqual(busy.operations[0].got, []);
  assert.equal(it.take().operations[0], later);
});

test("who leaves a batch does not end it, and can hear of it later", () => {
  const [one, two, three] = [acquire("a"), acquire("b"), acquire("c")];
  const it = queue(one, two, three);
  const request = it.take();
  assert.equal(it.leave(one), undefined);
  assert.equal(it.leave(two), undefined);
  two.owner = { next: (answer) => two.got.push(answer) };
  assert.ok(one.wasSent && one.request);
  it.answered(request, whole(result(201, "grant", { id: "a" }),
    result(201, "grant", { id: "b" }), result(201, "grant", { id: "c" })));
  assert.deepEqual([one.got.length, two.got[0].body.id, three.got[0].body.id],
    [0, "b", "c"]);
  assert.deepEqual([one.answer.body.id, one.request], ["a", undefined]);
});

test("who has left a batch is not sent again when it is refused", () => {
  const [one, two] = [acquire("a"), acquire("b")];
  const it = queue(one, two);
  const request = it.take();
  it.leave(one);
  it.answered(request, new Answer(404, {}));
  assert.deepEqual(all(it).map(names), [["b"]]);
  assert.equal(one.answer.status, 404);
});

test("each of a batch gives up in its own time", () => {
  const [short, shorter, long] = [extend(holding("a"), 400),
    extend(holding("b"), 300), acquire("c")];
  const it = queue(short, shorter, long);
  const request = it.take();
  assert.deepEqual([request.timeoutMs, request.patienceMs], [5000, 300]);
  assert.equal(it.giveUp(request, 300), false);
  assert.deepEqual([short.got.length, shorter.got[0].code], [0, "no_answer"]);
  assert.equal(request.patienceMs, 400);
  it.giveUp(request, 401);
  assert.deepEqual([short.got[0].code, request.patienceMs],
    ["no_answer", undefined]);
  it.answered(request, whole(...Array(3).fill(result(201, "grant"))));
  assert.deepEqual([short, shorter, long].map(({ got }) => got.length), [1, 1, 1]);
  assert.equal(long.got[0].status, 201);
});

test("a batch in which one gave up frees its slot; nobody waits if all did", () => {
  const it = queue();
  const [busy] = fill(it);
  it.add(extend(holding("a"), 300));
  it.add(extend(holding("b"), 400));
  it.answered(busy, SILENT);
  const request = it.take();
  it.add(acquire("c"));
  assert.equal(it.take(), undefined);
  assert.equal(it.giveUp(request, 350), false);
  assert.deepEqual(names(it.take()), ["c"]);
  assert.equal(it.giveUp(request, 450), true);
});

test("what was not sent when the client is closed fails", () => {
  const it = queue();
  const [busy] = fill(it);
  const rest = [acquire("a"), acquire("b", { waitMs: 9, mustWait: true })];
  rest.forEach((one) => it.add(one));
  it.close();
  for (const { got: [answer], wasSent } of rest)
    assert.deepEqual([answer.code, answer.body.detail, wasSent],
      ["no_answer", "no answer: the client was closed", false]);
  assert.equal(busy.operations[0].got.length, 0);
  it.answered(busy, SILENT);
  assert.equal(it.take(), undefined);
});
