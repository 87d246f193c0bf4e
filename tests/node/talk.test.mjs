// The protocol without I/O: what is asked, and when, by a clock that runs on as
// the test says only as far as the generators sleep.
import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout } from "node:timers/promises";

import { Answer, readGrant } from "../node_modules/redlockd-client/src/answer.js";
import { now } from "../node_modules/redlockd-client/src/clock.js";
import { LockHeld, LockLost, Unavailable } from "redlockd-client";
import { Operation } from "../node_modules/redlockd-client/src/operation.js";
import { idOf, nextHolder } from "../node_modules/redlockd-client/src/ops.js";
import { Replicas } from "../node_modules/redlockd-client/src/replicas.js";
import {
  acquire, Attempt, giveBack, release, renew,
} from "../node_modules/redlockd-client/src/talk.js";
import { Hold, Wish } from "../node_modules/redlockd-client/src/wish.js";
import { catchWarnings, warnings } from "./lib.mjs";

catchWarnings();

const URLS = ["http://one", "http://two"];
const GRANT = {
  id: "a", token: "1795221641865000.0123", fencing_token: 1795221641865000,
  ttl_ms: 30000, elapsed_ms: 1, validity_ms: 29000, renew_after_ms: 10000,
};
const HELD = new Answer(409, { code: "lock_held", retry_after_ms: 20 });
const NO_QUORUM = new Answer(503, { code: "no_quorum" });
const granted = (fields) => new Answer(201, { ...GRANT, ...fields });

/** A step as it is sent: by the caller, of its own or of an operation. */
function sent(step, replicas) {
  if (!(step instanceof Operation))
    return { ...step, body: {} };
  step.url = replicas.choose();
  step.sentAt = now();
  step.wasSent = true;
  step.hasWaited = step.waitMs > 0;
  const { method, path, headers, text = "{}" } = step.single(step.waitMs);
  return { method, headers, url: step.url + path, body: JSON.parse(text),
    timeoutMs: step.timeoutMs, waitMs: step.waitMs, mustWait: step.mustWait };
}

/** Plays a talk against answers; its steps, and what it ended with. */
function play(talk, ...answers) {
  const sends = [];
  const sleeps = [];
  let step = talk.next();
  while (!step.done) {
    const { value } = step;
    if ("sleepMs" in value) {
      sleeps.push(value.sleepMs);
      step = talk.next();
    } else if ("answerOf" in value) {
      step = talk.next(value.answerOf.answer);
    } else {
      sends.push(sent(value, talk.replicas));
      if (answers.length === 0) return { sends, sleeps, isOpen: true };
      value.answer = answers.shift();
      step = talk.next(value.answer);
    }
  }
  return { sends, sleeps, value: step.value };
}

/** With the replicas that the play chooses from. */
function playing(talk, ...args) {
  const replicas = new Replicas(URLS);
  return Object.assign(talk(replicas, ...args), { replicas });
}

function acquiring(options = {}, attempt = new Attempt()) {
  return playing(acquire, new Wish("a", options), 5000, attempt);
}

const WISH = new Wish("a", {});
const holding = (fields) => new Hold(WISH, readGrant(granted(fields), now()));

test("a grant ends the acquire; its validity counts from before", () => {
  const before = now();
  const { sends, value } = play(acquiring({ ttlMs: 30000, owner: "web-3" }),
    granted());
  const after = now();
  assert.deepEqual(sends[0].body,
    { resource: "a", ttl_ms: 30000, wait_ms: 10000, owner: "web-3" });
  assert.ok(value.until >= before + 29001 && value.until <= after + 29001);
  // a tenth of the validity to end the work
  assert.ok(Math.abs(value.until - value.workUntil - 2900) < 1e-3);
});

