// A lock of redlockd with fetch, for Node 18 and later.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
const bearer = process.env.REDLOCKD_AUTH_TOKEN; // our token, if redlockd wants one
export class LockLost extends Error {}

// Runs work({ fence, slots, signal, check }) under the lock; with limit, so many may at once. Pass
// signal to all that it awaits: a loss aborts it. Call check before what cannot be undone.
export async function withLock(urls, resource, { ttlMs = 30000, waitMs = 60000, limit }, work) {
  const [lost, done, replicas] = [new AbortController(), new AbortController(), [...urls]];
  const headers = { "Content-Type": "application/json", "Idempotency-Key": randomUUID() };
  if (bearer) headers.Authorization = `Bearer ${bearer}`;
  let until, pauseMs;
  const leftMs = () => until - ttlMs / 10 - performance.now(); // a tenth to end the work
  const check = () => {
    if (leftMs() <= 0) throw new LockLost("lock lost");
  };

  async function ask(method, path, limitMs, body, fields = {}) {
    for (const _ of urls) { // until a replica can answer
      const sent = performance.now();
      const signal = AbortSignal.timeout(Math.max(Math.trunc(limitMs), 1));
      const request = { method, headers, signal, body: JSON.stringify(body) };
      try {
        const answer = await fetch(replicas[0] + path, request);
        fields = await answer.json();
        pauseMs = fields.renew_after_ms ?? pauseMs;
        if ("validity_ms" in fields) until = sent + fields.elapsed_ms + fields.validity_ms;
        if (answer.status < 429) return [answer.status, fields];
      } catch {} // no answer
      replicas.push(replicas.shift());
    }
    return [503, fields];
  }

  async function acquire() {
    for (const deadline = performance.now() + waitMs; ; ) {
      const leftMs = Math.max(Math.ceil(deadline - performance.now()), 0);
      const want = { resource, ttl_ms: ttlMs, wait_ms: Math.min(leftMs, 10000), limit };
      const [status, answer] = await ask("POST", "/locks", want.wait_ms + 2000, want);
      if (status < 300) return answer;
      if (![409, 503].includes(status) || performance.now() > deadline)
        throw new Error(`${resource}: ${status} ${answer.detail}`);
      if (status === 503) await sleep(200 + 800 * Math.random() + (answer.retry_after_ms ?? 0));
    }
  }

  async function renew(path, body) {
    while (leftMs() > 0) {
      await sleep(Math.min(pauseMs, leftMs()), null, { signal: done.signal });
      pauseMs = ttlMs / 20; // unless this succeeds
      const [, answer] = await ask("PUT", path, leftMs() / urls.length, body);
      if (["lock_not_found", "not_owner"].includes(answer.code)) until = 0;
    }
  }

  const { id, token, fencing_token: fence, slots } = await acquire();
  const renewal = renew(`/locks/${id}/extend`, { token, ttl_ms: ttlMs })
    .catch(() => {}) // the work is done
    .finally(() => lost.abort(new LockLost("lock lost")));
  try {
    return await work({ fence, slots, check, signal: lost.signal });
  } finally {
    done.abort();
    await renewal;
    await ask("DELETE", `/locks/${id}`, 2000, { token });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) { // not imported
  const [resource, ttlMs, waitMs, workMs] = [process.argv[2], ...process.argv.slice(3).map(Number)];
  await withLock(process.env.URLS.split(" "), resource, { ttlMs, waitMs }, async (lock) => {
    for (let step = 0; step < workMs / 50; step++) {
      await sleep(50, null, { signal: lock.signal });
      lock.check();
      console.log("working", Date.now(), lock.fence);
    }
  });
}
