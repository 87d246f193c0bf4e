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
    throw new Unanswered('This server does not answer.');
  }
  if (response.status === 401) {
    throw new Unknown('This server asks for a token.', {status: 401});
  }
  if (!response.ok) {
    const why = body.detail || `status ${response.status}`;
    const what = response.status === 403 ? 'refuses' : 'cannot answer';
    throw new Unanswered(`This server ${what}: ${why}.`, {
      status: response.status, code: body.code,
      retryAfterMs: body.retry_after_ms,
    });
  }
  return body;
}

// Shows every interval what read() finds, and tries less and less often while
// that fails. Sleeps while nobody sees the page.
class Poll {
  constructor({intervalMs, read, show, fail}) {
    Object.assign(this, {intervalMs, read, show, fail, failures: 0,
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
    try {
      const answer = await this.read();
      this.failures = 0;
      this.show(answer, performance.now());
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
    return this.intervalMs * slower;
  }
}

// ---- whether the server answers --------------------------------------------

const server = {answeredAt: undefined};

// True if it did not answer before.
function noteAnswer(now) {
  const wasGone = !byId('gone').hidden || !byId('token').hidden;
  token.accept();
  server.answeredAt = now;
  byId('gone').hidden = true;
  document.body.classList.remove('old');
  setText(byId('gone-text'), '');
  return wasGone;
}

function noteFailure(error) {
  if (error instanceof Unknown) {
    byId('gone').hidden = true;
    force.abandon();
    token.ask();
    return;
  }
  token.accept();
  setText(byId('gone-text'), error.message);
  document.title = 'No answer – redlockd';
  byId('gone').hidden = false;
  document.body.classList.add('old');
  showSilence(performance.now());
}

// Outside of what is an alert: the seconds are not to be read out.
function showSilence(now) {
  setText(byId('gone-since'), server.answeredAt === undefined
    ? 'It has not answered yet.'
    : `No answer for ${formatDuration(now - server.answeredAt)}; ` +
      'what you see below is as old.');
}

// ---- the parts -------------------------------------------------------------

const token = new Token(() => {
  Object.values(polls).forEach((it) => it.wake());
  details.refuse('');
  details.watch.retry();
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
    details.tick(performance.now());
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
const charts = [
  new Chart({title: 'Answers per second', format: formatRate, least: 1,
             lines: [{name: 'done', label: 'done'},
                     {name: 'refused', label: 'refused'}]}),
  new Chart({title: 'Latency', format: formatLatency, least: 0.001,
             lines: [{name: 'p50', label: 'median'},
                     {name: 'p99', label: '99%'}]}),
  new Chart({title: 'Refusals per second', format: formatRate, least: 1,
             lines: [{name: 'held', label: '409 held'},
                     {name: 'unavailable', label: '503'},
                     {name: 'other', label: 'other'}]}),
];

function showTraffic(now) {
  for (const chart of charts) {
    chart.draw(traffic.points, now);
  }
}

function showFacts({gauges, version}) {
  const count = (name) => gauges.get(`redlockd_${name}`) || 0;
  setText(byId('about'), `${version} at ${location.host}`);
  setText(byId('facts'), [
    plural(count('waiters'), 'client waits', 'clients wait'),
    plural(count('rounds_widened_total'), 'acquire needed more than a quorum',
           'acquires needed more than a quorum'),
    plural(count('connections'), 'connection', 'connections'),
    `${plural(count('releases_pending'), 'release', 'releases')} pending`,
  ].join(' · '));
}

// Only /nodes tells whether the server answers: one of them must not hide what
// another one shows.
const polls = {
  nodes: new Poll({
    intervalMs: 1000,
    read: () => ask('/nodes'),
    show(answer, now) {
      if (noteAnswer(now)) {
        polls.metrics.wake();
        polls.locks.wake();
      }
      nodes.show(answer, now);
    },
    fail: noteFailure,
  }),
  metrics: new Poll({
    intervalMs: 2000,
    read: () => ask('/metrics'),
    show(text, now) {
      const look = makeLook(text, now);
      traffic.add(look);
      showTraffic(now);
      showFacts(look);
    },
    fail: ({message}) => setText(byId('facts'), message),
  }),
  locks: new Poll({
    intervalMs: 3000,
    read: () => locks.read(ask),
    show: (found, now) => locks.show(found, now),
    fail: ({message}) => locks.fail(message),
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
  const now = performance.now();
  if (!byId('gone').hidden) {
    showSilence(now);
  }
  nodes.tick(now);
  locks.tick(now);
  details.tick(now);
  force.tick(now, details.lock);
}, TICK_MS);
