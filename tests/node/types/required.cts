// SPDX-License-Identifier: MIT
// A program of CommonJS.
import redlockd = require("redlockd-client");
import { type Lock, LockHeld } from "redlockd-client";

export async function number(): Promise<number> {
  try {
    return await redlockd.withLock("a", (lock: Lock) => lock.fencingToken);
  } catch (error) {
    return error instanceof LockHeld ? error.remainingMs ?? 0 : -1;
  }
}
