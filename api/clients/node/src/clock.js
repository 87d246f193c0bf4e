// The clock by which validity is measured.
"use strict";

const { uptime } = require("node:os");

// Timers stop while the machine sleeps: code that waits for a moment must look
// at the clock again after this time at most.
const LONGEST_SLEEP_MS = 1000;

// os.uptime() is rounded down to 10 ms
const ROUNDED_MS = 20;

/**
 * TTLs on the nodes run on while the machine sleeps, and so must this clock. On
 * Linux performance.now() does not: it is CLOCK_MONOTONIC. os.uptime() does, but
 * only in steps of 10 ms. So this is performance.now(), and the time that the
 * machine slept. It never steps back.
 *
 * @param {() => number} readUptimeS
 * @param {() => number} readMonotonicMs
 * @returns {() => number} milliseconds since an arbitrary moment
 */
function makeClock(readUptimeS, readMonotonicMs) {
  let aheadMs = 0;
  return () => {
    // In this order: a pause in between looks like less sleep, and the next
    // look puts that right. In the other order, it would count as sleep.
    const uptimeMs = readUptimeS() * 1000;
    const monotonicMs = readMonotonicMs();
    if (uptimeMs - monotonicMs > aheadMs + ROUNDED_MS)
      aheadMs = uptimeMs - monotonicMs;
    return monotonicMs + aheadMs;
  };
}

function readUptimeS() {
  try {
    return uptime(); // about 6 us: it reads /proc/uptime
  } catch {
    return 0; // a sandbox forbids it: then sleep is not noticed
  }
}

const monotonic = () => performance.now();

/**
 * Milliseconds since an arbitrary moment. On macOS and Windows performance.now()
 * runs on by itself, and os.uptime() follows the wall clock.
 */
const now = ["linux", "android"].includes(process.platform)
  ? makeClock(readUptimeS, monotonic)
  : monotonic;

module.exports = { LONGEST_SLEEP_MS, makeClock, now };
