// SPDX-License-Identifier: MIT
// The clock by which validity is measured.
"use strict";

const { uptime } = require("node:os");

// Timers stop while the machine sleeps: code that waits for a moment must look
// at the clock again after this time at most.
const LONGEST_SLEEP_MS = 1000;

// os.uptime() is rounded down to 10 ms
const ROUNDED_MS = 20;
// now() takes the time that the machine slept from os.uptime() no longer ago
const LOOK_MS = 20;
// a sleep moves the wall clock ahead, too
const STEP_MS = 5;

/**
 * TTLs on the nodes run on while the machine sleeps, and so must this clock. On
 * Linux performance.now() does not: it is CLOCK_MONOTONIC. os.uptime() does, but
 * only in steps of 10 ms, and it reads a file. So this is performance.now(), and
 * the time that the machine slept. It never steps back.
 *
 * now() asks for the uptime only if the wall clock shows that there may have been
 * a sleep, or every 20 ms; surely() asks each time.
 *
 * @param {() => number} readUptimeS
 * @param {() => number} readMonotonicMs
 * @param {() => number} readWallMs
 * @returns {{now: () => number, surely: () => number}} milliseconds since an
 * arbitrary moment
 */
function makeClock(readUptimeS, readMonotonicMs, readWallMs) {
  let sleptMs = 0;
  let lookedAt = -Infinity;
  let wallAheadMs = 0;
  function surely() {
    // In this order: a pause in between looks like less sleep, and the next
    // look puts that right. In the other order, it would count as sleep.
    const wallMs = readWallMs();
    const uptimeMs = readUptimeS() * 1000;
    const monotonicMs = readMonotonicMs();
    if (uptimeMs - monotonicMs > sleptMs + ROUNDED_MS)
      sleptMs = uptimeMs - monotonicMs;
    lookedAt = monotonicMs;
    wallAheadMs = wallMs - monotonicMs;
    return monotonicMs + sleptMs;
  }
  function now() {
    const monotonicMs = readMonotonicMs();
    const stepMs = Math.abs(readWallMs() - monotonicMs - wallAheadMs);
    if (monotonicMs - lookedAt >= LOOK_MS || stepMs >= STEP_MS) return surely();
    return monotonicMs + sleptMs;
  }
  return { now, surely };
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
const { now, surely } = ["linux", "android"].includes(process.platform)
  ? makeClock(readUptimeS, monotonic, Date.now)
  : { now: monotonic, surely: monotonic };

module.exports = { LONGEST_SLEEP_MS, makeClock, now, surely };
