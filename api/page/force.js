// SPDX-License-Identifier: MIT
// Asks once more before a lock is released by force.

class Force {
  // ended({news, failure, refusal}): what came of it, for people.
  constructor({ended}) {
    this.ended = ended;
    this.dialog = byId('force-dialog');
    byId('force-cancel').addEventListener('click', () => this.close());
    byId('force-do').addEventListener('click', () => this.send());
    // a call that is under way is not taken back
    this.dialog.addEventListener('cancel', (event) => {
      if (this.isSending) {
        event.preventDefault();
      }
    });
    this.dialog.addEventListener('close', () => {
      this.lock = undefined;
    });
  }

  // Of the lock that is shown, and of no later one: the number says which.
  open(lock) {
    this.lock = lock;
    this.isSending = false;
    byId('force-readers').hidden = lock.mode !== 'shared';
    this.tick(readClock(), lock);
    this.dialog.showModal();
  }

  close() {
    if (!this.isSending) {
      this.dialog.close();
    }
  }

  // Somebody else needs the page, such as the question for a token.
  abandon() {
    this.isSending = false;
    this.dialog.close();
  }

  // latest: what is known by now of the lock that the page shows. It may expire
  // later than it did; but a new holder is not what somebody was asked about.
  tick(now, latest) {
    if (this.lock === undefined) {
      return;
    }
    if (latest !== undefined && latest.id === this.lock.id &&
        latest.version === this.lock.version) {
      this.lock = latest;
    }
    const {lock} = this;
    showFactList(byId('force-facts'), [['Resource', describeResource(lock)],
                                       ...factsOf(lock, now)]);
    setText(byId('force-do'), lock.mode === 'shared'
      ? `Release ${describeHolder(lock)} by force`
      : `Release ${lock.fencing_token} by force`);
  }

  async send() {
    if (this.isSending) {
      return;
    }
    this.isSending = true;
    const {id, mode, fencing_token: number} = this.lock;
    const force = mode === 'shared' ? 'all' : number;
    let outcome;
    try {
      await ask(`/locks/${id}?force=${force}`, {method: 'DELETE'});
      outcome = {news: force === 'all' ? 'All readers were released by force.'
        : `The lock with the fencing token ${number} was released by force.`};
    } catch (error) {
      if (!(error instanceof Unanswered)) {
        throw error; // a bug
      }
      outcome = this.explain(error);
    } finally {
      this.isSending = false;
      this.dialog.close();
    }
    this.ended(outcome);
  }

  explain(error) {
    switch (error.code) {
    case 'not_owner':
      return {failure: 'Nothing was released: another client holds the lock ' +
                       'now, and keeps it.'};
    case 'lock_not_found':
      return {failure: 'Nothing was released: nobody holds the lock any more.'};
    case 'forbidden':
      return {refusal: `Nothing was released. ${error.message}`};
    default:
      return {failure: error.status === undefined
        ? `${error.message} The lock may have been released or not.`
        : `The release failed. ${error.message}`};
    }
  }
}