test("a renewal is due from the grant on, not from its answer", async () => {
  const sent = now() - 8000;
  const hold = new Hold(WISH, readGrant(granted(), sent));
  assert.ok(hold.renewInMs <= 2001, `${hold.renewInMs}`);
  const talk = playing(renew, hold, 5000);
  talk.next();
  await setTimeout(100);
  const { sleepMs } = talk.next(granted()).value;
  assert.ok(sleepMs <= 10001 - 99, `${sleepMs}`);
});

test("repeats have one key, each acquire another", () => {
  const keys = (played) => played.sends.map((one) =>
    one.headers["Idempotency-Key"]);
  const one = keys(play(acquiring(), undefined, NO_QUORUM, HELD, granted()));
  assert.equal(one.length, 4);
  assert.equal(new Set(one).size, 1);
  assert.match(one[0], /^[A-Za-z0-9_-]{16,64}$/);
  assert.notEqual(keys(play(acquiring(), granted()))[0], one[0]);
});

test("a lost answer goes to the next replica, and back", () => {
  const { sends } = play(acquiring(), undefined, NO_QUORUM, granted());
  assert.deepEqual(sends.map((one) => one.url),
    ["http://one/locks", "http://two/locks", "http://one/locks"]);
});

test("a replica is avoided for longer each time, and probed", async () => {
  const replicas = new Replicas(URLS);
  const due = [];
  replicas.onDue = (url) => due.push(url);
  const [one, two] = URLS;
  const choose = () => replicas.choose();
  assert.equal(choose(), one);
  for (let i = 0; i < 64; i++) replicas.avoid(one); // together: that is once
  assert.deepEqual([choose(), due], [two, []]);
  await setTimeout(1050);
  assert.deepEqual([choose(), choose(), due], [two, two, [one]]);
  replicas.probed(one, false);
  await setTimeout(1050);
  assert.deepEqual([choose(), due], [two, [one]]); // now two seconds
  await setTimeout(1000);
  assert.deepEqual([choose(), due], [two, [one, one]]);
  replicas.probed(one, true);
  assert.equal(choose(), one);
  replicas.avoid(one); // it only seemed to be back
  await setTimeout(1050);
  assert.deepEqual([choose(), due], [two, [one, one]]);
  replicas.worked(one);
  assert.equal(choose(), one);
  replicas.avoid(one);
  replicas.avoid(two);
  assert.equal(choose(), one); // it failed before the other
  replicas.avoid(one);
  assert.equal(choose(), two);
});

test("waits are sliced into ten seconds", () => {
  const waited = new Answer(409, { code: "lock_held", waited_ms: 10000,
    retry_after_ms: 60000 });
  const { sends, sleeps } = play(acquiring({ waitMs: 120000 }), waited, waited,
    granted());
  assert.deepEqual(sends.map((one) => [one.body.wait_ms, one.waitMs]),
    Array(3).fill([10000, 10000]));
  assert.deepEqual(sleeps, []);
});

test("a refusal without a wait is asked again when the server says", () => {
  assert.deepEqual(play(acquiring(), HELD, HELD, granted()).sleeps, [20, 20]);
  assert.throws(() => play(acquiring({ waitMs: 0 }), HELD), LockHeld);
});

test("each replica fails once, and one again", () => {
  assert.throws(() => play(acquiring({ waitMs: 0 }), undefined, NO_QUORUM,
    undefined), Unavailable);
  assert.equal(play(acquiring({ waitMs: 0 }), undefined, NO_QUORUM).isOpen, true);
});

test("only the first failure is a warning", async () => {
  play(acquiring(), undefined, undefined, undefined, undefined);
  await new Promise(setImmediate);
  assert.equal(warnings.length, 1);
});

test("failures back off, each time longer, at random", () => {
  const delays = play(acquiring(), ...Array(12).fill(undefined), granted()).sleeps;
  delays.forEach((ms, number) => {
    const most = Math.min(2000, 50 * 2 ** (number + 1));
    assert.ok(ms >= most / 2 && ms <= most, `${number}: ${ms}`);
  });
});

test("a grant that came too late is asked for again", () => {
  const { sends } = play(acquiring(), granted({ elapsed_ms: 0, validity_ms: 0 }),
    granted());
  assert.equal(sends.length, 2);
});

