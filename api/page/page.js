// SPDX-License-Identifier: MIT
// Asks the server again and again, and shows what it answers.

const TIMEOUT_MS = 5000;
const BACKOFF_MAX = 8; // times the interval
const TICK_MS = 500;

// There is no answer, or one that is an error: then with status, and with code
// if it is a problem that the server names.
class Unanswered extends Error {
  constructor(message, {status, code, retryAfterMs = 0} = {}) {
    super(message);
    Object.assign(this, {status, code, retryAfterMs});
  }
}

// The server does not know who asks.
class Unknown extends Unanswered {}

async function ask(path, {method = 'GET', signal,
                          timeoutMs = TIMEOUT_MS} = {}) {
  const signals = [AbortSignal.timeout(timeoutMs)];
  if (signal !== undefined) {
    signals.push(signal);
  }
  let response;
  let body;
  try {
    response = await fetch(path, {method, cache: 'no-store',
                                  headers: token.headers(),
                                  signal: AbortSignal.any(signals)});
    const isJson = /json/.test(response.headers.get('Content-Type'));
    body = await (isJson ? response.json() : response.text());
  } catch {
    throw new Unanswered(NO_ANSWER);
  }
  if (response.status === 401) {
    throw new Unknown('This server requires an access token.', {status: 401});
  }
  if (!response.ok) {
    const why = body.detail || `status ${response.status}`;
    const what = response.status < 500 ? 'refuses the request'
      : 'cannot respond';
    throw new Unanswered(`This server ${what}: ${why}.`, {
      status: response.status, code: body.code,
      retryAfterMs: body.retry_after_ms,
    });
  }
  return body;
}

// Shows every interval what read() finds, and tries less and less often while
// that fails. What takes long is read less often: it rests for so many times as
// long. Sleeps while nobody sees the page.
class Poll {
  constructor({intervalMs, read, show, fail, rest = 0}) {
    Object.assign(this, {intervalMs, read, show, fail, rest, failures: 0,
                         isRunning: false});
    document.addEventListener('visibilitychange', () => this.wake());
    this.wake();
  }

  // At once; what runs already runs again.
  async wake() {
    clearTimeout(this.timer);
    this.isDue = true;
    while (!this.isRunning && this.isDue && !document.hidden) {
      await this.run();
    }
  }

  async run() {
    this.isRunning = true;
    this.isDue = false;
    const began = readClock();
    this.restMs = 0;
    try {
      const answer = await this.read();
      this.failures = 0;
      this.restMs = this.rest * (readClock() - began);
      this.show(answer, readClock());
    } catch (error) {
      if (!(error instanceof Unanswered)) {
        throw error; // a bug
      }
      this.failures++;
      this.fail(error);
    } finally {
      this.isRunning = false;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.wake(), this.delayMs());
    }
  }

  delayMs() {
    const slower = Math.min(2 ** this.failures, BACKOFF_MAX);
    return Math.max(this.intervalMs * slower, this.restMs);
  }
}

// ---- the server ------------------------------------------------------------

// A server that is about to stop has a quorum, and yet wants no work.
async function readStopping() {
  if (verdict.hasQuorum()) {
    try {
      await ask('/readyz');
    } catch (error) {
      if (error.code === 'shutting_down') {
        return true;
      }
      throw error;
    }
  }
  return false;
}

async function readNodes() {
  verdict.ask(readClock());
  const answer = await ask('/nodes');
  if (!Array.isArray(answer.nodes)) {
    throw new Unanswered('The server at this address is not redlockd.', {status: 200});
  }
  return answer;
}

function showNodes(answer, now) {
  token.accept();
  nodes.show(answer, now);
  if (verdict.take(answer, now)) {
    polls.stopping.wake();
    polls.metrics.wake();
    polls.locks.wake();
  }
}

function failNodes(error) {
  if (error instanceof Unknown) {
    verdict.close();
    force.abandon();
    token.ask();
    return;
  }
  token.accept();
  verdict.fail(error, readClock());
}

// ---- the parts -------------------------------------------------------------

const token = new Token(() => {
  Object.values(polls).forEach((it) => it.wake());
  details.refuse('');
  details.watch.retry();
});
const verdict = new Verdict(() => {
  token.forget();
  verdict.close();
  token.ask();
});
const nodes = new Nodes();
const details = new Details({
  force: (lock) => force.open(lock),
  closed: () => locks.mark(undefined, {focus: true}),
});
const force = new Force({
  ended({news = '', failure = '', refusal = ''}) {
    details.tell(news, failure);
    details.refuse(refusal);
    details.tick(readClock());
    details.watch.retry();
    polls.locks.wake();
  },
});
const locks = new Locks((lock) => {
  if (lock.id === details.id) {
    details.close();
  } else {
    details.open(lock);
    locks.mark(lock.id);
  }
});
const traffic = new History();
let facts; // the last look
const charts = [
  new Chart({title: 'Responses per second', format: formatRate, least: 1,
             lines: [{name: 'done', label: 'done'}]}),
  new Chart({title: 'Latency', format: formatLatency, least: 0.001,
             lines: [{name: 'p50', label: 'median'},
                     {name: 'p99', label: '99%'}]}),
  new Chart({title: 'Refusals per second', format: formatRate, least: 1,
             lines: [{name: 'held', label: '409 held'},
                     {name: 'unavailable', label: '503',
                      alert: 'RedlockdServerErrors'},
                     {name: 'other', label: 'other'}]}),
];

