// SPDX-License-Identifier: MIT
// What all tests need.
import assert from "node:assert/strict";
import { after, afterEach, beforeEach } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Fake } from "./fake.mjs";

export { sleep };

/** Waits for what comes; fails if it was in vain. */
export async function eventually(isSo, what, limitMs = 20000) {
  const until = performance.now() + limitMs;
  while (!await isSo()) {
    if (performance.now() > until)
      throw new Error(`in vain for ${limitMs / 1000} s: ${what}`);
    await sleep(5);
  }
}

const open = [];

/** A server that ends with the test. */
export async function fake(fields, tls) {
  const one = await Fake.start(fields, tls);
  open.push(one);
  return one;
}

/** To be called by each file that has fakes: they end with their test. */
export function endFakes() {
  afterEach(() => {
    for (const one of open.splice(0)) one.close();
  });
}

/** The warnings of the package since the test began. */
export const warnings = [];

function note(warning) {
  if (warning.name === "RedlockdWarning") warnings.push(warning.message);
}

export function catchWarnings() {
  process.removeAllListeners("warning"); // which would print them
  process.on("warning", note);
  beforeEach(async () => {
    await new Promise(setImmediate); // for those of the test before
    warnings.splice(0);
  });
  after(() => process.off("warning", note));
}

export async function all(iterable) {
  const found = [];
  for await (const one of iterable) found.push(one);
  return found;
}

/** Variables of the environment, for the time of some work. */
export async function withEnv(variables, work) {
  const before = { ...process.env };
  Object.assign(process.env, variables);
  try {
    return await work();
  } finally {
    for (const name of Object.keys(variables)) delete process.env[name];
    Object.assign(process.env, before);
  }
}

/** What the promise is rejected with; fails unless it is of this type. */
export async function rejection(promise, type) {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof type, `${error.stack}, not ${type.name}`);
    return error;
  }
  assert.fail(`no ${type.name}`);
}

/** Resolves with the reason when the signal aborts; keeps the test running. */
export function aborted(signal, limitMs = 20000) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(reject, limitMs, new Error("it does not abort"));
    const done = () => {
      clearTimeout(timer);
      resolve(signal.reason);
    };
    if (signal.aborted) done();
    else signal.addEventListener("abort", done, { once: true });
  });
}