test("what may have been granted is known", () => {
  const rows = [[[], true], [[undefined], true], [[undefined, HELD], true],
    [[NO_QUORUM, HELD], true], [[granted({ validity_ms: 0, elapsed_ms: 0 }), HELD],
      true]];
  for (const [answers, expected] of rows) {
    const attempt = new Attempt();
    play(acquiring({}, attempt), ...answers);
    assert.equal(attempt.mayBeGranted, expected, String(answers));
  }
  const attempt = new Attempt();
  assert.equal(attempt.mayBeGranted, false);
  const talk = acquiring({}, attempt);
  const asked = talk.next().value;
  assert.equal(attempt.mayBeGranted, false); // it is in the queue
  sent(asked, talk.replicas);
  assert.equal(attempt.mayBeGranted, true);
  asked.answer = HELD;
  talk.next(HELD); // it sleeps
  assert.equal(attempt.mayBeGranted, false);
});

test("what was never sent was not granted", () => {
  const attempt = new Attempt();
  const talk = acquiring({}, attempt);
  const asked = talk.next().value;
  asked.answer = new Answer(0, { code: "no_answer" }); // the client was closed
  talk.next(asked.answer);
  assert.equal(attempt.mayBeGranted, false);
});

test("a try that finds it held goes on to wait, alone and with another key", () => {
  const attempt = new Attempt();
  const talk = acquiring({ waitMs: 60000 }, attempt);
  const asked = [];
  for (let step = talk.next(); asked.length < 4; step = talk.next(HELD)) {
    if ("sleepMs" in step.value) continue;
    const one = step.value;
    sent(one, talk.replicas);
    one.hasWaited = one.mustWait; // else it went beside others
    asked.push([one.mustWait, one.key]);
  }
  assert.deepEqual(asked.map(([mustWait]) => mustWait), [false, true, true, true]);
  assert.notEqual(asked[0][1], asked[1][1]);
  assert.equal(asked[1][1], asked[2][1]);
});

test("a try whose answer was lost keeps its key when it goes on to wait", () => {
  const talk = acquiring({ waitMs: 60000 });
  const keys = new Set();
  let last;
  for (const answer of [undefined, "slept", HELD, HELD]) {
    const { value } = answer === "slept" ? talk.next() : talk.next(last);
    last = answer;
    if ("sleepMs" in value) continue;
    sent(value, talk.replicas);
    value.hasWaited = value.mustWait;
    keys.add(value.key);
  }
  assert.equal(keys.size, 1);
});

/** An acquire that was under way when it was aborted. */
function left(options = {}, answer = undefined) {
  const attempt = new Attempt();
  const wish = new Wish("a", options);
  attempt.ask(wish, 0, 5000).wasSent = true;
  attempt.asked.answer = answer;
  return { attempt, talk: playing(giveBack, wish, 5000, attempt) };
}

test("what is given back is asked for with the same key, and released", () => {
  const { attempt, talk } = left({ waitMs: 9000 });
  const { sends } = play(talk, undefined, granted(), new Answer(200, {}));
  assert.deepEqual(sends.map((one) => one.method), ["POST", "POST", "DELETE"]);
  for (const one of sends.slice(0, 2)) {
    assert.equal(one.headers["Idempotency-Key"], attempt.key);
    assert.ok(!("wait_ms" in one.body));
  }
  assert.equal(sends[2].headers["X-Lock-Token"], GRANT.token);
});

test("nothing is given back if somebody else has it", () => {
  assert.equal(play(left().talk, HELD).sends.length, 1);
});

test("what the answer to a batch brings after the abort is released", () => {
  const methods = (answer, ...more) => play(left({}, answer).talk, ...more)
    .sends.map((one) => one.method);
  assert.deepEqual(methods(granted(), new Answer(200, {})), ["DELETE"]);
  for (const refused of [HELD, new Answer(400, {}), new Answer(403, {}),
    new Answer(429, {})])
    assert.deepEqual(methods(refused), []);
  assert.deepEqual(methods(new Answer(0, { code: "no_answer" }), granted(),
    new Answer(200, {})), ["POST", "DELETE"]);
});

