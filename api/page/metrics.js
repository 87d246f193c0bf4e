// SPDX-License-Identifier: MIT
// What /metrics tells: counters, and what became of them between two looks.

const KEPT_MIN = 10;
// a rate and a percentile are those of the last looks, to be less jumpy
const WINDOW = 5;
const LOCK_CALLS = ['acquire', 'extend', 'release', 'inspect'];

const SAMPLE = /^(\w+)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

// Calls take(name, labels, value) for each sample of the text.
function readMetrics(text, take) {
  for (const line of text.split('\n')) {
    const match = line.startsWith('#') ? null : SAMPLE.exec(line);
    if (match !== null) {
      const labels = {};
      for (const [, name, value] of (match[2] || '').matchAll(LABEL)) {
        labels[name] = value;
      }
      take(match[1], labels, Number(match[3]));
    }
  }
}

// One look at the counters: only those of calls on locks, all taken together.
function makeLook(text, at) {
  const look = {at, statuses: new Map(), buckets: new Map(), gauges: new Map()};
  const add = (map, key, value) => map.set(key, (map.get(key) || 0) + value);
  readMetrics(text, (name, labels, value) => {
    if (name === 'redlockd_build_info') {
      look.version = labels.version;
    } else if (Object.keys(labels).length === 0) {
      look.gauges.set(name, value);
    } else if (name === 'redlockd_rounds_widened_total') {
      add(look.gauges, name, value); // whatever the cause
    } else if (name === 'redlockd_waiters_by_kind') {
      look.gauges.set(`${name}:${labels.kind}`, value);
    } else if (!LOCK_CALLS.includes(labels.call)) {
      return;
    } else if (name === 'redlockd_http_requests_total') {
      add(look.statuses, Number(labels.status), value);
    } else if (name === 'redlockd_http_request_duration_seconds_bucket') {
      add(look.buckets, Number(labels.le.replace('+Inf', 'Infinity')), value);
    }
  });
  return look;
}

// How many answers between two looks had a status that passes.
function countAnswers(before, after, passes) {
  let sum = 0;
  for (const [status, value] of after.statuses) {
    if (passes(status)) {
      sum += value - (before.statuses.get(status) || 0);
    }
  }
  return sum;
}

// The latency that this share of the requests did not exceed, in seconds;
// undefined: there were none. Within a bucket, it is taken as even.
function findQuantile(before, after, share) {
  const bounds = [...after.buckets.keys()].sort((a, b) => a - b);
  const below = (bound) =>
    after.buckets.get(bound) - (before.buckets.get(bound) || 0);
  const all = bounds.length > 0 ? below(bounds[bounds.length - 1]) : 0;
  if (all <= 0) {
    return undefined;
  }
  let lower = 0;
  let count = 0;
  for (const bound of bounds) {
    if (below(bound) >= share * all && bound !== Infinity) {
      const part = (share * all - count) / (below(bound) - count);
      return lower + (bound - lower) * part;
    }
    if (bound !== Infinity) {
      lower = bound;
      count = below(bound);
    }
  }
  return lower; // and more: what the last bucket tells
}

// Of the process: it tells a restart from another server that answered.
const startOf = ({gauges}) => gauges.get('process_start_time_seconds');

// The looks of some minutes, and the points that are drawn of them.
class History {
  constructor() {
    this.looks = new Map(); // by the start of the process
    this.points = [];
  }

  // Each process has counters of its own.
  add(look) {
    const start = startOf(look);
    this.isOfSeveral ||= this.looks.has(start) && start !== this.start;
    this.start = start;
    const looks = [...(this.looks.get(start) || []), look].slice(-WINDOW - 1);
    this.looks.set(start, looks);
    this.points.push(this.makePoint(looks[0], look));
    this.points = this.points.filter(({at}) => at >= look.at - KEPT_MIN * 60000);
  }

  makePoint(before, after) {
    const seconds = (after.at - before.at) / 1000;
    const rate = (passes) =>
      seconds > 0 ? countAnswers(before, after, passes) / seconds : undefined;
    return {
      at: after.at,
      done: rate((status) => status < 300),
      held: rate((status) => status === 409),
      unavailable: rate((status) => status === 503),
      other: rate((status) => status >= 400 && status !== 409 &&
                              status !== 503),
      p50: findQuantile(before, after, 0.5),
      p99: findQuantile(before, after, 0.99),
    };
  }
}
