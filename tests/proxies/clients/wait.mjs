// Waits for a lock until it is interrupted, and ends: URL, and options as JSON.
import { AbortError, withLock } from "redlockd-client";

const { resources, ...options } = JSON.parse(process.argv[3]);
const stop = new AbortController();
process.once("SIGINT", () => stop.abort());
try {
  await withLock(resources, {
    urls: process.argv[2], ttlMs: 4000, signal: stop.signal, ...options,
  }, () => console.log("granted"));
} catch (error) {
  if (!(error instanceof AbortError)) throw error;
  process.exitCode = 1;
}
