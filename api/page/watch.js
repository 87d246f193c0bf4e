// SPDX-License-Identifier: MIT
// Follows one lock: asks the server again and again to tell when the version is
// another one than the page knows.

// how long one call waits; so what is left of the lock is no older than this
const WATCH_MS = 3000;
// between two calls: a lock that changes hands all the time occupies nobody
const WATCH_BREATH_MS = 200;
const WATCH_RETRY_MS = 1000;

// Resolves after so long, or once the signal is aborted.
function pause(ms, signal) {
  return new Promise((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    signal.addEventListener('abort', finish);
  });
}

class Watch {
  // Calls tell(lock) with each answer; fail(why) if there is none; rest() when it stops because nobody sees the page.
  constructor({tell, fail, rest}) {
    Object.assign(this, {tell, fail, rest});
    document.addEventListener('visibilitychange', () => {
      if (document.hidden && this.turn !== undefined) {
        this.stop();
        this.rest();
      } else {
        this.start();
      }
    });
  }

  // There is one lock at a time.
  begin(lock) {
    this.end();
    this.id = lock.id;
    this.known = lock.version;
    this.start();
  }

  end() {
    this.stop();
    this.id = undefined;
  }

  // At once, whatever it waits for.
  retry() {
    this.stop();
    this.start();
  }

  stop() {
    if (this.turn !== undefined) {
      this.turn.abort();
      this.turn = undefined;
    }
  }

  start() {
    if (this.id !== undefined && this.turn === undefined && !document.hidden) {
      this.turn = new AbortController();
      this.run(this.turn.signal);
    }
  }

  async run(signal) {
    let failures = 0;
    while (!signal.aborted) {
      let delayMs = WATCH_BREATH_MS;
      try {
        const lock = await this.look(signal);
        if (!signal.aborted) {
          failures = 0;
          this.known = lock.version;
          this.tell(lock);
        }
      } catch (error) {
        if (!(error instanceof Unanswered)) {
          throw error; // a bug
        }
        if (!signal.aborted) {
          delayMs = Math.max(error.retryAfterMs,
                             WATCH_RETRY_MS * Math.min(2 ** failures,
                                                       BACKOFF_MAX));
          failures++;
          this.fail(error);
        }
      }
      await pause(delayMs, signal);
    }
  }

  look(signal) {
    const query = new URLSearchParams({after: this.known, wait_ms: WATCH_MS});
    return ask(`/locks/${this.id}?${query}`,
               {signal, timeoutMs: WATCH_MS + TIMEOUT_MS});
  }
}
