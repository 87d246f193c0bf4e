// SPDX-License-Identifier: MIT
// What waits for a moment: in order, not before its moment, and cleared.
import assert from "node:assert/strict";
import test from "node:test";

import { Alarms } from "../node_modules/redlockd-client/src/alarms.js";
import { now } from "../node_modules/redlockd-client/src/clock.js";
import { eventually, sleep } from "./lib.mjs";

test("alarms ring in order, not too early, and those that are cleared do not",
  async () => {
    const alarms = new Alarms();
    const began = now();
    const rung = [];
    const all = Array.from({ length: 500 }, (_, number) => {
      const at = began + 50 + Math.random() * 300;
      return alarms.set(at, () => {
        assert.ok(now() >= at);
        rung.push(number);
      });
    });
    const kept = all.map((_, number) => number).filter((n) => n % 3 !== 0);
    all.forEach((alarm, n) => { if (n % 3 === 0) alarms.clear(alarm); });
    await eventually(() => rung.length === kept.length, "all of them");
    await sleep(100);
    assert.deepEqual(rung, kept.sort((a, b) => all[a].at - all[b].at));
    for (const alarm of all) alarms.clear(alarm); // nothing happens
  });

test("an alarm may set and clear others",
  async () => {
    const alarms = new Alarms();
    const rung = [];
    const late = alarms.set(now() + 30, () => rung.push("late"));
    alarms.set(now() + 10, () => {
      alarms.clear(late);
      alarms.set(now(), () => rung.push("at once"));
      alarms.set(now() + 20, () => rung.push("soon"));
    });
    await eventually(() => rung.length === 2, "both");
    await sleep(50);
    assert.deepEqual(rung, ["at once", "soon"]);
  });
