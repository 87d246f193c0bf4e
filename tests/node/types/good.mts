// SPDX-License-Identifier: MIT
// Uses every public thing, with the types that the package says. It is compiled
// and run: what the types say must be so.
import {
  AbortError, acquire, Client, Forbidden, Lock, LockHeld, LockLost, RateLimited,
  RedlockdError, RequestRefused, Unauthorized, Unavailable, Untrusted, withLock,
} from "redlockd-client";
import type {
  AcquireOptions, ClientOptions, From, HeldLock, Resources,
} from "redlockd-client";

declare const console: { log(text: string): void };
declare const AbortController: { new (): { signal: AbortSignal; abort(): void } };

function must(isSo: boolean, what: string): asserts isSo {
  if (!isSo) throw new Error(what);
}

function check(value: unknown, ...kinds: string[]): void {
  must(kinds.includes(typeof value), `${String(value)}, not ${kinds.join()}`);
}

function checkHeld(held: HeldLock): void {
  const { id, resources, slots, owner, fencingToken, remainingMs, waiters,
    readers } = held;
  const names: string[] = resources;
  check(id.length, "number");
  names.forEach((name) => check(name, "string"));
  const texts: (string | undefined)[] = [owner];
  const numbers: (number | undefined)[] = [fencingToken, remainingMs, ...slots];
  texts.forEach((one) => check(one, "string", "undefined"));
  numbers.forEach((one) => check(one, "number", "undefined"));
  check(waiters + readers, "number");
}

async function useLock(lock: Lock): Promise<void> {
  const texts: string[] = [lock.id, lock.token];
  const numbers: number[] = [lock.fencingToken, lock.remainingMs, ...lock.slots];
  const slot: number | undefined = lock.slot;
  const isShared: boolean = lock.shared;
  const signal: AbortSignal = lock.signal;
  const shown: { fencingToken: number } = lock.toJSON();
  texts.forEach((one) => check(one, "string"));
  [...numbers, shown.fencingToken].forEach((one) => check(one, "number"));
  check(slot, "number", "undefined");
  check(isShared, "boolean");
  check(signal.aborted, "boolean");
  const nothing: void = lock.check();
  check(nothing, "undefined");
  check(await lock.downgrade(), "undefined");
}

const options: AcquireOptions = {
  ttlMs: 3000, waitMs: 5000, owner: "me", signal: new AbortController().signal,
};
const names: Resources = ["typed:a", "typed:b"];

const lock: Lock = await acquire("typed", options);
const disposable: AsyncDisposable = lock;
await useLock(lock);
await disposable[Symbol.asyncDispose]();
await lock.release();

const how: ClientOptions = { timeoutMs: 5000 };
const client: Client = new Client(how);
const from: From = { client };
const number: number = await withLock(names, { ...options, ...from },
  async (one) => one.fencingToken);
check(number, "number");
const text: string = await withLock("typed", (one: Lock) => one.token);
check(text, "string");
const permit = await client.acquire("typed:pool", { limit: 2, permits: 2 });
must(permit.slots.length === 2, "two slots");
await permit.release();

await client.withLock("typed", { shared: true, waitMs: 5000 }, async () => {
  try {
    await client.acquire("typed", { waitMs: 0 });
  } catch (error) {
    must(error instanceof LockHeld, String(error));
    const known: (number | undefined)[] =
      [error.remainingMs, error.fencingToken, error.readers];
    known.forEach((one) => check(one, "number", "undefined"));
    const owner: string | undefined = error.owner;
    check(owner, "string", "undefined");
  }
});
await client.withLock("typed", async () => {
  const held: HeldLock | null = await client.get("typed");
  must(held !== null, "it is held");
  checkHeld(held);
  for await (const one of client.locks({ prefix: "typed" })) checkHeld(one);
  for await (const one of client.watch("typed")) {
    must(one !== null, "it is held");
    checkHeld(one);
    const isReleased: boolean =
      await client.forceRelease(one.id, one.fencingToken ?? "all");
    must(isReleased, "released by force");
    break;
  }
}).catch((error: unknown) => must(error instanceof LockLost, String(error)));
try {
  await client.acquire("");
} catch (error) {
  must(error instanceof RequestRefused && error instanceof RedlockdError,
    String(error));
  const status: number = error.status;
  const code: string = error.code;
  must(status === 400 && code === "invalid_request", `${status} ${code}`);
}
function tell(error: RedlockdError): string {
  if (error instanceof AbortError) return error.code;
  if (error instanceof RateLimited) return String(error.retryAfterMs + 1);
  if (error instanceof Unavailable) return error.message;
  if (error instanceof Unauthorized || error instanceof Forbidden)
    return error.code;
  if (error instanceof Untrusted) return error.name;
  return "";
}
check(tell(new LockLost("x")), "string");
const closed: void = await client.close();
check(closed, "undefined");
await client[Symbol.asyncDispose]();
console.log("typed");
