// SPDX-License-Identifier: MIT
// The transcripts of tests/protocol, played without I/O; docs/client-authors.md says
// what is in them.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import test from "node:test";

const require = createRequire(import.meta.url);
const SOURCE = process.env.PLAYED ?? "../node_modules/redlockd-client/src";
const FOLDER = join(process.env.ROOT, "tests/protocol");
// talks that this package does not have: only its renewals choose a TTL
const FOREIGN = ["extend"];

let time = 0;
const clock = require(`${SOURCE}/clock.js`);
clock.now = () => time; // before the others take it from there
const { Answer, readGrant } = require(`${SOURCE}/answer.js`);
const errors = require(`${SOURCE}/errors.js`);
const { Acquire, Extend, Operation, Release } =
  require(`${SOURCE}/operation.js`);
const ops = require(`${SOURCE}/ops.js`);
const { Queue } = require(`${SOURCE}/queue.js`);
const { Replicas } = require(`${SOURCE}/replicas.js`);
const talks = require(`${SOURCE}/talk.js`);
const { Hold, Wish } = require(`${SOURCE}/wish.js`);

// the first that fits; they are subclasses of each other
const ERRORS = {
  held: errors.LockHeld, lost: errors.LockLost,
  rate_limited: errors.RateLimited, unavailable: errors.Unavailable,
  untrusted: errors.Untrusted, unauthorized: errors.Unauthorized,
  forbidden: errors.Forbidden, refused: errors.RequestRefused,
};
const NAMES = { // what we call it
  retry_after_ms: "retryAfterMs", remaining_ms: "remainingMs",
  fencing_token: "fencingToken",
};
// what a step may say beside its first word
const STEPS = {
  send: "of server headers body timeout_ms wait_ms", again: "of timeout_ms",
  answer: "of after_ms body grant text retry_after overdue", pause_ms: "of",
  end: "*", hold: "", leave: "of", cancel: "gives_back", pass_ms: "",
  choose: "probes", failed: "", worked: "", probed: "works", busy: "",
};
// where calls go together
const TOGETHER = {
  ask: "operation wait_ms must_wait urgent more", leaves: "wait_ms batch",
  lands: "answer results told stale", overdue: "", gives_up: "",
};
const MEMBERS = ["name", "why", "servers", "talk", "options", "begins", "steps"];

/** The one word by which a step is known. */
function wordOf(step, words) {
  const [word, ...more] = Object.keys(step).filter((name) => name in words);
  assert.ok(word && more.length === 0, "it has no one word");
  const known = words[word].split(" ");
  assert.ok(words[word] === "*" || Object.keys(step).every((name) =>
    name === word || known.includes(name)), "a member is unknown");
  return word;
}

/** The steps, one after the other. */
function playAll(steps, take) {
  steps.forEach((step, number) => {
    try {
      take(step);
    } catch (error) {
      error.message = `step ${number}, ${JSON.stringify(step)}: ${error.message}`;
      throw error;
    }
  });
}

/** An exact time may be rounded; a range is of times drawn at random. */
function close(what, actual, expected) {
  const [least, most] = [expected].flat().length === 2
    ? expected : [expected, expected];
  assert.ok(least - 1 <= actual && actual <= most + 1, `${what}: ${actual}`);
}

/** A talk, and what it asks for now. */
class Running {
  constructor(generator) {
    this.generator = generator;
    this.proceed();
  }

  proceed(answer) {
    this.now = this.result = this.error = undefined;
    try {
      const step = this.generator.next(answer);
      if (step.done) this.result = step.value;
      else this.now = step.value;
    } catch (error) {
      if (!(error instanceof errors.RedlockdError)) throw error;
      this.error = error;
    }
  }
}

class Player {
  #words = new Map(); // what $key stands for
  #running = new Map();
  #due = [];
  #isBusy = false; // other requests are under way
  #known;

  constructor(transcript, grant, warnings) {
    assert.deepEqual(
      Object.keys(transcript).filter((name) => !MEMBERS.includes(name)), []);
    const { servers, talk, options = {}, steps } = transcript;
    Object.assign(this, { main: talk, options, steps, grant, warnings });
    this.replicas = new Replicas(
      Array.from({ length: servers }, (_, number) => `http://server-${number}`));
    this.replicas.onDue = (url) => this.#due.push(url);
    this.wish = new Wish("a", {});
    if (grant)
      this.hold = new Hold(this.wish, readGrant(new Answer(200, grant), time));
  }

