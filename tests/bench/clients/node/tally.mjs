// SPDX-License-Identifier: MIT
// What the programs of this folder share: cycles of acquire and release, counted
// as ../../load.c does. Each is called as
//
//   PROGRAM CLIENTS SECONDS WHERE…
const WARM_UP_MS = 500;

export const TTL_MS = 30000;
export const [CLIENTS, SECONDS] = process.argv.slice(2, 4).map(Number);
export const WHERE = process.argv.slice(4);

export function cpuUs() {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** Of all clients; cycles that end from #begin to #end count. */
export class Tally {
  #beganUs = cpuUs(); // imports are no part of a cycle
  #begin = performance.now() + WARM_UP_MS;
  #end = this.#begin + SECONDS * 1000;
  #us = [];
  #cycles = 0;
  #failures = 0;

  /** Lets all clients do cycle(name), each with fresh names, until the time is
   * up. Those that throw are failures. */
  async run(cycle) {
    const work = async (number) => {
      let start;
      for (let i = 0; (start = performance.now()) < this.#end; i++) {
        this.#cycles += 1;
        try {
          await cycle(`bench:${process.pid}:${number}:${i}`);
        } catch (error) {
          if (++this.#failures === 1) console.error(error);
          continue;
        }
        const now = performance.now();
        if (now >= this.#begin && now < this.#end)
          this.#us.push(Math.trunc((now - start) * 1000));
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, (_, number) =>
      work(number)));
  }

  /** As sample_report in ../../sample.c. */
  report(more = {}) {
    const us = this.#us.sort((a, b) => a - b);
    const percentile = (percent) => us[Math.trunc(us.length * percent / 100)] ?? 0;
    const found = {
      cycles_per_s: Math.round(us.length / SECONDS), cycles: this.#cycles,
      failures: this.#failures, p50_us: percentile(50), p99_us: percentile(99),
      client_cpu_us: cpuUs() - this.#beganUs, ...more,
    };
    console.log(Object.entries(found).flat().join(" "));
  }
}
