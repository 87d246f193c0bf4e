// SPDX-License-Identifier: MIT
// The calls about locks of others, in the form of talk.js.
"use strict";

const { now } = require("./clock.js");
const {
  backoffMs, denial, refusal, shown, told, unavailable,
} = require("./replicas.js");
const { debug, LONGEST_WAIT_MS, warn } = require("./talk.js");
const { namesOf } = require("./wish.js");

const PAGE = 1000;
const FREE = "free"; // the version of a lock that nobody holds
// an answer to a watch that tells nothing new should take its time
const LOOK_MS = 1000;

/** The name in URLs of a lock with these resources. */
function idOf(resources) {
  const names = namesOf(resources).map((name) => Buffer.from(name));
  if (names.length === 1 && /^(?!\.{1,2}$)[\w.:-]+$/.test(String(names[0])))
    return String(names[0]);
  const mark = names.length === 1 ? "~" : "~~";
  const joined = names.sort(Buffer.compare).join("\n");
  return mark + Buffer.from(joined).toString("base64url");
}

/** What a server tells of a lock; null: nobody holds it. Undefined: it is not
 * known, as for locks of other libraries, and of readers. */
function readLock(body) {
  return body.held ? readHeld(body) : null;
}

function readHeld(body) {
  return {
    id: body.id,
    resources: body.resources ?? [body.resource],
    slots: body.slots ?? [],
    owner: body.owner,
    fencingToken: body.fencing_token,
    remainingMs: body.remaining_ms,
    waiters: body.waiters ?? 0,
    readers: body.readers ?? 0,
    version: body.version,
  };
}

/**
 * Asks each replica once, and one of them again, until one answers with
 * something else than a failure of its own: an object with this member, or a
 * problem.
 */
function* ask(replicas, method, path, member, timeoutMs) {
  const what = `${method} ${path.replace(/\?.*/, "")}`;
  const most = replicas.urls.length + 1;
  let denials = 0;
  let answer;
  for (let failures = 1; ; failures++) {
    const url = replicas.choose();
    answer = yield { method, url: url + path, timeoutMs };
    denials = answer?.isDenial ? denials + 1 : 0;
    if (denials >= replicas.urls.length) throw denial(what, answer);
    if (!answer?.isDenial && (answer?.isFinal || answer?.has(member)))
      return answer;
    replicas.avoid(url);
    if (failures === most) {
      const why = `${shown(url)}: ${answer ?? "no answer"}`;
      throw unavailable(what, answer, why);
    }
    if (!answer?.isDenial) yield { sleepMs: backoffMs(0, undefined) };
  }
}

/** A page of locks, and the cursor of the next one, if there is one. */
function* listPage(replicas, prefix, cursor, timeoutMs) {
  const query = new URLSearchParams({ page_size: String(PAGE) });
  if (prefix) query.set("prefix", prefix);
  if (cursor) query.set("cursor", cursor);
  // servers take a + for a +
  const path = `/locks?${String(query).replaceAll("+", "%20")}`;
  const answer = yield* ask(replicas, "GET", path, "locks", timeoutMs);
  if (answer.status !== 200) throw refusal("the list", answer);
  const { locks, next_cursor: next } = answer.body;
  return { locks: locks.map(readHeld), cursor: next };
}

/** Null: nobody holds it. */
function* inspect(replicas, resources, timeoutMs) {
  const path = `/locks/${idOf(resources)}`;
  const answer = yield* ask(replicas, "GET", path, "held", timeoutMs);
  if (answer.status !== 200) throw refusal(String(resources), answer);
  return readLock(answer.body);
}

/** False: no lock with this fencing token, or of a reader, is held (any more). */
function* forceRelease(replicas, id, fencingToken, timeoutMs) {
  const path = `/locks/${encodeURIComponent(id)}?force=${fencingToken}`;
  const answer = yield* ask(replicas, "DELETE", path, "released", timeoutMs);
  if (answer.hasEnded) return false;
  if (answer.status !== 200) throw refusal(id, answer);
  return true;
}

/**
 * Waits until the lock has another version than `known`, a holder or null, and
 * for a server that works, however long that takes. known: undefined at first.
 */
function* nextHolder(replicas, resources, known, timeoutMs) {
  const path = `/locks/${idOf(resources)}`;
  const name = namesOf(resources).join(", ");
  const version = known === null ? FREE : known?.version;
  let failures = 0;
  let denials = 0;
  while (true) {
    // a server that does not wait, as it stops, may still tell
    const waitMs = version === undefined || failures > 0 ? 0 : LONGEST_WAIT_MS;
    const query = waitMs > 0 ? `?after=${version}&wait_ms=${waitMs}` : "";
    const url = replicas.choose();
    const sent = now();
    const answer = yield {
      method: "GET", url: url + path + query, timeoutMs, waitMs,
    };
    denials = answer?.isDenial ? denials + 1 : 0;
    if (denials > 0) {
      replicas.avoid(url);
      if (denials >= replicas.urls.length) throw denial(name, answer);
      continue;
    }
    if (answer?.has("version")) {
      if (answer.body.version !== version) return readLock(answer.body);
      failures = 0;
      yield { sleepMs: Math.max(0, sent + LOOK_MS - now()) };
      continue;
    }
    if (answer?.isFinal) throw refusal(name, answer);
    replicas.avoid(url);
    failures += 1;
    const tell = failures === 1 ? warn : debug;
    tell(`${name}: not watched now, trying again ` +
      `(${shown(url)}: ${answer ?? "no answer"})`);
    yield {
      sleepMs: backoffMs(failures, told(replicas, failures, answer)),
    };
  }
}

module.exports = { idOf, listPage, inspect, forceRelease, nextHolder };