  play() {
    playAll(this.steps, (step) => this.#take(step));
    for (const [name, talk] of this.#running)
      assert.ok(!talk.generator, `${name} did not end`);
  }

  #take(step) {
    const word = wordOf(step, STEPS);
    if (word === "hold") this.#check(step);
    else this[word](step);
  }

  // ---- the talks

  #talk(step) {
    const name = step.of ?? this.main;
    if (!this.#running.get(name)?.generator)
      this.#running.set(name, new Running(this.#begin(name.replace(/ \d$/, ""))));
    return this.#running.get(name);
  }

  #begin(kind) {
    const { replicas, hold, options } = this;
    switch (kind) {
      case "acquire": {
        const { resources, ttl_ms: ttlMs, wait_ms: waitMs, ...rest } = options;
        this.wish = new Wish(resources, { ttlMs, waitMs, ...rest });
        this.attempt = new talks.Attempt();
        return talks.acquire(replicas, this.wish, 5000, this.attempt);
      }
      case "give back":
        return talks.giveBack(replicas, this.wish, 5000, this.attempt);
      case "renew":
        return this.#renewing();
      case "inspect":
        return ops.inspect(replicas, options.resource, 5000);
      case "watch":
        return ops.nextHolder(replicas, options.resource, this.#known, 5000);
      case "force":
        return ops.forceRelease(replicas, options.id, options.fencing_token, 5000);
      case "downgrade":
        return talks.downgrade(replicas, hold, 5000);
      case "release":
        return talks.release(replicas, hold, 5000);
      default:
        throw new Error(`no talk: ${kind}`);
    }
  }

  /** Until the first renewal, an alarm is set. */
  * #renewing() {
    yield { sleepMs: this.hold.renewInMs };
    yield* talks.renew(this.replicas, this.hold, 5000);
  }

