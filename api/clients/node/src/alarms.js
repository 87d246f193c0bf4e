// SPDX-License-Identifier: MIT
// All that waits for a moment, behind one timer of Node.
//
// Each request and each lock waits for moments, which hardly ever come: the
// answer and the release come before. So to set an alarm and to clear it must be
// cheap: a heap of them, whose timer is set anew only for an earlier alarm. And
// timers stop while the machine sleeps: this one looks at the clock every second.
"use strict";

const { LONGEST_SLEEP_MS, now } = require("./clock.js");

class Alarms {
  #heap = []; // each is not before its parent, at (index - 1) >> 1
  #keeping = 0; // how many keep the process running
  #timer;
  #timerAt = Infinity;

  /**
   * Calls ring once, at this moment of the clock or soon after it.
   *
   * @param {number} at
   * @param {() => void} ring
   * @param {boolean} [keepsRunning] whether the process waits for it
   * @returns what clear() takes
   */
  set(at, ring, keepsRunning = false) {
    const alarm = { at, ring, keepsRunning, index: this.#heap.length };
    this.#heap.push(alarm);
    this.#rise(alarm);
    if (keepsRunning && ++this.#keeping === 1) this.#timer?.ref();
    if (at < this.#timerAt) this.#start(at);
    return alarm;
  }

  /** Of an alarm that has rung, or was cleared, this does nothing. */
  clear(alarm) {
    if (!alarm || alarm.index < 0) return;
    const { index } = alarm;
    const last = this.#heap.pop();
    if (last !== alarm) {
      this.#put(last, index);
      this.#rise(last);
      this.#sink(last);
    }
    alarm.index = -1;
    if (alarm.keepsRunning && --this.#keeping === 0) this.#timer?.unref();
  }

  #put(alarm, index) {
    this.#heap[index] = alarm;
    alarm.index = index;
  }

  #rise(alarm) {
    while (alarm.index > 0) {
      const parent = this.#heap[(alarm.index - 1) >> 1];
      if (parent.at <= alarm.at) return;
      const { index } = parent;
      this.#put(parent, alarm.index);
      this.#put(alarm, index);
    }
  }

  #sink(alarm) {
    while (true) {
      const first = 2 * alarm.index + 1;
      let child = this.#heap[first];
      const other = this.#heap[first + 1];
      if (other && other.at < child.at) child = other;
      if (!child || child.at >= alarm.at) return;
      const { index } = child;
      this.#put(child, alarm.index);
      this.#put(alarm, index);
    }
  }

  #start(at) {
    clearTimeout(this.#timer);
    const time = now();
    const ms = Math.min(Math.max(Math.ceil(at - time), 1), LONGEST_SLEEP_MS);
    this.#timerAt = time + ms;
    this.#timer = setTimeout(() => this.#wake(), ms);
    if (this.#keeping === 0) this.#timer.unref();
  }

  /** If the loop was held up, answers that have come are read before the alarms
   * of their requests ring. */
  #wake() {
    this.#timer = undefined;
    this.#timerAt = -Infinity; // it starts when all that are due have rung
    setImmediate(() => this.#ring());
  }

  #ring() {
    const time = now();
    try {
      while (this.#heap.length > 0 && this.#heap[0].at <= time) {
        const alarm = this.#heap[0];
        this.clear(alarm);
        alarm.ring();
      }
    } finally {
      this.#timerAt = Infinity;
      if (this.#heap.length > 0) this.#start(this.#heap[0].at);
    }
  }
}

/** Those of this thread. */
const alarms = new Alarms();

module.exports = { Alarms, alarms };