test("renewals come when the server says, with its TTL and the token", () => {
  const { sends, sleeps, isOpen } = play(playing(renew, holding(), 5000),
    new Answer(200, { ...GRANT, elapsed_ms: 0, renew_after_ms: 7000 }),
    new Answer(200, { ...GRANT, elapsed_ms: 0, renew_after_ms: 8000 }));
  const seconds = sleeps.map((ms) => Math.ceil(ms / 1000));
  assert.deepEqual([seconds, isOpen], [[7, 8], true]);
  for (const one of sends) {
    assert.equal(one.url, "http://one/locks/a/extend");
    assert.deepEqual(one.body, { ttl_ms: 30000 });
    assert.equal(one.headers["X-Lock-Token"], GRANT.token);
  }
});

test("an extend leaves time for another replica", () => {
  const hold = holding({ validity_ms: 4000 });
  const { sends } = play(playing(renew, hold, 5000));
  assert.ok(sends[0].timeoutMs <= 901 && sends[0].timeoutMs > 500,
    String(sends[0].timeoutMs));
});

test("an extend that ends a lock", () => {
  for (const code of ["lock_not_found", "not_owner"])
    assert.throws(() => play(playing(renew, holding(), 5000),
      new Answer(409, { code })), LockLost);
  const { sends, value } = play(playing(renew, holding(), 5000),
    new Answer(409, { code: "max_hold_reached" }));
  assert.deepEqual([sends.length, value], [1, undefined]);
});

test("a later answer does not shorten the validity", () => {
  const hold = holding();
  const { until, workUntil } = hold.grant;
  hold.extended(readGrant(granted({ validity_ms: 100 }), now()));
  assert.deepEqual([hold.grant.until, hold.grant.workUntil], [until, workUntil]);
});

test("a release whose answer was lost may have been done", () => {
  const gone = new Answer(404, { code: "lock_not_found" });
  assert.equal(play(playing(release, holding(), 5000), undefined, gone)
    .sends.length, 2);
  for (const before of [[], [new Answer(401, {})], [new Answer(429, {})]])
    assert.throws(() => play(playing(release, holding(), 5000),
      ...before, gone), LockLost);
});

test("ids are those of the server", () => {
  const rows = [["order:42", "order:42"], ["a/b", "~YS9i"], ["..", "~Li4"],
    [["stock:7", "order:9"], "~~b3JkZXI6OQpzdG9jazo3"], [["a"], "a"],
    ["ü", "~w7w"], ["~a", "~fmE"]];
  for (const [resources, id] of rows) assert.equal(idOf(resources), id);
});

test("a watch asks with the version that is known", () => {
  const holder = { version: "7" };
  const query = (known) => play(playing(nextHolder, "a", known, 5000))
    .sends[0].url;
  assert.equal(query(undefined), "http://one/locks/a");
  assert.equal(query(null), "http://one/locks/a?after=free&wait_ms=10000");
  assert.equal(query(holder), "http://one/locks/a?after=7&wait_ms=10000");
  assert.equal(query({ version: "shared" }),
    "http://one/locks/a?after=shared&wait_ms=10000");
});

test("a watch goes on until the version is another one", () => {
  const lock = { id: "a", resource: "a", held: true };
  const same = new Answer(200, { ...lock, version: "shared", readers: 2 });
  const other = new Answer(200, { ...lock, version: "9", fencing_token: 9 });
  const { sends, sleeps, value } = play(
    playing(nextHolder, "a", { version: "shared", readers: 1 }, 5000),
    same, undefined, NO_QUORUM, other);
  assert.equal(value.fencingToken, 9);
  assert.equal(sends.length, 4);
  assert.equal(sleeps[0], 1000); // a server that does not wait is not pestered
});