  /** Pauses that are none. */
  #skip(talk) {
    while (talk.now?.sleepMs <= 1) {
      time += talk.now.sleepMs;
      talk.proceed();
    }
  }

  /** The request that is sent now: as it is, or of an operation that goes alone. */
  #requestOf({ now }) {
    if (!(now instanceof Operation)) return now;
    now.url = this.replicas.choose();
    now.sentAt = time;
    now.wasSent = true;
    const waitMs = this.#isBusy && !now.mustWait ? 0 : now.waitMs;
    now.hasWaited = waitMs > 0;
    const { method, path, headers, text } = now.single(waitMs);
    return { method, url: now.url + path, headers,
      body: text && JSON.parse(text), timeoutMs: now.timeoutMs, waitMs };
  }

  // ---- the steps

  send(step) {
    const talk = this.#talk(step);
    this.#skip(talk);
    const now = this.#requestOf(talk);
    assert.ok(now?.url, `no request: ${JSON.stringify(now)} ${talk.error}`);
    talk.asked = step;
    const url = this.#url(step.server);
    const [method, path] = step.send.split(" ");
    assert.equal(`${now.method} ${now.url}`, `${method} ${url}${path}`);
    assert.deepEqual(now.body, step.body);
    close("timeout_ms", now.timeoutMs, step.timeout_ms ?? 5000);
    close("wait_ms", now.waitMs ?? 0, step.wait_ms ?? 0);
    const { headers = {} } = now;
    const wanted = { ...step.headers };
    for (const [name, text] of Object.entries(wanted)) {
      if (!text.startsWith("$")) continue;
      if (!this.#words.has(text)) this.#words.set(text, headers[name]);
      wanted[name] = this.#words.get(text);
    }
    assert.deepEqual(headers, wanted);
    assert.equal(new Set(this.#words.values()).size, this.#words.size);
  }

  again({ again: server, ...more }) {
    this.send({ ...this.#talk(more).asked, server, ...more });
  }

  answer(step) {
    time += step.after_ms ?? 0;
    const talk = this.#talk(step);
    const server = this.replicas.urls.find((url) => talk.now?.url.startsWith(url));
    assert.ok(server, "nothing was asked");
    const isOverdue = step.overdue ?? false;
    if (isOverdue) this.replicas.avoid(server);
    if (step.answer === "stale") { // the connection's; it asks again
      talk.isRepeated = true;
      return;
    }
    const answer = this.#read(step, { isRepeated: talk.isRepeated, isOverdue });
    talk.isRepeated = false;
    if (answer.isTimely) this.replicas.worked(server);
    talk.now.answer = answer;
    talk.proceed(answer);
  }

  #read(step, raw) {
    const failures = { lost: "no_answer", unsent: "unsent", untrusted: "untrusted" };
    if (typeof step.answer === "string") {
      assert.ok(step.answer in failures);
      return new Answer(0, { code: failures[step.answer] }, raw);
    }
    const body = step.grant ? { ...this.grant, ...step.grant } : step.body;
    const text = step.text ?? JSON.stringify(body);
    assert.equal(typeof text, "string", "an answer without a body");
    return Answer.read({ ...raw, status: step.answer, text,
      retryAfter: step.retry_after ?? "" });
  }

  pause_ms(step) {
    const talk = this.#talk(step);
    assert.ok("sleepMs" in (talk.now ?? {}), `no pause: ${JSON.stringify(talk.now)}`);
    close("pause", talk.now.sleepMs, step.pause_ms);
    time += talk.now.sleepMs;
    talk.proceed();
  }

  busy(step) {
    this.#isBusy = step.busy;
  }

  pass_ms(step) {
    time += step.pass_ms;
  }

  end({ end, of, ...expected }) {
    const talk = this.#talk({ of });
    this.#skip(talk);
    assert.equal(talk.now, undefined);
    const [name, told] = this.#told(talk);
    assert.equal(name, end, String(talk.error));
    this.#compare(told, expected);
    talk.generator = undefined;
  }

  /** How it ended, and what else it tells. */
  #told({ error, result }) {
    for (const [name, type] of Object.entries(ERRORS))
      if (error instanceof type) return [name, error];
    if (this.warnings.some((text) => text.includes("not released")))
      return ["not_released", {}];
    if (result?.workUntil)
      return ["granted", this.#state(new Hold(this.wish, result))];
    if (this.main === "inspect" || this.main === "watch") {
      this.#known = result;
      return result ? ["holder", result] : ["free", {}];
    }
    return [result === false ? "free" : "done", {}];
  }

  #state(hold) {
    const { token, fencingToken, isShared: shared } = hold.grant;
    return { token, fencingToken, shared, slots: hold.slots,
      work_ms: hold.remainingMs, validity_ms: hold.validMs,
      renew_ms: hold.renewInMs };
  }

  #compare(told, expected) {
    for (const [name, value] of Object.entries(expected)) {
      const actual = told[NAMES[name] ?? name];
      if (name.endsWith("_ms")) close(name, actual, value);
      else assert.deepEqual(actual, value, name);
    }
  }

  #check(step) {
    this.#compare(this.#state(this.hold), step.hold);
  }

  leave(step) {
    const talk = this.#talk(step);
    this.#skip(talk);
    assert.ok(talk.now, "it has ended");
    talk.generator = undefined;
  }

  cancel(step) {
    this.#talk({}).generator = undefined;
    assert.equal(this.attempt.mayBeGranted, step.gives_back);
    if (!step.gives_back) return;
    const talk = new Running(this.#begin("give back"));
    this.#running.set(this.main, talk);
    talk.proceed(talk.now.answerOf.answer);
  }

  // ---- which replica

  #url(number) {
    return this.replicas.urls[number];
  }

  choose(step) {
    this.#due.length = 0;
    assert.equal(this.replicas.choose(), this.#url(step.choose));
    assert.deepEqual(this.#due, (step.probes ?? []).map((one) => this.#url(one)));
  }

  failed(step) {
    this.replicas.avoid(this.#url(step.failed));
  }

  worked(step) {
    this.replicas.worked(this.#url(step.worked));
  }

  probed(step) {
    this.replicas.probed(this.#url(step.probed), step.works);
  }
}

/** Plays which calls go together. */
class Together {
  #queue = new Queue();
  #operations = new Map();
  #requests = []; // under way
  #departing = [];
  #told = {};

  play(steps) {
    playAll(steps, (step) => {
      const word = wordOf(step, TOGETHER);
      if (word !== "leaves") assert.equal(this.#departing.length, 0);
      this[word](step);
      if (step.more) return;
      for (let request; (request = this.#queue.take());)
        this.#departing.push(request);
    });
    assert.equal(this.#departing.length, 0);
  }

  #names({ operations }) {
    return operations.map((operation) => [...this.#operations]
      .find(([, one]) => one === operation)[0]);
  }

  #request(name) {
    return this.#requests.find((one) => this.#names(one)[0] === name);
  }

  ask({ ask: name, operation, wait_ms: waitMs = 0, must_wait: mustWait = false,
    urgent: isUrgent = false }) {
    const asked = this.#operation(name, operation, waitMs, mustWait, isUrgent);
    asked.owner = {
      next: (answer) => {
        this.#told[name] = answer.status;
      },
    };
    this.#operations.set(name, asked);
    this.#queue.add(asked);
  }

  #operation(name, { operation, ...of }, waitMs, mustWait, isUrgent) {
    if (operation === "acquire") {
      const { resource, resources = resource, limit, mode, ...rest } = of;
      assert.deepEqual(rest, {});
      const wish = new Wish(resources, { limit, shared: mode === "shared" });
      return new Acquire(wish, `key of ${name}`, 5000, waitMs, mustWait);
    }
    const { id, token, ttl_ms: ttlMs = 10000, ...rest } = of;
    assert.deepEqual(rest, {});
    const hold = new Hold(new Wish(id, {}), readGrant(new Answer(200, {
      id, token, ttl_ms: ttlMs, fencing_token: 1, elapsed_ms: 0, validity_ms: 1,
      renew_after_ms: 1 }), time));
    return operation === "extend" ? new Extend(hold, 5000, isUrgent)
      : new Release(hold, 5000);
  }

  leaves({ leaves: names, wait_ms: waitMs = 0, batch: isBatch = names.length > 1 }) {
    const request = this.#departing.shift();
    assert.ok(request, "nothing leaves");
    this.#requests.push(request);
    assert.deepEqual(this.#names(request), names);
    assert.equal(request.waitMs, waitMs);
    assert.equal(request.call.path === "/batch", isBatch);
  }

  lands({ lands: name, answer: status, results, told, stale: isRepeated }) {
    const request = this.#request(name);
    this.#requests.splice(this.#requests.indexOf(request), 1);
    const answer = status === "lost" ? new Answer(0, { code: "no_answer" })
      : new Answer(status, { results: results?.map((one) =>
        ({ status: one, [one < 300 ? "grant" : "problem"]: {} })) },
      { isRepeated });
    this.#told = {};
    this.#queue.answered(request, answer);
    assert.deepEqual(this.#told, told);
  }

  overdue({ overdue: name }) {
    this.#queue.overdue(this.#request(name));
  }

  gives_up({ gives_up: name }) {
    this.#queue.leave(this.#operations.get(name));
  }
}

const warnings = [];
process.emitWarning = (text) => warnings.push(text);

for (const file of readdirSync(FOLDER).filter((name) => name.endsWith(".json"))) {
  const { grant, request, full, transcripts, ...rest } = JSON.parse(
    readFileSync(join(FOLDER, file), "utf8"));
  assert.deepEqual(rest, {}, file);
  // asks: the request of the file, to this replica
  const whole = ({ asks: server, ...step }) =>
    server === undefined ? step : { ...request, server, ...step };
  for (const transcript of transcripts) {
    if (FOREIGN.includes(transcript.talk)) continue;
    const first = transcript.begins ? { full }[transcript.begins] : [];
    transcript.steps = [...first, ...transcript.steps].map(whole);
    test(`${file}: ${transcript.name}`, () => {
      time = 1000;
      warnings.length = 0;
      if (transcript.talk === "together") new Together().play(transcript.steps);
      else new Player(transcript, grant, warnings).play();
    });
  }
}