function showTraffic(now) {
  for (const chart of charts) {
    chart.draw(traffic.points, now);
  }
}

// as the alerts have it, of their limits
const NEAR = 0.8;

function makeFacts({gauges}) {
  const count = (name) => gauges.get(`redlockd_${name}`) || 0;
  const isNear = (name) => count(name) > NEAR * count(`${name}_max`);
  const limited = (name, text, alert) => isNear(name)
    ? {text: `${text} of ${formatCount(count(`${name}_max`))}`, alert}
    : {text, alert: ''};
  return [
    limited('waiters', plural(count('waiters'), 'client waits', 'clients wait'),
            'RedlockdWaitersNearLimit'),
    {text: plural(count('rounds_widened_total'),
                  'acquire needed more than a quorum',
                  'acquires needed more than a quorum'), alert: ''},
    limited('connections',
            plural(count('connections'), 'connection', 'connections'),
            'RedlockdConnectionsNearLimit'),
    {text: `${plural(count('releases_pending'), 'release', 'releases')} pending`,
     alert: ''},
  ];
}

// What is old is told as such.
function showFacts(now) {
  if (facts === undefined || byId('charts').hidden) {
    return;
  }
  const age = formatAge(facts.at, now);
  showNotes(byId('facts'), [...makeFacts(facts),
                            ...age === '' ? [] : [{text: age, alert: ''}]]);
  setText(byId('several'), !traffic.isOfSeveral ? ''
    : 'Several servers respond at this address, each with its own counters: ' +
      'figures and waiters may be from any of them. Open the page of one server.');
}

// What is shown stays, unless this visitor may not see it.
function failFacts({message, status}) {
  if (status === 403) {
    byId('charts').hidden = true;
    showNotes(byId('facts'), [{text: message, alert: ''}]);
  }
}

// For how many clients the list has to find a lock.
const countLockWaiters = ({gauges}) => ['lock', 'permit']
  .map((kind) => gauges.get(`redlockd_waiters_by_kind:${kind}`) || 0)
  .reduce((sum, count) => sum + count, 0);

// Only /nodes tells whether the server answers: one of them must not hide what
// another one shows.
const polls = {
  nodes: new Poll({
    intervalMs: 1000,
    read: readNodes,
    show: showNodes,
    fail: failNodes,
  }),
  stopping: new Poll({
    intervalMs: 2000,
    read: readStopping,
    show(isStopping) {
      verdict.isStopping = isStopping;
    },
    fail() {}, // what was known last is still so
  }),
  metrics: new Poll({
    intervalMs: 2000,
    read: () => ask('/metrics'),
    show(text, now) {
      const look = makeLook(text, now);
      traffic.add(look);
      facts = look;
      setText(byId('about'), `${look.version} at ${location.host}`);
      byId('charts').hidden = false;
      showTraffic(now);
      showFacts(now);
      locks.waiters = countLockWaiters(look);
    },
    fail: failFacts,
  }),
  locks: new Poll({
    intervalMs: 3000,
    rest: 4,
    read: () => locks.read(ask),
    show: (found, now) => locks.show(found, now),
    fail: (error) => locks.fail(error),
  }),
};

byId('charts').append(...charts.map(({element}) => element));
byId('filter').addEventListener('submit', (event) => event.preventDefault());
byId('prefix').addEventListener('input', () => {
  locks.wanted = PAGE;
  polls.locks.wake();
});
byId('more').addEventListener('click', () => {
  locks.wanted += PAGE;
  polls.locks.wake();
});
setInterval(() => {
  const now = readClock();
  verdict.show(now);
  showTraffic(now);
  showFacts(now);
  nodes.tick(now);
  locks.tick(now);
  details.tick(now);
  force.tick(now, details.lock);
}, TICK_MS);

// Nobody asks the server while nobody sees the page: its title claims nothing.
let titleSeen = document.title;
document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    titleSeen = document.title;
    document.title = 'Paused – redlockd';
  } else {
    document.title = titleSeen;
    verdict.show(readClock());
  }
});

// Browsers that do not unfold what a link leads to.
addEventListener('hashchange', () => {
  const target = byId(location.hash.slice(1));
  for (let it = target; it; it = it.parentElement) {
    if (it.tagName === 'DETAILS') {
      it.open = true;
    }
  }
  target?.scrollIntoView();
});
